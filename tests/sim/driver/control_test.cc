// SPDX-License-Identifier: BSD-3-Clause
// The control side of ethdev's contract: filters, queues on their own, link, reset.
#include "spread.h"

namespace nicmem::test {
namespace {

Bytes to(const rte_ether_addr& address) {
  Bytes bytes = frame(100);
  std::memcpy(bytes.data(), address.addr_bytes, 6);
  return bytes;
}

/// Whether the port takes a frame for that address.
bool takes(const Cable& cable, const Bytes& bytes) {
  cable.carry(bytes);
  auto packets = cable.there.receive();
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  return !packets.empty();
}

TEST(DriverFilters, AHundredAndTwentyEightAddresses) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  ASSERT_EQ(rte_eth_promiscuous_disable(id), 0);
  const auto address = [](uint8_t i) { return rte_ether_addr{{0x02, 0, 0, 0, 1, i}}; };
  EXPECT_FALSE(takes(cable, to(address(1))));
  for (uint8_t i = 1; i < 128; ++i) {
    rte_ether_addr one = address(i);
    ASSERT_EQ(rte_eth_dev_mac_addr_add(id, &one, 0), 0) << unsigned{i};
  }
  rte_ether_addr last = address(128);
  EXPECT_EQ(rte_eth_dev_mac_addr_add(id, &last, 0), -ENOSPC);
  for (const uint8_t i : {uint8_t{1}, uint8_t{64}, uint8_t{127}})
    EXPECT_TRUE(takes(cable, to(address(i)))) << unsigned{i};
  EXPECT_FALSE(takes(cable, to(last)));
  rte_ether_addr gone = address(64);
  ASSERT_EQ(rte_eth_dev_mac_addr_remove(id, &gone), 0);
  EXPECT_FALSE(takes(cable, to(gone)));
  cable.there.stop();
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  EXPECT_TRUE(takes(cable, to(address(127)))) << "after a restart";
  EXPECT_FALSE(takes(cable, to(gone)));
  rte_ether_addr own = address(200);
  ASSERT_EQ(rte_eth_dev_default_mac_addr_set(id, &own), 0);
  EXPECT_TRUE(takes(cable, to(own)));
  check_conservation(cable);
}

TEST(DriverFilters, MulticastLists) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  ASSERT_EQ(rte_eth_promiscuous_disable(id), 0);
  std::vector<rte_ether_addr> list;
  for (uint8_t i = 0; i < 129; ++i) list.push_back({{0x01, 0, 0x5e, 0, 1, i}});
  EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, list.data(), 129), -ENOSPC);
  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, list.data(), 128), 0);
  EXPECT_TRUE(takes(cable, to(list[127])));
  EXPECT_FALSE(takes(cable, to(list[128])));
  ASSERT_EQ(rte_eth_allmulticast_enable(id), 0);
  EXPECT_TRUE(takes(cable, to(list[128])));
  ASSERT_EQ(rte_eth_allmulticast_disable(id), 0);
  EXPECT_FALSE(takes(cable, to(list[128])));
  rte_ether_addr unicast{{0x02, 0, 0, 0, 0, 1}};
  EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &unicast, 1), -EINVAL);
  EXPECT_TRUE(takes(cable, to(list[0]))) << "the list that was refused changed nothing";
  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, nullptr, 0), 0);
  EXPECT_FALSE(takes(cable, to(list[0])));
  check_conservation(cable);
}

Bytes tagged(uint16_t vlan) {
  Bytes bytes = frame(100);
  bytes[12] = 0x81;
  bytes[13] = 0x00;
  bytes[14] = static_cast<uint8_t>(vlan >> 8);
  bytes[15] = static_cast<uint8_t>(vlan);
  return bytes;
}

TEST(DriverFilters, VlansAtTheirLimits) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
  if ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) == 0) {
    EXPECT_EQ(rte_eth_dev_set_vlan_offload(id, RTE_ETH_VLAN_FILTER_OFFLOAD), -EINVAL);
    return;
  }
  EXPECT_TRUE(takes(cable, tagged(5)));
  EXPECT_EQ(rte_eth_dev_vlan_filter(id, 5, 1), -ENOSYS);
  ASSERT_EQ(rte_eth_dev_set_vlan_offload(id, RTE_ETH_VLAN_FILTER_OFFLOAD), 0);
  EXPECT_FALSE(takes(cable, tagged(5)));
  EXPECT_TRUE(takes(cable, frame(100))) << "untagged";
  for (const uint16_t vlan : std::initializer_list<uint16_t>{0, 5, 4095}) {
    ASSERT_EQ(rte_eth_dev_vlan_filter(id, vlan, 1), 0);
    EXPECT_TRUE(takes(cable, tagged(vlan))) << vlan;
  }
  EXPECT_EQ(rte_eth_dev_vlan_filter(id, 4096, 1), -EINVAL);
  EXPECT_FALSE(takes(cable, tagged(4094)));
  ASSERT_EQ(rte_eth_dev_vlan_filter(id, 5, 0), 0);
  EXPECT_FALSE(takes(cable, tagged(5)));
  ASSERT_EQ(rte_eth_dev_set_vlan_offload(id, 0), 0);
  EXPECT_TRUE(takes(cable, tagged(5)));
  check_conservation(cable);
}

