// SPDX-License-Identifier: BSD-3-Clause
// Ports that start, stop, change and go: nothing leaks, and settings survive.
#include <rte_eal.h>
#include <unistd.h>

#include "port_fixture.h"

namespace nicmem::test {
namespace {

constexpr const char* kArguments = "mode=nicmem,split=force,header=64,sram=256KiB";

TEST(DriverLifecycle, DRV_25_StopAndStartMidTraffic) {
  Cable cable({.arguments = kArguments});
  uint64_t last = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    for (uint32_t k = 0; k < 20; ++k)
      EXPECT_EQ(cable.here.send(cable.here.packet(frame(300, k))), 1);
    cable.settle();
    auto packets = cable.there.receive(10);
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
    cable.there.stop();
    EXPECT_EQ(rte_mempool_in_use_count(cable.there.pool()), 0u);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    const uint64_t now = cable.there.xstat("rx_good_packets");
    EXPECT_GE(now, last);
    last = now;
  }
  cable.carry(frame(300, 7));
  auto packets = cable.there.receive();
  ASSERT_FALSE(packets.empty());
  EXPECT_EQ(bytes_of(packets.back()), frame(300, 7));
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
}

TEST(DriverLifecycle, DRV_26_ReconfigureWithOtherSizes) {
  Cable cable({.arguments = kArguments, .mbufs = 2047});
  for (uint32_t i = 0; i < 60; ++i) {
    cable.there.stop();
    const uint16_t mtu = i % 2 == 0 ? 1500 : 1400, ring = static_cast<uint16_t>(64 << (i % 3));
    ASSERT_EQ(cable.there.configure({.ring = ring, .mtu = mtu}), 0);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    cable.carry(frame(1000, i));
    const auto packets = cable.there.receive();
    ASSERT_EQ(packets.size(), 1u);
    rte_pktmbuf_free(packets[0]);
  }
}

TEST(DriverLifecycle, DRV_26_RemoveAndAddTheDevice) {
  for (uint32_t i = 0; i < 20; ++i) {
    Cable cable({.arguments = kArguments});
    cable.carry(frame(500, i));
    const auto packets = cable.there.receive();
    ASSERT_EQ(packets.size(), 1u);
    rte_pktmbuf_free(packets[0]);
  }
}

TEST(DriverLifecycle, DRV_34_MtuLimits) {
  Cable cable({.arguments = kArguments});
  const uint16_t id = cable.there.id();
  EXPECT_EQ(rte_eth_dev_set_mtu(id, 1400), -EBUSY);  // buffers are made for 1500
  cable.there.stop();
  EXPECT_EQ(rte_eth_dev_set_mtu(id, 67), -EINVAL);
  EXPECT_EQ(rte_eth_dev_set_mtu(id, 68), 0);
  EXPECT_EQ(rte_eth_dev_set_mtu(id, 9601), -EINVAL);
  EXPECT_EQ(rte_eth_dev_set_mtu(id, 9600), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  uint16_t mtu = 0;
  EXPECT_EQ(rte_eth_dev_get_mtu(id, &mtu), 0);
  EXPECT_EQ(mtu, 9600);
  cable.carry(frame(9622));
  const auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(bytes_of(packets[0]), frame(9622));
  rte_pktmbuf_free(packets[0]);
}

TEST(DriverLifecycle, DRV_35_PromiscuousSurvivesAddressAndRestart) {
  Cable cable({.arguments = "mode=host"});
  const uint16_t id = cable.there.id();
  Bytes foreign = frame(100);
  foreign[0] = 0x02;
  const auto arrives = [&](const Bytes& bytes) {
    cable.carry(bytes);
    auto packets = cable.there.receive();
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
    return !packets.empty();
  };
  rte_ether_addr address{{0x02, 0, 0, 0, 0, 0x77}};
  EXPECT_EQ(rte_eth_dev_default_mac_addr_set(id, &address), 0);
  cable.there.stop();
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  EXPECT_TRUE(arrives(foreign));
  EXPECT_EQ(rte_eth_promiscuous_disable(id), 0);
  EXPECT_FALSE(arrives(foreign));
  EXPECT_EQ(cable.there.xstat("rx_filtered"), 1u);
  EXPECT_TRUE(arrives(frame(100))) << "broadcast";
  Bytes own = frame(100);
  std::memcpy(own.data(), address.addr_bytes, 6);
  EXPECT_TRUE(arrives(own));
}

TEST(DriverLifecycle, DRV_31_StatisticsStartAnew) {
  Cable cable({.arguments = kArguments});
  cable.carry(frame(1523));
  EXPECT_EQ(cable.there.xstat("rx_oversize"), 1u);
  EXPECT_EQ(rte_eth_xstats_reset(cable.there.id()), 0);
  EXPECT_EQ(cable.there.xstat("rx_oversize"), 0u);
  cable.carry(frame(1523));
  EXPECT_EQ(cable.there.xstat("rx_oversize"), 1u);
  cable.there.stop();
  EXPECT_EQ(rte_eth_stats_reset(cable.there.id()), 0);
}

TEST(DriverLifecycle, PortsOfOneDeviceShareItsMemory) {
  const PortSetUp shared{.arguments = "mode=nicmem,split=force,sram=256KiB,device=card"};
  Cable cable(shared, shared);
  EXPECT_EQ(rte_pmd_nicmem_same_device(cable.here.id(), cable.there.id()), 1);
  nicmem_region region{};
  ASSERT_EQ(rte_pmd_nicmem_alloc(cable.there.id(), 4096, &region), 0);
  EXPECT_EQ(rte_pmd_nicmem_free(cable.here.id(), &region), 0);
  EXPECT_EQ(rte_pmd_nicmem_same_device(cable.here.id(), 77), -ENODEV);
}

}  // namespace
}  // namespace nicmem::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::FLAGS_gtest_death_test_style = "fast";
  const std::string prefix = "driver_test" + std::to_string(getpid());
  const char* eal[] = {"driver_test",    "--no-huge",   "-m", "512",         "--no-pci",
                       "--no-telemetry", "-l",          "0",  "--log-level", "4",
                       "--file-prefix",  prefix.c_str()};
  if (rte_eal_init(static_cast<int>(std::size(eal)), const_cast<char**>(eal)) < 0) return 1;
  const int result = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return result;
}
