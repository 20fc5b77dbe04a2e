// SPDX-License-Identifier: BSD-3-Clause
// Receive, one completion at a time: any number of segments, pools that run dry or lie in several
// pieces of memory, frames that failed, queues that stopped. Also the ring's first filling and its
// end.
#include <algorithm>

#include "log.h"
#include "rx.h"
#include "rx_describe.h"
#include "rx_short.h"
#include "rx_single.h"
#include "rx_spill.h"

namespace nicmem::pmd {

const hw::Cqe* poll(const RxQueue& q) {
  const hw::Cqe& cqe = q.cqes[q.head & (q.cq_depth - 1)];
  return hw::software_owns(hw::load_op_own(cqe), q.head, q.cq_depth) ? &cqe : nullptr;
}

uint32_t segments_used(const RxQueue& q, uint32_t bytes) {
  uint32_t used = 1;
  for (uint32_t room = q.segments[0].length; bytes > room && used < q.num_segments; ++used)
    room += q.segments[used].length;
  return used;
}

namespace {

/// A buffer for segment `k`: nicmem first, host memory when it has none. [DESIGN.md 5, spill=sw]
rte_mbuf* take_buffer(const RxSegment& segment) {
  void* buffer = nullptr;
  if (rte_mempool_get(segment.pool, &buffer) == 0) return static_cast<rte_mbuf*>(buffer);
  if (segment.spill != nullptr && rte_mempool_get(segment.spill, &buffer) == 0)
    return static_cast<rte_mbuf*>(buffer);
  return nullptr;
}

/// Points the entry at the buffer. False: its memory cannot be registered.
bool aim(RxQueue& q, const RxSegment& segment, Replacement& out) {
  const void* const data = static_cast<char*>(out.mbuf->buf_addr) + segment.headroom;
  const KeyRange* const range = q.keys.find(data);
  if (range == nullptr) [[unlikely]]
    return false;
  out.entry = range->segment(data, segment.length);
  return true;
}

}  // namespace

bool take(RxQueue& q, const RxSegment& segment, Replacement& out) {
  out.mbuf = take_buffer(segment);
  if (out.mbuf == nullptr) return false;
  if (aim(q, segment, out)) [[likely]]
    return true;
  rte_mbuf_raw_free(out.mbuf);
  return false;
}

bool take_all(RxQueue& q, uint32_t count, Replacements& fresh) {
  for (uint32_t k = 0; k < count; ++k) {
    if (take(q, q.segments[k], fresh[k])) continue;
    while (k-- > 0) rte_mbuf_raw_free(fresh[k].mbuf);
    return false;
  }
  return true;
}

namespace {

bool is_spilled(const RxQueue& q, uint32_t segment, const rte_mbuf* mbuf) {
  return q.segments[segment].spill != nullptr && mbuf->pool == q.segments[segment].spill;
}

}  // namespace

void post(RxQueue& q, uint32_t index, const Replacements& fresh, uint32_t count) {
  hw::DataSegment* const entries = q.entries(index);
  for (uint32_t k = 0; k < count; ++k) {
    entries[k] = fresh[k].entry;
    q.buffers(k)[index & (q.depth - 1)] = fresh[k].mbuf;
    if (k == 1 && is_spilled(q, k, fresh[k].mbuf)) ++q.spilled, q.mixed = true;
  }
}

void chain(RxQueue& q, rte_mbuf* const* segment, uint32_t count, uint32_t bytes) {
  segment[0]->nb_segs = static_cast<uint16_t>(count);
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t here = std::min<uint32_t>(bytes, q.segments[k].length);
    segment[k]->data_off = q.segments[k].headroom;
    segment[k]->data_len = static_cast<uint16_t>(here);
    segment[k]->next = k + 1 < count ? segment[k + 1] : nullptr;
    bytes -= here;
    if (k == 0) continue;
    const KeyRange* const range = q.keys.find(segment[k]->buf_addr);
    const bool on_card = range != nullptr && range->on_card;
    (on_card ? q.counters.payload_bytes_nic : q.counters.payload_bytes_host) += here;
    if (k == 1) q.spilled -= is_spilled(q, k, segment[k]);
  }
}

bool stopped_by_error(RxQueue& q, const hw::Cqe& cqe) {
  const auto& error = reinterpret_cast<const hw::ErrorCqe&>(cqe);
  const auto syndrome = static_cast<hw::Syndrome>(error.syndrome);
  ++q.counters.errors;
  if (syndrome == hw::Syndrome::kFlushed) ++q.counters.flushed;
  return syndrome == hw::Syndrome::kLocalQpOperation ||
         syndrome == hw::Syndrome::kLocalProtection || syndrome == hw::Syndrome::kFlushed;
}

/// Every WQE is written again, for what is wrong with one may be in its bytes.
/// [as DPDK's mlx5_rx_err_handle]
bool recover(RxQueue& q) {
  q.broken = q.queue == nullptr || !reset_primary(q) || !q.queue->reset();
  if (q.broken) return false;
  if (q.short_ring != nullptr) return restart_short(q), true;
  q.spilled = 0;
  q.mixed = false;
  for (uint32_t index = 0; index < q.depth; ++index) {
    Replacements same;
    bool known = true;
    for (uint32_t k = 0; k < q.num_segments; ++k) {
      same[k].mbuf = q.buffers(k)[index];
      known = aim(q, q.segments[k], same[k]) && known;
    }
    if (known) post(q, index, same, q.num_segments);
  }
  q.head = 0;
  ring(q);
  refill_primary(q);
  return true;
}