/// The driver's view of a queue and ethdev's are one.
TEST(DriverQueues, DRV_29_StoppedQueuesStartWithThePort) {
  Spread cable;
  const uint16_t id = cable.there.id();
  Reta reta = all_to(3, 128);
  ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), 0);
  const Bytes bytes = udp(1, 2, 3, 4);
  EXPECT_EQ(cable.queue_of(bytes), 3);
  ASSERT_EQ(rte_eth_dev_rx_queue_stop(id, 3), 0);
  ASSERT_EQ(rte_eth_dev_tx_queue_stop(id, 3), 0);
  rte_eth_rxq_info info{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id, 3, &info), 0);
  EXPECT_EQ(info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(cable.queue_of(bytes), -1);
  cable.there.stop();
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  ASSERT_EQ(rte_eth_rx_queue_info_get(id, 3, &info), 0);
  EXPECT_EQ(info.queue_state, RTE_ETH_QUEUE_STATE_STARTED);
  ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), 0);
  EXPECT_EQ(cable.queue_of(bytes), 3);
}

TEST(DriverQueues, ADeferredQueueWaitsForItsStart) {
  Spread cable({.deferred = 2});
  const uint16_t id = cable.there.id();
  Reta reta = all_to(2, 128);
  ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), 0);
  const Bytes bytes = udp(1, 2, 3, 4);
  rte_eth_rxq_info info{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id, 2, &info), 0);
  EXPECT_EQ(info.conf.rx_deferred_start, 1);
  EXPECT_EQ(info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(cable.queue_of(bytes), -1);
  ASSERT_EQ(rte_eth_dev_rx_queue_start(id, 2), 0);
  EXPECT_EQ(cable.queue_of(bytes), 2);
  ASSERT_EQ(rte_eth_dev_tx_queue_start(id, 2), 0);
  rte_mbuf* packet = cable.there.packet(bytes);
  EXPECT_EQ(rte_eth_tx_burst(id, 2, &packet, 1), 1);
  cable.settle();
  auto back = cable.here.receive();
  EXPECT_EQ(back.size(), 1u);
  rte_pktmbuf_free_bulk(back.data(), static_cast<unsigned>(back.size()));
}

/// A thousand restarts under traffic: no stale completion, no buffer lost, counters only grow.
TEST(DriverQueues, DRV_25_AQueueStopsAndStartsUnderTraffic) {
  Spread cable({}, "mode=nicmem,split=force,header=64,sram=256KiB");
  const uint16_t id = cable.there.id();
  Reta reta = all_to(1, 128);
  ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), 0);
  uint64_t last = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const Bytes bytes = udp(i, 2, 3, 4);
    for (uint32_t k = 0; k < 5; ++k) ASSERT_EQ(cable.here.send(cable.here.packet(bytes)), 1) << i;
    cable.settle();
    rte_mbuf* one[2];
    const uint16_t got = rte_eth_rx_burst(id, 1, one, 2);
    ASSERT_EQ(got, 2) << i;
    EXPECT_EQ(bytes_of(one[1]), bytes);
    rte_pktmbuf_free_bulk(one, got);
    ASSERT_EQ(rte_eth_dev_rx_queue_stop(id, 1), 0);
    ASSERT_EQ(rte_eth_rx_burst(id, 1, one, 2), 0) << "a stopped queue has nothing";
    ASSERT_EQ(rte_eth_dev_rx_queue_start(id, 1), 0);
    ASSERT_EQ(rte_eth_rx_burst(id, 1, one, 2), 0) << "a stale completion";
    const uint64_t now = cable.there.xstat("rx_good_packets");
    ASSERT_EQ(now, last + 2);
    last = now;
  }
  EXPECT_EQ(cable.there.xstat("rx_stopped"), 3000u);
  check_conservation(cable);
}

TEST(DriverQueues, DRV_25_ASendQueueStopsAndStarts) {
  Spread cable;
  const uint16_t id = cable.there.id();
  for (uint32_t i = 0; i < 1000; ++i) {
    rte_mbuf* packets[4];
    for (rte_mbuf*& packet : packets) packet = cable.there.packet(frame(200, i));
    ASSERT_EQ(rte_eth_tx_burst(id, 1, packets, 4), 4) << i;
    if (i % 2 == 0) cable.settle();
    ASSERT_EQ(rte_eth_dev_tx_queue_stop(id, 1), 0);
    ASSERT_EQ(rte_eth_dev_tx_queue_start(id, 1), 0);
    auto back = cable.here.receive();
    rte_pktmbuf_free_bulk(back.data(), static_cast<unsigned>(back.size()));
  }
  EXPECT_EQ(cable.there.xstat("tx_device_frames"), 2000u);
  EXPECT_EQ(cable.there.xstat("tx_in_flight"), 0u);
  check_buffers({&cable.here, &cable.there});
  cable.there.stop();
  EXPECT_EQ(cable.there.xstat("tx_stopped"), 2000u);
}

