// SPDX-License-Identifier: BSD-3-Clause
// Transmit, the way that packets go as a rule: a header, inlined or pointed at, and at most one
// payload; no offload. Completions are asked for, and the bell is rung, once a run.
#include "tx.h"

#include <algorithm>
#include <cstring>

#include "devargs.h"
#include "hw/ether.h"
#include "tx_plain.h"
#include "tx_split.h"
#include "tx_wqe.h"

namespace nicmem::pmd {
namespace {

/// Copies `bytes`, at least 16 of them, in pieces of 16 that overlap at the end.
inline void copy_units(std::byte* to, const char* from, uint32_t bytes) {
  const auto copy = [&](uint32_t at) { std::memcpy(to + at, from + at, 16); };
  const uint32_t last = bytes - 16;
  copy(0);
  for (uint32_t at = 16; at < last; at += 16) copy(at);
  copy(last);
}

/// Writes the packet's WQE; returns its length in segments, 0 when tx_general.cc must look.
template <bool kInline>
uint32_t write_plain(TxQueue& q, std::byte* wqe, const rte_mbuf& packet) {
  const char* const header = data_of(packet);
  const uint32_t header_bytes = packet.data_len;
  uint32_t inlined = 0, segments = 2, total = header_bytes;
  if constexpr (kInline) {
    inlined = std::min(header_bytes, q.inline_bytes);
    if (inlined < kMinHeader) return 0;
    const uint32_t rest = inlined - hw::kInlineStartBytes;
    copy_units(wqe + 2 * hw::kWqeSegmentBytes, header + hw::kInlineStartBytes, rest);
    segments += div_ceil(rest, hw::kWqeSegmentBytes);
  }
  if (header_bytes != inlined) {
    if (!locate(q, q.header_range, header)) return 0;
    write_pointer(wqe, segments++, q.header_range, header + inlined, header_bytes - inlined);
  }
  if (packet.nb_segs != 1) {
    const rte_mbuf& payload = *packet.next;
    if (payload.data_len == 0 || !locate(q, q.payload_range, data_of(payload))) return 0;
    write_pointer(wqe, segments++, q.payload_range, data_of(payload), payload.data_len);
    total += payload.data_len;
  }
  if (total - sizeof(hw::EtherHeader) > q.max_plain_bytes) return 0;
  auto& start = *reinterpret_cast<WqeStart*>(wqe);
  write_control(start.control, hw::SendOpcode::kSend, q.producer, q.number_field | segments);
  write_eth(start.eth, inlined);
  if constexpr (kInline) set_inline_start(wqe, header);
  return segments;
}

/// Sends packets until `count` are taken or one is not plain; returns how many. The ring has room.
template <bool kInline>
uint32_t send_plain(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  uint32_t sent = 0;
  for (; sent < count; ++sent) {
    rte_mbuf* const packet = packets[sent];
    const bool wraps = (q.producer & (q.depth - 1)) + q.plain_blocks > q.depth;
    if (!is_plain(*packet) || packet->nb_segs > 2 || wraps) break;
    const uint32_t segments = write_plain<kInline>(q, q.block(q.producer), *packet);
    if (segments == 0) break;
    commit(q, packet, segments);
  }
  return sent;
}

/// The first two segments of a WQE as two registers hold them.
struct StartUnits {
  using Unit = uint8_t __attribute__((vector_size(hw::kWqeSegmentBytes)));
  Unit control, eth;

