// SPDX-License-Identifier: BSD-3-Clause
// Device memory of one device and protection domain: allocated, mapped, registered and scrubbed.
//
// Two views of the same bytes: window() is what applications and mbufs point at (no access at all
// in guard mode); the access view is private to nicmem/copy.h, which counts what the CPU reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/core.h"
#include "base/result.h"
#include "hca/hca.h"
#include "nicmem/region.h"

namespace nicmem {

/// Copies made by the CPU since the memory was allocated.
struct MemoryStats {
  uint64_t writes = 0;  // copy_to_nic
  uint64_t bytes_written = 0;
  uint64_t reads = 0;  // copy_from_nic and slow_read
  uint64_t bytes_read = 0;
  uint64_t slow_reads = 0;          // of these: slow_read
  uint64_t slow_reads_refused = 0;  // above the rate
};

class Memory {
 public:
  static constexpr size_t kMinBytes = 4096;
  static constexpr uint64_t kDefaultSlowReadsPerSecond = 10'000;

  /// Asks for `want_bytes`, in units of 64, and halves until the device gives some; requested() and
  /// size() tell both. kExhausted: not even 4 KiB are to be had. kUnsupported: the device has no
  /// memory to give. kInvalidArgument: fewer than kMinBytes asked for.
  static Result<std::unique_ptr<Memory>> allocate(hca::Hca& hca, hca::Domain domain,
                                                  size_t want_bytes);
  /// Scrubs, so that the next owner finds nothing.
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  size_t requested() const { return requested_; }
  size_t size() const { return window_.size(); }
  uint32_t key() const { return region_->key; }
  std::span<std::byte> window() const { return window_; }
  Region whole() const { return {0, size(), key()}; }

  bool contains(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const auto start = reinterpret_cast<uintptr_t>(window_.data());
    return address >= start && address - start < size();
  }
  /// Of a pointer that contains() is true for.
  uint64_t offset_of(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(window_.data());
  }
  /// In the window. `offset` at most size().
  std::byte* pointer(uint64_t offset) const { return window_.data() + offset; }

  MemoryStats stats() const;
  /// 0 allows none.
  void set_slow_read_rate(uint64_t per_second);
  uint64_t slow_read_rate() const;

 private:
  friend class Copier;
  Memory() = default;
  bool take_slow_read(Nanos now);

  size_t requested_ = 0;
  std::unique_ptr<hca::DeviceMemory> memory_;
  std::unique_ptr<hca::MemoryRegion> region_;
  std::span<std::byte> window_;
  std::span<std::byte> access_;

  std::atomic<uint64_t> writes_{0}, bytes_written_{0}, reads_{0}, bytes_read_{0};
  std::atomic<uint64_t> slow_reads_{0}, slow_reads_refused_{0};

  mutable std::mutex rate_mutex_;  // slow reads are slow: a lock is nothing beside them
  uint64_t slow_reads_per_second_ = kDefaultSlowReadsPerSecond;
  double slow_read_tokens_ = 0;
  Nanos last_slow_read_ = 0;
  bool first_slow_read_ = true;
};

}  // namespace nicmem