TEST(DriverInfo, DRV_38_OffloadsThatAreNotOfferedAreRefused) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
  EXPECT_EQ(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, 0u);
  cable.there.stop();
  for (uint32_t bit = 0; bit < 64; ++bit) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = 1500;
    conf.txmode.offloads = uint64_t{1} << bit;
    const bool offered = (info.tx_offload_capa >> bit & 1) != 0;
    EXPECT_EQ(rte_eth_dev_configure(id, 1, 1, &conf) == 0, offered) << "transmit, bit " << bit;
  }
  ASSERT_EQ(cable.there.configure({}), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
}

TEST(DriverInfo, DRV_08_AFrameOfOneHeaderCostsLittleMore) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=128,sram=256KiB",
               .ring = 1024,
               .room = 128,
               .mbufs = 2047});
  const pmd::Footprint footprint = pmd::footprint_of(cable.there.port());
  EXPECT_GE(footprint.posted_first, 1024u * (128 + RTE_PKTMBUF_HEADROOM));
  EXPECT_LE(footprint.posted_first, 2u * 1024 * (128 + RTE_PKTMBUF_HEADROOM));
  char* text = nullptr;
  size_t size = 0;
  FILE* const file = open_memstream(&text, &size);
  EXPECT_EQ(rte_eth_dev_priv_dump(cable.there.id(), file), 0);
  std::fclose(file);
  EXPECT_NE(std::string(text).find(std::to_string(footprint.posted_first)), std::string::npos);
  std::free(text);
}

TEST(DriverInfo, TheFirmwareIsNamed) {
  Cable cable({.arguments = "mode=host"});
  char name[64] = {}, narrow[2] = {};
  EXPECT_EQ(rte_eth_dev_fw_version_get(cable.there.id(), name, sizeof name), 0);
  EXPECT_STRNE(name, "");
  EXPECT_EQ(rte_eth_dev_fw_version_get(cable.there.id(), narrow, sizeof narrow),
            static_cast<int>(std::strlen(name)) + 1);
}

int count_event(uint16_t, rte_eth_event_type, void* counter, void*) {
  ++*static_cast<uint32_t*>(counter);
  return 0;
}

TEST(DriverLink, DRV_37_OneEventPerChange) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  cable.there.stop();
  rte_eth_conf conf{};
  conf.intr_conf.lsc = 1;
  ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
  ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, 64, 0, nullptr, cable.there.pool()), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, 64, 0, nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  uint32_t events = 0;
  ASSERT_EQ(rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_LSC, count_event, &events), 0);
  rte_eth_link link{};
  ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(rte_eth_dev_set_link_down(id), 0);
    cable.settle();
    ASSERT_EQ(events, 2 * i + 1);
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    ASSERT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    ASSERT_EQ(rte_eth_dev_set_link_up(id), 0);
    cable.settle();
    ASSERT_EQ(events, 2 * i + 2);
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    ASSERT_EQ(link.link_status, RTE_ETH_LINK_UP);
  }
  EXPECT_EQ(rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_INTR_LSC, count_event, &events), 0);
  EXPECT_EQ(rte_eth_dev_is_removed(id), 0);
}

TEST(DriverLifecycle, AResetPortIsANewOneWithItsAddresses) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64"});
  const uint16_t id = cable.there.id();
  rte_ether_addr address{{0x02, 0, 0, 0, 0, 0x66}}, after{};
  ASSERT_EQ(rte_eth_dev_default_mac_addr_set(id, &address), 0);
  EXPECT_TRUE(takes(cable, frame(300)));
  ASSERT_EQ(rte_eth_dev_reset(id), 0);
  EXPECT_EQ(cable.there.xstat("rx_good_packets"), 0u);
  ASSERT_EQ(rte_eth_macaddr_get(id, &after), 0);
  EXPECT_TRUE(rte_is_same_ether_addr(&address, &after));
  ASSERT_EQ(cable.there.configure({}), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
}

/// A program that asks for what is not there is told so, and nothing else changes.
TEST(DriverControl, DRV_38_ConfigureRefusesWhatIsNotThere) {
  const TestPort port("net_nicmem0", "loop", {.arguments = "mode=host"});
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  rte_eth_conf all[6]{};
  all[0].rxmode.mq_mode = RTE_ETH_MQ_RX_DCB;
  all[1].rxmode.mq_mode = RTE_ETH_MQ_RX_VMDQ_RSS;
  all[2].txmode.mq_mode = RTE_ETH_MQ_TX_DCB;
  all[3].lpbk_mode = 1;
  all[4].intr_conf.rxq = 1;
  all[5].dcb_capability_en = 1;
  for (const rte_eth_conf& conf : all)
    EXPECT_EQ(rte_eth_dev_configure(port.id(), 1, 1, &conf), -ENOTSUP);
  const rte_eth_conf plain{};
  EXPECT_EQ(rte_eth_dev_configure(port.id(), 1, 1, &plain), 0);
}

}  // namespace
}  // namespace nicmem::test
