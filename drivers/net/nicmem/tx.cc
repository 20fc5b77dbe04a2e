// SPDX-License-Identifier: BSD-3-Clause
// Transmit, the way that packets go as a rule: a header, inlined or pointed at, and at most one
// payload; no offload. Completions are asked for, and the bell is rung, once a run.
#include "tx.h"

#include <algorithm>
#include <cstring>

#include "devargs.h"
#include "hw/ether.h"
#include "tx_wqe.h"

namespace nicmem::pmd {
namespace {

constexpr uint64_t kNotPlain = kTxOffloadFlags | RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;

/// A packet without offloads that starts in its own mbuf's buffer, which is host memory.
bool is_plain(const rte_mbuf& packet) {
  constexpr uint32_t kLowest = 48;  // of these flags: a shorter constant
  static_assert((kNotPlain >> kLowest) << kLowest == kNotPlain);
  return (static_cast<uint16_t>(packet.ol_flags >> kLowest) & (kNotPlain >> kLowest)) == 0;
}

[[gnu::noinline]] bool look_up(TxQueue& q, KeyRange& guess, const void* data) {
  const KeyRange* const range = q.keys.find(data);
  if (range != nullptr) guess = *range;
  return range != nullptr;
}

/// Finds the range of `data`: as a rule the one where the last one lay.
inline bool locate(TxQueue& q, KeyRange& guess, const void* data) {
  return guess.contains(data) || look_up(q, guess, data);
}

inline const char* data_of(const rte_mbuf& segment) {
  return static_cast<const char*>(segment.buf_addr) + segment.data_off;
}

/// Copies `bytes`, at least 16 of them, in pieces of 16 that overlap at the end.
inline void copy_units(std::byte* to, const char* from, uint32_t bytes) {
  const auto copy = [&](uint32_t at) { std::memcpy(to + at, from + at, 16); };
  const uint32_t last = bytes - 16;
  copy(0);
  for (uint32_t at = 16; at < last; at += 16) copy(at);
  copy(last);
}

inline void write_pointer(std::byte* wqe, uint32_t segment, const KeyRange& range, const void* data,
                          uint32_t bytes) {
  auto& to = *reinterpret_cast<hw::DataSegment*>(wqe + segment * hw::kWqeSegmentBytes);
  to.byte_count.set(bytes);
  to.key = range.key;
  to.address.set(reinterpret_cast<uintptr_t>(data) - range.base);
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
  void store(std::byte* wqe) const {
    std::memcpy(wqe, &control, sizeof control);
    std::memcpy(wqe + sizeof control, &eth, sizeof eth);
  }
};

/// Of a SEND WQE, without its index and the frame's first two bytes.
StartUnits wqe_start(uint32_t number_and_segments, uint32_t inlined) {
  WqeStart start;
  write_control(start.control, hw::SendOpcode::kSend, 0, number_and_segments);
  write_eth(start.eth, inlined);
  StartUnits units;
  std::memcpy(&units.control, &start.control, sizeof units.control);
  std::memcpy(&units.eth, &start.eth, sizeof units.eth);
#if defined(__x86_64__)
  asm("" : "+x"(units.eth));  // a constant, but not one to load anew for each packet
#endif
  return units;
}

/// Copies a header of kBytes behind the eth segment, in pieces of 16 of which the last may overlap.
template <uint32_t kBytes>
void copy_header(std::byte* wqe, const char* header) {
  constexpr uint32_t kRest = kBytes - hw::kInlineStartBytes;
  std::byte* const to = wqe + sizeof(WqeStart);
  const char* const from = header + hw::kInlineStartBytes;
  for (uint32_t at = 0; at + 16 < kRest; at += 16) std::memcpy(to + at, from + at, 16);
  std::memcpy(to + kRest - 16, from + kRest - 16, 16);
}

/// Sends packets of the shape that split receive makes: a header of kHeader bytes, all inlined, and
/// one payload; until `count` are taken or one is different. Their WQEs are of one length and lie
/// in one piece of the ring: little changes from one to the next. Returns how many.
template <uint32_t kHeader>
uint32_t send_split(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  constexpr uint32_t kSegments = hw::send_wqe_segments(kHeader, 1);
  constexpr uint32_t kBlocks = hw::send_wqe_blocks(kSegments);
  const uint32_t to_end = (q.depth - (q.producer & (q.depth - 1))) / kBlocks;
  count = std::min(std::min(count, to_end), q.depth - (q.sent_head & (q.depth - 1)));
  if (packets[0]->nb_segs != 2) return 0;
  if (!locate(q, q.payload_range, data_of(*packets[0]->next))) return 0;
  const KeyRange range = q.payload_range;  // of all: looking another one up ends the run
  const uint32_t max_payload = q.max_frame_bytes - kHeader;
  const StartUnits start = wqe_start(q.number_field | kSegments, kHeader);
  std::byte* wqe = q.block(q.producer);
  uint32_t producer = q.producer;
  uint64_t bytes = 0;
  size_t sent = 0;
  for (; sent != count; ++sent) {
    const rte_mbuf& packet = *packets[sent];
    if (!is_plain(packet) || packet.nb_segs != 2 || packet.data_len != kHeader) break;
    const rte_mbuf& payload = *packet.next;
    const uint32_t payload_bytes = payload.data_len;
    const char *const header = data_of(packet), *const data = data_of(payload);
    if (payload_bytes - 1 >= max_payload || !range.contains(data)) break;
    start.store(wqe);
    set_index(wqe, producer);
    set_inline_start(wqe, header);
    copy_header<kHeader>(wqe, header);
    write_pointer(wqe, kSegments - 1, range, data, payload_bytes);
    bytes += payload_bytes;
    wqe += kBlocks * hw::kWqeBlockBytes;
    producer += kBlocks;
  }
  std::copy_n(packets, sent, &q.sent_slot(q.sent_head));
  if (sent != 0)
    note(q, static_cast<uint32_t>(sent), producer - kBlocks, producer, bytes + sent * kHeader);
  return static_cast<uint32_t>(sent);
}

/// send_split() for headers of the usual lengths: the default, and that of the published rows.
uint32_t send_usual_split(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  if (q.inline_bytes == 128) return send_split<128>(q, packets, count);
  if (q.inline_bytes == 64) return send_split<64>(q, packets, count);
  return 0;
}

/// Sends packets of one segment that their WQEs take whole, until `count` are taken or one is
/// different; in one piece of the ring. Returns how many.
uint32_t send_whole(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  const uint32_t to_end = (q.depth - (q.producer & (q.depth - 1))) / q.plain_blocks;
  count = std::min(std::min(count, to_end), q.depth - (q.sent_head & (q.depth - 1)));
  const uint32_t longest = std::min(q.inline_bytes, q.max_frame_bytes);
  const StartUnits start = wqe_start(q.number_field, 0);
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
  return packets[0]->nb_segs == 1 ? send_whole(q, packets, count)
                                  : send_usual_split(q, packets, count);
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
