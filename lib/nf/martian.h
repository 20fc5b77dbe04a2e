// SPDX-License-Identifier: BSD-3-Clause
// Addresses that no packet on its way through a router may carry. [RFC 1812, 5.3.7; RFC 6890]
#pragma once

#include <cstdint>
#include <cstring>

#include "hw/ipv6.h"

namespace nicmem::nf {

/// 0/8 (this network), 127/8 (loopback), 224/4 (multicast, not routed here), 240/4 (reserved, and
/// the limited broadcast): as source and as destination alike. Host order.
constexpr bool is_martian_v4(uint32_t address) {
  const uint32_t top = address >> 24;
  return top == 0 || top == 127 || top >= 224;
}

/// ::, ::1, ::ffff:0:0/96 (mapped IPv4), fe80::/10 (link-local stays on its link [RFC 4291,
/// 2.5.6]), ff00::/8 (multicast, not routed here): as source and as destination alike.
inline bool is_martian_v6(const hw::Ipv6Address& address) {
  const uint8_t* b = address.bytes;
  if (b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80)) return true;
  static constexpr uint8_t kZeros[10] = {};
  if (b[0] != 0 || std::memcmp(b, kZeros, sizeof kZeros) != 0) [[likely]]
    return false;
  if (b[10] == 0xff && b[11] == 0xff) return true;
  return std::memcmp(b + 10, kZeros, 5) == 0 && b[15] <= 1;
}

}  // namespace nicmem::nf
