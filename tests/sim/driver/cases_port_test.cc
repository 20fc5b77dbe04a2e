// SPDX-License-Identifier: BSD-3-Clause
// Cases of the catalogue (README.md of this folder) about a port's life and its control side that
// no other file here has.
#include <rte_flow.h>

#include <atomic>
#include <thread>

#include "cases.h"
#include "resources.h"

namespace nicmem::test {
namespace {

/// A packet that is not inlined, alone in its burst, again and again: each buffer comes back.
TEST(DriverCases, DRV_16_AMillionSinglePacketsLeaveThePoolAsItWas) {
  constexpr uint32_t kPackets = 1'000'000;
  Cable cable({.arguments = "mode=host"},
              {.arguments = "mode=nicmem-noinline", .ring = 64, .mbufs = 255});
  const Bytes bytes = frame(60);
  rte_mempool* const pool = cable.here.pool();
  const uint32_t posted = rte_mempool_in_use_count(pool);
  for (uint32_t i = 0; i < kPackets; ++i) {
    rte_mbuf* const packet = rte_pktmbuf_alloc(pool);
    ASSERT_NE(packet, nullptr) << i;
    std::memcpy(rte_pktmbuf_append(packet, 60), bytes.data(), 60);
    ASSERT_EQ(cable.here.send(packet), 1) << i;
    if (i % 16 != 15) continue;
    cable.here.step();
    cable.there.step();
    rte_mbuf* packets[16];
    const uint16_t count = rte_eth_rx_burst(cable.there.id(), 0, packets, 16);
    ASSERT_EQ(count, 16) << i;
    rte_pktmbuf_free_bulk(packets, count);
    ASSERT_LE(rte_mempool_in_use_count(pool), posted + 64) << i;
  }
  rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
  EXPECT_EQ(rte_mempool_in_use_count(pool), posted);
  EXPECT_EQ(cable.here.xstat("tx_good_packets"), kPackets);
  check_conservation(cable);
}

/// Device memory as verbs sees it: region on it, region gone, memory gone. The warning was the
/// kernel's; here keys and memory must not run out.
TEST(DriverCases, DRV_23_DeviceMemoryRegionsComeAndGo) {
  Cable cable({.arguments = "mode=host,sram=64KiB"});
  nicmem_region held{};
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(rte_vdev_init("net_nicmem9", "cpu=none,wire=loop,sram=64KiB"), 0) << i;
    uint16_t id = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_nicmem9", &id), 0);
    ASSERT_EQ(rte_pmd_nicmem_alloc(id, 4096, &held), 0) << i;  // all of it is one region
    ASSERT_EQ(rte_pmd_nicmem_free(id, &held), 0);
    ASSERT_EQ(rte_vdev_uninit("net_nicmem9"), 0);
  }
  check_conservation(cable);
}

/// Configured anew a thousand times, and the device removed a hundred times.
TEST(DriverCases, DRV_26_AThousandConfigurationsLeaveHeapAndFilesFlat) {
  size_t heap = 0, files = 0;
  for (uint32_t device = 0; device < 12; ++device) {
    {
      Cable cable({.arguments = kNicmem});
      size_t inner = 0;
      for (uint32_t i = 0; i < 100; ++i) {
        cable.there.stop();
        ASSERT_EQ(cable.there.configure({.ring = static_cast<uint16_t>(32 << (i % 3))}), 0);
        ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
        free_all({carried(cable, frame(500, i))});
        if (i % 3 != 0) continue;
        if (i == 3) inner = heap_bytes();
        if (i > 3) {
          ASSERT_EQ(heap_bytes(), inner) << i;
        }
      }
      check_conservation(cable);
    }
    if (device == 1) heap = heap_bytes(), files = open_files();
    if (device > 1) {
      ASSERT_EQ(heap_bytes(), heap) << device;
      ASSERT_EQ(open_files(), files) << device;
    }
  }
}

/// Sends ten frames and counts what comes back on a port that is plugged into itself.
uint32_t ten_come_back(const TestPort& port) {
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(port.send(port.packet(frame(200, i))), 1);
  for (uint32_t i = 0; i < 8; ++i) port.step();
  const auto packets = port.receive();
  free_all(packets);
  return static_cast<uint32_t>(packets.size());
}

TEST(DriverCases, DRV_28_EveryWireCarriesAfterARestart) {
  {
    SCOPED_TRACE("wire=loop");
    TestPort port("net_nicmem0", "loop", {.arguments = "mode=host,promiscuous=1"});
    for (uint32_t i = 0; i < 20; ++i) {
      EXPECT_EQ(ten_come_back(port), 10u) << i;
      port.stop();
      ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    }
    port.expect_conserved();
  }
  {
    SCOPED_TRACE("wire=pair");
    Cable cable({.arguments = kNicmem});
    for (uint32_t i = 0; i < 20; ++i) {
      cable.there.stop();
      ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
      for (uint32_t k = 0; k < 10; ++k) free_all({carried(cable, frame(300, k))});
    }
    check_conservation(cable);
  }
  {
    SCOPED_TRACE("wire=ethdev");
    ASSERT_EQ(rte_vdev_init("net_ring_drv28", nullptr), 0);  // a ring: what is sent comes back
    {
      TestPort port("net_nicmem0", "ethdev:net_ring_drv28",
                    {.arguments = "mode=host,promiscuous=1"});
      for (uint32_t i = 0; i < 20; ++i) {
        EXPECT_EQ(ten_come_back(port), 10u) << i;
        port.stop();
        ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
      }
    }
    rte_vdev_uninit("net_ring_drv28");
  }
  {
    SCOPED_TRACE("wire=gen");
    TestPort port("net_nicmem0", "gen", {.arguments = "mode=host,promiscuous=1"});
    for (uint32_t i = 0; i < 20; ++i) {
      port.step(32);
      const auto packets = port.receive();
      EXPECT_GE(packets.size(), 10u) << i;
      free_all(packets);
      port.stop();
      ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    }
  }
}

/// Two threads make and destroy rules of one port at once. Between processes the driver has no lock
/// to share: a secondary has no flow operations at all (secondary.cc).
TEST(DriverCases, DRV_43_TwoThreadsMakeRulesAtOnce) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  std::atomic<uint32_t> failed{0};
  const auto churn = [&](uint16_t port) {
    const rte_flow_attr attributes{.ingress = 1};
    rte_flow_item_udp udp{};
    udp.hdr.dst_port = rte_cpu_to_be_16(port);
    rte_flow_item_udp mask{};
    mask.hdr.dst_port = 0xffff;
    const rte_flow_item items[] = {
        {.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = nullptr, .last = nullptr, .mask = nullptr},
        {.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = nullptr, .last = nullptr, .mask = nullptr},
        {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .last = nullptr, .mask = &mask},
        {.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr}};
    const rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_DROP, .conf = nullptr},
                                       {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr}};
    for (uint32_t i = 0; i < 500; ++i) {
      rte_flow_error error{};
      rte_flow* const first = rte_flow_create(id, &attributes, items, actions, &error);
      rte_flow* const second = rte_flow_create(id, &attributes, items, actions, &error);
      if (first == nullptr || second == nullptr || rte_flow_destroy(id, first, &error) != 0 ||
          rte_flow_destroy(id, second, &error) != 0)
        ++failed;
    }
  };
  { const std::jthread one(churn, uint16_t{1}), other(churn, uint16_t{2}); }
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(cable.there.port().flows.size(), 0u);
  free_all({carried(cable, frame(300))});
  check_conservation(cable);
}

