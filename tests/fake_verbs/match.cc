// SPDX-License-Identifier: BSD-3-Clause
// Layouts: infiniband/verbs.h for specs; for the device's format mlx5_ifc.h of rdma-core and Linux
// (fte_match_set_lyr_2_4), which no installed header has.
#include "match.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace nicmem::fake {
namespace {

template <class Header>
hca::Pattern<Header>& ensure(std::optional<hca::Pattern<Header>>& pattern) {
  if (!pattern) pattern.emplace();
  return *pattern;
}

template <class Field>
void copy(Field& to, const void* from) {
  std::memcpy(static_cast<void*>(&to), from, sizeof to);
}

/// The frame's own type is that of a tag.
void ask_for_tag(uint16_t type, hca::Match& match) {
  auto& ether = ensure(match.ether);
  ether.value.type.set(type);
  ether.mask.type.set(0xffff);
}

/// The filter's fields are in network order; those of a tag have host order in no driver.
int add_eth(const ibv_flow_spec_eth& spec, hca::Match& match) {
  auto& ether = ensure(match.ether);
  const auto fill = [](hw::EtherHeader& header, const ibv_flow_eth_filter& filter) {
    copy(header.destination, filter.dst_mac);
    copy(header.source, filter.src_mac);
    copy(header.type, &filter.ether_type);
  };
  fill(ether.value, spec.val);
  fill(ether.mask, spec.mask);
  if (spec.mask.vlan_tag == 0) return 0;
  // A customer's tag [Linux, set_flow_spec]; the type is then that of what follows it.
  auto& vlan = ensure(match.vlan);
  copy(vlan.value.control, &spec.val.vlan_tag);
  copy(vlan.mask.control, &spec.mask.vlan_tag);
  std::swap(vlan.value.type, ether.value.type);
  std::swap(vlan.mask.type, ether.mask.type);
  ask_for_tag(hw::kEtherTypeVlan, match);
  return 0;
}

template <class Filter>
void fill_addresses(hw::Ipv4Header& header, const Filter& filter) {
  copy(header.source, &filter.src_ip);
  copy(header.destination, &filter.dst_ip);
}

int add_ipv4_ext(const ibv_flow_spec_ipv4_ext& spec, hca::Match& match) {
  auto& ip = ensure(match.ipv4);
  const auto fill = [](hw::Ipv4Header& header, const ibv_flow_ipv4_ext_filter& filter) {
    fill_addresses(header, filter);
    header.protocol = filter.proto;
    header.tos = filter.tos;
    header.ttl = filter.ttl;
  };
  if (spec.mask.flags != 0) return EOPNOTSUPP;
  fill(ip.value, spec.val);
  fill(ip.mask, spec.mask);
  return 0;
}

int add_ipv6(const ibv_flow_spec_ipv6& spec, hca::Match& match) {
  auto& ip = ensure(match.ipv6);
  const auto fill = [](hw::Ipv6Header& header, const ibv_flow_ipv6_filter& filter) {
    copy(header.source, filter.src_ip);
    copy(header.destination, filter.dst_ip);
    uint32_t word = 0;
    word = hw::Ipv6Header::TrafficClass::set(word, filter.traffic_class);
    word = hw::Ipv6Header::FlowLabel::set(word, be32toh(filter.flow_label));
    header.version_class_flow.set(word);
    header.next_header = filter.next_hdr;
    header.hop_limit = filter.hop_limit;
  };
  fill(ip.value, spec.val);
  fill(ip.mask, spec.mask);
  return 0;
}

template <class Header>
void add_ports(const ibv_flow_spec_tcp_udp& spec, std::optional<hca::Pattern<Header>>& pattern) {
  auto& ports = ensure(pattern);
  copy(ports.value.source_port, &spec.val.src_port);
  copy(ports.value.destination_port, &spec.val.dst_port);
  copy(ports.mask.source_port, &spec.mask.src_port);
  copy(ports.mask.destination_port, &spec.mask.dst_port);
}

/// A field of fte_match_set_lyr_2_4: its bits, counted from the first byte's highest.
struct Field {
  uint32_t offset;
  uint32_t bits;
};
constexpr Field kSmacHigh{0x00, 32}, kSmacLow{0x20, 16}, kEtherType{0x30, 16};
constexpr Field kDmacHigh{0x40, 32}, kDmacLow{0x60, 16};
constexpr Field kPriority{0x70, 3}, kCfi{0x73, 1}, kVlan{0x74, 12};
constexpr Field kProtocol{0x80, 8}, kDscp{0x88, 6}, kEcn{0x8e, 2};
constexpr Field kCustomerTag{0x90, 1}, kServiceTag{0x91, 1}, kFragment{0x92, 1}, kVersion{0x93, 4};
constexpr Field kTcpFlags{0x97, 9}, kTcpSource{0xa0, 16}, kTcpDestination{0xb0, 16};
constexpr Field kTtl{0xd8, 8}, kUdpSource{0xe0, 16}, kUdpDestination{0xf0, 16};
constexpr uint32_t kVersionMask = 0xf;
constexpr uint16_t kFragmentBits =
    hw::Ipv4Header::MoreFragments::kMask | hw::Ipv4Header::FragmentOffset::kMask;
constexpr uint32_t kSourceAddress = 0x100 / 8, kDestinationAddress = 0x180 / 8;
constexpr size_t kOuterBytes = 64;

/// Value and mask of the outer headers; a field is read once, so that what is left is unknown.
class Outer {
 public:
  Outer(std::span<const std::byte> value, std::span<const std::byte> mask) {
    std::memcpy(value_.data(), value.data(), std::min(value.size(), kOuterBytes));
    std::memcpy(mask_.data(), mask.data(), std::min(mask.size(), kOuterBytes));
  }

