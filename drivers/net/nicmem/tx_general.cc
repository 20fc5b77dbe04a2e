// SPDX-License-Identifier: BSD-3-Clause
// Transmit, any packet: chains of any shape, headers spread over segments, offloads. A packet that
// the device would refuse is dropped and counted here: a failed WQE would take all that are behind
// it with it.
#include <rte_net.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "devargs.h"
#include "hw/ether.h"
#include "hw/ipv4.h"
#include "hw/ipv6.h"
#include "hw/tcp.h"
#include "tx_wqe.h"

namespace nicmem::pmd {
namespace {

constexpr uint32_t kTagBytes = sizeof(hw::VlanTag);
constexpr uint32_t kTagPlace = offsetof(hw::EtherHeader, type);  // where a frame's tag goes

/// What the WQE of a packet will be.
struct Plan {
  hw::SendOpcode opcode = hw::SendOpcode::kSend;
  uint32_t inlined = 0;    // bytes of the packet, without a tag that is inserted among them
  bool tag_here = false;   // the tag goes into the inlined bytes
  bool tag_there = false;  // the device inserts it
  uint8_t checksums = 0;
  uint16_t mss = 0;
  uint32_t inlined_with_tag() const { return inlined + (tag_here ? kTagBytes : 0); }
};

uint32_t total_bytes(const rte_mbuf& packet) {
  uint32_t total = 0;
  for (const rte_mbuf* s = &packet; s != nullptr; s = s->next) total += s->data_len;
  return total;
}

/// How many of the packet's first bytes the CPU may read: those before the first on the card.
uint32_t readable_bytes(TxQueue& q, const rte_mbuf& packet, uint32_t most) {
  uint32_t bytes = 0;
  for (const rte_mbuf* s = &packet; s != nullptr && bytes < most; s = s->next) {
    if (q.card_range.contains(rte_pktmbuf_mtod(s, const char*))) break;
    if (q.is_foreign != nullptr && q.is_foreign(rte_pktmbuf_mtod(s, const char*))) break;
    bytes += s->data_len;
  }
  return std::min(bytes, most);
}

/// Segments that still have bytes behind the first `skip` of the packet.
uint32_t pointers_needed(const rte_mbuf& packet, uint32_t skip) {
  uint32_t pointers = 0;
  for (const rte_mbuf* s = &packet; s != nullptr; s = s->next) {
    const uint32_t here = std::min<uint32_t>(skip, s->data_len);
    skip -= here;
    pointers += s->data_len > here;
  }
  return pointers;
}

uint32_t segments_needed(const rte_mbuf& packet, const Plan& plan) {
  return hw::send_wqe_segments(plan.inlined_with_tag(), pointers_needed(packet, plan.inlined));
}

bool plan_checksums(const TxQueue& q, uint64_t flags, Plan& plan) {
  const uint64_t l4 = flags & RTE_MBUF_F_TX_L4_MASK;
  const bool fill_l3 = (flags & RTE_MBUF_F_TX_IP_CKSUM) != 0;
  const bool fill_l4 = l4 != 0 || (flags & RTE_MBUF_F_TX_TCP_SEG) != 0;
  if (!fill_l3 && !fill_l4) return true;
  if (!q.checksum || l4 == RTE_MBUF_F_TX_SCTP_CKSUM) return false;
  plan.checksums = hw::EthSegment::FillL3::set(plan.checksums, fill_l3);
  plan.checksums = hw::EthSegment::FillL4::set(plan.checksums, fill_l4);
  return true;
}

/// Whether the headers are TCP over IP, of the lengths that the packet claims. `bytes` has them
/// all.
bool is_tcp(const rte_mbuf& packet, const std::byte* bytes) {
  const uint32_t l3 = packet.l2_len, l4 = l3 + packet.l3_len;
  if (packet.l2_len < sizeof(hw::EtherHeader) || packet.l4_len < sizeof(hw::TcpHeader))
    return false;
  be16 type;  // behind the last tag
  std::memcpy(&type, bytes + l3 - sizeof type, sizeof type);
  if (type.get() == hw::kEtherTypeIpv4) {
    hw::Ipv4Header ip;
    if (packet.l3_len < sizeof ip) return false;
    std::memcpy(static_cast<void*>(&ip), bytes + l3, sizeof ip);
    if (ip.header_bytes() != packet.l3_len || ip.protocol != hw::kProtocolTcp) return false;
  } else {
    hw::Ipv6Header ip;
    if (type.get() != hw::kEtherTypeIpv6 || packet.l3_len < sizeof ip) return false;
    std::memcpy(static_cast<void*>(&ip), bytes + l3, sizeof ip);
    if (packet.l3_len == sizeof ip && ip.next_header != hw::kProtocolTcp) return false;
  }
  hw::TcpHeader tcp;
  std::memcpy(static_cast<void*>(&tcp), bytes + l4, sizeof tcp);
  return 4u * hw::TcpHeader::DataOffset::get(tcp.offset_flags.get()) == packet.l4_len;
}

/// A packet that the device cuts into segments has all of its headers inlined. [PRM, LSO]
bool plan_segmentation(TxQueue& q, const rte_mbuf& packet, uint32_t total, Plan& plan) {
  const uint32_t header = packet.l2_len + packet.l3_len + packet.l4_len;
  const uint32_t segment = packet.tso_segsz;
  const uint32_t tag = (packet.ol_flags & RTE_MBUF_F_TX_VLAN) != 0 ? kTagBytes : 0;
  std::array<std::byte, kMaxTxSegments * hw::kWqeSegmentBytes> bytes;
  const bool sane = segment != 0 && header >= kMinHeader && header < total &&
                    header <= bytes.size() && header + tag + segment <= q.max_frame_bytes &&
                    total - header <= q.max_tso_bytes;
  if (!sane || readable_bytes(q, packet, header) < header) return false;
  const void* const headers = rte_pktmbuf_read(&packet, 0, header, bytes.data());
  if (headers == nullptr || !is_tcp(packet, static_cast<const std::byte*>(headers))) return false;
  plan.opcode = hw::SendOpcode::kTso;
  plan.mss = static_cast<uint16_t>(segment);
  plan.inlined = header;
  return true;
}

/// Header bytes to inline: as configured, as far as the CPU may read, and never so few that a card
/// would not take them. [DRV-14]
void plan_inlining(TxQueue& q, const rte_mbuf& packet, Plan& plan) {
  if (q.inline_bytes == 0) return;
  plan.inlined = readable_bytes(q, packet, q.inline_bytes);
  const bool fits = segments_needed(packet, plan) <= kMaxTxSegments;
  if (plan.inlined < kMinHeader || !fits) plan.inlined = 0;
}

/// Null, or the counter of the reason why the packet cannot be sent.
uint64_t* make_plan(TxQueue& q, const rte_mbuf& packet, Plan& plan) {
  const uint32_t total = total_bytes(packet);
  const uint64_t flags = packet.ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK;
  if (total == 0) return &q.counters.empty;
  if (total < sizeof(hw::EtherHeader)) return &q.counters.bad_length;
  if ((flags & ~kTxOffloadFlags) != 0 || !plan_checksums(q, flags, plan))
    return &q.counters.bad_offload;
  const bool cut_up = (flags & RTE_MBUF_F_TX_TCP_SEG) != 0;
  const bool tagged = (flags & RTE_MBUF_F_TX_VLAN) != 0;
  if (!cut_up)
    plan_inlining(q, packet, plan);
  else if (!plan_segmentation(q, packet, total, plan))
    return &q.counters.bad_offload;
  plan.tag_here = tagged && plan.inlined != 0;
  plan.tag_there = tagged && plan.inlined == 0;
  if (plan.tag_there && !q.vlan) return &q.counters.bad_offload;
  if (!cut_up && total + (tagged ? kTagBytes : 0) > q.max_frame_bytes)
    return &q.counters.bad_length;
  return segments_needed(packet, plan) <= kMaxTxSegments ? nullptr : &q.counters.too_many_segments;
}

/// A WQE under construction. Nothing is posted until commit(); abandoning one costs nothing.
class WqeWriter {
 public:
  explicit WqeWriter(TxQueue& q) : q_(q) {}

