// SPDX-License-Identifier: BSD-3-Clause
// rte_flow's items to the device's match: which bits of which header, in which order.
#include "flow_pattern.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

namespace nicmem::pmd {
namespace {

/// One kind of item. Items begin with the header as it is on the wire, which is all that is read
/// here; C++ sees no rte_flow_item_*_mask, hence `standard`.
template <class Header>
struct ItemRule {
  Header standard;  // the mask of an item that brings none
  Header accepted;  // bits that a mask may have
  const char* fields;
};

constexpr hw::MacAddress kWholeMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr hw::Ipv6Address kWholeIpv6 = [] {
  hw::Ipv6Address address;
  for (uint8_t& byte : address.bytes) byte = 0xff;
  return address;
}();
constexpr be16 kWhole16{0xffff};
constexpr be32 kWhole32{0xffffffff};

constexpr ItemRule<hw::EtherHeader> kEther{
    .standard = {.destination = kWholeMac, .source = kWholeMac, .type = be16(0)},
    .accepted = {.destination = kWholeMac, .source = kWholeMac, .type = kWhole16},
    .fields = "eth mask: accepted: dst, src, type, has_vlan"};
constexpr ItemRule<hw::VlanTag> kVlan{.standard = {.control = be16(0x0fff), .type = be16(0)},
                                      .accepted = {.control = kWhole16, .type = kWhole16},
                                      .fields = "vlan mask: accepted: tci, inner_type"};
constexpr ItemRule<hw::Ipv4Header> kIpv4{
    .standard = {.source = kWhole32, .destination = kWhole32},
    .accepted =
        {.tos = 0xff, .ttl = 0xff, .protocol = 0xff, .source = kWhole32, .destination = kWhole32},
    .fields = "ipv4 mask: accepted: tos, ttl, proto, src, dst"};
constexpr ItemRule<hw::Ipv6Header> kIpv6{
    .standard = {.source = kWholeIpv6, .destination = kWholeIpv6},
    .accepted = {.version_class_flow = be32(0x0fffffff),
                 .next_header = 0xff,
                 .hop_limit = 0xff,
                 .source = kWholeIpv6,
                 .destination = kWholeIpv6},
    .fields = "ipv6 mask: accepted: tc, flow, proto, hop, src, dst"};
constexpr ItemRule<hw::UdpHeader> kUdp{
    .standard = {.source_port = kWhole16, .destination_port = kWhole16},
    .accepted = {.source_port = kWhole16, .destination_port = kWhole16},
    .fields = "udp mask: accepted: src, dst"};
constexpr ItemRule<hw::TcpHeader> kTcp{
    .standard = {.source_port = kWhole16, .destination_port = kWhole16},
    .accepted = {.source_port = kWhole16,
                 .destination_port = kWhole16,
                 .offset_flags = be16(hw::TcpHeader::Flags::kMask)},
    .fields = "tcp mask: accepted: src, dst, flags"};
constexpr ItemRule<hw::IcmpHeader> kIcmp{.standard = {.type = 0xff, .code = 0xff},
                                         .accepted = {.type = 0xff, .code = 0xff},
                                         .fields = "icmp mask: accepted: type, code"};

static_assert(sizeof(hw::EtherHeader) == sizeof(rte_flow_item_eth::hdr) &&
              sizeof(hw::VlanTag) == sizeof(rte_flow_item_vlan::hdr) &&
              sizeof(hw::Ipv4Header) == sizeof(rte_flow_item_ipv4::hdr) &&
              sizeof(hw::Ipv6Header) == sizeof(rte_flow_item_ipv6::hdr) &&
              sizeof(hw::UdpHeader) == sizeof(rte_flow_item_udp::hdr) &&
              sizeof(hw::TcpHeader) == sizeof(rte_flow_item_tcp::hdr) &&
              sizeof(hw::IcmpHeader) == sizeof(rte_flow_item_icmp::hdr));

template <class Header>
FlowResult<hca::Pattern<Header>> read_header(const rte_flow_item& item,
                                             const ItemRule<Header>& rule) {
  using Bytes = std::array<uint8_t, sizeof(Header)>;
  if (item.spec == nullptr) {
    if (item.mask != nullptr || item.last != nullptr)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, &item,
                    "mask or last without spec: accepted: all of them null, or a spec");
    return hca::Pattern<Header>{};
  }
  auto mask = std::bit_cast<Bytes>(rule.standard), value = Bytes{}, last = Bytes{};
  const auto accepted = std::bit_cast<Bytes>(rule.accepted);
  std::memcpy(value.data(), item.spec, value.size());
  if (item.mask != nullptr) std::memcpy(mask.data(), item.mask, mask.size());
  if (item.last != nullptr) std::memcpy(last.data(), item.last, last.size());
  for (size_t i = 0; i < value.size(); ++i) {
    if ((mask[i] & ~accepted[i]) != 0)
      return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, item.mask, rule.fields);
    value[i] &= mask[i];
    if (item.last != nullptr && (last[i] & mask[i]) != value[i])
      return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, item.last,
                    "range: accepted: last equal to spec; ranges of powers of two by mask");
  }
  return hca::Pattern<Header>{std::bit_cast<Header>(value), std::bit_cast<Header>(mask)};
}

