// SPDX-License-Identifier: BSD-3-Clause
// The IPv4 header. [RFC 791, 3.1]
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/endian.h"

namespace nicmem::hw {

struct Ipv4Header {
  uint8_t version_ihl;
  uint8_t tos;
  be16 total_length;  // header and data, bytes
  be16 id;
  be16 fragment;
  uint8_t ttl;
  uint8_t protocol;
  be16 checksum;  // of the header, options included
  be32 source;
  be32 destination;

  using Version = Bits<uint8_t, 7, 4>;
  using Ihl = Bits<uint8_t, 3, 0>;  // header length in 4-byte words, 5..15
  using DontFragment = Bits<uint16_t, 14, 14>;
  using MoreFragments = Bits<uint16_t, 13, 13>;
  using FragmentOffset = Bits<uint16_t, 12, 0>;  // in units of 8 bytes

  constexpr uint32_t header_bytes() const { return 4u * Ihl::get(version_ihl); }
};
static_assert(sizeof(Ipv4Header) == 20 && alignof(Ipv4Header) == 1);
static_assert(offsetof(Ipv4Header, total_length) == 2 && offsetof(Ipv4Header, fragment) == 6);
static_assert(offsetof(Ipv4Header, ttl) == 8 && offsetof(Ipv4Header, checksum) == 10);
static_assert(offsetof(Ipv4Header, source) == 12 && offsetof(Ipv4Header, destination) == 16);

inline constexpr uint32_t kMaxIpv4HeaderBytes = 60;

inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;

}  // namespace nicmem::hw