  /// Appends header bytes: two behind the eth segment's fields, the rest in the segments after it.
  void append(const char* bytes, uint32_t count) {
    for (; count > 0; --count) at(inline_at_++) = static_cast<std::byte>(*bytes++);
    end_ = round_up(inline_at_, hw::kWqeSegmentBytes);
  }
  void pointer(const hw::DataSegment& piece) {
    std::memcpy(&at(end_), &piece, sizeof piece);
    end_ += hw::kWqeSegmentBytes;
  }

  /// Writes what comes first; returns the WQE's length in segments.
  uint32_t finish(const Plan& plan, uint16_t tag) {
    const uint32_t segments = end_ / hw::kWqeSegmentBytes;
    auto& start = *reinterpret_cast<WqeStart*>(q_.block(q_.producer));
    be16 frame_start;  // in the eth segment already, if anything is inlined
    std::memcpy(&frame_start, start.eth.inline_start, sizeof frame_start);
    write_control(start.control, plan.opcode, q_.producer, q_.number_field | segments);
    write_eth(start.eth, inline_at_ - kInlineAt);
    start.eth.checksum_flags = plan.checksums;
    start.eth.mss.set(plan.mss);
    if (plan.tag_there) {
      start.eth.inline_bytes.set(hw::EthSegment::InsertVlan::set(0, 1));
      frame_start.set(tag);
    }
    std::memcpy(start.eth.inline_start, &frame_start, sizeof frame_start);
    return segments;
  }

