// SPDX-License-Identifier: BSD-3-Clause
// Which frames a port takes, and which receive queue each goes to: default rules by address and
// VLAN, rules of the program's own, and the hash that spreads frames over queues.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "hw/ether.h"
#include "hw/icmp.h"
#include "hw/ipv4.h"
#include "hw/ipv6.h"
#include "hw/tcp.h"
#include "hw/udp.h"

namespace nicmem::hca {

class ReceiveQueue;

/// What a frame is, for the hash. Fragments have no ports: they are the plain IP kinds. A card has
/// one receive object for each, because one cannot hash IPv4 and IPv6, or TCP and UDP. [verbs RSS]
enum class PacketKind : uint8_t { kIpv4, kIpv4Tcp, kIpv4Udp, kIpv6, kIpv6Tcp, kIpv6Udp };
inline constexpr size_t kPacketKinds = 6;

/// What the hash of one kind of packet covers, in this order. Ports: not of the plain IP kinds.
struct HashFields {
  static constexpr uint8_t kSourceAddress = 1, kDestinationAddress = 2;
  static constexpr uint8_t kSourcePort = 4, kDestinationPort = 8;
  static constexpr uint8_t kAddresses = kSourceAddress | kDestinationAddress;
  static constexpr uint8_t kAddressesAndPorts = kAddresses | kSourcePort | kDestinationPort;
};

/// Addresses and ports of everything.
inline constexpr std::array<uint8_t, kPacketKinds> kHashAll = {
    HashFields::kAddresses, HashFields::kAddressesAndPorts, HashFields::kAddressesAndPorts,
    HashFields::kAddresses, HashFields::kAddressesAndPorts, HashFields::kAddressesAndPorts};

inline constexpr size_t kMaxRssTable = 512;

/// Spreads frames over queues. A kind without fields, and what is not IP, has no hash and goes to
/// table[0].
struct RssOptions {
  std::span<ReceiveQueue* const> table;  // indexed by the hash's low bits; a power of two entries
  std::array<uint8_t, 40> key{};         // Toeplitz; 40 bytes exactly, as on a card
  std::array<uint8_t, kPacketKinds> fields = kHashAll;
};

/// The default rules: those of the lowest priority. An empty rss.table takes no frame.
struct SteeringOptions {
  bool promiscuous = false;
  bool all_multicast = false;
  bool isolated = false;  // no default rules: only frames that some Rule takes come in
  std::span<const hw::MacAddress> unicast;  // besides these always broadcast
  std::span<const hw::MacAddress> multicast;
  const std::bitset<4096>* vlans = nullptr;  // tagged frames must be of these; null: of any
  RssOptions rss;
};

/// Bits of a header that must be as in `value`, where `mask` has ones. Both in wire order.
template <class Header>
struct Pattern {
  Header value{};
  Header mask{};
};

/// Frames that have all the headers given here, each as its pattern says. All empty: every frame.
struct Match {
  bool untagged = false;  // only frames without any tag
  std::optional<Pattern<hw::EtherHeader>> ether;
  std::optional<Pattern<hw::VlanTag>> vlan;  // the outermost tag; ether.type is then the tag's own
  std::optional<Pattern<hw::Ipv4Header>> ipv4;
  std::optional<Pattern<hw::Ipv6Header>> ipv6;
  std::optional<Pattern<hw::UdpHeader>> udp;
  std::optional<Pattern<hw::TcpHeader>> tcp;
  std::optional<Pattern<hw::IcmpHeader>> icmp;
};

inline constexpr uint32_t kMaxFlowTag = 0xffffff;

/// What happens to frames that match, before the default rules see them.
struct RuleOptions {
  Match match;
  uint32_t priority = 0;  // 0 is looked at first; equal ones: the older first
  bool drop = false;      // else: to rss.table
  RssOptions rss;
  uint32_t tag = 0;  // reported in the completion's flow tag, 24 bits; 0: none
  bool count = false;
};

struct RuleCount {
  uint64_t packets = 0;
  uint64_t bytes = 0;  // without FCS
};

/// A rule in force until it is destroyed, which must be before its queues are.
class Rule {
 public:
  virtual ~Rule() = default;
  /// Since it was made. kUnsupported: it was made without `count`.
  virtual Result<RuleCount> count() const = 0;
};

}  // namespace nicmem::hca
