// SPDX-License-Identifier: BSD-3-Clause
// Transmit: free what is done, write one WQE a packet, ring once a burst.
#include "tx.h"

#include <algorithm>
#include <cstring>

#include "hw/ether.h"

namespace nicmem::pmd {
namespace {

/// A WQE under construction. Nothing is posted until commit(); abandoning one costs nothing.
class WqeWriter {
 public:
  explicit WqeWriter(TxQueue& q) : q_(q), next_(2) {}

  /// Copies the packet's first bytes behind the eth segment.
  void inline_header(const char* header, uint32_t bytes) {
    auto& eth = view<hw::EthSegment>(1);
    std::memcpy(eth.inline_start, header, hw::kInlineStartBytes);
    header += hw::kInlineStartBytes;
    inline_bytes_ = bytes;
    for (uint32_t left = bytes - hw::kInlineStartBytes; left > 0;) {
      const uint32_t here = std::min(left, hw::kWqeSegmentBytes);
      std::memcpy(at(next_++), header, here);
      header += here;
      left -= here;
    }
  }

  void pointer(const hw::DataSegment& piece) { view<hw::DataSegment>(next_++) = piece; }

  bool empty() const { return next_ == 2 && inline_bytes_ == 0; }
  bool full() const { return next_ >= kMaxTxSegments; }

  /// Writes the first two segments; returns the WQE's length in blocks.
  uint32_t commit(bool signalled) {
    auto& eth = view<hw::EthSegment>(1);
    std::memset(eth.reserved0, 0, sizeof eth.reserved0);
    eth.checksum_flags = 0;
    eth.reserved1 = 0;
    eth.mss.set(0);
    eth.metadata.set(0);
    eth.inline_bytes.set(static_cast<uint16_t>(inline_bytes_));
    auto& control = view<hw::ControlSegment>(0);
    control.opmod_index_opcode.set((q_.producer & 0xffff) << 8 |
                                   static_cast<uint32_t>(hw::SendOpcode::kSend));
    control.qpn_ds.set(q_.number << 8 | next_);
    control.signature = 0;
    std::memset(control.dci, 0, sizeof control.dci);
    control.fm_ce_se = hw::ControlSegment::Completion::set(
        0, signalled ? hw::ControlSegment::kCompleteAlways
                     : hw::ControlSegment::kCompleteOnFirstError);
    control.immediate.set(0);
    return hw::send_wqe_blocks(next_);
  }

 private:
  /// Segment `index` of the WQE; the ring wraps at its end.
  std::byte* at(uint32_t index) {
    const uint32_t segments = q_.depth * (hw::kWqeBlockBytes / hw::kWqeSegmentBytes);
    const uint32_t first = q_.producer * (hw::kWqeBlockBytes / hw::kWqeSegmentBytes);
    return q_.wqes + size_t{(first + index) & (segments - 1)} * hw::kWqeSegmentBytes;
  }
  template <class T>
  T& view(uint32_t index) {
    return *reinterpret_cast<T*>(at(index));
  }

