// SPDX-License-Identifier: BSD-3-Clause
// The fixed parts of a send WQE, and what the ring takes note of when one has been written.
#pragma once

#include <cstring>

#include "tx.h"

namespace nicmem::pmd {

/// Blocks that the packet takes at most.
inline uint32_t blocks_at_most(const TxQueue& q, const rte_mbuf& packet) {
  const uint32_t segments = hw::send_wqe_segments(q.inline_bytes, packet.nb_segs);
  return hw::send_wqe_blocks(std::min(segments, kMaxTxSegments));
}

/// The first two segments of a send WQE: in runs of equal ones the same but for the index and the
/// first two bytes of the frame.
struct WqeStart {
  hw::ControlSegment control;
  hw::EthSegment eth;
};
static_assert(sizeof(WqeStart) == 2 * hw::kWqeSegmentBytes);

/// Names the block at which the WQE starts.
inline void set_index(std::byte* wqe, uint32_t producer) {
  const be16 index(static_cast<uint16_t>(producer));
  std::memcpy(wqe + 1, &index, sizeof index);  // ControlSegment::Index
}

/// `number_and_segments`: ControlSegment::qpn_ds.
inline void write_control(hw::ControlSegment& control, hw::SendOpcode opcode, uint32_t producer,
                          uint32_t number_and_segments) {
  control = {};
  control.opmod_index_opcode.set((producer & 0xffff) << 8 | static_cast<uint32_t>(opcode));
  control.qpn_ds.set(number_and_segments);
  control.fm_ce_se =
      hw::ControlSegment::Completion::set(0, hw::ControlSegment::kCompleteOnFirstError);
}

/// No offload; the frame's first `inlined` bytes are in the WQE.
inline void write_eth(hw::EthSegment& eth, uint32_t inlined) {
  eth = {};
  eth.inline_bytes.set(static_cast<uint16_t>(inlined));
}

/// Of a SEND WQE, without its index and the frame's first two bytes.
inline WqeStart wqe_start(uint32_t number_and_segments, uint32_t inlined) {
  WqeStart start;
  write_control(start.control, hw::SendOpcode::kSend, 0, number_and_segments);
  write_eth(start.eth, inlined);
  return start;
}

/// Sets what differs in length: of the WQE in segments, at most 63, and of the frame inlined.
inline void set_lengths(std::byte* wqe, uint32_t segments, uint32_t inlined) {
  auto& start = *reinterpret_cast<WqeStart*>(wqe);
  wqe[offsetof(hw::ControlSegment, qpn_ds) + 3] = static_cast<std::byte>(segments);
  start.eth.inline_bytes.set(static_cast<uint16_t>(inlined));
}

/// The frame's first two bytes.
inline void set_inline_start(std::byte* wqe, const char* header) {
  std::memcpy(reinterpret_cast<WqeStart*>(wqe)->eth.inline_start, header, hw::kInlineStartBytes);
}

/// Takes note of `packets` WQEs, whose packets are in `sent`, up to block `producer`.
inline void note(TxQueue& q, uint32_t packets, uint32_t last_block, uint32_t producer,
                 uint64_t bytes) {
  q.sent_head += packets;
  q.last_block = last_block;
  q.producer = producer;
  q.unsignalled_packets += packets;
  q.counters.packets += packets;
  q.counters.bytes += bytes;
}

/// The WQE at `producer`, of that many segments, is `packet`'s.
inline void commit(TxQueue& q, rte_mbuf* packet, uint32_t segments) {
  q.sent_slot(q.sent_head) = packet;
  note(q, 1, q.producer, q.producer + hw::send_wqe_blocks(segments), packet->pkt_len);
}

/// Asks for a completion of the newest WQE, which has not been rung for yet.
inline void signal_newest(TxQueue& q) {
  auto& control = *reinterpret_cast<hw::ControlSegment*>(q.block(q.last_block));
  control.fm_ce_se = hw::ControlSegment::Completion::set(0, hw::ControlSegment::kCompleteAlways);
  q.signals[q.signal_head++ & (q.cq_depth - 1)] = {q.last_block, q.producer, q.sent_head};
  q.unsignalled_packets = 0;
  q.signalled_block = q.producer;
}

/// Record, fence, register.
inline void ring(TxQueue& q) {
  q.sq_producer->publish<NM_SQ_RECORD_RELEASE>(q.producer & 0xffff);
  hw::flush_wc();
  q.doorbell->ring(q.block(q.last_block));
  ++q.counters.doorbells;
}

}  // namespace nicmem::pmd
