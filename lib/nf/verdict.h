// SPDX-License-Identifier: BSD-3-Clause
// What a network function decides about a packet, and the one vocabulary of reasons to drop it:
// every program, counter, table and metric uses these names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nicmem::nf {

enum class DropReason : uint8_t {
  kTruncated,           // the frame ends before a header, or before the length in a header
  kNeedsPayload,        // a needed header byte lies beyond the first segment
  kLengthMismatch,      // the buffers do not add up to the frame's length
  kMulticastMac,        // sent to a group MAC address: never forwarded [RFC 1812, 5.3.4]
  kDmacMismatch,        // sent to another station's MAC address
  kVlanUnexpected,      // tagged, on a port without VLAN configuration
  kNotIp,               // neither IPv4 nor IPv6
  kMalformedHeader,     // version, header length or total length impossible [RFC 1812, 5.2.2]
  kBadChecksum,         // IPv4 header checksum [RFC 1812, 5.2.2]
  kMartianSource,       // a source that no forwarded packet may have [RFC 1812, 5.3.7]
  kMartianDestination,  // a destination that must not be forwarded [RFC 1812, 5.3.7]
  kLocalDestination,    // to an address of this router, which answers nothing yet
  kNoRoute,
  kNoNeighbour,    // on a connected network, MAC address unknown
  kTtlExpired,     // TTL or hop limit of 0 or 1 on arrival
  kMtuExceeded,    // longer than the egress interface allows
  kForeignMemory,  // in memory of a device other than the egress port's
  kTxFull,         // the egress queue stayed full
};
inline constexpr size_t kDropReasons = static_cast<size_t>(DropReason::kTxFull) + 1;

/// The names that users see, in the order of the enumeration.
inline constexpr std::array<const char*, kDropReasons> kDropReasonNames = {
    "truncated",      "needs_payload",       "length_mismatch",
    "multicast_mac",  "dmac_mismatch",       "vlan_unexpected",
    "not_ip",         "malformed_header",    "bad_checksum",
    "martian_source", "martian_destination", "local_destination",
    "no_route",       "no_neighbour",        "ttl_expired",
    "mtu_exceeded",   "foreign_memory",      "tx_full"};

constexpr const char* name_of(DropReason reason) {
  return kDropReasonNames[static_cast<size_t>(reason)];
}

/// Forward to a port, drop for a reason, or punt: hand to the program's slow path.
struct Verdict {
  enum class Kind : uint8_t { kForward, kDrop, kPunt };

  Kind kind = Kind::kPunt;
  DropReason reason = DropReason::kTruncated;  // when kDrop
  uint16_t port = 0;                           // when kForward: index of the egress interface

  static constexpr Verdict forward(uint16_t egress) {
    return {.kind = Kind::kForward, .port = egress};
  }
  static constexpr Verdict drop(DropReason why) { return {.kind = Kind::kDrop, .reason = why}; }
  static constexpr Verdict punt() { return {}; }

  friend constexpr bool operator==(const Verdict&, const Verdict&) = default;
};
static_assert(sizeof(Verdict) == 4);

}  // namespace nicmem::nf
