// SPDX-License-Identifier: BSD-3-Clause
// Cases of the catalogue (README.md of this folder) about buffers and pools that no other file here
// has.
#include "cases.h"
#include "drivers/net/nicmem/bulk.h"

namespace nicmem::test {
namespace {

std::string rx_mode(uint16_t port) {
  rte_eth_burst_mode mode{};
  EXPECT_EQ(rte_eth_rx_burst_mode_get(port, 0, &mode), 0);
  return mode.info;
}

/// The key of an entry is that of the buffer's own pool, whichever segment the pool is for.
TEST(DriverCases, DRV_01_KeysFollowEachBuffersPool) {
  Cable cable({.arguments = "mode=nicmem,sram=256KiB,split=auto", .ring = 32});
  nicmem_region region{};
  ASSERT_EQ(rte_pmd_nicmem_alloc(cable.there.id(), 64 * 2048, &region), 0);
  rte_pktmbuf_extmem memory{nicmem_pointer(&region), RTE_BAD_IOVA, region.size, 2048};
  rte_mempool* const card = rte_pktmbuf_pool_create_extbuf("drv01", 63, 0, 0, 2048, 0, &memory, 1);
  ASSERT_NE(card, nullptr);
  rte_mempool* const host = cable.there.pool();
  for (const bool swapped : {false, true, false}) {
    cable.there.stop();
    ASSERT_EQ(cable.there.configure(
                  {.ring = 32,
                   .rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                   .segments = {{.mp = swapped ? card : host, .length = 64},
                                {.mp = swapped ? host : card}}}),
              0);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    for (uint32_t i = 0; i < 100; ++i) {
      rte_mbuf* const packet = carried(cable, frame(600, i));
      ASSERT_NE(packet, nullptr);
      EXPECT_EQ(packet->pool, swapped ? card : host);
      EXPECT_EQ(packet->next->pool, swapped ? host : card);
      rte_pktmbuf_free(packet);
    }
    EXPECT_EQ(cable.there.xstat("rx_wqe_error"), 0u);
    check_conservation(cable, {}, {card});
  }
  cable.there.stop();
  rte_mempool_free(card);
  EXPECT_EQ(rte_pmd_nicmem_free(cable.there.id(), &region), 0);
}

/// No vector and no multi-packet receive function exists, whatever the program asks for; queue
/// information says which one runs.
TEST(DriverCases, DRV_02_SplitIsScalarAndSaysSo) {
  EXPECT_LT(rte_vdev_init("net_nicmem9", "cpu=none,mprq_en=1"), 0);
  Cable cable({.arguments = kNicmem});
  const uint16_t id = cable.there.id();
  EXPECT_EQ(rx_mode(id), "Scalar, header and payload");
  EXPECT_EQ(rx_mode(cable.here.id()), "Scalar, one buffer a frame");
  rte_eth_burst_mode mode{};
  ASSERT_EQ(rte_eth_tx_burst_mode_get(id, 0, &mode), 0);
  EXPECT_STREQ(mode.info, "Scalar, 64 bytes inlined");
  EXPECT_EQ(rte_eth_rx_burst_mode_get(id, 99, &mode), -EINVAL);
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
  EXPECT_NE(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT, 0u);
  EXPECT_EQ(info.rx_seg_capa.multi_pools, 1u);
  EXPECT_EQ(info.rx_seg_capa.offset_allowed, 1u);
  EXPECT_EQ(info.max_rx_mempools, 0);
  rte_eth_rxq_info queue{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id, 0, &queue), 0);
  EXPECT_EQ(queue.scattered_rx, 1);
  check_conservation(cable);
}

/// Two pools alone are no split; each start follows the newest setting.
TEST(DriverCases, DRV_05_EachStartFollowsTheNewestSplit) {
  Cable cable({.arguments = "mode=nicmem,split=auto,sram=256KiB"});
  rte_mempool* const second = rte_pktmbuf_pool_create("drv05", 255, 0, 0, 2048, SOCKET_ID_ANY);
  ASSERT_NE(second, nullptr);
  const PortSetUp split{.rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                        .segments = {{.mp = cable.there.pool(), .length = 64}, {.mp = second}}};
  for (uint32_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    cable.there.stop();
    ASSERT_EQ(cable.there.configure(i % 2 == 0 ? PortSetUp{} : split), 0);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    rte_mbuf* const packet = carried(cable, frame(500, i));
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(packet->nb_segs, i % 2 == 0 ? 1 : 2);
    EXPECT_EQ(packet->data_len, i % 2 == 0 ? 500 : 64);
    rte_pktmbuf_free(packet);
    cable.there.stop();
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0) << "again, as it was";
    check_conservation(cable, {}, {second});
  }
  cable.there.stop();
  rte_mempool_free(second);
}

/// A chain cut in two by the program: what the driver gives back is a single fresh segment.
TEST(DriverCases, DRV_19_HalvesOfAChainComeBackAsSingleSegments) {
  for (const char* arguments : {"mode=host", "mode=nicmem,header=64"}) {
    Cable cable({.arguments = "mode=host"}, {.arguments = arguments, .mbufs = 127});
    for (uint32_t i = 0; i < 300; ++i) {
      rte_mbuf* const chain = cable.here.packet(frame(90, i), {30, 30, 30});
      rte_mbuf* const rest = chain->next->next;
      chain->next->next = nullptr;
      chain->nb_segs = 2;
      chain->pkt_len = 60;
      rest->nb_segs = 1;
      rest->pkt_len = rest->data_len;
      for (rte_mbuf* half : {chain, rest}) ASSERT_EQ(cable.here.send(half), 1);
      cable.settle();
      const auto packets = cable.there.receive();
      ASSERT_EQ(packets.size(), 2u);
      free_all(packets);
      rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
      rte_mbuf* fresh[3];
      ASSERT_EQ(rte_mempool_get_bulk(cable.here.pool(), reinterpret_cast<void**>(fresh), 3), 0);
      for (rte_mbuf* one : fresh) {
        ASSERT_EQ(one->nb_segs, 1) << i;
        ASSERT_EQ(one->next, nullptr) << i;
        ASSERT_EQ(rte_mbuf_refcnt_read(one), 1) << i;
      }
      rte_mempool_put_bulk(cable.here.pool(), reinterpret_cast<void**>(fresh), 3);
    }
    check_conservation(cable);
  }
}

