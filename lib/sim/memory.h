// SPDX-License-Identifier: BSD-3-Clause
// Memory for rings and records, aligned as a card wants it: rings to pages, records to cache lines.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/bits.h"
#include "base/check.h"

namespace nicmem::sim {

inline constexpr size_t kRingAlignment = 4096;
inline constexpr size_t kLineBytes = 64;

/// Zeroed host memory. `alignment` is a power of two; the size is rounded up to it.
class AlignedBytes {
 public:
  AlignedBytes(size_t bytes, size_t alignment)
      : size_(bytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(bytes, alignment)))) {
    NM_CHECK(data_ != nullptr);
    std::memset(data_.get(), 0, round_up(bytes, alignment));
  }
  std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

/// A T in a cache line of its own, so that driver and device share nothing by accident.
template <class T>
class OwnLine {
 public:
  OwnLine() : memory_(sizeof(T), kLineBytes), object_(new (memory_.data()) T()) {}
  T* get() const { return object_; }

 private:
  AlignedBytes memory_;
  T* object_;
};

}  // namespace nicmem::sim
