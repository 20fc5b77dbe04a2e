// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/flow_format.h"

#include <cstring>

#include "base/endian.h"

namespace nicmem::hca_verbs {
namespace {

/// A field of fte_match_set_lyr_2_4: its first bit, counted from the highest of byte 0, and how
/// many. [rdma-core, mlx5_ifc.h]
struct Field {
  uint32_t offset;
  uint32_t bits;
};
constexpr Field kEtherType{0x30, 16}, kTagControl{0x70, 16};  // priority, CFI, VLAN in one
constexpr Field kProtocol{0x80, 8}, kTos{0x88, 8};            // DSCP and ECN in one
constexpr Field kCustomerTag{0x90, 1}, kServiceTag{0x91, 1}, kFragment{0x92, 1};
constexpr Field kTcpFlags{0x97, 9}, kTcpSource{0xa0, 16}, kTcpDestination{0xb0, 16};
constexpr Field kTtl{0xd8, 8}, kUdpSource{0xe0, 16}, kUdpDestination{0xf0, 16};
constexpr size_t kSourceMac = 0, kDestinationMac = 8;     // bytes
constexpr size_t kSourceIp = 0x20, kDestinationIp = 0x30;  // 16 bytes each; IPv4: the last four
constexpr Field kIcmpType{(4 * 64 + 32) * 8, 8}, kIcmpCode{(4 * 64 + 33) * 8, 8};  // misc3

void put(std::byte* at, Field field, uint32_t number) {
  for (uint32_t i = 0; i < field.bits; ++i) {
    if ((number >> (field.bits - 1 - i) & 1) == 0) continue;
    const uint32_t bit = field.offset + i;
    at[bit / 8] |= std::byte{0x80} >> (bit % 8);
  }
}

class Writer {
 public:
  explicit Writer(FlowParameters& out) : out_(out) {}
  void compare(Field field, const Compared& with) {
    put(out_.value.data(), field, with.value & with.mask);
    put(out_.mask.data(), field, with.mask);
  }
  template <class Bytes>
  void compare(size_t at, const Bytes& value, const Bytes& mask) {
    std::memcpy(out_.value.data() + at, &value, sizeof value);
    std::memcpy(out_.mask.data() + at, &mask, sizeof mask);
  }

 private:
  FlowParameters& out_;
};

void write_tag(const Filter& filter, Writer& writer) {
  const bool customer = filter.tag == Tag::kCustomer, service = filter.tag == Tag::kService;
  if (filter.tag == Tag::kNone || customer) writer.compare(kCustomerTag, {customer, 1});
  if (filter.tag == Tag::kNone || service) writer.compare(kServiceTag, {service, 1});
  writer.compare(kTagControl, filter.tag_control);
}

}  // namespace

FlowParameters parameters_of(const Filter& filter) {
  FlowParameters out;
  Writer writer(out);
  writer.compare(kSourceMac, filter.ether.value.source, filter.ether.mask.source);
  writer.compare(kDestinationMac, filter.ether.value.destination, filter.ether.mask.destination);
  writer.compare(kEtherType, filter.type);
  write_tag(filter, writer);
  writer.compare(kSourceIp, filter.addresses.value[0], filter.addresses.mask[0]);
  writer.compare(kDestinationIp, filter.addresses.value[1], filter.addresses.mask[1]);
  writer.compare(kProtocol, filter.protocol);
  writer.compare(kTos, filter.tos);
  writer.compare(kTtl, filter.ttl);
  if (filter.whole) writer.compare(kFragment, {0, 1});
  const bool udp = filter.l4 == L4::kUdp;
  writer.compare(udp ? kUdpSource : kTcpSource, filter.source_port);
  writer.compare(udp ? kUdpDestination : kTcpDestination, filter.destination_port);
  writer.compare(kTcpFlags, filter.tcp_flags);
  writer.compare(kIcmpType, filter.icmp_type);
  writer.compare(kIcmpCode, filter.icmp_code);
  if (filter.icmp_type.is_asked() || filter.icmp_code.is_asked()) out.criteria |= kMisc3;
  return out;
}

namespace {

/// Appends structs one behind the other, as ibv_create_flow wants them.
class SpecList {
 public:
  explicit SpecList(uint32_t priority) : bytes_(sizeof(ibv_flow_attr)) {
    attr_.type = IBV_FLOW_ATTR_NORMAL;
    attr_.priority = static_cast<uint16_t>(priority);
    attr_.port = 1;
  }
  template <class Spec>
  void add(Spec& spec, ibv_flow_spec_type type) {
    spec.type = type;
    spec.size = sizeof spec;
    const auto* const from = reinterpret_cast<const std::byte*>(&spec);
    bytes_.insert(bytes_.end(), from, from + sizeof spec);
    ++attr_.num_of_specs;
  }
  std::vector<std::byte> finish() {
    attr_.size = static_cast<uint16_t>(bytes_.size());
    std::memcpy(bytes_.data(), &attr_, sizeof attr_);
    return std::move(bytes_);
  }