  uint32_t mask(Field field) const { return get(mask_, field); }
  uint32_t value(Field field) const { return get(value_, field); }
  bool asks(Field field) const { return mask(field) != 0; }
  bool demands(Field bit) const { return (mask(bit) & value(bit)) != 0; }
  /// Forgets the field.
  void done(Field field) {
    for (uint32_t i = field.offset; i < field.offset + field.bits; ++i)
      mask_[i / 8] &= static_cast<uint8_t>(~(0x80u >> (i % 8)));
  }
  void done_bytes(uint32_t from, uint32_t bytes) { std::memset(mask_.data() + from, 0, bytes); }
  bool nothing_left() const {
    return std::ranges::all_of(mask_, [](uint8_t byte) { return byte == 0; });
  }
  const uint8_t* value_at(uint32_t byte) const { return value_.data() + byte; }
  const uint8_t* mask_at(uint32_t byte) const { return mask_.data() + byte; }
  bool asks_bytes(uint32_t from, uint32_t bytes) const {
    return std::any_of(mask_at(from), mask_at(from) + bytes, [](uint8_t b) { return b != 0; });
  }

 private:
  using Bytes = std::array<uint8_t, kOuterBytes>;
  static uint32_t get(const Bytes& bytes, Field field) {
    uint32_t value = 0;
    for (uint32_t i = field.offset; i < field.offset + field.bits; ++i)
      value = value << 1 | ((bytes[i / 8] >> (7 - i % 8)) & 1u);
    return value;
  }
  Bytes value_{}, mask_{};
};

void read_ether(Outer& outer, hca::Match& match) {
  constexpr uint32_t kDmacByte = kDmacHigh.offset / 8, kSmacByte = kSmacHigh.offset / 8;
  const bool tagged = outer.demands(kCustomerTag) || outer.demands(kServiceTag);
  if (outer.asks_bytes(kDmacByte, 6) || outer.asks_bytes(kSmacByte, 6) ||
      (outer.asks(kEtherType) && !tagged)) {
    auto& ether = ensure(match.ether);
    copy(ether.value.destination, outer.value_at(kDmacByte));
    copy(ether.mask.destination, outer.mask_at(kDmacByte));
    copy(ether.value.source, outer.value_at(kSmacByte));
    copy(ether.mask.source, outer.mask_at(kSmacByte));
    if (!tagged) {
      ether.value.type.set(static_cast<uint16_t>(outer.value(kEtherType)));
      ether.mask.type.set(static_cast<uint16_t>(outer.mask(kEtherType)));
    }
  }
  if (!tagged) return;
  auto& vlan = ensure(match.vlan);
  const auto control = [](uint32_t priority, uint32_t cfi, uint32_t id) {
    return static_cast<uint16_t>(priority << 13 | cfi << 12 | id);
  };
  vlan.value.control.set(control(outer.value(kPriority), outer.value(kCfi), outer.value(kVlan)));
  vlan.mask.control.set(control(outer.mask(kPriority), outer.mask(kCfi), outer.mask(kVlan)));
  vlan.value.type.set(static_cast<uint16_t>(outer.value(kEtherType)));
  vlan.mask.type.set(static_cast<uint16_t>(outer.mask(kEtherType)));
  ask_for_tag(outer.demands(kCustomerTag) ? hw::kEtherTypeVlan : hw::kEtherTypeServiceVlan, match);
}

void read_ipv4(const Outer& outer, hca::Match& match) {
  auto& ip = ensure(match.ipv4);
  ip.value.protocol = static_cast<uint8_t>(outer.value(kProtocol));
  ip.mask.protocol = static_cast<uint8_t>(outer.mask(kProtocol));
  ip.value.tos = static_cast<uint8_t>(outer.value(kDscp) << 2 | outer.value(kEcn));
  ip.mask.tos = static_cast<uint8_t>(outer.mask(kDscp) << 2 | outer.mask(kEcn));
  ip.value.ttl = static_cast<uint8_t>(outer.value(kTtl));
  ip.mask.ttl = static_cast<uint8_t>(outer.mask(kTtl));
  copy(ip.value.source, outer.value_at(kSourceAddress + 12));
  copy(ip.mask.source, outer.mask_at(kSourceAddress + 12));
  copy(ip.value.destination, outer.value_at(kDestinationAddress + 12));
  copy(ip.mask.destination, outer.mask_at(kDestinationAddress + 12));
}

void read_ipv6(const Outer& outer, hca::Match& match) {
  auto& ip = ensure(match.ipv6);
  const auto word = [&outer](uint32_t dscp, uint32_t ecn) {
    return hw::Ipv6Header::TrafficClass::set(0, dscp << 2 | ecn);
  };
  ip.value.version_class_flow.set(word(outer.value(kDscp), outer.value(kEcn)));
  ip.mask.version_class_flow.set(word(outer.mask(kDscp), outer.mask(kEcn)));
  ip.value.next_header = static_cast<uint8_t>(outer.value(kProtocol));
  ip.mask.next_header = static_cast<uint8_t>(outer.mask(kProtocol));
  ip.value.hop_limit = static_cast<uint8_t>(outer.value(kTtl));
  ip.mask.hop_limit = static_cast<uint8_t>(outer.mask(kTtl));
  copy(ip.value.source, outer.value_at(kSourceAddress));
  copy(ip.mask.source, outer.mask_at(kSourceAddress));
  copy(ip.value.destination, outer.value_at(kDestinationAddress));
  copy(ip.mask.destination, outer.mask_at(kDestinationAddress));
}

template <class Header>
void read_ports(const Outer& outer, Field source, Field destination,
                std::optional<hca::Pattern<Header>>& pattern) {
  if (!outer.asks(source) && !outer.asks(destination)) return;
  auto& ports = ensure(pattern);
  ports.value.source_port.set(static_cast<uint16_t>(outer.value(source)));
  ports.mask.source_port.set(static_cast<uint16_t>(outer.mask(source)));
  ports.value.destination_port.set(static_cast<uint16_t>(outer.value(destination)));
  ports.mask.destination_port.set(static_cast<uint16_t>(outer.mask(destination)));
}

constexpr size_t kIcmpData = 256 + 24, kIcmpType = 256 + 32;  // of fte_match_set_misc3

/// What comes behind the outer headers: ICMP's type, code and rest are known, nothing else.
int read_icmp(std::span<const std::byte> value, std::span<const std::byte> mask,
              hca::Match& match) {
  std::array<std::byte, 512> values{}, masks{};
  std::copy_n(value.begin(), std::min(value.size(), values.size()), values.begin());
  std::copy_n(mask.begin(), std::min(mask.size(), masks.size()), masks.begin());
  hca::Pattern<hw::IcmpHeader> icmp;
  const auto fill = [](hw::IcmpHeader& header, const std::array<std::byte, 512>& from) {
    header.type = static_cast<uint8_t>(from[kIcmpType]);
    header.code = static_cast<uint8_t>(from[kIcmpType + 1]);
    copy(header.rest, from.data() + kIcmpData);
  };
  fill(icmp.value, values);
  fill(icmp.mask, masks);
  const bool asked = icmp.mask.type != 0 || icmp.mask.code != 0 || icmp.mask.rest.get() != 0;
  if (asked) match.icmp = icmp;
  std::fill_n(masks.begin() + kIcmpData, 4, std::byte{});
  std::fill_n(masks.begin() + kIcmpType, 2, std::byte{});
  const bool nothing_left = std::all_of(masks.begin() + kOuterBytes, masks.end(),
                                        [](std::byte byte) { return byte == std::byte{}; });
  return nothing_left ? 0 : EOPNOTSUPP;
}

/// 4, 6, or 0 when the parameters do not say.
uint32_t version_of(const Outer& outer) {
  if (outer.mask(kVersion) == kVersionMask) return outer.value(kVersion);
  if (outer.mask(kEtherType) != 0xffff) return 0;
  const uint32_t type = outer.value(kEtherType);
  return type == hw::kEtherTypeIpv4 ? 4 : type == hw::kEtherTypeIpv6 ? 6 : 0;
}

}  // namespace

