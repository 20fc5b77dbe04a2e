// SPDX-License-Identifier: BSD-3-Clause
// Receive: where bytes land, what happens when a pool is dry, and when the device reports an error.
#include "port_fixture.h"
#include "support/alloc_guard.h"

namespace nicmem::test {
namespace {

std::string arguments(const std::string& mode) {
  return "mode=" + mode + ",split=force,header=64,sram=1MiB,guard=1";
}

constexpr const char* kModes[] = {"host", "split", "nicmem-noinline", "nicmem"};

TEST(DriverRx, L3_25_SegmentsEndWhereTheHeaderDoesAndAreNeverEmpty) {
  for (const char* mode : kModes) {
    Cable cable({.arguments = arguments(mode)});
    for (const uint32_t size : {18u, 63u, 64u, 65u, 66u, 1521u, 1522u}) {
      SCOPED_TRACE(std::string(mode) + ", " + std::to_string(size) + " bytes");
      cable.carry(frame(size, size));
      const auto packets = cable.there.receive();
      ASSERT_EQ(packets.size(), 1u);
      const bool split = std::string(mode) != "host" && size > 64;
      EXPECT_EQ(packets[0]->nb_segs, split ? 2 : 1);
      EXPECT_EQ(packets[0]->data_len, split ? 64u : size);
      for (const rte_mbuf* segment = packets[0]; segment != nullptr; segment = segment->next)
        EXPECT_GT(segment->data_len, 0);
      const char* why = nullptr;
      EXPECT_EQ(rte_mbuf_check(packets[0], 1, &why), 0) << why;
      EXPECT_EQ(bytes_of(packets[0]), frame(size, size));
      rte_pktmbuf_free(packets[0]);
    }
    cable.there.expect_conserved();
  }
}

TEST(DriverRx, AFrameAboveThePortsLimitIsRefusedAndCounted) {
  Cable cable({.arguments = arguments("nicmem")});
  cable.carry(frame(1523));
  EXPECT_TRUE(cable.there.receive().empty());
  EXPECT_EQ(cable.there.xstat("rx_oversize"), 1u);
}

TEST(DriverRx, DRV_32_ADryHeaderPoolDropsFramesAndKeepsTheRing) {
  Cable cable({.arguments = arguments("nicmem"), .ring = 8, .mbufs = 15});
  std::vector<rte_mbuf*> held;
  for (uint32_t i = 0; i < 30; ++i) {
    cable.carry(frame(200, i));
    for (rte_mbuf* packet : cable.there.receive()) {
      EXPECT_EQ(bytes_of(packet), frame(200, i)) << "frames mixed";
      held.push_back(packet);
    }
  }
  EXPECT_EQ(held.size(), 7u);  // 15 buffers, 8 of them always posted
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 23u);
  cable.there.expect_conserved(held.size());
  rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
  cable.carry(frame(300, 99));
  const auto after = cable.there.receive();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(bytes_of(after[0]), frame(300, 99));
  rte_pktmbuf_free(after[0]);
}

TEST(DriverRx, DRV_07_PayloadSpillsToTheHostInOrderAndComesBack) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=64KiB", .ring = 256});
  const auto buffers = cable.there.xstat("payload_nicmem_buffers");
  ASSERT_GT(buffers, 0u);
  ASSERT_LT(buffers, 64u);
  for (const int round :
       {0, 1, 2}) {  // a ring of 256 has to come round before freed buffers are met
    std::vector<rte_mbuf*> held;
    for (uint32_t i = 0; i < 200; ++i) {
      cable.carry(frame(1000, i));
      for (rte_mbuf* packet : cable.there.receive()) held.push_back(packet);
    }
    ASSERT_EQ(held.size(), 200u);
    for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(bytes_of(held[i]), frame(1000, i)) << round;
    rte_pktmbuf_free_bulk(held.data(), 200);
  }
  const uint64_t on_card = cable.there.xstat("rx_payload_nicmem_bytes") / 936;
  const uint64_t in_host = cable.there.xstat("rx_payload_host_bytes") / 936;
  EXPECT_EQ(on_card + in_host, 600u);
  EXPECT_GT(on_card, buffers);  // and nicmem is met again
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 0u);
  cable.there.expect_conserved();
}

