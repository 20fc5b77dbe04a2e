// SPDX-License-Identifier: BSD-3-Clause
// Receive-side scaling as ethdev asks for it: key, types, redirection table.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compat.h"
#include "hca/steering.h"

namespace nicmem::pmd {

/// Types that a port can hash. The *_ONLY ones narrow what the others cover.
inline constexpr uint64_t kRssTypes = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP |
                                      RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY |
                                      RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY;

inline constexpr uint16_t kMinRetaSize = 128;
inline constexpr uint16_t kMaxRetaSize = hca::kMaxRssTable;

struct Rss {
  std::array<uint8_t, 40> key{};
  uint64_t types = 0;           // RTE_ETH_RSS_*
  std::vector<uint16_t> table;  // a queue's number for each value of the hash's low bits
};

/// What the hash of each kind of packet covers for `types`: of IP packets the addresses; of TCP and
/// UDP packets, if their type is given, also the ports, else as IP. With *_ONLY types exactly the
/// fields that they name, and of a TCP or UDP packet nothing of the layer that none of them names.
/// kUnsupported: a type that is not in kRssTypes.
Result<std::array<uint8_t, hca::kPacketKinds>> hash_fields(uint64_t types);

struct Port;

/// Takes key and types from a new configuration, and spreads the table evenly over its queues.
/// kInvalidArgument: the key's length.
Result<void> configure_rss(Port& port);

int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size);
int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size);
int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* conf);
int rss_hash_conf_get(rte_eth_dev* dev, rte_eth_rss_conf* conf);

}  // namespace nicmem::pmd
