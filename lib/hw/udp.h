// SPDX-License-Identifier: BSD-3-Clause
// The UDP header. [RFC 768]
#pragma once

#include <cstddef>

#include "base/endian.h"

namespace nicmem::hw {

struct UdpHeader {
  be16 source_port;
  be16 destination_port;
  be16 length;    // header and data, bytes
  be16 checksum;  // 0: none was computed (IPv4 only)
};
static_assert(sizeof(UdpHeader) == 8 && alignof(UdpHeader) == 1);
static_assert(offsetof(UdpHeader, length) == 4 && offsetof(UdpHeader, checksum) == 6);

}  // namespace nicmem::hw