TEST(DriverRx, DRV_04_LastPoolIsRepeatedUntilAFrameFits) {
  rte_mempool* const pools[] = {
      rte_pktmbuf_pool_create("seg0", 255, 0, 0, 64 + RTE_PKTMBUF_HEADROOM, 0),
      rte_pktmbuf_pool_create("seg1", 255, 0, 0, 512, 0),
      rte_pktmbuf_pool_create("seg2", 511, 0, 0, 2048, 0)};
  {
    Cable cable({.arguments = "mode=nicmem,sram=1MiB",
                 .ring = 64,
                 .mtu = 5000,
                 .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT,
                 .segments = {{.mp = pools[0], .length = 64}, {.mp = pools[1]}, {.mp = pools[2]}}});
    cable.carry(frame(3000));
    const auto packets = cable.there.receive();
    ASSERT_EQ(packets.size(), 1u);
    const uint16_t wanted[] = {64, 512, 2048, 376};
    const rte_mbuf* segment = packets[0];
    for (const uint16_t length : wanted) {
      ASSERT_NE(segment, nullptr);
      EXPECT_EQ(segment->data_len, length);
      segment = segment->next;
    }
    EXPECT_EQ(segment, nullptr);
    EXPECT_EQ(bytes_of(packets[0]), frame(3000));
    rte_pktmbuf_free(packets[0]);
  }
  for (rte_mempool* pool : pools) {
    EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
    rte_mempool_free(pool);
  }
}

TEST(DriverRx, DRV_01_ABadKeyIsAnErrorThatTheQueueSurvives) {
  Cable cable({.arguments = arguments("nicmem"), .ring = 16});
  for (const uint32_t entry : {0u, 1u}) {
    pmd::RxQueue& queue = cable.there.rx();
    auto* const wqe = reinterpret_cast<hw::DataSegment*>(
        queue.wqes + size_t{queue.head & (queue.depth - 1)} * queue.stride_bytes);
    const hw::DataSegment good = wqe[entry];
    wqe[entry].key = be32(0xdead00);
    cable.carry(frame(500, 1));
    EXPECT_TRUE(cable.there.receive().empty());
    EXPECT_EQ(queue.counters.errors, entry + 1);
    EXPECT_EQ(cable.there.xstat("rx_wqe_error"), entry + 1);
    wqe[entry] = good;  // recovery has posted the ring as it was
    for (uint32_t i = 0; i < 40; ++i) {
      cable.carry(frame(500, i));
      const auto packets = cable.there.receive();
      ASSERT_EQ(packets.size(), 1u) << i;
      EXPECT_EQ(bytes_of(packets[0]), frame(500, i));
      rte_pktmbuf_free(packets[0]);
    }
  }
  cable.there.expect_conserved();
}

TEST(DriverRx, DRV_49_BurstsOfAnySize) {
  Cable cable({.arguments = arguments("nicmem"), .ring = 1024, .mbufs = 4095},
              {.arguments = "mode=host", .ring = 1024, .mbufs = 4095});
  for (const uint16_t burst : std::initializer_list<uint16_t>{0, 1, 255, 256, 257, 1024, 65535}) {
    for (uint32_t i = 0; i < 300; ++i) {
      ASSERT_EQ(cable.here.send(cable.here.packet(frame(100, i))), 1);
      if (i % 32 == 0) cable.settle();
    }
    cable.settle();
    auto packets = cable.there.receive(burst);
    EXPECT_EQ(packets.size(), std::min<size_t>(burst, 300));
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
    packets = cable.there.receive(1024);
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  }
  cable.there.expect_conserved();
}

TEST(DriverRx, DoesNotAllocate) {
  Cable cable({.arguments = arguments("nicmem")});
  for (uint32_t i = 0; i < 32; ++i) cable.carry(frame(300, i));
  rte_mbuf* packets[64];
  AllocGuard guard;
  const uint16_t count = rte_eth_rx_burst(cable.there.id(), 0, packets, 64);
  EXPECT_EQ(guard.count(), 0u);
  EXPECT_EQ(count, 32);
  rte_pktmbuf_free_bulk(packets, count);
}

TEST(DriverRx, GuardedPayloadCannotBeReadByAccident) {
  Cable cable({.arguments = arguments("nicmem")});
  cable.carry(frame(500));
  const auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_DEATH(
      {
        volatile uint8_t byte = *rte_pktmbuf_mtod(packets[0]->next, uint8_t*);
        static_cast<void>(byte);
      },
      "");
  EXPECT_EQ(cable.there.xstat("slow_reads"), 0u);
  uint8_t three[3];
  ASSERT_EQ(rte_pmd_nicmem_slow_read(packets[0], 63, 3, three), 0);
  EXPECT_EQ(three[0], frame(500)[63]);
  EXPECT_EQ(three[2], frame(500)[65]);
  EXPECT_EQ(cable.there.xstat("slow_reads"), 1u);
  EXPECT_EQ(rte_pmd_nicmem_slow_read(packets[0], 499, 2, three), -EINVAL);
  nicmem_region region{};
  ASSERT_EQ(rte_pmd_nicmem_region_of(packets[0], &region), 0);
  EXPECT_EQ(region.size, 436u);
  rte_pktmbuf_free(packets[0]);
}

}  // namespace
}  // namespace nicmem::test