int add_spec(const ibv_flow_spec& spec, hca::Match& match) {
  switch (spec.hdr.type) {
    case IBV_FLOW_SPEC_ETH:
      return spec.hdr.size == sizeof spec.eth ? add_eth(spec.eth, match) : EINVAL;
    case IBV_FLOW_SPEC_IPV4:
      if (spec.hdr.size != sizeof spec.ipv4) return EINVAL;
      fill_addresses(ensure(match.ipv4).value, spec.ipv4.val);
      fill_addresses(ensure(match.ipv4).mask, spec.ipv4.mask);
      return 0;
    case IBV_FLOW_SPEC_IPV4_EXT:
      return spec.hdr.size == sizeof spec.ipv4_ext ? add_ipv4_ext(spec.ipv4_ext, match) : EINVAL;
    case IBV_FLOW_SPEC_IPV6:
      return spec.hdr.size == sizeof spec.ipv6 ? add_ipv6(spec.ipv6, match) : EINVAL;
    case IBV_FLOW_SPEC_TCP:
      if (spec.hdr.size != sizeof spec.tcp_udp || match.udp) return EINVAL;
      add_ports(spec.tcp_udp, match.tcp);
      return 0;
    case IBV_FLOW_SPEC_UDP:
      if (spec.hdr.size != sizeof spec.tcp_udp || match.tcp) return EINVAL;
      add_ports(spec.tcp_udp, match.udp);
      return 0;
    default:
      return EOPNOTSUPP;
  }
}

