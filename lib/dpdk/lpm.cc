// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/lpm.h"

#include <rte_errno.h>
#include <rte_lcore.h>

#include <algorithm>

#include "dpdk/error.h"

namespace nicmem::dpdk {
namespace {

Result<void> check(unsigned length, unsigned longest, uint32_t next_hop) {
  if (length > longest) {
    return fail(Code::kInvalidArgument, "prefix length " + std::to_string(length) +
                                            "; accepted: 0.." + std::to_string(longest));
  }
  if (next_hop > RouteTable::kMaxNextHop) {
    return fail(Code::kInvalidArgument, "next hop " + std::to_string(next_hop) +
                                            "; accepted: up to " +
                                            std::to_string(RouteTable::kMaxNextHop));
  }
  return {};
}

}  // namespace

Result<RouteTable> RouteTable::create(const Options& options) {
  RouteTable table;
  if (options.max_v4 > 0) {
    // A prefix longer than 24 bits needs one group of 256 entries, if no neighbour has it yet.
    rte_lpm_config config{};
    config.max_rules = options.max_v4;
    config.number_tbl8s = std::clamp(options.max_v4, 256u, 1u << 20);
    table.v4_.reset(rte_lpm_create((options.name + "_v4").c_str(), SOCKET_ID_ANY, &config));
    if (!table.v4_) return fail_rte("IPv4 route table '" + options.name + "'", rte_errno);
  }
  if (options.max_v6 > 0) {
    // The same, but up to 13 levels of groups below the first 24 bits.
    rte_lpm6_config config{};
    config.max_rules = options.max_v6;
    config.number_tbl8s = std::clamp(13 * options.max_v6, 256u, 1u << 20);
    table.v6_.reset(rte_lpm6_create((options.name + "_v6").c_str(), SOCKET_ID_ANY, &config));
    if (!table.v6_) return fail_rte("IPv6 route table '" + options.name + "'", rte_errno);
  }
  return table;
}

Result<void> RouteTable::add(uint32_t address, unsigned length, uint32_t next_hop) {
  NM_TRY_VOID(check(length, 32, next_hop));
  if (length == 0) {
    default_v4_ = next_hop;
    return {};
  }
  if (!v4_) return fail(Code::kExhausted, "IPv4 route: the table was made without IPv4");
  const int rc = rte_lpm_add(v4_.get(), address, static_cast<uint8_t>(length), next_hop);
  if (rc != 0) return fail_rte("IPv4 route", rc);
  return {};
}

Result<void> RouteTable::add(const hw::Ipv6Address& address, unsigned length, uint32_t next_hop) {
  NM_TRY_VOID(check(length, 128, next_hop));
  if (length == 0) {
    default_v6_ = next_hop;
    return {};
  }
  if (!v6_) return fail(Code::kExhausted, "IPv6 route: the table was made without IPv6");
  const int rc = rte_lpm6_add(v6_.get(), address.bytes, static_cast<uint8_t>(length), next_hop);
  if (rc != 0) return fail_rte("IPv6 route", rc);
  return {};
}

}  // namespace nicmem::dpdk
