// SPDX-License-Identifier: BSD-3-Clause
// What a completion says about its frame, in ethdev's words.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "compat.h"
#include "hw/cqe.h"
#include "rx.h"

namespace nicmem::pmd {

/// The parser's verdict, which is the low byte of Cqe::header_type, as packet type; and which
/// checksum flags such a packet can have.
struct FrameKind {
  uint32_t packet_type;
  uint32_t checksum_mask;
};

constexpr FrameKind frame_kind(uint16_t header_type) {
  using H = hw::HeaderType;
  constexpr uint32_t kIpFlags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_BAD;
  constexpr uint32_t kL4Flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD;
  const uint16_t l3 = H::L3::get(header_type), l4 = H::L4::get(header_type);
  FrameKind kind{RTE_PTYPE_L2_ETHER, 0};
  if (l3 == H::kL3None) return kind;
  const bool extended = H::IpExtension::get(header_type) != 0;
  if (l3 == H::kL3Ipv4) {
    kind.packet_type |= extended ? RTE_PTYPE_L3_IPV4_EXT : RTE_PTYPE_L3_IPV4;
    kind.checksum_mask |= kIpFlags;
  } else if (l3 == H::kL3Ipv6) {
    kind.packet_type |= extended ? RTE_PTYPE_L3_IPV6_EXT : RTE_PTYPE_L3_IPV6;
  }
  if (H::Fragment::get(header_type) != 0) {
    kind.packet_type |= RTE_PTYPE_L4_FRAG;
  } else if (l4 != H::kL4None) {
    kind.packet_type |= l4 == H::kL4Udp ? RTE_PTYPE_L4_UDP : RTE_PTYPE_L4_TCP;
    kind.checksum_mask |= kL4Flags;
  }
  return kind;
}

inline constexpr std::array<FrameKind, 256> kFrameKinds = [] {
  std::array<FrameKind, 256> kinds{};
  for (uint16_t type = 0; type < kinds.size(); ++type) kinds[type] = frame_kind(type);
  return kinds;
}();

/// Flags by the verdict bits of header_type, [10:8]: L4, L3, L2 good.
inline constexpr std::array<uint32_t, 8> kChecksumVerdicts = [] {
  std::array<uint32_t, 8> verdicts{};
  for (uint32_t bits = 0; bits < verdicts.size(); ++bits) {
    verdicts[bits] = static_cast<uint32_t>((bits & 2) != 0 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD
                                                           : RTE_MBUF_F_RX_IP_CKSUM_BAD) |
                     static_cast<uint32_t>((bits & 4) != 0 ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
                                                           : RTE_MBUF_F_RX_L4_CKSUM_BAD);
  }
  return verdicts;
}();

/// The first mbuf's flags beyond those of its pool: checksums, hash, stripped tag, flow tag.
inline uint64_t describe_extras(const RxQueue& q, const hw::Cqe& cqe, rte_mbuf& first) {
  const uint16_t type = cqe.header_type.get();
  uint64_t flags = 0;
  if (q.checksum_flags)
    flags |= kFrameKinds[type & 0xff].checksum_mask & kChecksumVerdicts[(type >> 8) & 7];
  if (q.hash && cqe.rx_hash_type != 0) {
    first.hash.rss = cqe.rx_hash_result.get();
    flags |= RTE_MBUF_F_RX_RSS_HASH;
  }
  if (hw::HeaderType::VlanStripped::get(type) != 0) {
    first.vlan_tci = cqe.vlan_info.get();
    flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  }
  const uint32_t tag = cqe.sop_drop_qpn.get() & hca::kMaxFlowTag;
  if (tag == 0) return flags;
  if (tag == kFlowTagFlagOnly) return flags | RTE_MBUF_F_RX_FDIR;
  first.hash.fdir.hi = tag - 1;
  return flags | RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
}

/// What rte_mbuf's rearm_data holds: data_off, refcnt 1, nb_segs, port.
inline uint64_t rearm_data(uint16_t headroom, uint16_t segments, uint16_t port) {
  return headroom | uint64_t{1} << 16 | uint64_t{segments} << 32 | uint64_t{port} << 48;
}

/// Makes `mbuf` a segment of `here` bytes; its next and what describes the whole frame are left.
inline void set_segment(rte_mbuf& mbuf, uint64_t rearm, uint32_t here) {
  std::memcpy(static_cast<void*>(&mbuf.rearm_data), &rearm, sizeof rearm);
  std::memcpy(&mbuf.data_len, &here, sizeof here);  // and vlan_tci: 0
}

/// What the first mbuf says of a frame of `bytes`, without extras.
inline void describe(const hw::Cqe& cqe, rte_mbuf& first, uint64_t flags, uint32_t bytes) {
  uint8_t kind;  // the low byte of header_type
  std::memcpy(&kind, reinterpret_cast<const std::byte*>(&cqe.header_type) + 1, sizeof kind);
  first.packet_type = kFrameKinds[kind].packet_type;
  first.pkt_len = bytes;
  first.ol_flags = flags;
}

}  // namespace nicmem::pmd
