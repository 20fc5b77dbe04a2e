// SPDX-License-Identifier: BSD-3-Clause
// The TCP header. [RFC 9293, 3.1]
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/endian.h"

namespace nicmem::hw {

struct TcpHeader {
  be16 source_port;
  be16 destination_port;
  be32 sequence;
  be32 acknowledgement;
  be16 offset_flags;
  be16 window;
  be16 checksum;
  be16 urgent;

  using DataOffset = Bits<uint16_t, 15, 12>;  // header length in 4-byte words, 5..15
  using Flags = Bits<uint16_t, 7, 0>;
  static constexpr uint16_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10;
  static constexpr uint16_t kCwr = 0x80;  // RFC 3168, 6.1
};
static_assert(sizeof(TcpHeader) == 20 && alignof(TcpHeader) == 1);
static_assert(offsetof(TcpHeader, offset_flags) == 12 && offsetof(TcpHeader, checksum) == 16);

}  // namespace nicmem::hw
