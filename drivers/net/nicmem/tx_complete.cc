// SPDX-License-Identifier: BSD-3-Clause
// Transmit, what comes back: doorbells, completions, the buffers of packets that are done.
#include <algorithm>
#include <array>
#include <cstring>

#include "bulk.h"
#include "log.h"
#include "tx_wqe.h"

namespace nicmem::pmd {
namespace {

constexpr uint32_t kRun = 64;  // packets freed at once

/// refcnt and nb_segs in one word.
uint32_t references_and_segments(const rte_mbuf& mbuf) {
  static_assert(offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, refcnt) + 2);
  uint32_t both;
  std::memcpy(&both, reinterpret_cast<const std::byte*>(&mbuf) + offsetof(rte_mbuf, refcnt),
              sizeof both);
  return both;
}
constexpr uint32_t kSoleSegment = 1 | 1u << 16, kSolePair = 1 | 2u << 16;

bool is_pinned(const rte_mempool* pool) {
  return (rte_pktmbuf_priv_flags(const_cast<rte_mempool*>(pool)) &
          RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
}

/// Makes a packet that nobody else holds what its pool wants: one segment, no next.
void part_from_payload(rte_mbuf& header) {
  header.next = nullptr;
  std::memcpy(reinterpret_cast<std::byte*>(&header) + offsetof(rte_mbuf, refcnt), &kSoleSegment,
              sizeof kSoleSegment);
}

/// Whether the segment lies in its own mbuf's buffer, not in another's or outside.
bool is_direct(const rte_mbuf& segment) {
  constexpr uint64_t kElsewhere = RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
  constexpr uint32_t kLowest = 56;  // of these flags: a shorter constant
  static_assert((kElsewhere >> kLowest) << kLowest == kElsewhere);
  return (static_cast<uint8_t>(segment.ol_flags >> kLowest) & (kElsewhere >> kLowest)) == 0;
}

/// Whether nobody else holds the pinned buffer: its clones count in the buffer's own references.
bool is_sole_pinned(const rte_mbuf& segment) {
  return segment.ol_flags == RTE_MBUF_F_EXTERNAL && segment.shinfo->refcnt == 1;
}

/// Frees packets that are like the first: a direct mbuf of one pool, alone or with a payload of
/// another, which is pinned or not, nobody else holding either; until one is not like that, or
/// `count`. Returns how many.
template <bool kPinned>
uint32_t free_alike(rte_mbuf* const* packets, uint32_t count, rte_mempool* header_pool,
                    rte_mempool* payload_pool) {
  Collector<kRun> payloads(payload_pool, count);
  rte_mbuf** chained = payloads.start();
  rte_mbuf* const* packet = packets;
  for (rte_mbuf* const* const end = packets + count; packet != end; ++packet) {
    rte_mbuf& header = **packet;
    if (header.pool != header_pool || !is_direct(header)) break;
    if (references_and_segments(header) == kSolePair) [[likely]] {
      rte_mbuf& payload = *header.next;
      const bool sole = references_and_segments(payload) == kSoleSegment;
      if (!sole || payload.pool != payload_pool) break;
      if (!(kPinned ? is_sole_pinned(payload) : is_direct(payload))) break;
      part_from_payload(header);
      *chained++ = &payload;
    } else if (references_and_segments(header) != kSoleSegment) {
      break;
    }
  }
  payloads.give_back(chained);  // first: both pools may be one
  put_bulk(header_pool, packets, static_cast<uint32_t>(packet - packets));
  return static_cast<uint32_t>(packet - packets);
}

/// Frees as many packets as are like the first; 0: the first is out of the ordinary.
uint32_t free_run(rte_mbuf* const* packets, uint32_t count) {
  uint32_t chain = 0;  // the first packet with a payload tells which pool payloads come from
  while (chain < count && packets[chain]->next == nullptr) ++chain;
  rte_mempool* const payloads = chain < count ? packets[chain]->next->pool : packets[0]->pool;
  return is_pinned(payloads) ? free_alike<true>(packets, count, packets[0]->pool, payloads)
                             : free_alike<false>(packets, count, packets[0]->pool, payloads);
}

/// Frees `count` packets from `sent_tail` on.
void free_packets(TxQueue& q, uint32_t count) {
  const uint32_t end = q.sent_tail + count;
  while (q.sent_tail != end) {
    const uint32_t to_end = q.depth - (q.sent_tail & (q.depth - 1));
    rte_mbuf** const oldest = &q.sent_slot(q.sent_tail);
    const uint32_t freed = free_run(oldest, std::min(std::min(end - q.sent_tail, to_end), kRun));
    if (freed == 0) rte_pktmbuf_free(*oldest);
    q.sent_tail += std::max(1u, freed);
  }
}

/// The free-running number of the block that a completion names by its low 16 bits.
uint32_t completed_block(const TxQueue& q, const hw::Cqe& cqe) {
  return q.consumer + static_cast<uint16_t>(cqe.wqe_counter.get() - q.consumer);
}

/// Notes that the WQE at `block` is done, and all before it. A completion that names none of the
/// WQEs that asked for one says nothing.
void complete(TxQueue& q, uint32_t block) {
  for (uint32_t at = q.signal_tail; at != q.signal_head; ++at) {
    const Signal& signal = q.signals[at & (q.cq_depth - 1)];
    if (signal.block != block) continue;
    q.consumer = signal.block_end;
    q.sent_done = signal.sent_end;
    q.signal_tail = at + 1;
    return;
  }
}

/// How many packets' WQEs lie before `block`: they are walked, for nobody noted where each starts.
/// (No NOP is among them: each asks for a completion, which has moved `consumer` behind it.)
uint32_t wqes_before(TxQueue& q, uint32_t block) {
  uint32_t count = 0;
  for (uint32_t at = q.consumer; static_cast<int32_t>(block - at) > 0; ++count) {
    const auto& control = *reinterpret_cast<const hw::ControlSegment*>(q.block(at));
    at +=
        std::max(1u, hw::send_wqe_blocks(hw::ControlSegment::Segments::get(control.qpn_ds.get())));
  }
  return count;
}

/// The device has stopped at `block`: what came before it is done, the rest is lost. Starts the
/// queue anew. [as DPDK's mlx5_tx_error_cqe_handle]
void recover(TxQueue& q, uint32_t block) {
  const uint32_t waiting = q.sent_head - q.sent_done;
  const uint32_t done = std::min(waiting, wqes_before(q, block));
  q.counters.errors += waiting - done;
  drain(q);
  if (q.queue != nullptr && !q.queue->reset()) return;
  rewind(q);
}

/// A WQE that does nothing, but completes.
void write_nop(TxQueue& q) {
  auto& control = *reinterpret_cast<hw::ControlSegment*>(q.block(q.producer));
  control = {};
  control.opmod_index_opcode.set((q.producer & 0xffff) << 8 |
                                 static_cast<uint32_t>(hw::SendOpcode::kNop));
  control.qpn_ds.set(q.number_field | 1);
  q.last_block = q.producer++;
}

/// No completion has come for a while. One that is missing in front of others is lost (posted
/// writes stay in order), and what it was for is done when they are: skips it, and takes from its
/// slot what would look new a lap later.
void skip_lost_completions(TxQueue& q) {
  const auto is_there = [&q](uint32_t index) {
    const hw::Cqe& cqe = q.cqes[index & (q.cq_depth - 1)];
    return hw::software_owns(hw::load_op_own(cqe), index, q.cq_depth);
  };
  uint32_t lost = 0;
  while (lost < q.cq_depth && !is_there(q.cq_head + lost)) ++lost;
  if (lost == q.cq_depth || lost == 0) return;
  for (uint32_t i = 0; i < lost; ++i)
    hw::store_op_own(q.cqes[q.cq_head++ & (q.cq_depth - 1)], hw::CqeOpcode::kInvalid, false);
  if (q.counters.stuck == 0)
    NM_LOG(WARNING, "a send completion is lost, a later one stands for it (tx_stuck)");
  q.counters.stuck += lost;
}

}  // namespace

uint32_t reclaim(TxQueue& q, uint32_t limit) {
  const uint32_t start = q.cq_head;
  for (;;) {
    const hw::Cqe& cqe = q.cqes[q.cq_head & (q.cq_depth - 1)];
    const uint8_t op_own = hw::load_op_own(cqe);
    if (!hw::software_owns(op_own, q.cq_head, q.cq_depth)) break;
    const uint32_t block = completed_block(q, cqe);
    if (hw::is_error(op_own)) [[unlikely]] {
      recover(q, block);
      return 0;
    }
    ++q.cq_head;
    complete(q, block);
  }
  if (q.cq_head != start)
    q.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(q.cq_head & 0xffffff);
  else if (q.sent_head != q.sent_done && ++q.idle_polls % kTxIdleCheck == 0)
    skip_lost_completions(q);
  const uint32_t done = q.sent_done - q.sent_tail;
  const uint32_t count = limit == 0 ? done : std::min(limit, done);
  if (count != 0) free_packets(q, count);
  return count;
}

uint32_t reclaim_idle(TxQueue& q, uint32_t limit) {
  const uint32_t freed = reclaim(q, limit);
  const bool waits = q.unsignalled_packets != 0 && q.signal_head == q.signal_tail;
  if (waits && q.free_blocks() != 0) {
    write_nop(q);
    signal_newest(q);
    ring(q);
  }
  return freed;
}

void rewind(TxQueue& q) {
  q.producer = q.consumer = q.cq_head = 0;
  q.signal_tail = q.signal_head;
  q.unsignalled_packets = q.signalled_block = 0;
}

void drain(TxQueue& q) {
  free_packets(q, q.sent_head - q.sent_tail);
  q.sent_done = q.sent_head;
}

}  // namespace nicmem::pmd