 private:
  ibv_flow_attr attr_{};
  std::vector<std::byte> bytes_;
};

/// In network order, as all numbers in specs.
uint16_t wire16(uint32_t number) { return __builtin_bswap16(static_cast<uint16_t>(number)); }

template <class To, class From>
void copy(To& to, const From& from) {
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
}

/// vlan_tag means a customer's tag; a mask of a field that no frame has zero in is the only way to
/// ask for one with anything in it.
Result<void> add_eth(const Filter& filter, SpecList& list) {
  ibv_flow_spec_eth eth{};
  const auto fill = [](ibv_flow_eth_filter& to, const hw::EtherHeader& from, uint32_t type) {
    copy(to.dst_mac, from.destination);
    copy(to.src_mac, from.source);
    to.ether_type = wire16(type);
  };
  fill(eth.val, filter.ether.value, filter.type.value);
  fill(eth.mask, filter.ether.mask, filter.type.mask);
  eth.val.vlan_tag = wire16(filter.tag_control.value);
  eth.mask.vlan_tag = wire16(filter.tag_control.mask);
  const bool says_tag = filter.tag == Tag::kCustomer && filter.tag_control.is_asked();
  if (filter.tag != Tag::kAny && !says_tag)
    return fail(Code::kUnsupported, "rule: specs of verbs say of a tag only what a customer's has");
  list.add(eth, IBV_FLOW_SPEC_ETH);
  return {};
}

void add_ip(const Filter& filter, SpecList& list) {
  const auto& [value, mask] = filter.addresses;
  if (filter.version == 4) {
    ibv_flow_spec_ipv4_ext ip{};
    const auto fill = [&](ibv_flow_ipv4_ext_filter& to, const auto& from) {
      std::memcpy(&to.src_ip, from[0].bytes + 12, sizeof to.src_ip);
      std::memcpy(&to.dst_ip, from[1].bytes + 12, sizeof to.dst_ip);
    };
    fill(ip.val, value);
    fill(ip.mask, mask);
    const auto set = [&](uint8_t ibv_flow_ipv4_ext_filter::*field, const Compared& with) {
      ip.val.*field = static_cast<uint8_t>(with.value);
      ip.mask.*field = static_cast<uint8_t>(with.mask);
    };
    set(&ibv_flow_ipv4_ext_filter::proto, filter.protocol);
    set(&ibv_flow_ipv4_ext_filter::tos, filter.tos);
    set(&ibv_flow_ipv4_ext_filter::ttl, filter.ttl);
    list.add(ip, IBV_FLOW_SPEC_IPV4_EXT);
  } else if (filter.version == 6) {
    ibv_flow_spec_ipv6 ip{};
    copy(ip.val.src_ip, value[0]), copy(ip.val.dst_ip, value[1]);
    copy(ip.mask.src_ip, mask[0]), copy(ip.mask.dst_ip, mask[1]);
    const auto set = [&](uint8_t ibv_flow_ipv6_filter::*field, const Compared& with) {
      ip.val.*field = static_cast<uint8_t>(with.value);
      ip.mask.*field = static_cast<uint8_t>(with.mask);
    };
    set(&ibv_flow_ipv6_filter::next_hdr, filter.protocol);
    set(&ibv_flow_ipv6_filter::traffic_class, filter.tos);
    set(&ibv_flow_ipv6_filter::hop_limit, filter.ttl);
    list.add(ip, IBV_FLOW_SPEC_IPV6);
  }
}

Result<void> add_l4(const Filter& filter, SpecList& list) {
  if (filter.tcp_flags.is_asked() || filter.icmp_type.is_asked() || filter.icmp_code.is_asked())
    return fail(Code::kUnsupported, "rule: specs of verbs have no TCP flags and no ICMP");
  if (filter.l4 != L4::kUdp && filter.l4 != L4::kTcp) return {};
  ibv_flow_spec_tcp_udp ports{};
  ports.val = {.dst_port = wire16(filter.destination_port.value),
               .src_port = wire16(filter.source_port.value)};
  ports.mask = {.dst_port = wire16(filter.destination_port.mask),
                .src_port = wire16(filter.source_port.mask)};
  list.add(ports, filter.l4 == L4::kUdp ? IBV_FLOW_SPEC_UDP : IBV_FLOW_SPEC_TCP);
  return {};
}

void add_actions(const SpecActions& actions, SpecList& list) {
  if (actions.tag != 0) {
    ibv_flow_spec_action_tag tag{};
    tag.tag_id = actions.tag;
    list.add(tag, IBV_FLOW_SPEC_ACTION_TAG);
  }
  if (actions.drop) {
    ibv_flow_spec_action_drop drop{};
    list.add(drop, IBV_FLOW_SPEC_ACTION_DROP);
  }
  if (actions.counters != nullptr) {
    ibv_flow_spec_counter_action count{};
    count.counters = actions.counters;
    list.add(count, IBV_FLOW_SPEC_ACTION_COUNT);
  }
}

}  // namespace

/// That a frame is no fragment they cannot say: where hashes are by ports, fragments are hashed by
/// what a card finds in their place.
Result<std::vector<std::byte>> specs_of(const Filter& filter, uint32_t priority,
                                        const SpecActions& actions) {
  SpecList list(priority);
  NM_TRY_VOID(add_eth(filter, list));
  add_ip(filter, list);
  NM_TRY_VOID(add_l4(filter, list));
  add_actions(actions, list);
  return list.finish();
}

}  // namespace nicmem::hca_verbs
