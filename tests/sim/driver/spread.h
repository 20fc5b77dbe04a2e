// SPDX-License-Identifier: BSD-3-Clause
// A cable to a port with several queues, and frames that spread over them.
#pragma once

#include "conservation.h"
#include "support/frames.h"

namespace nicmem::test {

inline constexpr uint16_t kQueues = 4;

inline Bytes udp(uint32_t source, uint32_t destination, uint16_t from, uint16_t to) {
  const Frame made =
      make_ipv4({.source = source, .destination = destination, .payload_bytes = 100});
  Bytes bytes(made.size());
  std::memcpy(bytes.data(), made.data(), made.size());
  bytes[34] = static_cast<uint8_t>(from >> 8), bytes[35] = static_cast<uint8_t>(from);
  bytes[36] = static_cast<uint8_t>(to >> 8), bytes[37] = static_cast<uint8_t>(to);
  for (uint32_t i = 0; i < 6; ++i) bytes[i] = 0xff;
  return bytes;
}

struct Queues {
  uint64_t types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
  uint64_t offloads = 0;
  uint8_t* key = nullptr;
  uint8_t key_bytes = 0;
  uint16_t deferred = UINT16_MAX;  // this queue
};

inline int configure(const TestPort& port, const Queues& how) {
  rte_eth_conf conf{};
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rxmode.offloads = how.offloads;
  conf.rx_adv_conf.rss_conf = {
      .rss_key = how.key, .rss_key_len = how.key_bytes, .rss_hf = how.types};
  if (const int error = rte_eth_dev_configure(port.id(), kQueues, kQueues, &conf); error != 0)
    return error;
  for (uint16_t q = 0; q < kQueues; ++q) {
    rte_eth_rxconf rx{};
    rx.rx_deferred_start = q == how.deferred;
    rte_eth_txconf tx{};
    tx.tx_deferred_start = q == how.deferred;
    if (const int error = rte_eth_rx_queue_setup(port.id(), q, 64, 0, &rx, port.pool()); error != 0)
      return error;
    if (const int error = rte_eth_tx_queue_setup(port.id(), q, 64, 0, &tx); error != 0)
      return error;
  }
  return rte_eth_dev_start(port.id());
}

/// A cable to a port with kQueues queues.
class Spread : public Cable {
 public:
  explicit Spread(const Queues& how = {}, const std::string& arguments = "mode=host")
      : Cable({.arguments = arguments}) {
    there.stop();
    EXPECT_EQ(configure(there, how), 0);
    EXPECT_EQ(rte_eth_promiscuous_enable(there.id()), 0);
  }
  /// The queue at which a frame arrives, or -1.
  int queue_of(const Bytes& bytes) const {
    carry(bytes);
    return polled();
  }
  int polled() const {
    int at = -1;
    for (uint16_t q = 0; q < kQueues; ++q) {
      rte_mbuf* packets[64];
      const uint16_t count = rte_eth_rx_burst(there.id(), q, packets, 64);
      if (count == 0) continue;
      at = q;
      rte_pktmbuf_free_bulk(packets, count);
    }
    return at;
  }
};

using Reta = std::vector<rte_eth_rss_reta_entry64>;
inline Reta all_to(uint16_t queue, uint16_t size) {
  Reta reta(size / RTE_ETH_RETA_GROUP_SIZE);
  for (auto& group : reta) {
    group.mask = UINT64_MAX;
    std::fill_n(group.reta, RTE_ETH_RETA_GROUP_SIZE, queue);
  }
  return reta;
}

}  // namespace nicmem::test
