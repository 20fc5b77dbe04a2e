// SPDX-License-Identifier: BSD-3-Clause
// Builds Ethernet, IPv4, IPv6 and UDP frames for tests: every field can be set, and lengths and
// checksums are right unless a test breaks them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/view.h"
#include "hw/checksum.h"
#include "hw/ether.h"
#include "hw/ipv4.h"
#include "hw/ipv6.h"
#include "hw/udp.h"

namespace nicmem::test {

using Frame = std::vector<std::byte>;

inline constexpr hw::MacAddress kRouterMac{{0x02, 0, 0, 0, 0, 0x94}};
inline constexpr hw::MacAddress kSenderMac{{0x02, 0, 0, 0, 0, 0x11}};

constexpr uint32_t v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return uint32_t{a} << 24 | uint32_t{b} << 16 | uint32_t{c} << 8 | d;
}

struct Ipv4Options {
  uint32_t source = v4(198, 18, 0, 1);
  uint32_t destination = v4(198, 18, 1, 1);
  uint8_t ttl = 64;
  uint8_t protocol = hw::kProtocolUdp;
  uint16_t id = 0x1234;
  uint16_t fragment = 0;
  size_t payload_bytes = 26;  // after the IP header
  std::vector<uint8_t> options = {};
  hw::MacAddress destination_mac = kRouterMac;
  size_t padding_bytes = 0;  // Ethernet padding behind the packet, of 0xaa
};

inline hw::EtherHeader& ether_of(Frame& frame) {
  auto* ether = view_as<hw::EtherHeader>(std::span(frame));
  NM_CHECK(ether != nullptr);
  return *ether;
}
inline hw::Ipv4Header& ipv4_of(Frame& frame) {
  auto* ip = view_as<hw::Ipv4Header>(std::span(frame).subspan(sizeof(hw::EtherHeader)));
  NM_CHECK(ip != nullptr);
  return *ip;
}
inline hw::Ipv6Header& ipv6_of(Frame& frame) {
  auto* ip = view_as<hw::Ipv6Header>(std::span(frame).subspan(sizeof(hw::EtherHeader)));
  NM_CHECK(ip != nullptr);
  return *ip;
}

/// Sets the IPv4 header checksum to what it should be.
inline void seal(Frame& frame) {
  hw::Ipv4Header& ip = ipv4_of(frame);
  ip.checksum.set(0);
  const size_t header = std::min<size_t>(ip.header_bytes(), frame.size() - sizeof(hw::EtherHeader));
  ip.checksum.set(hw::checksum_of(std::span(frame).subspan(sizeof(hw::EtherHeader), header)));
}

inline void fill_payload(Frame& frame, size_t from, size_t padding_bytes) {
  for (size_t i = from; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i * 7);
  std::fill(frame.end() - static_cast<std::ptrdiff_t>(padding_bytes), frame.end(), std::byte{0xaa});
}

inline Frame make_ipv4(const Ipv4Options& o = {}) {
  NM_CHECK(o.options.size() % 4 == 0 && o.options.size() <= 40);
  const size_t header = sizeof(hw::Ipv4Header) + o.options.size();
  Frame frame(sizeof(hw::EtherHeader) + header + o.payload_bytes + o.padding_bytes);
  ether_of(frame) = {
      .destination = o.destination_mac, .source = kSenderMac, .type = be16(hw::kEtherTypeIpv4)};
  ipv4_of(frame) = {.version_ihl = static_cast<uint8_t>(0x40 | header / 4),
                    .tos = 0,
                    .total_length = be16(static_cast<uint16_t>(header + o.payload_bytes)),
                    .id = be16(o.id),
                    .fragment = be16(o.fragment),
                    .ttl = o.ttl,
                    .protocol = o.protocol,
                    .checksum = be16(0),
                    .source = be32(o.source),
                    .destination = be32(o.destination)};
  if (!o.options.empty()) std::memcpy(frame.data() + 34, o.options.data(), o.options.size());
  fill_payload(frame, sizeof(hw::EtherHeader) + header, o.padding_bytes);
  seal(frame);
  return frame;
}

inline hw::Ipv6Address v6(std::initializer_list<uint16_t> groups) {
  hw::Ipv6Address address;
  size_t at = 0;
  for (const uint16_t group : groups) {
    address.bytes[at++] = static_cast<uint8_t>(group >> 8);
    address.bytes[at++] = static_cast<uint8_t>(group);
  }
  return address;
}

struct Ipv6Options {
  hw::Ipv6Address source = v6({0x2001, 0xdb8, 0, 0, 0, 0, 0, 1});
  hw::Ipv6Address destination = v6({0x2001, 0xdb8, 1, 0, 0, 0, 0, 1});
  uint8_t hop_limit = 64;
  uint8_t next_header = hw::kProtocolUdp;
  size_t payload_bytes = 26;
  hw::MacAddress destination_mac = kRouterMac;
  size_t padding_bytes = 0;
};

inline Frame make_ipv6(const Ipv6Options& o = {}) {
  Frame frame(sizeof(hw::EtherHeader) + sizeof(hw::Ipv6Header) + o.payload_bytes + o.padding_bytes);
  ether_of(frame) = {
      .destination = o.destination_mac, .source = kSenderMac, .type = be16(hw::kEtherTypeIpv6)};
  ipv6_of(frame) = {.version_class_flow = be32(0x60000000),
                    .payload_length = be16(static_cast<uint16_t>(o.payload_bytes)),
                    .next_header = o.next_header,
                    .hop_limit = o.hop_limit,
                    .source = o.source,
                    .destination = o.destination};
  fill_payload(frame, sizeof(hw::EtherHeader) + sizeof(hw::Ipv6Header), o.padding_bytes);
  return frame;
}

}  // namespace nicmem::test
