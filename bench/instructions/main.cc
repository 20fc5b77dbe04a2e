// SPDX-License-Identifier: BSD-3-Clause
// How many instructions a packet costs the host: receives bursts, swaps the MAC addresses, sends
// them, with the model single-stepped in between. Run under callgrind with --collect-atstart=no,
// which then counts what rte_eth_rx_burst() and rte_eth_tx_burst() execute and nothing else.
//
//   instructions --no-huge -m 512 --no-pci --vdev net_nicmem0,cpu=none,mode=nicmem -- ROUNDS
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <valgrind/callgrind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rte_pmd_nicmem.h"

namespace {

constexpr uint16_t kBurst = 32;
constexpr uint16_t kRing = 1024;
constexpr uint32_t kWarmUpRounds = 200;  // caches filled, every ring wrapped

bool start_port(uint16_t port) {
  rte_mempool* const pool =
      rte_pktmbuf_pool_create("packets", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  rte_eth_conf conf{};
  return pool != nullptr && rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
         rte_eth_rx_queue_setup(port, 0, kRing, SOCKET_ID_ANY, nullptr, pool) == 0 &&
         rte_eth_tx_queue_setup(port, 0, kRing, SOCKET_ID_ANY, nullptr) == 0 &&
         rte_eth_dev_start(port) == 0;
}

void swap_addresses(rte_mbuf* packet) {
  auto* const ether = rte_pktmbuf_mtod(packet, rte_ether_hdr*);
  std::swap(ether->dst_addr, ether->src_addr);
}

/// Forwards one burst; returns its length.
uint16_t round(uint16_t port, bool counted) {
  rte_mbuf* packets[kBurst];
  rte_pmd_nicmem_step(port, kBurst);
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  const uint16_t received = rte_eth_rx_burst(port, 0, packets, kBurst);
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  for (uint16_t i = 0; i < received; ++i) swap_addresses(packets[i]);
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  const uint16_t sent = rte_eth_tx_burst(port, 0, packets, received);
  if (counted) CALLGRIND_TOGGLE_COLLECT;
  rte_pktmbuf_free_bulk(packets + sent, static_cast<unsigned>(received - sent));
  return sent;
}

}  // namespace

int main(int argc, char** argv) {
  const int used = rte_eal_init(argc, argv);
  if (used < 0) return EXIT_FAILURE;
  const auto rounds = static_cast<uint32_t>(std::atoi(argv[argc - 1]));
  const uint16_t port = 0;
  if (rte_eth_dev_count_avail() != 1 || rounds == 0 || !start_port(port)) {
    std::fprintf(stderr, "instructions: needs one --vdev net_nicmem0,cpu=none,... and -- ROUNDS\n");
    return EXIT_FAILURE;
  }
  for (uint32_t i = 0; i < kWarmUpRounds; ++i) round(port, false);
  uint64_t packets = 0;
  for (uint32_t i = 0; i < rounds; ++i) packets += round(port, true);
  std::printf("packets %llu\n", static_cast<unsigned long long>(packets));
  rte_eth_dev_stop(port);
  rte_eth_dev_close(port);
  rte_eal_cleanup();
  return EXIT_SUCCESS;
}
