// SPDX-License-Identifier: BSD-3-Clause
// What a card does to a frame before it leaves: VLAN tag and checksums. A frame that is not what
// the request says (no IP, a fragment, cut short) leaves as it is.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/view.h"
#include "hw/checksum.h"
#include "hw/ether.h"
#include "sim/parser.h"

namespace nicmem::sim {

/// Turns `frame`, whose bytes start sizeof(VlanTag) later, into one with a tag behind the
/// addresses.
inline void insert_vlan(std::span<std::byte> frame, uint16_t control) {
  constexpr size_t kAddresses = offsetof(hw::EtherHeader, type);
  std::memmove(frame.data(), frame.data() + sizeof(hw::VlanTag), kAddresses);
  const be16 tag[2] = {be16(hw::kEtherTypeVlan), be16(control)};
  std::memcpy(frame.data() + kAddresses, tag, sizeof tag);
}

/// Sets the IPv4 header's checksum.
inline void fill_l3_checksum(std::span<std::byte> frame, const Parsed& p) {
  if (p.l3 != hw::HeaderType::kL3Ipv4 || !p.l3_well_formed) return;
  auto& ip = *view_as<hw::Ipv4Header>(frame.subspan(p.l3_offset));
  ip.checksum.set(0);
  ip.checksum.set(hw::checksum_of(frame.subspan(p.l3_offset, ip.header_bytes())));
}

/// Sets the checksum of TCP or UDP, whatever the field held. [RFC 9293, 3.1; RFC 768]
inline void fill_l4_checksum(std::span<std::byte> frame, const Parsed& p) {
  if (p.l4 == hw::HeaderType::kL4None || p.l3_end > frame.size()) return;
  std::span<std::byte> l4 = frame.subspan(p.l4_offset, p.l3_end - p.l4_offset);
  const auto pseudo = [&](uint8_t protocol) {
    return hw::sum_words(addresses(frame, p), hw::fold_sum(protocol + l4.size()));
  };
  if (p.l4 == hw::HeaderType::kL4Udp) {
    auto& udp = *view_as<hw::UdpHeader>(l4);
    const size_t length = udp.length.get();
    if (length < sizeof udp || length > l4.size()) return;
    l4 = l4.first(length);
    udp.checksum.set(0);
    const uint16_t sum = parser::sum_long(l4, pseudo(hw::kProtocolUdp));
    udp.checksum.set(sum == 0xffff ? sum : static_cast<uint16_t>(~sum));  // 0 would mean: none
  } else {
    auto& tcp = *view_as<hw::TcpHeader>(l4);
    tcp.checksum.set(0);
    tcp.checksum.set(static_cast<uint16_t>(~parser::sum_long(l4, pseudo(hw::kProtocolTcp))));
  }
}

}  // namespace nicmem::sim
