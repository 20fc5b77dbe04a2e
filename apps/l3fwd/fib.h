// SPDX-License-Identifier: BSD-3-Clause
// From configuration to forwarding entries: one longest-prefix table answers where to, and also
// whether an address is the router's own, a broadcast, or a host whose MAC address is unknown.
#pragma once

#include <cstdint>
#include <vector>

#include "config.h"
#include "nf/l3fwd.h"

namespace nicmem::l3fwd {

struct Fib {
  struct Entry {
    Prefix prefix;
    nf::NextHopId hop;
  };

  std::vector<Entry> entries;
  std::vector<nf::NextHop> hops;  // `source` is filled in once the ports are open

  /// The interfaces that some packet may leave through, ascending.
  std::vector<uint16_t> egress_interfaces() const;
};

/// Of a configuration that parse_config accepts. Where prefixes collide nevertheless, own
/// addresses win over neighbours, neighbours over routes, routes over connected networks.
Fib build_fib(const Config& config);

/// Sources that no packet may come from: own addresses and directed broadcasts.
struct RefusedSources {
  std::vector<uint32_t> v4;
  std::vector<hw::Ipv6Address> v6;
};
RefusedSources refused_sources(const Config& config);

}  // namespace nicmem::l3fwd
