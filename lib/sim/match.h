// SPDX-License-Identifier: BSD-3-Clause
// Whether a frame is one that a rule asks for: its outer headers against values and masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "hca/steering.h"
#include "sim/parser.h"

namespace nicmem::sim {

/// Whether `header` is there and has the pattern's value where the pattern's mask has ones.
template <class Header>
bool agrees(const hca::Pattern<Header>& pattern, const Header* header) {
  if (header == nullptr) return false;
  const auto* seen = reinterpret_cast<const uint8_t*>(header);
  const auto* value = reinterpret_cast<const uint8_t*>(&pattern.value);
  const auto* mask = reinterpret_cast<const uint8_t*>(&pattern.mask);
  for (size_t i = 0; i < sizeof(Header); ++i) {
    if (((seen[i] ^ value[i]) & mask[i]) != 0) return false;
  }
  return true;
}

/// The same, where a rule may say nothing of that header.
template <class Header>
bool agrees(const std::optional<hca::Pattern<Header>>& pattern, const Header* header) {
  return !pattern || agrees(*pattern, header);
}

/// The ICMP header of an IPv4 packet that is no fragment and holds all of it, or null.
inline const hw::IcmpHeader* icmp_of(Frame frame, const Parsed& p) {
  if (p.l3 != hw::HeaderType::kL3Ipv4 || p.protocol != hw::kProtocolIcmp || p.fragment ||
      p.l4_offset + sizeof(hw::IcmpHeader) > p.l3_end) {
    return nullptr;
  }
  return parser::header_at<hw::IcmpHeader>(frame, p.l4_offset);
}

template <class Header>
const Header* header_if(bool there, Frame frame, uint32_t offset) {
  return there ? parser::header_at<Header>(frame, offset) : nullptr;
}

/// A header that the parser did not find, because it is cut off or malformed, matches nothing.
inline bool matches(const hca::Match& match, Frame frame, const Parsed& p) {
  using T = hw::HeaderType;
  const bool ipv4 = p.l3_well_formed && p.l3 == T::kL3Ipv4;
  const bool ipv6 = p.l3_well_formed && p.l3 == T::kL3Ipv6;
  const bool udp = p.l4 == T::kL4Udp;
  const bool tcp = p.l4 != T::kL4None && !udp;
  const hw::VlanTag* const tag = outer_tag(frame, p);
  return !(match.untagged && tag != nullptr) &&
         agrees(match.ether, view_as<hw::EtherHeader>(frame)) && agrees(match.vlan, tag) &&
         agrees(match.ipv4, header_if<hw::Ipv4Header>(ipv4, frame, p.l3_offset)) &&
         agrees(match.ipv6, header_if<hw::Ipv6Header>(ipv6, frame, p.l3_offset)) &&
         agrees(match.udp, header_if<hw::UdpHeader>(udp, frame, p.l4_offset)) &&
         agrees(match.tcp, header_if<hw::TcpHeader>(tcp, frame, p.l4_offset)) &&
         agrees(match.icmp, icmp_of(frame, p));
}

}  // namespace nicmem::sim
