// SPDX-License-Identifier: BSD-3-Clause
// Buffers in bulk. The common case, an lcore's cache that has enough or has room, is a copy of
// pointers here; all else is rte_mempool's. [as DPDK's drivers for Intel's cards return theirs]
#pragma once

#include <algorithm>

#include "compat.h"

namespace nicmem::pmd {

/// All `count` buffers or none; then `out` may have been written.
inline bool get_bulk(rte_mempool* pool, rte_mbuf** out, uint32_t count) {
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool, rte_lcore_id());
  if (cache == nullptr || cache->len < count) [[unlikely]]
    return rte_mempool_generic_get(pool, reinterpret_cast<void**>(out), count, cache) == 0;
  cache->len -= count;
  std::copy_n(reinterpret_cast<rte_mbuf**>(cache->objs) + cache->len, count, out);
  return true;
}

/// As many buffers of `pool` as it has, at most `most`.
inline uint32_t get_up_to(rte_mempool* pool, rte_mbuf** out, uint32_t most) {
  if (get_bulk(pool, out, most)) return most;
  uint32_t count = 0;
  while (count < most && get_bulk(pool, out + count, 1)) ++count;
  return count;
}

/// The buffers are as their pool wants them: nobody holds them, next is null, nb_segs 1.
inline void put_bulk(rte_mempool* pool, rte_mbuf* const* mbufs, uint32_t count) {
  if (count == 0) return;
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool, rte_lcore_id());
  if (cache == nullptr || cache->len + count > cache->flushthresh) [[unlikely]]
    return rte_mempool_generic_put(pool, reinterpret_cast<void* const*>(mbufs), count, cache);
  std::copy_n(mbufs, count, reinterpret_cast<rte_mbuf**>(cache->objs) + cache->len);
  cache->len += count;
}

}  // namespace nicmem::pmd
