// SPDX-License-Identifier: BSD-3-Clause
// Hands out pieces of device memory. Control path: a lock, a map, and a scrub on every free, so
// that no owner finds another's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/result.h"
#include "nicmem/memory.h"
#include "nicmem/region.h"

namespace nicmem {

/// Thread-safe. First fit, in units of 64 bytes; neighbouring free pieces join.
class Heap {
 public:
  static constexpr size_t kUnit = 64;

  /// `memory` must outlive the heap.
  explicit Heap(Memory& memory);

  /// `bytes` is rounded up to 64; `align` is a power of two, 64 at least. kExhausted names what is
  /// left; kInvalidArgument for 0 bytes or a bad alignment. The content is zero.
  Result<Region> allocate(size_t bytes, size_t align = kUnit);

  /// Of a region from allocate(), once. kInvalidArgument otherwise.
  Result<void> free(const Region& region);

  size_t free_bytes() const;
  size_t largest_free() const;
  size_t allocated_bytes() const;

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::map<uint64_t, size_t> free_;  // offset -> size; no two touch
  std::map<uint64_t, size_t> used_;
};

}  // namespace nicmem