 private:
  static constexpr uint32_t kInlineAt =
      hw::kWqeSegmentBytes + offsetof(hw::EthSegment, inline_start);

  /// Byte `offset` of the WQE; the ring wraps at its end.
  std::byte& at(uint32_t offset) {
    return q_.block(q_.producer + offset / hw::kWqeBlockBytes)[offset % hw::kWqeBlockBytes];
  }

  TxQueue& q_;
  uint32_t inline_at_ = kInlineAt;           // where the next header byte goes
  uint32_t end_ = 2 * hw::kWqeSegmentBytes;  // bytes written so far
};

/// Copies bytes [from, to) of the packet's first into the WQE.
void append_header(WqeWriter& wqe, const rte_mbuf& packet, uint32_t from, uint32_t to) {
  uint32_t at = 0;
  for (const rte_mbuf* s = &packet; s != nullptr && at < to; s = s->next) {
    const uint32_t end = at + s->data_len;
    const uint32_t first = std::max(at, from), last = std::min(end, to);
    if (first < last) wqe.append(rte_pktmbuf_mtod(s, const char*) + (first - at), last - first);
    at = end;
  }
}

void write_header(WqeWriter& wqe, const rte_mbuf& packet, const Plan& plan) {
  if (!plan.tag_here) return append_header(wqe, packet, 0, plan.inlined);
  const struct { be16 type, control; } tag{be16(hw::kEtherTypeVlan), be16(packet.vlan_tci)};
  append_header(wqe, packet, 0, kTagPlace);
  wqe.append(reinterpret_cast<const char*>(&tag), sizeof tag);
  append_header(wqe, packet, kTagPlace, plan.inlined);
}

/// Writes a pointer to every piece behind the inlined bytes; or returns the counter of the reason.
uint64_t* write_pointers(TxQueue& q, WqeWriter& wqe, const rte_mbuf& packet, uint32_t skip) {
  for (const rte_mbuf* s = &packet; s != nullptr; s = s->next) {
    const uint32_t here = std::min<uint32_t>(skip, s->data_len);
    skip -= here;
    if (here == s->data_len) continue;
    const char* const data = rte_pktmbuf_mtod(s, const char*);
    const KeyRange* const range = q.keys.find(data);
    if (range == nullptr)
      return q.is_foreign != nullptr && q.is_foreign(data) ? &q.counters.foreign_memory
                                                           : &q.counters.unknown_memory;
    wqe.pointer(range->segment(data + here, s->data_len - here));
  }
  return nullptr;
}

/// Whether the chain has as many segments as it says.
bool is_whole(const rte_mbuf& packet) {
  uint32_t segments = 0;
  for (const rte_mbuf* s = &packet; s != nullptr && segments <= packet.nb_segs; s = s->next)
    ++segments;
  return segments == packet.nb_segs;
}

/// 0, or why the packet must not be given to tx_burst. [rte_eth_tx_prepare]
int refusal(TxQueue& q, const rte_mbuf& packet) {
  Plan plan;
  if (packet.nb_segs == 0 || packet.nb_segs > kMaxTxSegments || !is_whole(packet)) return EINVAL;
  const uint64_t* const reason = make_plan(q, packet, plan);
  if (reason == nullptr) return 0;
  return reason == &q.counters.bad_offload ? ENOTSUP : EINVAL;
}

}  // namespace

void send_general(TxQueue& q, rte_mbuf* packet) {
  Plan plan;
  WqeWriter wqe(q);
  uint64_t* reason = make_plan(q, *packet, plan);
  if (reason == nullptr) {
    write_header(wqe, *packet, plan);
    reason = write_pointers(q, wqe, *packet, plan.inlined);
  }
  if (reason != nullptr) {
    ++*reason;
    rte_pktmbuf_free(packet);
    return;
  }
  commit(q, packet, wqe.finish(plan, packet->vlan_tci));
}

uint16_t tx_prepare(void* queue, rte_mbuf** packets, uint16_t count) {
  auto& q = *static_cast<TxQueue*>(queue);
  for (uint16_t i = 0; i < count; ++i) {
    const int error = refusal(q, *packets[i]);
    if (error == 0) continue;
    rte_errno = error;
    return i;
  }
  return count;
}

}  // namespace nicmem::pmd