  explicit StartUnits(const WqeStart& start) {
    std::memcpy(&control, &start.control, sizeof control);
    std::memcpy(&eth, &start.eth, sizeof eth);
#if defined(__x86_64__)
    asm("" : "+x"(eth));  // a constant, but not one to load anew for each packet
#endif
  }
  void store(std::byte* wqe) const {
    std::memcpy(wqe, &control, sizeof control);
    std::memcpy(wqe + sizeof control, &eth, sizeof eth);
  }
};

/// Sends packets of one segment that their WQEs take whole, until `count` are taken or one is
/// different; in one piece of the ring. Returns how many.
uint32_t send_whole(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  const uint32_t to_end = (q.depth - (q.producer & (q.depth - 1))) / q.plain_blocks;
  count = std::min(std::min(count, to_end), q.depth - (q.sent_head & (q.depth - 1)));
  const uint32_t longest = std::min(q.inline_bytes, q.max_frame_bytes);
  const StartUnits start(wqe_start(q.number_field, 0));
  std::byte* wqe = q.block(q.producer);
  uint32_t producer = q.producer, last_blocks = 0;
  uint64_t total = 0;
  size_t sent = 0;
  for (; sent != count; ++sent) {
    const rte_mbuf& packet = *packets[sent];
    const uint32_t bytes = packet.data_len;
    if (!is_plain(packet) || packet.nb_segs != 1 || bytes < kMinHeader || bytes > longest) break;
    const char* const frame = data_of(packet);
    const uint32_t rest = bytes - hw::kInlineStartBytes;
    const uint32_t segments = 2 + div_ceil(rest, hw::kWqeSegmentBytes);
    start.store(wqe);
    set_index(wqe, producer);
    set_lengths(wqe, segments, bytes);
    set_inline_start(wqe, frame);
    copy_units(wqe + sizeof(WqeStart), frame + hw::kInlineStartBytes, rest);
    total += bytes;
    last_blocks = hw::send_wqe_blocks(segments);
    wqe += size_t{last_blocks} * hw::kWqeBlockBytes;
    producer += last_blocks;
  }
  std::copy_n(packets, sent, &q.sent_slot(q.sent_head));
  if (sent != 0) note(q, static_cast<uint32_t>(sent), producer - last_blocks, producer, total);
  return static_cast<uint32_t>(sent);
}

/// Sends a run of packets of one of the two shapes that split receive makes; returns how many.
uint32_t send_received(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  if (count == 0) return 0;
  return packets[0]->nb_segs == 1 ? send_whole(q, packets, count) : q.send_split(q, packets, count);
}

/// Sends until `count` are taken or the ring is full; returns how many.
template <bool kInline>
uint32_t send_run(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  uint32_t sent = 0;
  while (sent < count) {
    const uint32_t room = std::min(count - sent, q.free_blocks() / q.plain_blocks);
    uint32_t run = kInline ? send_received(q, packets + sent, room) : 0;
    if (run == 0) run = send_plain<kInline>(q, packets + sent, room);
    if (run == 0) {
      if (q.free_blocks() < blocks_at_most(q, *packets[sent])) break;
      send_general(q, packets[sent]);
      run = 1;
    }
    sent += run;
  }
  return sent;
}

template <bool kInline>
uint16_t tx_burst_of(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  const uint32_t start = q.producer;
  uint32_t taken = 0;
  while (taken < count) {
    const uint32_t run = std::min(count - taken, q.signal_packets - q.unsignalled_packets);
    const uint32_t sent = send_run<kInline>(q, packets + taken, run);
    taken += sent;
    const bool owes =
        q.unsignalled_packets >= q.signal_packets || q.producer - q.signalled_block >= q.depth / 4;
    if (owes && q.producer != start) signal_newest(q);
    if (sent < run) break;
  }
  if (q.producer != start) ring(q);
  return static_cast<uint16_t>(taken);
}

}  // namespace

uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
  auto& q = *static_cast<TxQueue*>(queue);
  if (q.keys.refresh()) q.header_range = q.payload_range = {};
  if (count == 0) {  // a program that idles: [DRV-11]
    reclaim_idle(q, 0);
    return 0;
  }
  reclaim(q, 0);
  return q.inline_bytes != 0 ? tx_burst_of<true>(q, packets, count)
                             : tx_burst_of<false>(q, packets, count);
}

}  // namespace nicmem::pmd
