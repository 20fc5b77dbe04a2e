// SPDX-License-Identifier: BSD-3-Clause
// From an address in an mbuf to what a WQE wants: the region's key, and the address in it. Host
// memory of DPDK, and what pools have besides, is registered when it is first met and forgotten
// when DPDK unmaps it or the pool ends; device memory is known from its allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/endian.h"
#include "hca/hca.h"
#include "hw/wqe.h"

namespace nicmem::pmd {

/// One registered range of CPU addresses.
struct KeyRange {
  uintptr_t start = 0, size = 0;
  uintptr_t base = 0;  // CPU address minus base = WQE address
  be32 key;
  bool on_card = false;
  bool of_pool = false;  // memory that only a pool knows

  bool contains(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - start < size;  // unsigned: one comparison
  }
  hw::DataSegment segment(const void* pointer, uint32_t bytes) const {
    return {be32(bytes), key, be64(reinterpret_cast<uintptr_t>(pointer) - base)};
  }
};

/// All ranges of one device. Thread-safe; the data path comes here only when its KeyCache misses.
///
/// A region stays registered until DPDK has unmapped all of it: work requests may still name its
/// key. Each unmapping starts a new generation, for the same addresses may come back as other
/// memory.
class MemoryMap {
 public:
  MemoryMap(hca::Hca& hca, hca::Domain domain);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  /// Device memory seen at `window`, registered under `key` with base window.data().
  void add_device_memory(std::span<std::byte> window, uint32_t key);

  /// Registers memory before it is met (rte_dev_dma_map()), if that is still to be done.
  Result<void> add_host_memory(void* start, size_t length);

  /// Host memory that is about to go, or that the program takes back (rte_dev_dma_unmap()). False:
  /// nothing of it was known. Device memory is not forgotten.
  bool forget(const void* start, size_t length);

  /// Memory of a pool that is about to end, unless DPDK itself knows it.
  void forget_pool(const void* start, size_t length);

  /// The range that holds `pointer`, registering the memory around it on first sight. False: the
  /// address is neither this device's memory, nor memory that DPDK knows, nor a pool's.
  bool find(const void* pointer, KeyRange& out);

  /// This device's memory; empty when it has none.
  KeyRange device_memory() const;
  const std::atomic<uint32_t>& generation() const { return generation_; }

  struct Total {
    size_t ranges = 0;
    size_t bytes = 0;  // of host memory
  };
  Total registered() const;

 private:
  bool find_known(const void* pointer, KeyRange& out) const;
  bool register_around(const void* pointer, KeyRange& out);
  bool register_pool_around(const void* pointer, KeyRange& out);
  Result<KeyRange> add(void* start, size_t length);

  hca::Hca& hca_;
  hca::Domain domain_;
  bool pools_watched_ = false;  // DPDK says when one ends
  mutable std::mutex mutex_;    // taken after DPDK's lock of its memory map, never before
  std::vector<KeyRange> ranges_;
  std::vector<std::unique_ptr<hca::MemoryRegion>> regions_;
  std::atomic<uint32_t> generation_{0};
};

/// A queue's own copy of the ranges that it meets: a handful in every program we know.
class KeyCache {
 public:
  KeyCache() = default;
  explicit KeyCache(MemoryMap* map) : map_(map), generation_(map->generation()) {}

  /// Forgets ranges that may have gone; once a burst. Memory cannot go while a buffer of the burst
  /// lies in it. Whether it did.
  bool refresh() {
    if (map_ == nullptr || map_->generation().load(std::memory_order_relaxed) == generation_)
        [[likely]]
      return false;
    forget_all();
    return true;
  }

  /// Null: see MemoryMap::find.
  const KeyRange* find(const void* pointer) {
    for (const KeyRange& range : ranges_)
      if (range.contains(pointer)) [[likely]]
        return &range;
    return miss(pointer);
  }

 private:
  const KeyRange* miss(const void* pointer);
  void forget_all();

  std::array<KeyRange, 4> ranges_{};
  uint32_t next_ = 0;  // victim of the next miss, round robin
  MemoryMap* map_ = nullptr;
  uint32_t generation_ = 0;  // of the map, when the cache was last empty
};

}  // namespace nicmem::pmd