namespace {

/// The one registered range that holds all of a pool's buffers, if there is one.
struct WindowSearch {
  KeyCache* keys;
  KeyRange range;
  bool found = true;
};
void look_at_buffer(rte_mempool*, void* argument, void* object, unsigned) {
  auto& search = *static_cast<WindowSearch*>(argument);
  if (!search.found) return;
  const auto& mbuf = *static_cast<const rte_mbuf*>(object);
  if (search.range.contains(mbuf.buf_addr)) return;
  const KeyRange* const range = search.keys->find(mbuf.buf_addr);
  search.found = range != nullptr && search.range.size == 0;
  if (search.found) search.range = *range;
}
PoolWindow window_of(RxQueue& q, rte_mempool* pool) {
  if (pool == nullptr) return {};
  WindowSearch search{&q.keys, {}};
  rte_mempool_obj_iter(pool, look_at_buffer, &search);
  if (!search.found) return {};
  const bool pinned = (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
  return {pool, search.range, pinned ? RTE_MBUF_F_EXTERNAL : 0};
}

/// Finds out whether buffers can be aimed at without looking each of them up.
void find_windows(RxQueue& q) {
  q.lean = q.num_segments <= q.windows.size();
  for (uint32_t k = 0; q.lean && k < q.num_segments; ++k) {
    q.windows[k] = window_of(q, q.segments[k].pool);
    q.lean = q.windows[k].pool != nullptr;
  }
  if (!q.lean || q.segments[1].spill == nullptr) return;
  q.spill_window = window_of(q, q.segments[1].spill);
  q.lean = q.spill_window.pool != nullptr;
}

bool is_there(const RxQueue& q, uint32_t index) {
  const hw::Cqe& cqe = q.cqes[index & (q.cq_depth - 1)];
  return hw::software_owns(hw::load_op_own(cqe), index, q.cq_depth);
}

/// Counts the frames that are complete and will not be polled, and the completions that are missing
/// in front of others: none unless the device has lost some. Returns how many entries that are.
uint32_t count_left(RxQueue& q) {
  uint32_t end = 0, there = 0;
  for (uint32_t i = 0; i < q.cq_depth; ++i) {
    if (!is_there(q, q.head + i)) continue;
    end = i + 1;
    ++there;
    if (!hw::is_error(q.cqes[(q.head + i) & (q.cq_depth - 1)].op_own)) ++q.counters.stopped;
  }
  q.counters.stuck += end - there;
  return end;
}

}  // namespace

/// Posted writes stay in order: a completion that is missing in front of others is lost, and the
/// queue would wait for it for ever.
void look_for_trouble(RxQueue& q) {
  uint32_t later = 1;
  while (later < q.cq_depth && !is_there(q, q.head + later)) ++later;
  if (is_there(q, q.head) || (later == q.cq_depth && !q.broken)) return;
  // stopped first: what would complete between the count and the reset would be in neither
  if (q.queue != nullptr && !q.queue->stop()) return;
  const RxCounters before = q.counters;
  static_cast<void>(count_left(q));
  if (!recover(q)) {
    q.counters = before;  // what is in the ring is still there
  } else if (before.stuck == 0 && q.counters.stuck != 0) {
    NM_LOG(WARNING, "port %u: a receive completion is lost: queue reset (rx_stuck)", q.port_id);
  }
}

RxOutcome receive_one(RxQueue& q, rte_mbuf*& out) {
  const hw::Cqe* const cqe = poll(q);
  if (cqe == nullptr) return RxOutcome::kNone;
  const uint32_t index = q.head++;

  if (hw::is_error(cqe->op_own)) [[unlikely]] {
    if (!stopped_by_error(q, *cqe)) return RxOutcome::kConsumed;
    return recover(q) ? RxOutcome::kRestart : RxOutcome::kNone;
  }
  const uint32_t bytes = cqe->byte_count.get();
  const uint32_t used = segments_used(q, bytes);
  Replacements fresh;
  if (!take_all(q, used, fresh)) {
    ++q.counters.no_mbuf;
    return RxOutcome::kConsumed;
  }

  std::array<rte_mbuf*, kMaxRxSegments> filled;
  for (uint32_t k = 0; k < used; ++k) filled[k] = q.buffers(k)[index & (q.depth - 1)];
  out = filled[0];
  set_segment(*out, rearm_data(q.segments[0].headroom, 1, q.port_id), 0);
  describe(*cqe, *out, out->ol_flags & RTE_MBUF_F_EXTERNAL, bytes);
  if (looks_for_extras(q)) out->ol_flags |= describe_extras(q, *cqe, *out);
  chain(q, filled.data(), used, bytes);
  post(q, index, fresh, used);
  q.counters.bytes += bytes;
  return RxOutcome::kFrame;
}

bool fill(RxQueue& q) {
  q.spilled = 0;
  q.mixed = false;
  if (q.short_ring != nullptr) return fill_short(q);
  find_windows(q);
  for (uint32_t index = 0; index < q.depth; ++index) {
    Replacements fresh;
    if (!take_all(q, q.num_segments, fresh)) return false;
    post(q, index, fresh, q.num_segments);
  }
  q.head = 0;
  ring(q);
  refill_primary(q);
  return true;
}

void drain(RxQueue& q) {
  drain_primary(q);
  q.head += count_left(q);
  for (uint32_t k = 0; k < q.num_segments; ++k)
    for (uint32_t index = 0; index < q.depth; ++index) {
      rte_mbuf*& mbuf = q.buffers(k)[index];
      if (mbuf != nullptr) rte_mbuf_raw_free(mbuf);
      mbuf = nullptr;
    }
}

}  // namespace nicmem::pmd