int read_parameters(std::span<const std::byte> value, std::span<const std::byte> mask,
                    hca::Match& match) {
  Outer outer(value, mask);
  const uint32_t version = version_of(outer);
  // The model knows frames with a tag of one kind, and those with none; not those without one kind.
  const uint32_t tags = outer.mask(kCustomerTag) + outer.mask(kServiceTag);
  const uint32_t wanted = outer.demands(kCustomerTag) + outer.demands(kServiceTag);
  match.untagged = tags == 2 && wanted == 0;
  if (!match.untagged && (tags > 1 || tags != wanted)) return EOPNOTSUPP;
  read_ether(outer, match);
  const bool l3 = outer.asks(kProtocol) || outer.asks(kDscp) || outer.asks(kEcn) ||
                  outer.asks(kTtl) || outer.asks_bytes(kSourceAddress, 32) || outer.asks(kVersion);
  if (l3 && version != 4 && version != 6) return EOPNOTSUPP;
  if (version == 4 &&
      (outer.asks_bytes(kSourceAddress, 12) || outer.asks_bytes(kDestinationAddress, 12))) {
    return EINVAL;
  }
  if (version == 4 && l3) read_ipv4(outer, match);
  if (version == 6 && l3) read_ipv6(outer, match);
  if (outer.asks(kFragment)) {
    if (outer.value(kFragment) != 0 || version == 0) return EOPNOTSUPP;
    if (version == 4) ensure(match.ipv4).mask.fragment.set(kFragmentBits);
  }
  read_ports(outer, kUdpSource, kUdpDestination, match.udp);
  read_ports(outer, kTcpSource, kTcpDestination, match.tcp);
  if (outer.asks(kTcpFlags)) {
    auto& tcp = ensure(match.tcp);
    tcp.value.offset_flags.set(static_cast<uint16_t>(outer.value(kTcpFlags)));
    tcp.mask.offset_flags.set(static_cast<uint16_t>(outer.mask(kTcpFlags)));
  }
  for (const Field field :
       {kSmacHigh,   kSmacLow,   kEtherType,     kDmacHigh, kDmacLow,   kPriority,
        kCfi,        kVlan,      kProtocol,      kDscp,     kEcn,       kCustomerTag,
        kServiceTag, kVersion,   kFragment,      kTcpFlags, kTcpSource, kTcpDestination,
        kTtl,        kUdpSource, kUdpDestination}) {
    outer.done(field);
  }
  outer.done_bytes(kSourceAddress, 32);
  if (!outer.nothing_left()) return EOPNOTSUPP;
  return read_icmp(value, mask, match);
}

}  // namespace nicmem::fake