  TxQueue& q_;
  uint32_t next_;  // segments written so far
  uint32_t inline_bytes_ = 0;
};

/// Header bytes of `first` to copy into the WQE. Device memory must not be read by the CPU, and a
/// long chain needs the room for its pointers.
uint32_t inlined(const TxQueue& q, const rte_mbuf& first, const KeyRange& range) {
  if (q.inline_bytes == 0 || range.on_card) return 0;
  const uint32_t bytes = std::min<uint32_t>(q.inline_bytes, first.data_len);
  if (bytes < hw::kInlineStartBytes) return 0;
  return hw::send_wqe_segments(bytes, first.nb_segs) > kMaxTxSegments ? 0 : bytes;
}

/// Writes pointers to (and the inlined head of) every segment. On failure returns the counter of
/// the reason: a WQE that the device must refuse would take all that are behind it with it.
uint64_t* describe(TxQueue& q, const rte_mbuf& packet, WqeWriter& wqe) {
  uint32_t total = 0;
  for (const rte_mbuf* segment = &packet; segment != nullptr; segment = segment->next) {
    if (segment->data_len == 0) continue;
    const char* data = rte_pktmbuf_mtod(segment, const char*);
    const KeyRange* const range = q.keys.find(data);
    if (range == nullptr) [[unlikely]]
      return q.is_foreign(data) ? &q.counters.foreign_memory : &q.counters.unknown_memory;
    uint32_t bytes = segment->data_len;
    total += bytes;
    if (segment == &packet) {
      const uint32_t head = inlined(q, packet, *range);
      if (head != 0) wqe.inline_header(data, head);
      data += head;
      bytes -= head;
    }
    if (bytes == 0) continue;
    if (wqe.full()) return &q.counters.too_many_segments;
    wqe.pointer(range->segment(data, bytes));
  }
  if (wqe.empty()) return &q.counters.empty;
  const bool fits = total >= sizeof(hw::EtherHeader) && total <= q.max_frame_bytes;
  return fits ? nullptr : &q.counters.bad_length;
}

/// Blocks that the packet takes at most.
uint32_t blocks_at_most(const TxQueue& q, const rte_mbuf& packet) {
  return hw::send_wqe_blocks(
      std::min(hw::send_wqe_segments(q.inline_bytes, packet.nb_segs), kMaxTxSegments));
}

bool has_room(const TxQueue& q, uint32_t blocks) {
  return q.depth - (q.producer - q.consumer) >= blocks;
}

/// Asks for a completion often enough that neither packets nor blocks run out unseen.
bool wants_completion(const TxQueue& q, uint32_t blocks) {
  return q.unsignalled_packets + 1 >= q.signal_packets ||
         q.unsignalled_blocks + blocks >= q.depth / 4;
}

/// Writes the packet's WQE, or drops the packet and counts why.
void send_one(TxQueue& q, rte_mbuf* packet) {
  WqeWriter wqe(q);
  if (uint64_t* const reason = describe(q, *packet, wqe)) [[unlikely]] {
    ++*reason;
    rte_pktmbuf_free(packet);
    return;
  }
  const bool signalled = wants_completion(q, blocks_at_most(q, *packet));
  const uint32_t blocks = wqe.commit(signalled);
  q.sent[q.sent_head++ & (q.depth - 1)] = {packet, q.producer};
  q.producer += blocks;
  q.unsignalled_packets = signalled ? 0 : q.unsignalled_packets + 1;
  q.unsignalled_blocks = signalled ? 0 : q.unsignalled_blocks + blocks;
  ++q.counters.packets;
  q.counters.bytes += packet->pkt_len;
}

/// Record, fence, register. The register takes the last WQE's first eight bytes.
void ring(TxQueue& q) {
  q.sq_producer->publish<NM_SQ_RECORD_RELEASE>(q.producer & 0xffff);
  hw::flush_wc();
  const uint32_t last = q.sent[(q.sent_head - 1) & (q.depth - 1)].first_block;
  q.doorbell->ring(q.wqes + size_t{last & (q.depth - 1)} * hw::kWqeBlockBytes);
  ++q.counters.doorbells;
}

/// Frees the packets whose WQEs start before block `end` (free running).
uint32_t free_until(TxQueue& q, uint32_t end) {
  uint32_t freed = 0;
  while (q.sent_tail != q.sent_head) {
    const SentPacket& oldest = q.sent[q.sent_tail & (q.depth - 1)];
    if (static_cast<int32_t>(end - oldest.first_block) <= 0) break;
    rte_pktmbuf_free(oldest.mbuf);
    ++q.sent_tail;
    ++freed;
  }
  q.consumer =
      q.sent_tail == q.sent_head ? q.producer : q.sent[q.sent_tail & (q.depth - 1)].first_block;
  return freed;
}

/// The free-running number of the block that a completion names by its low 16 bits.
uint32_t completed_block(const TxQueue& q, const hw::Cqe& cqe) {
  return q.consumer + static_cast<uint16_t>(cqe.wqe_counter.get() - q.consumer);
}

/// The device has stopped at `block`: what came before it is done, the rest is lost. Starts the
/// queue anew. [as DPDK's mlx5_tx_error_cqe_handle]
void recover(TxQueue& q, uint32_t block) {
  free_until(q, block);
  q.counters.errors += q.sent_head - q.sent_tail;
  drain(q);
  if (q.queue != nullptr && !q.queue->reset()) return;
  q.producer = q.consumer = q.cq_head = 0;
  q.unsignalled_packets = q.unsignalled_blocks = 0;
}

}  // namespace

uint32_t reclaim(TxQueue& q, uint32_t limit) {
  uint32_t freed = 0;
  const uint32_t start = q.cq_head;
  while (limit == 0 || freed < limit) {
    const hw::Cqe& cqe = q.cqes[q.cq_head & (q.cq_depth - 1)];
    const uint8_t op_own = hw::load_op_own(cqe);
    if (!hw::software_owns(op_own, q.cq_head, q.cq_depth)) break;
    const uint32_t block = completed_block(q, cqe);
    if (hw::is_error(op_own)) [[unlikely]] {
      recover(q, block);
      return freed;
    }
    ++q.cq_head;
    freed += free_until(q, block + 1);
  }
  if (q.cq_head != start) q.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(q.cq_head & 0xffffff);
  return freed;
}

uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
  auto& q = *static_cast<TxQueue*>(queue);
  q.keys.refresh();
  reclaim(q, 0);
  const uint32_t start = q.producer;
  uint16_t taken = 0;
  for (; taken < count; ++taken) {
    if (!has_room(q, blocks_at_most(q, *packets[taken]))) break;
    send_one(q, packets[taken]);
  }
  if (q.producer != start) ring(q);
  return taken;
}

void drain(TxQueue& q) {
  for (; q.sent_tail != q.sent_head; ++q.sent_tail)
    rte_pktmbuf_free(q.sent[q.sent_tail & (q.depth - 1)].mbuf);
}

}  // namespace nicmem::pmd
