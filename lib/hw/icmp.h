// SPDX-License-Identifier: BSD-3-Clause
// The ICMP header. [RFC 792; RFC 4443 for IPv6: the same first four bytes]
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/endian.h"

namespace nicmem::hw {

struct IcmpHeader {
  uint8_t type;
  uint8_t code;
  be16 checksum;
  be32 rest;  // by type: identifier and sequence number, next-hop MTU, ...
};
static_assert(sizeof(IcmpHeader) == 8 && alignof(IcmpHeader) == 1);
static_assert(offsetof(IcmpHeader, checksum) == 2 && offsetof(IcmpHeader, rest) == 4);

}  // namespace nicmem::hw
