// SPDX-License-Identifier: BSD-3-Clause
// Ethernet II and VLAN tag formats: what frames start with. [IEEE 802.3, IEEE 802.1Q, RFC 894]
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/endian.h"

namespace nicmem::hw {

struct MacAddress {
  uint8_t bytes[6] = {};

  /// The group bit: multicast, and broadcast too.
  constexpr bool is_group() const { return (bytes[0] & 1) != 0; }
  friend constexpr bool operator==(const MacAddress&, const MacAddress&) = default;
};

struct EtherHeader {
  MacAddress destination;
  MacAddress source;
  be16 type;  // of what follows; below 1,536 it is a length (IEEE 802.3 framing)
};
static_assert(sizeof(EtherHeader) == 14 && alignof(EtherHeader) == 1);
static_assert(offsetof(EtherHeader, source) == 6 && offsetof(EtherHeader, type) == 12);

struct VlanTag {
  be16 control;  // [15:13] priority, [12] drop eligible, [11:0] VLAN
  be16 type;     // of what follows the tag
  using Vlan = Bits<uint16_t, 11, 0>;
};
static_assert(sizeof(VlanTag) == 4 && alignof(VlanTag) == 1 && offsetof(VlanTag, type) == 2);

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;         // 802.1Q customer tag
inline constexpr uint16_t kEtherTypeServiceVlan = 0x88a8;  // 802.1ad service tag
inline constexpr uint16_t kEtherTypeOldVlan = 0x9100;      // stacked tags before 802.1ad

constexpr bool is_vlan(uint16_t type) {
  return type == kEtherTypeVlan || type == kEtherTypeServiceVlan || type == kEtherTypeOldVlan;
}

}  // namespace nicmem::hw
