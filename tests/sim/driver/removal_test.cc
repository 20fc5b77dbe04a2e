// SPDX-License-Identifier: BSD-3-Clause
// Ports that are unplugged while they run.
#include <rte_dev.h>

#include "port_fixture.h"

namespace nicmem::test {
namespace {

int count_event(uint16_t, rte_eth_event_type, void* counter, void*) {
  ++*static_cast<uint32_t*>(counter);
  return 0;
}

/// The program unplugs a port that runs.
TEST(DriverLifecycle, APortIsRemovedWhileItRuns) {
  for (uint32_t i = 0; i < 20; ++i) {
    uint16_t id = 0;
    uint32_t destroyed = 0;
    ASSERT_EQ(rte_vdev_init("net_nicmem7", "cpu=none,wire=loop,mode=nicmem,split=force"), 0);
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_nicmem7", &id), 0);
    rte_mempool* const pool = rte_pktmbuf_pool_create("hot", 1023, 0, 0, 2176, SOCKET_ID_ANY);
    rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
    ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, 64, 0, nullptr, pool), 0);
    ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, 64, 0, nullptr), 0);
    ASSERT_EQ(rte_eth_dev_callback_register(id, RTE_ETH_EVENT_DESTROY, count_event, &destroyed), 0);
    ASSERT_EQ(rte_eth_dev_start(id), 0);
    rte_mbuf* packet = rte_pktmbuf_alloc(pool);
    rte_pktmbuf_append(packet, 300);
    ASSERT_EQ(rte_eth_tx_burst(id, 0, &packet, 1), 1);
    ASSERT_EQ(rte_dev_remove(rte_eth_devices[id].device), 0);
    EXPECT_EQ(destroyed, 1u);
    EXPECT_FALSE(rte_eth_dev_is_valid_port(id));
    EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
    rte_mempool_free(pool);
    // a port that has gone cannot be named any more, and keeps its callbacks for the next one
    EXPECT_EQ(rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, count_event,
                                              &destroyed),
              0);
  }
}

}  // namespace
}  // namespace nicmem::test
