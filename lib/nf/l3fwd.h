// SPDX-License-Identifier: BSD-3-Clause
// IPv4 and IPv6 forwarding as a pure function over the first segment's bytes: who may pass, where
// to, and the header rewrites. It never reads payload, so payload may lie in device memory.
//
// Order of decisions, each with its own drop reason:
//   Ethernet   whole header, group MAC, own MAC, VLAN tag, EtherType
//   IP header  version, lengths, IPv4 checksum [RFC 1812, 5.2.2]
//   addresses  martian source and destination [RFC 1812, 5.3.7; RFC 4291]
//   route      longest prefix; own address; directed broadcast; neighbour known
//   egress     TTL or hop limit [RFC 1812, 5.3.1], MTU
// Only a packet that passes all of them is changed: TTL, IPv4 checksum [RFC 1624], both MACs.
// Options, extension headers and fragments pass unchanged, as does Ethernet padding.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/view.h"
#include "hw/checksum.h"
#include "hw/ether.h"
#include "hw/ipv4.h"
#include "hw/ipv6.h"
#include "nf/martian.h"
#include "nf/packet.h"
#include "nf/verdict.h"

namespace nicmem::nf {

using NextHopId = uint32_t;
inline constexpr NextHopId kNoRoute = ~NextHopId{0};

/// Where a route leads.
struct NextHop {
  enum class Kind : uint8_t {
    kForward,     // to `macs` out of `port`
    kUnresolved,  // connected network, neighbour unknown
    kLocal,       // an address of the router
    kBroadcast,   // directed broadcast of a connected network: not forwarded [RFC 2644]
  };