TEST(DriverCases, DRV_47_DescriptorsBeyondTheRingAreRefused) {
  Cable cable({.arguments = kNicmem, .ring = 64});
  const uint16_t id = cable.there.id(), from = cable.here.id();
  EXPECT_EQ(rte_eth_rx_queue_count(id, 0), 0);
  EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 0), RTE_ETH_RX_DESC_AVAIL);
  EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 63), RTE_ETH_RX_DESC_AVAIL);
  for (const uint16_t beyond : std::initializer_list<uint16_t>{64, 65, 65535}) {
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, beyond), -EINVAL);
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, 0, beyond), -EINVAL);
  }
  for (const uint16_t queue : std::initializer_list<uint16_t>{1, 99}) {
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, queue, 0), -EINVAL);
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, queue, 0), -EINVAL);
    EXPECT_EQ(rte_eth_rx_queue_count(id, queue), -EINVAL);
  }
  rte_eth_rxq_info info{};
  EXPECT_EQ(rte_eth_rx_queue_info_get(65535, 0, &info), -ENODEV);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(cable.here.send(cable.here.packet(frame(90, i))), 1);
  EXPECT_EQ(rte_eth_tx_descriptor_status(from, 0, 58), RTE_ETH_TX_DESC_DONE);
  EXPECT_EQ(rte_eth_tx_descriptor_status(from, 0, 59), RTE_ETH_TX_DESC_FULL);
  cable.settle();
  EXPECT_EQ(rte_eth_rx_queue_count(id, 0), 5);
  EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 4), RTE_ETH_RX_DESC_DONE);
  EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 5), RTE_ETH_RX_DESC_AVAIL);
  free_all(cable.there.receive());
  rte_eth_tx_done_cleanup(from, 0, 0);
  rte_eth_tx_done_cleanup(from, 0, 0);
  cable.here.step();
  rte_eth_tx_done_cleanup(from, 0, 0);
  EXPECT_EQ(rte_eth_tx_descriptor_status(from, 0, 63), RTE_ETH_TX_DESC_DONE);
  ASSERT_EQ(rte_eth_dev_rx_queue_stop(id, 0), 0);
  EXPECT_EQ(rte_eth_rx_queue_count(id, 0), 0);
  ASSERT_EQ(rte_eth_dev_rx_queue_start(id, 0), 0);
  check_conservation(cable);
}

}  // namespace
}  // namespace nicmem::test
