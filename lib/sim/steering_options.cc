// SPDX-License-Identifier: BSD-3-Clause
#include "sim/steering_options.h"

#include <bit>
#include <cstddef>
#include <string>

namespace nicmem::sim {
namespace {

constexpr std::array<const char*, hca::kPacketKinds> kKindNames = {"IPv4", "IPv4 TCP", "IPv4 UDP",
                                                                   "IPv6", "IPv6 TCP", "IPv6 UDP"};

tl::unexpected<Error> invalid(const std::string& what) {
  return fail(Code::kInvalidArgument, what);
}

/// Headers of which a frame has one at most.
Result<void> check_alternatives(const hca::Match& match) {
  if (match.ipv4 && match.ipv6) return invalid("rule: IPv4 and IPv6, accepted: one of them");
  if (match.udp.has_value() + match.tcp.has_value() + match.icmp.has_value() > 1) {
    return invalid("rule: more than one of UDP, TCP and ICMP, accepted: one of them");
  }
  if (match.icmp && match.ipv6) {
    return invalid("rule: ICMP over IPv6, accepted: the ICMP of IPv4");
  }
  return {};
}

}  // namespace

Result<void> check(const hca::RssOptions& options) {
  const size_t entries = options.table.size();
  if (entries > 0 && (!std::has_single_bit(entries) || entries > hca::kMaxRssTable)) {
    return invalid("RSS table: " + std::to_string(entries) +
                   " entries, accepted: none, or a power of two up to " +
                   std::to_string(hca::kMaxRssTable));
  }
  using F = hca::HashFields;
  for (size_t kind = 0; kind < options.fields.size(); ++kind) {
    const bool plain = kind == static_cast<size_t>(hca::PacketKind::kIpv4) ||
                       kind == static_cast<size_t>(hca::PacketKind::kIpv6);
    const uint8_t possible = plain ? F::kAddresses : F::kAddressesAndPorts;
    if ((options.fields[kind] & ~possible) != 0) {
      return invalid(std::string("RSS hash of ") + kKindNames[kind] + ": fields " +
                     std::to_string(options.fields[kind]) + ", accepted: 0 to " +
                     std::to_string(possible));
    }
  }
  return {};
}

Result<void> check(const hca::RuleOptions& options, uint32_t priorities) {
  if (options.priority >= priorities) {
    return invalid("rule: priority " + std::to_string(options.priority) + ", accepted: 0 to " +
                   std::to_string(priorities - 1));
  }
  if (options.tag > hca::kMaxFlowTag) {
    return invalid("rule: tag " + std::to_string(options.tag) + ", accepted: 0 to " +
                   std::to_string(hca::kMaxFlowTag));
  }
  NM_TRY_VOID(check_alternatives(options.match));
  return check(options.rss);
}

}  // namespace nicmem::sim
