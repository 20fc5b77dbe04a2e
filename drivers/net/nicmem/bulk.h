// SPDX-License-Identifier: BSD-3-Clause
// Buffers in bulk. The common case, an lcore's cache that has enough or has room, is a copy of
// pointers here; all else is rte_mempool's. [as DPDK's drivers for Intel's cards return theirs]
#pragma once

#include <algorithm>

#include "compat.h"

namespace nicmem::pmd {

/// This lcore's cache of the pool's free buffers; null: it has none.
inline rte_mempool_cache* cache_of(rte_mempool* pool) {
  return rte_mempool_default_cache(pool, rte_lcore_id());
}
inline rte_mbuf** buffers_of(rte_mempool_cache* cache) {
  return reinterpret_cast<rte_mbuf**>(cache->objs);
}

/// All `count` buffers or none; then `out` may have been written.
inline bool get_bulk(rte_mempool* pool, rte_mbuf** out, uint32_t count) {
  rte_mempool_cache* const cache = cache_of(pool);
  if (cache == nullptr || cache->len < count) [[unlikely]]
    return rte_mempool_generic_get(pool, reinterpret_cast<void**>(out), count, cache) == 0;
  cache->len -= count;
  std::copy_n(buffers_of(cache) + cache->len, count, out);
  return true;
}

/// The same without copying: where the buffers stand written, in the cache or in `own`; good until
/// the next call for that pool. Null: none.
inline rte_mbuf** get_in_place(rte_mempool* pool, rte_mbuf** own, uint32_t count) {
  rte_mempool_cache* const cache = cache_of(pool);
  if (cache == nullptr || cache->len < count) [[unlikely]]
    return get_bulk(pool, own, count) ? own : nullptr;
  cache->len -= count;
  return buffers_of(cache) + cache->len;
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
  rte_mempool_cache* const cache = cache_of(pool);
  if (cache == nullptr || cache->len + count > cache->flushthresh) [[unlikely]]
    return rte_mempool_generic_put(pool, reinterpret_cast<void* const*>(mbufs), count, cache);
  std::copy_n(mbufs, count, buffers_of(cache) + cache->len);
  cache->len += count;
}

/// A place to collect at most `most` buffers of one pool that are to go back together: at the top
/// of the cache where it has room, else here.
template <uint32_t kMost>
class Collector {
 public:
  Collector(rte_mempool* pool, uint32_t most) : pool_(pool), cache_(cache_of(pool)) {
    const bool has_room = cache_ != nullptr && cache_->len + most <= cache_->flushthresh;
    if (!has_room) cache_ = nullptr;
    start_ = has_room ? buffers_of(cache_) + cache_->len : own_;
  }
  rte_mbuf** start() { return start_; }
  /// Gives back what lies in [start(), end). Until then the cache must be left alone.
  void give_back(rte_mbuf** end) {
    const auto count = static_cast<uint32_t>(end - start_);
    if (cache_ != nullptr) [[likely]]
      cache_->len += count;
    else
      put_bulk(pool_, own_, count);
  }

 private:
  rte_mempool* pool_;
  rte_mempool_cache* cache_;
  rte_mbuf** start_;
  rte_mbuf* own_[kMost];
};

}  // namespace nicmem::pmd
