// SPDX-License-Identifier: BSD-3-Clause
// Longest prefix match over DPDK's rte_lpm (IPv4) and rte_lpm6 (IPv6), in the form that lib/nf
// wants (nf::RouteTable). The tables hold ids of next hops only.
#pragma once

#include <rte_lpm.h>
#include <rte_lpm6.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "hw/ipv6.h"

namespace nicmem::dpdk {

/// Thread rule: lookups from any core; add() before the cores start.
class RouteTable {
 public:
  static constexpr uint32_t kNoRoute = ~uint32_t{0};
  static constexpr uint32_t kMaxNextHop = (1u << 21) - 1;  // what rte_lpm6 holds

  /// Room for that many prefixes of each family. A family with none takes no memory; any other
  /// takes 64 MiB at least, which is the price of lookups in one or two loads.
  struct Options {
    std::string name;  // unique in the process
    uint32_t max_v4 = 1024;
    uint32_t max_v6 = 1024;
  };
  /// kExhausted when memory is short.
  static Result<RouteTable> create(const Options& options);

  /// Adds or replaces a prefix. `length` 0..32, address in host order. kInvalidArgument when
  /// length or id are out of range, kExhausted when the table is full.
  Result<void> add(uint32_t address, unsigned length, uint32_t next_hop);
  Result<void> add(const hw::Ipv6Address& address, unsigned length, uint32_t next_hop);

  uint32_t lookup(uint32_t address) const {
    uint32_t hop;
    return v4_ && rte_lpm_lookup(v4_.get(), address, &hop) == 0 ? hop : default_v4_;
  }
  uint32_t lookup(const hw::Ipv6Address& address) const {
    uint32_t hop;
    return v6_ && rte_lpm6_lookup(v6_.get(), address.bytes, &hop) == 0 ? hop : default_v6_;
  }

 private:
  struct Free {
    void operator()(rte_lpm* table) const { rte_lpm_free(table); }
    void operator()(rte_lpm6* table) const { rte_lpm6_free(table); }
  };

  RouteTable() = default;

  std::unique_ptr<rte_lpm, Free> v4_;
  std::unique_ptr<rte_lpm6, Free> v6_;
  // DPDK's tables know no prefix of length 0.
  uint32_t default_v4_ = kNoRoute;
  uint32_t default_v6_ = kNoRoute;
};

}  // namespace nicmem::dpdk
