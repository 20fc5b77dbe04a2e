// SPDX-License-Identifier: BSD-3-Clause
// What a network function sees of a packet: the bytes of its first segment, and how long it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nicmem::nf {

/// What the device said about the IPv4 header checksum.
enum class ChecksumStatus : uint8_t { kUnknown, kGood, kBad };

/// `headers` may be shorter than the headers (then the rest lies in payload memory, which no
/// function may read) and includes Ethernet padding if that is in the first segment.
struct PacketView {
  std::span<std::byte> headers;
  uint32_t frame_bytes = 0;  // all segments, without FCS
  ChecksumStatus ipv4_checksum = ChecksumStatus::kUnknown;
};

}  // namespace nicmem::nf
