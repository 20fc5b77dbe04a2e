// SPDX-License-Identifier: BSD-3-Clause
// From an address in an mbuf to what a WQE wants: the region's key, and the address in it. Host
// memory of DPDK is registered when it is first met; device memory is known from its allocation.
#pragma once

#include <array>
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

  bool contains(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - start < size;  // unsigned: one comparison
  }
  hw::DataSegment segment(const void* pointer, uint32_t bytes) const {
    return {be32(bytes), key, be64(reinterpret_cast<uintptr_t>(pointer) - base)};
  }
};

/// All ranges of one device. Thread-safe; the data path comes here only when its KeyCache misses.
class MemoryMap {
 public:
  MemoryMap(hca::Hca& hca, hca::Domain domain) : hca_(hca), domain_(domain) {}

  /// Device memory seen at `window`, registered under `key` with base window.data().
  void add_device_memory(std::span<std::byte> window, uint32_t key);

  /// The range that holds `pointer`, registering DPDK's memory around it on first sight. Null: the
  /// address is neither this device's memory nor memory that DPDK knows.
  bool find(const void* pointer, KeyRange& out);

  /// This device's memory; empty when it has none.
  KeyRange device_memory() const;

 private:
  bool register_around(const void* pointer, KeyRange& out);

  hca::Hca& hca_;
  hca::Domain domain_;
  std::mutex mutex_;
  std::vector<KeyRange> ranges_;
  std::vector<std::unique_ptr<hca::MemoryRegion>> regions_;
};

/// A queue's own copy of the ranges that it meets: a handful in every program we know.
class KeyCache {
 public:
  KeyCache() = default;
  explicit KeyCache(MemoryMap* map) : map_(map) {}

  /// Null: see MemoryMap::find.
  const KeyRange* find(const void* pointer) {
    for (const KeyRange& range : ranges_)
      if (range.contains(pointer)) [[likely]]
        return &range;
    return miss(pointer);
  }

 private:
  const KeyRange* miss(const void* pointer);

  std::array<KeyRange, 4> ranges_{};
  uint32_t next_ = 0;  // victim of the next miss, round robin
  MemoryMap* map_ = nullptr;
};

}  // namespace nicmem::pmd
