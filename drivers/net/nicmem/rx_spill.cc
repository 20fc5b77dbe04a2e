// SPDX-License-Identifier: BSD-3-Clause
#include "rx_spill.h"

#include <array>

#include "hca/hca.h"
#include "rx_describe.h"
#include "rx_single.h"

namespace nicmem::pmd {
namespace {

/// Completions that are not the primary's are the secondary's, one a WQE.
uint32_t secondary_head(const RxQueue& q) { return q.head - q.primary->head; }

bool of_primary(const RxQueue& q, const hw::Cqe& cqe) {
  if (!hw::is_error(cqe.op_own)) return cqe.user_index.get() == kPrimaryIndex;
  const auto& error = reinterpret_cast<const hw::ErrorCqe&>(cqe);
  return (error.opcode_qpn.get() & 0xffffff) == q.primary->queue->number;
}

/// The buffers of the primary's next WQE; they are the caller's then.
std::array<rte_mbuf*, 2> take_posted(PrimaryRing& ring) {
  const uint32_t slot = ring.slot(ring.head++);
  const std::array<rte_mbuf*, 2> taken = {ring.mbufs[slot], ring.mbufs[ring.depth + slot]};
  ring.mbufs[slot] = ring.mbufs[ring.depth + slot] = nullptr;
  return taken;
}

rte_mbuf* hand_over(RxQueue& q, const hw::Cqe& cqe, rte_mbuf* const* filled, uint32_t used) {
  rte_mbuf& first = *filled[0];
  const uint32_t bytes = cqe.byte_count.get();
  set_segment(first, rearm_data(q.segments[0].headroom, 1, q.port_id), 0);
  describe(cqe, first, first.ol_flags & RTE_MBUF_F_EXTERNAL, bytes);
  if (looks_for_extras(q)) first.ol_flags |= describe_extras(q, cqe, first);
  chain(q, filled, used, bytes);
  q.counters.bytes += bytes;
  return &first;
}

/// A frame that ends in its header buffer gives the card its buffer back.
rte_mbuf* receive_primary(RxQueue& q, const hw::Cqe& cqe) {
  const std::array<rte_mbuf*, 2> filled = take_posted(*q.primary);
  const uint32_t used = segments_used(q, cqe.byte_count.get());
  if (used == 1) rte_mbuf_raw_free(filled[1]);
  ++q.counters.primary;
  return hand_over(q, cqe, filled.data(), used);
}

/// Null: no replacement, and the frame is dropped; its buffers are posted again.
rte_mbuf* receive_secondary(RxQueue& q, const hw::Cqe& cqe, uint32_t index) {
  const uint32_t used = segments_used(q, cqe.byte_count.get());
  Replacements fresh;
  if (!take_all(q, used, fresh)) {
    ++q.counters.no_mbuf;
    return nullptr;
  }
  std::array<rte_mbuf*, kMaxRxSegments> filled;
  for (uint32_t k = 0; k < used; ++k) filled[k] = q.buffers(k)[index & (q.depth - 1)];
  post(q, index, fresh, used);
  ++q.counters.secondary;
  return hand_over(q, cqe, filled.data(), used);
}

/// Takes one completion. As receive_one().
RxOutcome receive_either(RxQueue& q, rte_mbuf*& out) {
  const hw::Cqe* const cqe = poll(q);
  if (cqe == nullptr) return RxOutcome::kNone;
  const bool primary = of_primary(q, *cqe);
  const uint32_t index = secondary_head(q);
  ++q.head;
  if (hw::is_error(cqe->op_own)) [[unlikely]] {
    if (stopped_by_error(q, *cqe)) return recover(q) ? RxOutcome::kRestart : RxOutcome::kNone;
    if (primary)
      for (rte_mbuf* mbuf : take_posted(*q.primary)) rte_mbuf_raw_free(mbuf);
    return RxOutcome::kConsumed;
  }
  out = primary ? receive_primary(q, *cqe) : receive_secondary(q, *cqe, index);
  return out != nullptr ? RxOutcome::kFrame : RxOutcome::kConsumed;
}

/// As ring(), for the secondary.
void ring_secondary(RxQueue& q) {
  q.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(q.head & 0xffffff);
  q.rq_producer->publish<NM_RQ_RECORD_RELEASE>((secondary_head(q) + q.depth) & 0xffff);
}

}  // namespace

uint16_t rx_burst_spill(void* queue, rte_mbuf** out, uint16_t max) {
  auto& q = *static_cast<RxQueue*>(queue);
  if (q.primary == nullptr) return rx_burst_for(0)(queue, out, max);
  q.keys.refresh();
  const uint32_t start = q.head;
  uint16_t received = 0;
  while (received < max) {
    const RxOutcome outcome = receive_either(q, out[received]);
    if (outcome == RxOutcome::kNone || outcome == RxOutcome::kRestart) break;
    received = static_cast<uint16_t>(received + (outcome == RxOutcome::kFrame));
  }
  q.counters.packets += received;
  if (q.head != start)
    ring_secondary(q);
  else if (++q.idle_polls % kRxIdleCheck == 0)
    look_for_trouble(q);
  if (!q.broken) refill_primary(q);
  return received;
}

void refill_primary(RxQueue& q) {
  if (q.primary == nullptr) return;
  PrimaryRing& ring = *q.primary;
  const uint32_t before = ring.posted;
  for (; ring.posted - ring.head < ring.most; ++ring.posted) {
    Replacement header, payload;
    if (!take(q, ring.payload, payload)) break;
    if (!take(q, q.segments[0], header)) {
      rte_mbuf_raw_free(payload.mbuf);
      break;
    }
    const uint32_t slot = ring.slot(ring.posted);
    auto* const entries =
        reinterpret_cast<hw::DataSegment*>(ring.wqes + size_t{slot} * ring.stride_bytes);
    entries[0] = header.entry;
    entries[1] = payload.entry;
    ring.mbufs[slot] = header.mbuf;
    ring.mbufs[ring.depth + slot] = payload.mbuf;
  }
  if (ring.posted != before) ring.producer->publish<NM_RQ_RECORD_RELEASE>(ring.posted & 0xffff);
}

void drain_primary(RxQueue& q) {
  if (q.primary == nullptr) return;
  PrimaryRing& ring = *q.primary;
  for (uint32_t i = 0; i < 2 * ring.depth; ++i) {
    if (ring.mbufs[i] != nullptr) rte_mbuf_raw_free(ring.mbufs[i]);
    ring.mbufs[i] = nullptr;
  }
  ring.head = ring.posted = 0;
}

bool reset_primary(RxQueue& q) {
  if (q.primary == nullptr) return true;
  if (!q.primary->secondary->stop() || !q.primary->queue->reset()) return false;
  drain_primary(q);
  return true;
}

}  // namespace nicmem::pmd
