// SPDX-License-Identifier: BSD-3-Clause
// Hiding the latency of the next items behind the work on this one: the loop is written once, here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace nicmem {

/// Asks for the cache line of `address`, to read it. Any address is allowed, also an invalid one.
inline void prefetch_read(const void* address) { __builtin_prefetch(address); }

/// Asks for the cache line of `address`, to write it: from another core's cache in one step, not
/// first to read it. Any address is allowed, also an invalid one.
inline void prefetch_write(const void* address) {
#if defined(__x86_64__)
  // GCC's builtin asks for it to be read unless the CPU's kind is told; without it, a no-op. [Intel
  // SDM, PREFETCHW]
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

/// act(item) for each item in order; prefetch(item) runs `Ahead` items earlier, once an item.
template <std::size_t Ahead, class T, class Prefetch, class Act>
void for_each_ahead(std::span<T> items, Prefetch&& prefetch, Act&& act) {
  const std::size_t count = items.size();
  for (std::size_t i = 0; i < std::min(Ahead, count); ++i) prefetch(items[i]);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + Ahead < count) prefetch(items[i + Ahead]);
    act(items[i]);
  }
}

}  // namespace nicmem