/// Where an item lies in a frame; 0: it is not accepted at all.
int layer_of(rte_flow_item_type type) {
  switch (type) {
    case RTE_FLOW_ITEM_TYPE_ETH:
      return 1;
    case RTE_FLOW_ITEM_TYPE_VLAN:
      return 2;
    case RTE_FLOW_ITEM_TYPE_IPV4:
    case RTE_FLOW_ITEM_TYPE_IPV6:
      return 3;
    case RTE_FLOW_ITEM_TYPE_UDP:
    case RTE_FLOW_ITEM_TYPE_TCP:
    case RTE_FLOW_ITEM_TYPE_ICMP:
      return 4;
    default:
      return 0;
  }
}

class PatternReader {
 public:
  FlowResult<hca::Match> read(const rte_flow_item* pattern) {
    if (pattern == nullptr)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, nullptr, "no pattern: END is the least");
    for (const rte_flow_item* item = pattern; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
      if (item->type == RTE_FLOW_ITEM_TYPE_VOID) continue;
      NM_FLOW_TRY(check_place(*item));
      NM_FLOW_TRY(read_item(*item));
    }
    NM_FLOW_TRY(settle_tag());
    return match_;
  }

 private:
  FlowResult<void> check_place(const rte_flow_item& item) {
    const int layer = layer_of(item.type);
    if (layer == 0)
      return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                    "item: accepted: eth, vlan, ipv4, ipv6, udp, tcp, icmp, void");
    if (layer <= layer_)
      return refuse(layer == 2 && layer_ == 2 ? ENOTSUP : EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                    "order of items: accepted: eth, vlan, one of ipv4 and ipv6, one of udp, tcp "
                    "and icmp, each once at most");
    layer_ = layer;
    return {};
  }

  FlowResult<void> read_item(const rte_flow_item& item) {
    switch (item.type) {
      case RTE_FLOW_ITEM_TYPE_ETH:
        NM_FLOW_TRY(read_has_vlan(item));
        return take(item, kEther, match_.ether);
      case RTE_FLOW_ITEM_TYPE_VLAN:
        NM_FLOW_TRY(refuse_flags<rte_flow_item_vlan>(item, kVlan.fields));
        return take(item, kVlan, match_.vlan);
      case RTE_FLOW_ITEM_TYPE_IPV4:
        return take(item, kIpv4, match_.ipv4);
      case RTE_FLOW_ITEM_TYPE_IPV6:
        NM_FLOW_TRY(refuse_flags<rte_flow_item_ipv6>(item, kIpv6.fields));
        return take(item, kIpv6, match_.ipv6);
      case RTE_FLOW_ITEM_TYPE_UDP:
        return take(item, kUdp, match_.udp);
      case RTE_FLOW_ITEM_TYPE_TCP:
        return take(item, kTcp, match_.tcp);
      default:
        if (match_.ipv6)
          return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                        "icmp after ipv6: accepted: icmp of IPv4");
        return take(item, kIcmp, match_.icmp);
    }
  }

  template <class Header>
  FlowResult<void> take(const rte_flow_item& item, const ItemRule<Header>& rule,
                        std::optional<hca::Pattern<Header>>& out) {
    auto pattern = read_header(item, rule);
    if (!pattern) return tl::unexpected(pattern.error());
    out = *pattern;
    return {};
  }

  /// The word of bits after a header that has no padding behind it.
  template <class Item>
  static FlowResult<void> refuse_flags(const rte_flow_item& item, const char* message) {
    static_assert(sizeof(Item) == sizeof(Item::hdr) + sizeof(uint32_t));
    uint32_t flags = 0;
    if (item.mask != nullptr)
      std::memcpy(&flags, static_cast<const char*>(item.mask) + sizeof(Item::hdr), sizeof flags);
    if (flags == 0) return {};
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, item.mask, message);
  }

  FlowResult<void> read_has_vlan(const rte_flow_item& item) {
    const auto* const mask = static_cast<const rte_flow_item_eth*>(item.mask);
    if (mask == nullptr || item.spec == nullptr) return {};
    if (mask->reserved != 0)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_MASK, mask, kEther.fields);
    const bool has = static_cast<const rte_flow_item_eth*>(item.spec)->has_vlan != 0;
    if (mask->has_vlan == 0) return {};
    const auto* const last = static_cast<const rte_flow_item_eth*>(item.last);
    if (last != nullptr && (last->has_vlan != 0) != has)
      return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, last,
                    "range: accepted: last equal to spec");
    tagged_ = has;
    ether_item_ = &item;
    return {};
  }

  /// has_vlan=1 is a tag with anything in it.
  FlowResult<void> settle_tag() {
    if (!tagged_) return {};
    if (*tagged_ && !match_.vlan) match_.vlan.emplace();
    match_.untagged = !*tagged_;
    if (match_.untagged && match_.vlan)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, ether_item_,
                    "has_vlan is 0, and a vlan item: accepted: one of them");
    return {};
  }

  hca::Match match_;
  int layer_ = 0;
  std::optional<bool> tagged_;
  const rte_flow_item* ether_item_ = nullptr;
};

}  // namespace

FlowResult<hca::Match> read_pattern(const rte_flow_item* pattern) {
  return PatternReader().read(pattern);
}

}  // namespace nicmem::pmd