/// Received payloads on the card, copied, cloned, cut and freed: they stay what their pool made.
TEST(DriverCases, DRV_20_PinnedBuffersSurviveCopiesClonesAndCuts) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=64KiB", .ring = 8});
  rte_mempool* const copies = cable.here.pool();
  for (uint32_t i = 0; i < 200; ++i) {
    rte_mbuf* const packet = carried(cable, frame(1000, i));
    ASSERT_NE(packet, nullptr);
    rte_mbuf* const payload = packet->next;
    void* const address = payload->buf_addr;
    const bool pinned = RTE_MBUF_HAS_PINNED_EXTBUF(payload);
    EXPECT_EQ(pinned, cable.there.port().device->memory->contains(address));
    rte_mbuf* const clone = rte_pktmbuf_clone(packet, copies);
    rte_mbuf* const of_clone = rte_pktmbuf_clone(clone, copies);
    rte_mbuf* const empty = rte_pktmbuf_copy(packet, copies, 0, 0);
    rte_mbuf* const last = rte_pktmbuf_copy(packet, copies, 999, UINT32_MAX);
    ASSERT_TRUE(clone && of_clone && empty && last);
    EXPECT_EQ(empty->pkt_len, 0u);
    EXPECT_EQ(empty->ol_flags & RTE_MBUF_F_EXTERNAL, 0u);
    EXPECT_EQ(*rte_pktmbuf_mtod(last, uint8_t*), frame(1000, i)[999]);
    rte_pktmbuf_trim(packet, 900);  // nothing is left of the payload but 36 bytes
    for (rte_mbuf* one : {packet, empty, clone, last}) rte_pktmbuf_free(one);
    EXPECT_EQ(bytes_of(of_clone), frame(1000, i));
    ASSERT_EQ(cable.there.send(of_clone), 1);
    cable.settle();
    const auto back = cable.here.receive();
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(bytes_of(back[0]), frame(1000, i));
    free_all(back);
    rte_eth_tx_done_cleanup(cable.there.id(), 0, 0);  // asks for a completion
    cable.there.step();
    rte_eth_tx_done_cleanup(cable.there.id(), 0, 0);
    EXPECT_EQ(payload->buf_addr, address);
    EXPECT_EQ(RTE_MBUF_HAS_PINNED_EXTBUF(payload), pinned);
    EXPECT_EQ((payload->ol_flags & RTE_MBUF_F_EXTERNAL) != 0, pinned);
  }
  check_conservation(cable);
}

TEST(DriverCases, DRV_40_EachSegmentIsCopiedExactly) {
  for (const char* arguments : {"mode=host", "mode=nicmem,tx_inline=18", "mode=nicmem,header=64",
                                "mode=host,tx_inline=512"}) {
    SCOPED_TRACE(arguments);
    Cable cable({.arguments = "mode=host"}, {.arguments = arguments});
    for (uint32_t i = 0; i < 64; ++i) {
      rte_mbuf* const chain = cable.here.packet(frame(60, i), {10, 20, 30});
      // what lies behind each segment must not leave
      for (rte_mbuf* one = chain; one != nullptr; one = one->next)
        std::memset(rte_pktmbuf_mtod_offset(one, void*, one->data_len), 0xee, 64);
      ASSERT_EQ(cable.here.send(chain), 1);
      cable.settle();
      const auto packets = cable.there.receive();
      ASSERT_EQ(packets.size(), 1u);
      EXPECT_EQ(bytes_of(packets[0]), frame(60, i));
      free_all(packets);
    }
    check_conservation(cable);
  }
}

/// The driver's own bulk functions, with a cache that has less than is asked for.
TEST(DriverCases, DRV_50_BulkGetsTakeTheCacheAndTheRing) {
  rte_mempool* const pool = rte_pktmbuf_pool_create("drv50", 64, 32, 0, 2176, SOCKET_ID_ANY);
  ASSERT_NE(pool, nullptr);
  std::vector<rte_mbuf*> packets(65);
  for (uint32_t round = 0; round < 3; ++round) {
    ASSERT_TRUE(pmd::get_bulk(pool, packets.data(), 50)) << round;
    ASSERT_TRUE(pmd::get_bulk(pool, packets.data() + 50, 14)) << round;
    EXPECT_FALSE(pmd::get_bulk(pool, packets.data() + 64, 1));
    EXPECT_EQ(std::set<rte_mbuf*>(packets.begin(), packets.begin() + 64).size(), 64u);
    pmd::put_bulk(pool, packets.data(), 10);
    EXPECT_EQ(pmd::get_up_to(pool, packets.data(), 11), 10u);
    for (uint32_t i = 0; i < 64; i += 16) pmd::put_bulk(pool, packets.data() + i, 16);
    EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
  }
  rte_mempool_free(pool);
}

}  // namespace
}  // namespace nicmem::test
