// SPDX-License-Identifier: BSD-3-Clause
#include "rx_short.h"

#include <algorithm>

#include "rx_describe.h"
#include "rx_single.h"

namespace nicmem::pmd {
namespace {

constexpr uint32_t kSegments = 2;

uint32_t with_device(const RxQueue& q) { return q.short_ring->posted - q.head; }

/// Gives WQEs behind the posted ones their buffers until as many as wanted are posted.
void arm(RxQueue& q) {
  ShortRing& ring = *q.short_ring;
  Replacements fresh;
  for (; with_device(q) < ring.target && take_all(q, kSegments, fresh); ++ring.posted)
    post(q, ring.posted, fresh, kSegments);
}

void publish(RxQueue& q) {
  q.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(q.head & 0xffffff);
  q.rq_producer->publish<NM_RQ_RECORD_RELEASE>(q.short_ring->posted & 0xffff);
}

bool is_complete(const RxQueue& q, uint32_t index) {
  const hw::Cqe& cqe = q.cqes[index & (q.cq_depth - 1)];
  return hw::software_owns(hw::load_op_own(cqe), index, q.cq_depth);
}

/// How many WQEs are to be posted from now on: once a poll that has found something.
void follow_traffic(RxQueue& q) {
  ShortRing& ring = *q.short_ring;
  ring.silence = 0;
  if (ring.least != 0) return;
  while (ring.backlog < q.depth && is_complete(q, q.head + ring.backlog))
    ring.backlog = std::min(2 * ring.backlog, q.depth);
  if (ring.frames >= kLapsRemembered * q.depth) {
    ring.backlog = std::max(ring.backlog / 2, kShortestBacklog);
    ring.frames = 0;
  }
  ring.target = std::min(kBacklogsPosted * ring.backlog, q.depth);
}

/// Nothing has come. Nobody knows how long the next burst will be: after a while, with `auto`, all
/// that there is is posted for it.
void wait_for_traffic(RxQueue& q) {
  ShortRing& ring = *q.short_ring;
  if (++ring.silence % kRxIdleCheck != 0) return;
  look_for_trouble(q);
  if (ring.least == 0) ring.target = q.depth;
}

/// Takes the buffers out of a WQE's slot.
void empty(RxQueue& q, uint32_t index, rte_mbuf** out) {
  for (uint32_t k = 0; k < kSegments; ++k)
    out[k] = std::exchange(q.buffers(k)[index & (q.depth - 1)], nullptr);
}

/// Takes one completion. Its WQE is empty then; what holds no byte of the frame goes back.
RxOutcome take_one(RxQueue& q, rte_mbuf*& out) {
  const hw::Cqe* const cqe = poll(q);
  if (cqe == nullptr) return RxOutcome::kNone;
  const bool failed = hw::is_error(cqe->op_own);
  if (failed && stopped_by_error(q, *cqe)) [[unlikely]] {
    ++q.head;
    return recover(q) ? RxOutcome::kRestart : RxOutcome::kNone;
  }
  rte_mbuf* segments[kSegments];
  empty(q, q.head++, segments);
  const uint32_t bytes = failed ? 0 : cqe->byte_count.get();
  const uint32_t used = failed ? 0 : segments_used(q, bytes);
  for (uint32_t k = used; k < kSegments; ++k) rte_mbuf_raw_free(segments[k]);
  if (failed) return RxOutcome::kConsumed;

  out = segments[0];
  set_segment(*out, rearm_data(q.segments[0].headroom, 1, q.port_id), 0);
  describe(*cqe, *out, out->ol_flags & RTE_MBUF_F_EXTERNAL, bytes);
  if (looks_for_extras(q)) out->ol_flags |= describe_extras(q, *cqe, *out);
  chain(q, segments, used, bytes);
  q.counters.bytes += bytes;
  return RxOutcome::kFrame;
}

}  // namespace

uint16_t rx_burst_short(void* queue, rte_mbuf** out, uint16_t max) {
  auto& q = *static_cast<RxQueue*>(queue);
  if (q.short_ring == nullptr) return rx_burst_for(0)(queue, out, max);
  q.keys.refresh();
  if (poll(q) != nullptr)
    follow_traffic(q);
  else
    wait_for_traffic(q);
  const uint32_t head = q.head, posted = q.short_ring->posted;
  uint16_t received = 0;
  while (received < max) {
    const RxOutcome outcome = take_one(q, out[received]);
    if (outcome == RxOutcome::kNone || outcome == RxOutcome::kRestart) break;
    if (outcome == RxOutcome::kFrame) ++received;
  }
  q.counters.packets += received;
  q.short_ring->frames += received;
  if (q.broken) return received;
  arm(q);
  if (q.head != head || q.short_ring->posted != posted) publish(q);
  return received;
}

bool fill_short(RxQueue& q) {
  ShortRing& ring = *q.short_ring;
  q.head = ring.posted = 0;
  ring.target = ring.least != 0 ? std::min(ring.least, q.depth) : q.depth;
  arm(q);
  publish(q);
  return with_device(q) == ring.target;
}

void restart_short(RxQueue& q) {
  for (uint32_t index = 0; index < q.depth; ++index) {
    rte_mbuf* segments[kSegments];
    empty(q, index, segments);
    for (rte_mbuf* const segment : segments)
      if (segment != nullptr) rte_mbuf_raw_free(segment);
  }
  static_cast<void>(fill_short(q));  // what the pools lack, the next polls post
}

}  // namespace nicmem::pmd
