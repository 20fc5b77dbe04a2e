// SPDX-License-Identifier: BSD-3-Clause
// The IPv6 header and address. [RFC 8200, 3; RFC 4291]
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/endian.h"

namespace nicmem::hw {

struct Ipv6Address {
  uint8_t bytes[16] = {};

  friend constexpr bool operator==(const Ipv6Address&, const Ipv6Address&) = default;
  friend constexpr auto operator<=>(const Ipv6Address&, const Ipv6Address&) = default;
};
static_assert(sizeof(Ipv6Address) == 16 && alignof(Ipv6Address) == 1);

struct Ipv6Header {
  be32 version_class_flow;
  be16 payload_length;  // what follows this header, bytes
  uint8_t next_header;
  uint8_t hop_limit;
  Ipv6Address source;
  Ipv6Address destination;

  using Version = Bits<uint32_t, 31, 28>;
  using TrafficClass = Bits<uint32_t, 27, 20>;
  using FlowLabel = Bits<uint32_t, 19, 0>;
};
static_assert(sizeof(Ipv6Header) == 40 && alignof(Ipv6Header) == 1);
static_assert(offsetof(Ipv6Header, payload_length) == 4 && offsetof(Ipv6Header, hop_limit) == 7);
static_assert(offsetof(Ipv6Header, source) == 8 && offsetof(Ipv6Header, destination) == 24);

inline constexpr uint32_t kMinIpv6Mtu = 1280;  // RFC 8200, 5

}  // namespace nicmem::hw
