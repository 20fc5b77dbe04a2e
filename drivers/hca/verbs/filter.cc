// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/filter.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nicmem::hca_verbs {
namespace {

constexpr uint16_t kFragmentBits =
    hw::Ipv4Header::MoreFragments::kMask | hw::Ipv4Header::FragmentOffset::kMask;

tl::unexpected<Error> cannot(const char* what) {
  return fail(Code::kUnsupported, std::string("rule: a card does not compare ") + what);
}

/// Whether any bit of `mask` is asked for but those of `allowed`.
template <class Header>
bool asks_beyond(const Header& mask, const Header& allowed) {
  const auto* asked = reinterpret_cast<const uint8_t*>(&mask);
  const auto* may = reinterpret_cast<const uint8_t*>(&allowed);
  for (size_t i = 0; i < sizeof(Header); ++i)
    if ((asked[i] & ~may[i]) != 0) return true;
  return false;
}

/// Demands the value; false: another one is demanded already.
bool demand(Compared& field, uint32_t value, uint32_t mask) {
  if (((field.value ^ value) & field.mask & mask) != 0) return false;
  field.value |= value & mask;
  field.mask |= mask;
  return true;
}

bool demand_version(Filter& filter, uint32_t version) {
  if (filter.version != 0 && filter.version != version) return false;
  filter.version = version;
  return demand(filter.type, version == 4 ? hw::kEtherTypeIpv4 : hw::kEtherTypeIpv6, 0xffff);
}

bool demand_l4(Filter& filter, L4 l4, uint8_t protocol) {
  if (filter.l4 != L4::kAny && filter.l4 != l4) return false;
  filter.l4 = l4;
  filter.whole = true;  // behind a fragment's header there is no other
  return demand(filter.protocol, protocol, 0xff);
}

Result<void> add_ether(const hca::Match& match, Filter& filter) {
  if (!match.ether) return {};
  filter.ether = *match.ether;
  const uint16_t type = match.ether->value.type.get(), mask = match.ether->mask.type.get();
  filter.ether.value.type = filter.ether.mask.type = be16(0);
  if (mask == 0) return {};
  if (mask != 0xffff) return cannot("some bits of an Ethernet type");
  if (!hw::is_vlan(type)) {
    if (!match.vlan) filter.tag = Tag::kNone, filter.type = {type, mask};
    return {};
  }
  if (type == hw::kEtherTypeOldVlan) return cannot("tags of type 0x9100");
  filter.tag = type == hw::kEtherTypeVlan ? Tag::kCustomer : Tag::kService;
  return {};
}

void add_vlan(const hca::Match& match, Filter& filter) {
  if (!match.vlan) return;
  const auto& [value, mask] = *match.vlan;
  filter.tag_control = {value.control.get(), mask.control.get()};
  filter.type = {value.type.get(), mask.type.get()};
}

template <class Address>
void set_last(hw::Ipv6Address& to, const Address& from) {
  std::memcpy(to.bytes + sizeof to.bytes - sizeof from, &from, sizeof from);
}

template <class Header>
void add_addresses(const hca::Pattern<Header>& ip, Filter& filter) {
  set_last(filter.addresses.value[0], ip.value.source);
  set_last(filter.addresses.mask[0], ip.mask.source);
  set_last(filter.addresses.value[1], ip.value.destination);
  set_last(filter.addresses.mask[1], ip.mask.destination);
}

Result<bool> add_ipv4(const hca::Pattern<hw::Ipv4Header>& ip, Filter& filter) {
  const auto& [value, mask] = ip;
  const hw::Ipv4Header allowed{.tos = 0xff,
                               .fragment = be16(kFragmentBits),
                               .ttl = 0xff,
                               .protocol = 0xff,
                               .source = be32(~0u),
                               .destination = be32(~0u)};
  if (asks_beyond(mask, allowed)) return cannot("this part of an IPv4 header");
  const uint16_t fragment = mask.fragment.get();
  if (fragment != 0 && (fragment != kFragmentBits || value.fragment.get() != 0))
    return cannot("fragments");
  filter.whole = fragment != 0;
  filter.tos = {value.tos, mask.tos};
  filter.ttl = {value.ttl, mask.ttl};
  filter.protocol = {value.protocol, mask.protocol};
  add_addresses(ip, filter);
  return demand_version(filter, 4);
}

Result<bool> add_ipv6(const hca::Pattern<hw::Ipv6Header>& ip, Filter& filter) {
  const auto& [value, mask] = ip;
  hw::Ipv6Header allowed{.version_class_flow = be32(hw::Ipv6Header::TrafficClass::kMask),
                         .next_header = 0xff,
                         .hop_limit = 0xff};
  std::ranges::fill(allowed.source.bytes, uint8_t{0xff});
  std::ranges::fill(allowed.destination.bytes, uint8_t{0xff});
  if (asks_beyond(mask, allowed)) return cannot("this part of an IPv6 header");
  using Class = hw::Ipv6Header::TrafficClass;
  filter.tos = {Class::get(value.version_class_flow.get()),
                Class::get(mask.version_class_flow.get())};
  filter.ttl = {value.hop_limit, mask.hop_limit};
  filter.protocol = {value.next_header, mask.next_header};
  add_addresses(ip, filter);
  return demand_version(filter, 6);
}

template <class Header>
void add_ports(const hca::Pattern<Header>& header, Filter& filter) {
  filter.source_port = {header.value.source_port.get(), header.mask.source_port.get()};
  filter.destination_port = {header.value.destination_port.get(),
                             header.mask.destination_port.get()};
}

Result<bool> add_l4(const hca::Match& match, Filter& filter) {
  bool possible = true;
  if (match.udp) {
    if (match.udp->mask.length.get() != 0 || match.udp->mask.checksum.get() != 0)
      return cannot("this part of a UDP header");
    possible = demand_l4(filter, L4::kUdp, hw::kProtocolUdp);
    add_ports(*match.udp, filter);
  }
  if (match.tcp) {
    const hw::TcpHeader allowed{.source_port = be16(0xffff),
                                .destination_port = be16(0xffff),
                                .offset_flags = be16(hw::TcpHeader::Flags::kMask)};
    if (asks_beyond(match.tcp->mask, allowed)) return cannot("this part of a TCP header");
    possible = possible && demand_l4(filter, L4::kTcp, hw::kProtocolTcp);
    add_ports(*match.tcp, filter);
    filter.tcp_flags = {match.tcp->value.offset_flags.get(), match.tcp->mask.offset_flags.get()};
  }
  if (match.icmp) {
    if (match.icmp->mask.checksum.get() != 0 || match.icmp->mask.rest.get() != 0)
      return cannot("this part of an ICMP header");
    possible =
        possible && demand_l4(filter, L4::kIcmp, hw::kProtocolIcmp) && demand_version(filter, 4);
    filter.icmp_type = {match.icmp->value.type, match.icmp->mask.type};
    filter.icmp_code = {match.icmp->value.code, match.icmp->mask.code};
  }
  return possible;
}

bool narrow(hca::PacketKind kind, Filter& filter) {
  using enum hca::PacketKind;
  const bool ipv4 = kind == kIpv4 || kind == kIpv4Tcp || kind == kIpv4Udp;
  if (!demand_version(filter, ipv4 ? 4 : 6)) return false;
  if (kind == kIpv4Tcp || kind == kIpv6Tcp) return demand_l4(filter, L4::kTcp, hw::kProtocolTcp);
  if (kind == kIpv4Udp || kind == kIpv6Udp) return demand_l4(filter, L4::kUdp, hw::kProtocolUdp);
  return true;
}

/// A protocol is compared only where the version of IP is known.
std::vector<Filter> with_versions(const Filter& filter) {
  if (filter.version != 0 || !filter.protocol.is_asked()) return {filter};
  std::vector<Filter> both;
  for (const uint32_t version : {4u, 6u})
    if (Filter one = filter; demand_version(one, version)) both.push_back(one);
  return both;
}

/// A tag of any type is one of either kind.
std::vector<Filter> with_tags(const std::vector<Filter>& filters, bool tagged) {
  std::vector<Filter> out;
  for (Filter filter : filters) {
    if (!tagged || filter.tag != Tag::kAny) {
      out.push_back(filter);
      continue;
    }
    for (const Tag tag : {Tag::kCustomer, Tag::kService}) {
      filter.tag = tag;
      out.push_back(filter);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<Filter>> filters_of(const hca::Match& match,
                                       std::optional<hca::PacketKind> kind) {
  const std::vector<Filter> none;
  if (match.ipv4 && match.ipv6) return none;
  Filter filter;
  NM_TRY_VOID(add_ether(match, filter));
  const bool has_tag = filter.tag == Tag::kCustomer || filter.tag == Tag::kService;
  const bool has_type = match.ether && match.ether->mask.type.get() != 0;
  if (match.vlan && has_type && !has_tag) return none;
  if (match.untagged && (match.vlan || has_tag)) return none;
  if (match.untagged) filter.tag = Tag::kNone;
  add_vlan(match, filter);
  if (match.ipv4) {
    NM_TRY(const bool possible, add_ipv4(*match.ipv4, filter));
    if (!possible) return none;
  }
  if (match.ipv6) {
    NM_TRY(const bool possible, add_ipv6(*match.ipv6, filter));
    if (!possible) return none;
  }
  NM_TRY(const bool possible, add_l4(match, filter));
  if (!possible || (kind && !narrow(*kind, filter))) return none;
  return with_tags(with_versions(filter), match.vlan.has_value());
}

}  // namespace nicmem::hca_verbs