  Kind kind = Kind::kUnresolved;
  uint16_t port = 0;       // index of the egress interface
  uint32_t mtu_bytes = 0;  // largest IP packet
  hw::MacAddress destination = {};
  hw::MacAddress source = {};  // of the egress interface
};

/// The interface on which a packet arrived.
struct Interface {
  hw::MacAddress mac;
  bool accept_any_mac = false;  // of unicast MACs: a tap or a replay; opt-in
  /// The router's own addresses and its directed broadcasts: a packet from one is spoofed.
  std::span<const uint32_t> refused_sources_v4;
  std::span<const hw::Ipv6Address> refused_sources_v6;
};

/// Longest prefix match: the id of the next hop, or kNoRoute. Addresses of IPv4 in host order.
template <class T>
concept RouteTable = requires(const T& table, uint32_t v4, const hw::Ipv6Address& v6) {
  { table.lookup(v4) } -> std::convertible_to<NextHopId>;
  { table.lookup(v6) } -> std::convertible_to<NextHopId>;
};

/// Next hops by the ids that the route table gives.
template <class T>
concept NeighbourTable = requires(const T& table, NextHopId id) {
  { table[id] } -> std::convertible_to<const NextHop&>;
};

template <RouteTable Routes, NeighbourTable Neighbours>
struct Tables {
  const Routes& routes;
  const Neighbours& neighbours;
};

namespace detail {

/// Empty when the packet may go on.
struct Check {
  bool passed = true;
  DropReason reason = DropReason::kTruncated;
};
constexpr Check pass() { return {}; }
constexpr Check refuse(DropReason reason) { return {.passed = false, .reason = reason}; }

/// Whether `bytes` from the start of the frame are in it, and in the first segment.
constexpr Check has_bytes(const PacketView& packet, size_t bytes) {
  if (packet.frame_bytes < bytes) return refuse(DropReason::kTruncated);
  if (packet.headers.size() < bytes) return refuse(DropReason::kNeedsPayload);
  return pass();
}

inline Check check_ether(const Interface& in, const hw::EtherHeader& ether) {
  if (ether.destination.is_group()) return refuse(DropReason::kMulticastMac);
  if (ether.destination != in.mac && !in.accept_any_mac) return refuse(DropReason::kDmacMismatch);
  const uint16_t type = ether.type.get();
  if (type == hw::kEtherTypeIpv4 || type == hw::kEtherTypeIpv6) [[likely]]
    return pass();
  return refuse(hw::is_vlan(type) ? DropReason::kVlanUnexpected : DropReason::kNotIp);
}

/// RFC 1812, 5.2.2: of a frame that has the first 20 bytes of the header.
inline Check check_ipv4(const PacketView& packet, const hw::Ipv4Header& ip) {
  const uint32_t header_bytes = ip.header_bytes();
  const uint32_t total_bytes = ip.total_length.get();
  if (hw::Ipv4Header::Version::get(ip.version_ihl) != 4 || header_bytes < sizeof ip ||
      total_bytes < header_bytes) {
    return refuse(DropReason::kMalformedHeader);
  }
  if (const Check whole = has_bytes(packet, sizeof(hw::EtherHeader) + header_bytes); !whole.passed)
    return whole;
  if (packet.frame_bytes - sizeof(hw::EtherHeader) < total_bytes)
    return refuse(DropReason::kTruncated);
  const bool good =
      packet.ipv4_checksum == ChecksumStatus::kUnknown
          ? hw::checksum_holds(packet.headers.subspan(sizeof(hw::EtherHeader), header_bytes))
          : packet.ipv4_checksum == ChecksumStatus::kGood;
  return good ? pass() : refuse(DropReason::kBadChecksum);
}

inline Check check_ipv6(const PacketView& packet, const hw::Ipv6Header& ip) {
  if (hw::Ipv6Header::Version::get(ip.version_class_flow.get()) != 6)
    return refuse(DropReason::kMalformedHeader);
  const size_t end = sizeof(hw::EtherHeader) + sizeof ip + ip.payload_length.get();
  return packet.frame_bytes < end ? refuse(DropReason::kTruncated) : pass();
}

inline Check check_addresses(const Interface& in, const hw::Ipv4Header& ip) {
  const uint32_t source = ip.source.get();
  if (is_martian_v4(source) ||
      std::ranges::find(in.refused_sources_v4, source) != in.refused_sources_v4.end()) {
    return refuse(DropReason::kMartianSource);
  }
  return is_martian_v4(ip.destination.get()) ? refuse(DropReason::kMartianDestination) : pass();
}

inline Check check_addresses(const Interface& in, const hw::Ipv6Header& ip) {
  if (is_martian_v6(ip.source) ||
      std::ranges::find(in.refused_sources_v6, ip.source) != in.refused_sources_v6.end()) {
    return refuse(DropReason::kMartianSource);
  }
  return is_martian_v6(ip.destination) ? refuse(DropReason::kMartianDestination) : pass();
}

inline Check check_egress(const NextHop& hop, uint8_t ttl, uint32_t ip_bytes) {
  switch (hop.kind) {
    case NextHop::Kind::kLocal:
      return refuse(DropReason::kLocalDestination);
    case NextHop::Kind::kBroadcast:
      return refuse(DropReason::kMartianDestination);
    case NextHop::Kind::kForward:
    case NextHop::Kind::kUnresolved:
      break;
  }
  if (ttl <= 1) return refuse(DropReason::kTtlExpired);
  if (hop.kind == NextHop::Kind::kUnresolved) return refuse(DropReason::kNoNeighbour);
  return ip_bytes > hop.mtu_bytes ? refuse(DropReason::kMtuExceeded) : pass();
}

inline void decrement_ttl(hw::Ipv4Header& ip) {
  const auto word = [&ip] { return static_cast<uint16_t>(ip.ttl << 8 | ip.protocol); };
  const uint16_t before = word();
  --ip.ttl;
  ip.checksum.set(hw::checksum_update(ip.checksum.get(), before, word()));
}
inline void decrement_ttl(hw::Ipv6Header& ip) { --ip.hop_limit; }

inline uint8_t ttl_of(const hw::Ipv4Header& ip) { return ip.ttl; }
inline uint8_t ttl_of(const hw::Ipv6Header& ip) { return ip.hop_limit; }
inline uint32_t ip_bytes_of(const hw::Ipv4Header& ip) { return ip.total_length.get(); }
inline uint32_t ip_bytes_of(const hw::Ipv6Header& ip) {
  return static_cast<uint32_t>(sizeof ip) + ip.payload_length.get();
}
inline uint32_t destination_of(const hw::Ipv4Header& ip) { return ip.destination.get(); }
inline const hw::Ipv6Address& destination_of(const hw::Ipv6Header& ip) { return ip.destination; }

/// From a valid IP header of either version to the verdict and the rewrites.
template <class Header, class Routes, class Neighbours>
Verdict route(const Tables<Routes, Neighbours>& tables, const Interface& in, hw::EtherHeader& ether,
              Header& ip) {
  if (const Check check = check_addresses(in, ip); !check.passed)
    return Verdict::drop(check.reason);
  const NextHopId id = tables.routes.lookup(destination_of(ip));
  if (id == kNoRoute) return Verdict::drop(DropReason::kNoRoute);
  const NextHop& hop = tables.neighbours[id];
  if (const Check check = check_egress(hop, ttl_of(ip), ip_bytes_of(ip)); !check.passed)
    return Verdict::drop(check.reason);

  decrement_ttl(ip);
  ether.destination = hop.destination;
  ether.source = hop.source;
  return Verdict::forward(hop.port);
}

}  // namespace detail

/// Decides about one packet, and rewrites its headers if it is to be forwarded. A dropped packet
/// is left as it was. Reads nothing beyond packet.headers.
template <RouteTable Routes, NeighbourTable Neighbours>
Verdict forward(const Tables<Routes, Neighbours>& tables, const Interface& in,
                const PacketView& packet) {
  using detail::Check;
  if (const Check check = detail::has_bytes(packet, sizeof(hw::EtherHeader)); !check.passed)
    return Verdict::drop(check.reason);
  auto& ether = *view_as<hw::EtherHeader>(packet.headers);
  if (const Check check = detail::check_ether(in, ether); !check.passed)
    return Verdict::drop(check.reason);

  const auto headers = packet.headers.subspan(sizeof(hw::EtherHeader));
  const auto decide = [&]<class Header>(
                          Header* ip, Check (*valid)(const PacketView&, const Header&)) -> Verdict {
    const Check whole = detail::has_bytes(packet, sizeof(hw::EtherHeader) + sizeof(Header));
    const Check check = whole.passed ? valid(packet, *ip) : whole;
    return check.passed ? detail::route(tables, in, ether, *ip) : Verdict::drop(check.reason);
  };
  return ether.type.get() == hw::kEtherTypeIpv4
             ? decide(view_as<hw::Ipv4Header>(headers), &detail::check_ipv4)
             : decide(view_as<hw::Ipv6Header>(headers), &detail::check_ipv6);
}

}  // namespace nicmem::nf
