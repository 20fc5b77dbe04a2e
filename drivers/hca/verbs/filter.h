// SPDX-License-Identifier: BSD-3-Clause
// What a card compares a frame with. A card looks at the type behind the tags, and at tags by bits
// of their own, where hca::Match has headers: one Match can take several filters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "hca/steering.h"

namespace nicmem::hca_verbs {

/// A number in the field's own width, and the bits of it that count.
struct Compared {
  uint32_t value = 0;
  uint32_t mask = 0;
  bool is_asked() const { return mask != 0; }
};

enum class Tag : uint8_t { kAny, kNone, kCustomer, kService };
enum class L4 : uint8_t { kAny, kUdp, kTcp, kIcmp };

struct Filter {
  hca::Pattern<hw::EtherHeader> ether;  // addresses only
  Compared type;                        // of what follows the tags
  Tag tag = Tag::kAny;
  Compared tag_control;
  uint32_t version = 0;  // 4, 6; 0: not only IP
  hca::Pattern<std::array<hw::Ipv6Address, 2>> addresses;  // source, destination; version 4: in
                                                           // the last four bytes of each
  Compared tos, ttl, protocol;
  bool whole = false;  // not a fragment
  L4 l4 = L4::kAny;
  Compared source_port, destination_port;
  Compared tcp_flags;
  Compared icmp_type, icmp_code;
};

/// All frames of `match` that are of `kind` (none: any frames). Empty: there cannot be such.
/// kUnsupported: a card does not compare what `match` asks for.
Result<std::vector<Filter>> filters_of(const hca::Match& match,
                                       std::optional<hca::PacketKind> kind);

}  // namespace nicmem::hca_verbs
