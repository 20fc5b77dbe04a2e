// SPDX-License-Identifier: BSD-3-Clause
#include "rss.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

using Fields = hca::HashFields;

/// Toeplitz key that maps both directions of a flow to one queue. [Woo and Park, "Scalable TCP
/// session monitoring with symmetric receive-side scaling", 2012]
constexpr std::array<uint8_t, 40> kSymmetricKey = [] {
  std::array<uint8_t, 40> key{};
  for (size_t i = 0; i < key.size(); i += 2) key[i] = 0x6d, key[i + 1] = 0x5a;
  return key;
}();

constexpr uint64_t kIpv4Types =
    RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER;
constexpr uint64_t kIpv6Types =
    RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER | RTE_ETH_RSS_IPV6_EX;
constexpr uint64_t kOnlyL3 = RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY;
constexpr uint64_t kOnlyL4 = RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY;

uint8_t address_fields(uint64_t types) {
  if ((types & RTE_ETH_RSS_L3_SRC_ONLY) != 0) return Fields::kSourceAddress;
  if ((types & RTE_ETH_RSS_L3_DST_ONLY) != 0) return Fields::kDestinationAddress;
  return Fields::kAddresses;
}

uint8_t port_fields(uint64_t types) {
  if ((types & RTE_ETH_RSS_L4_SRC_ONLY) != 0) return Fields::kSourcePort;
  if ((types & RTE_ETH_RSS_L4_DST_ONLY) != 0) return Fields::kDestinationPort;
  return Fields::kSourcePort | Fields::kDestinationPort;
}

/// Of a TCP or UDP packet whose own type was given.
uint8_t flow_fields(uint64_t types) {
  const bool only_l3 = (types & kOnlyL3) != 0, only_l4 = (types & kOnlyL4) != 0;
  if (only_l3 && !only_l4) return address_fields(types);
  if (only_l4 && !only_l3) return port_fields(types);
  return static_cast<uint8_t>(address_fields(types) | port_fields(types));
}

/// Every entry of `old`, again and again: a larger table sends each flow where the smaller one did.
std::vector<uint16_t> resized(const std::vector<uint16_t>& old, uint16_t size) {
  std::vector<uint16_t> table(size);
  for (size_t i = 0; i < table.size(); ++i) table[i] = old[i % old.size()];
  return table;
}

Result<void> check_key(const rte_eth_rss_conf& conf, size_t bytes) {
  if (conf.rss_key == nullptr || conf.rss_key_len == 0 || conf.rss_key_len == bytes) return {};
  return fail(Code::kInvalidArgument,
              "RSS key of " + std::to_string(conf.rss_key_len) + " bytes: accepted: 40");
}

/// Puts `rss` in force; what was stays if the device refuses it.
int apply(Port& port, Rss rss) {
  std::swap(port.rss, rss);
  if (!port.ethdev->data->dev_started) return 0;
  const int result = to_rte(port, steer(port));
  if (result != 0) port.rss = std::move(rss);
  return result;
}

}  // namespace

Result<std::array<uint8_t, hca::kPacketKinds>> hash_fields(uint64_t types) {
  if ((types & ~kRssTypes) != 0) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "RSS types 0x%" PRIx64
                  ": accepted: ip, tcp, udp (version 4 and 6), l3-src-only, l3-dst-only, "
                  "l4-src-only, l4-dst-only",
                  types & ~kRssTypes);
    return fail(Code::kUnsupported, text);
  }
  types = rte_eth_rss_hf_refine(types);  // source only and destination only: both
  const auto kind = [types](uint64_t flow, uint64_t plain) -> uint8_t {
    if ((types & flow) != 0) return flow_fields(types);
    return (types & plain) != 0 ? address_fields(types) : uint8_t{0};
  };
  return std::array<uint8_t, hca::kPacketKinds>{
      kind(0, kIpv4Types),
      kind(RTE_ETH_RSS_NONFRAG_IPV4_TCP, kIpv4Types),
      kind(RTE_ETH_RSS_NONFRAG_IPV4_UDP, kIpv4Types),
      kind(0, kIpv6Types),
      kind(RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_IPV6_TCP_EX, kIpv6Types),
      kind(RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX, kIpv6Types)};
}

Result<void> configure_rss(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  const rte_eth_rss_conf& conf = data.dev_conf.rx_adv_conf.rss_conf;
  NM_TRY_VOID(check_key(conf, port.rss.key.size()));
  port.rss.key = kSymmetricKey;
  if (conf.rss_key != nullptr) std::copy_n(conf.rss_key, port.rss.key.size(), port.rss.key.begin());
  port.rss.types = conf.rss_hf;
  port.rss.table.resize(kMinRetaSize);
  for (size_t i = 0; i < port.rss.table.size(); ++i)
    port.rss.table[i] = static_cast<uint16_t>(i % std::max<size_t>(1, data.nb_rx_queues));
  return {};
}

int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size) {
  Port& port = port_of(dev);
  if (!std::has_single_bit(size) || size < kMinRetaSize || size > kMaxRetaSize) {
    NM_LOG(ERR, "%s: redirection table of %u entries: accepted: 128, 256, 512", port.name.c_str(),
           size);
    return -EINVAL;
  }
  Rss rss = port.rss;
  rss.table = resized(rss.table, size);
  for (uint16_t i = 0; i < size; ++i) {
    const rte_eth_rss_reta_entry64& group = entries[i / RTE_ETH_RETA_GROUP_SIZE];
    const uint16_t at = i % RTE_ETH_RETA_GROUP_SIZE;
    if ((group.mask >> at & 1) != 0) rss.table[i] = group.reta[at];
  }
  return apply(port, std::move(rss));
}

int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size) {
  const Port& port = port_of(dev);
  if (size != port.rss.table.size()) {
    NM_LOG(ERR, "%s: redirection table of %u entries: it has %zu", port.name.c_str(), size,
           port.rss.table.size());
    return -EINVAL;
  }
  for (uint16_t i = 0; i < size; ++i) {
    rte_eth_rss_reta_entry64& group = entries[i / RTE_ETH_RETA_GROUP_SIZE];
    const uint16_t at = i % RTE_ETH_RETA_GROUP_SIZE;
    if ((group.mask >> at & 1) != 0) group.reta[at] = port.rss.table[i];
  }
  return 0;
}

int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  Port& port = port_of(dev);
  if (const auto good = check_key(*conf, port.rss.key.size()); !good) return to_rte(port, good);
  Rss rss = port.rss;
  if (conf->rss_key != nullptr) std::copy_n(conf->rss_key, rss.key.size(), rss.key.begin());
  rss.types = conf->rss_hf;
  return apply(port, std::move(rss));
}

int rss_hash_conf_get(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  const Port& port = port_of(dev);
  conf->rss_hf = port.rss.types;
  if (conf->rss_key == nullptr) return 0;
  if (conf->rss_key_len < port.rss.key.size()) {
    NM_LOG(ERR, "%s: room for an RSS key of %u bytes: it has 40", port.name.c_str(),
           conf->rss_key_len);
    return -EINVAL;
  }
  std::ranges::copy(port.rss.key, conf->rss_key);
  conf->rss_key_len = static_cast<uint8_t>(port.rss.key.size());
  return 0;
}

}  // namespace nicmem::pmd
