// SPDX-License-Identifier: BSD-3-Clause
// Who owns a packet's buffers on transmit: the caller what is not taken, the driver what is, and
// each buffer is freed once, whichever path it takes.
#include "base/rng.h"
#include "conservation.h"
#include "support/alloc_guard.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

constexpr const char* kModes[] = {"mode=host", "mode=nicmem,header=64", "mode=nicmem,tx_inline=18",
                                  "mode=split,tx_inline=512"};

/// `here`, the port under test, sends; `there` takes whole frames.
Cable sender(const std::string& arguments, uint16_t ring = 256, uint32_t mbufs = 4095) {
  return Cable({.arguments = "mode=host", .ring = 1024, .mtu = 9600, .room = 9728, .mbufs = 2047},
               {.arguments = arguments, .ring = ring, .mtu = 9600, .room = 9728, .mbufs = mbufs});
}

/// Polls the far end until nothing comes; returns how many frames came.
uint32_t take_all(const Cable& cable) {
  for (uint32_t count = 0;;) {
    cable.settle();
    auto packets = cable.there.receive();
    if (packets.empty()) return count;
    count += static_cast<uint32_t>(packets.size());
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  }
}

void expect_carried(const Cable& cable, rte_mbuf* packet, const Bytes& bytes) {
  ASSERT_EQ(cable.here.send(packet), 1);
  cable.settle();
  const auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(bytes_of(packets[0]), bytes);
  rte_pktmbuf_free(packets[0]);
}

void clean_up(const TestPort& port) { ASSERT_GE(rte_eth_tx_done_cleanup(port.id(), 0, 0), 0); }

TEST(DriverOwnership, DRV_13_40_RandomChainsLeaveByteForByte) {
  Rng rng(test_seed());
  for (const char* arguments : kModes) {
    SCOPED_TRACE(arguments);
    const Cable cable = sender(arguments);
    for (uint32_t i = 0; i < 500; ++i) {
      const auto size = static_cast<uint32_t>(14 + rng.below(rng.below(4) == 0 ? 9600 : 300));
      std::vector<uint32_t> sizes;
      for (uint32_t left = size; left > 0 && sizes.size() < 20;) {
        const uint64_t piece = rng.below(4) == 0 ? rng.below(3) : rng.below(left + 1);
        sizes.push_back(static_cast<uint32_t>(std::min<uint64_t>(piece, left)));
        left -= sizes.back();
        if (sizes.size() == 20) sizes.back() += left;
      }
      expect_carried(cable, cable.here.packet(frame(size, i), sizes), frame(size, i));
      if (testing::Test::HasFailure()) return;
    }
    check_conservation(cable);
  }
}

TEST(DriverOwnership, DRV_10_ARingWithRoomForSomeTakesSome) {
  const Cable cable = sender("mode=nicmem,header=64", 64);
  const uint32_t depth = cable.here.tx().depth;
  uint64_t sent = 0, dropped = 0;
  const auto offer = [&](uint32_t count) {
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < count; ++i) packets.push_back(cable.here.packet(frame(100, i)));
    const uint16_t taken =
        rte_eth_tx_burst(cable.here.id(), 0, packets.data(), static_cast<uint16_t>(count));
    for (uint32_t i = taken; i < count; ++i) {
      EXPECT_EQ(rte_mbuf_refcnt_read(packets[i]), 1);
      rte_pktmbuf_free(packets[i]);
    }
    sent += taken;
    dropped += count - taken;
    return taken;
  };
  // two blocks a packet: 7 segments with the pointer
  ASSERT_EQ(offer(depth / 2 - 9), depth / 2 - 9);
  EXPECT_EQ(offer(10), 9);  // all but one
  EXPECT_EQ(offer(10), 0);  // none
  check_buffers({&cable.here, &cable.there});
  EXPECT_EQ(take_all(cable), sent);
  EXPECT_EQ(offer(1), 1);
  EXPECT_EQ(take_all(cable), 1u);
  EXPECT_EQ(cable.here.xstat("tx_good_packets") + dropped, depth / 2 + 10 + 2);
  clean_up(cable.here);
  check_conservation(cable);
}

/// Two bursts that nearly empty the pool, idle, then a third: completions must give buffers back.
TEST(DriverOwnership, DRV_11_AThirdBurstAfterAnIdleTimeFindsBuffers) {
  const Cable cable = sender("mode=nicmem,header=64", 1024, 1536);
  for (uint32_t round = 0; round < 3; ++round) {
    clean_up(cable.here);
    std::vector<rte_mbuf*> packets(512);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(cable.here.pool(), packets.data(), 512), 0) << round;
    for (rte_mbuf* packet : packets)
      std::memset(rte_pktmbuf_append(packet, 100), static_cast<int>(round), 100);
    ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 512), 512);
    EXPECT_EQ(take_all(cable), 512u);
  }
  EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 0, 100), 100);
  EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 0, 0), 512 - 100);
  EXPECT_EQ(cable.here.xstat("tx_in_flight"), 0u);
  check_conservation(cable);
}

/// Fewer packets than ask for a completion: whoever idles, by a burst of none or by a clean-up,
/// gets them back.
TEST(DriverOwnership, DRV_11_TheLastFewPacketsComeBackToo) {
  const Cable cable = sender("mode=nicmem,header=64", 1024, 1536);
  for (const uint32_t count : {1u, 31u, 33u}) {
    for (const bool burst : {false, true}) {
      for (uint32_t i = 0; i < count; ++i)
        ASSERT_EQ(cable.here.send(cable.here.packet(frame(100, i))), 1);
      EXPECT_EQ(take_all(cable), count);
      for (uint32_t i = 0; i < 2; ++i) {
        if (burst)
          EXPECT_EQ(rte_eth_tx_burst(cable.here.id(), 0, nullptr, 0), 0);
        else
          EXPECT_GE(rte_eth_tx_done_cleanup(cable.here.id(), 0, 0), 0);
        cable.here.step();
      }
      EXPECT_EQ(rte_eth_tx_burst(cable.here.id(), 0, nullptr, 0), 0);
      EXPECT_EQ(cable.here.xstat("tx_in_flight"), 0u) << count;
    }
  }
  check_conservation(cable);
}

/// The same buffer 65,535 times, each time with a reference of its own.
TEST(DriverOwnership, DRV_49_TheLargestBurstTakesWhatFitsAndFreesEachReferenceOnce) {
  const Cable cable = sender("mode=host", 64);
  rte_mbuf* const packet = cable.here.packet(frame(100));
  rte_mbuf_refcnt_set(packet, 65535);
  std::vector<rte_mbuf*> packets(65535, packet);
  const uint16_t taken = rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 65535);
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 65535);
  EXPECT_EQ(take_all(cable), taken);
  clean_up(cable.here);
  const uint64_t in_flight = cable.here.xstat("tx_in_flight");
  EXPECT_EQ(rte_mbuf_refcnt_read(packet), 65535 - taken + in_flight);
  rte_mbuf_refcnt_set(packet, static_cast<uint16_t>(in_flight + 1));
  rte_pktmbuf_free(packet);
  check_buffers({&cable.here, &cable.there});
}

/// Shares memory with its original, and leaves after it.
TEST(DriverOwnership, ClonesOfChainsLeaveInAnyOrder) {
  for (const char* arguments : kModes) {
    const Cable cable = sender(arguments);
    for (uint32_t i = 0; i < 100; ++i) {
      rte_mbuf* const original = cable.here.packet(frame(900, i), {300, 0, 600});
      rte_mbuf* const clone = rte_pktmbuf_clone(original, cable.here.pool());
      ASSERT_NE(clone, nullptr);
      rte_mbuf* const order[] = {i % 2 == 0 ? original : clone, i % 2 == 0 ? clone : original};
      for (rte_mbuf* packet : order) expect_carried(cable, packet, frame(900, i));
    }
    check_conservation(cable);
  }
}

struct External {
  rte_mbuf_ext_shared_info shared{};
  uint32_t freed = 0;
};

/// A header, and behind it `bytes` at `address`, counted in `external` when they are freed.
rte_mbuf* with_payload(const TestPort& port, External& external, void* address, uint32_t bytes) {
  external.shared.free_cb = [](void*, void* opaque) { ++static_cast<External*>(opaque)->freed; };
  external.shared.fcb_opaque = &external;
  rte_mbuf_ext_refcnt_set(&external.shared, 1);
  rte_mbuf* const header = port.packet(frame(54));
  rte_mbuf* const payload = rte_pktmbuf_alloc(port.pool());
  rte_pktmbuf_attach_extbuf(payload, address, RTE_BAD_IOVA, 4096, &external.shared);
  rte_pktmbuf_append(payload, static_cast<uint16_t>(bytes));
  EXPECT_EQ(rte_pktmbuf_chain(header, payload), 0);
  return header;
}

TEST(DriverOwnership, RefusedMemoryIsFreedOnceAndItsNeighboursLeave) {
  const Cable cable = sender("mode=nicmem,header=64");
  nicmem_region foreign{};
  ASSERT_EQ(rte_pmd_nicmem_alloc(cable.there.id(), 4096, &foreign), 0);
  std::vector<char> unknown(4096);
  const struct {
    void* address;
    const char* counter;
  } cases[] = {{nicmem_pointer(&foreign), "tx_foreign_memory"},
               {unknown.data(), "tx_unknown_memory"}};
  for (const auto& [address, counter] : cases) {
    SCOPED_TRACE(counter);
    External external;
    rte_mbuf* packets[3] = {cable.here.packet(frame(80)),
                            with_payload(cable.here, external, address, 200),
                            cable.here.packet(frame(80))};
    EXPECT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets, 3), 3);
    EXPECT_EQ(external.freed, 1u);
    EXPECT_EQ(cable.here.xstat(counter), 1u);
    EXPECT_EQ(take_all(cable), 2u);
  }
  EXPECT_EQ(rte_pmd_nicmem_free(cable.there.id(), &foreign), 0);
  check_conservation(cable);
}

/// device=NAME: what one port of the device has received, the other may send.
TEST(DriverOwnership, PortsOfOneDeviceSendEachOthersPayloads) {
  const std::string shared = "mode=nicmem,split=force,header=64,sram=1MiB,device=both";
  Cable cable({.arguments = shared}, {.arguments = shared});
  // the fixture starts one port before the device has the other: start again, to share its memory
  for (TestPort* port : {&cable.here, &cable.there}) port->stop();
  for (TestPort* port : {&cable.here, &cable.there}) {
    ASSERT_EQ(port->configure({.mtu = 1600}), 0);
    ASSERT_EQ(rte_eth_dev_start(port->id()), 0);
  }
  EXPECT_EQ(rte_pmd_nicmem_same_device(cable.here.id(), cable.there.id()), 1);
  rte_mbuf* packet = cable.here.packet(frame(1000, 3));
  for (uint32_t hop = 0; hop < 200; ++hop) {
    const TestPort& from = hop % 2 == 0 ? cable.here : cable.there;
    const TestPort& to = hop % 2 == 0 ? cable.there : cable.here;
    ASSERT_EQ(from.send(packet), 1);
    cable.settle();
    const auto packets = to.receive();
    ASSERT_EQ(packets.size(), 1u) << hop;
    packet = packets[0];
    nicmem_region region{};
    ASSERT_EQ(rte_pmd_nicmem_region_of(packet, &region), 0) << "payload is not on the card";
    ASSERT_EQ(bytes_of(packet), frame(1000, 3)) << hop;
  }
  rte_pktmbuf_free(packet);
  for (const TestPort* port : {&cable.here, &cable.there}) {
    clean_up(*port);
    EXPECT_EQ(port->xstat("tx_foreign_memory"), 0u);
  }
  // what the last hops left without a completion is held by the rings: check_buffers() knows them
  check_conservation(cable);
}

/// A received chain, sent on by a port of another device: dropped, counted, both buffers freed.
TEST(DriverOwnership, AReceivedChainIsForeignToAnotherDevicesPort) {
  const Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=256KiB"},
                    {.arguments = "mode=host"});
  ASSERT_EQ(cable.here.send(cable.here.packet(frame(1000))), 1);
  cable.settle();
  auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(cable.here.send(packets[0]), 1);
  EXPECT_EQ(cable.here.xstat("tx_foreign_memory"), 1u);
  check_conservation(cable);
}

TEST(DriverOwnership, ForwardingDoesNotAllocate) {
  const Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=256KiB"});
  rte_mbuf* packets[64];
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < 32; ++i)
      ASSERT_EQ(cable.here.send(cable.here.packet(frame(300, i))), 1);
    cable.settle();
    const AllocGuard guard;
    const uint16_t count = rte_eth_rx_burst(cable.there.id(), 0, packets, 64);
    const uint16_t sent = rte_eth_tx_burst(cable.there.id(), 0, packets, count);
    EXPECT_TRUE(round == 0 || guard.count() == 0);  // the first burst registers memory
    ASSERT_EQ(count, 32);
    ASSERT_EQ(sent, 32);
    cable.settle();
    auto back = cable.here.receive();
    ASSERT_EQ(back.size(), 32u);
    rte_pktmbuf_free_bulk(back.data(), 32);
  }
  check_conservation(cable);
}

/// What the port says of chains holds whatever it inlines.
TEST(DriverOwnership, ChainsOfTheAdvertisedLengthLeave) {
  for (const char* arguments : kModes) {
    const Cable cable = sender(arguments, 1024);
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(cable.here.id(), &info), 0);
    const uint32_t most = info.tx_desc_lim.nb_mtu_seg_max;
    for (const uint32_t first : {1u, 20u, 600u}) {
      for (const uint32_t count : {most - 1, most}) {
        SCOPED_TRACE(std::string(arguments) + ", " + std::to_string(count) + " segments");
        std::vector<uint32_t> sizes(count, 20);
        sizes[0] = first;
        const uint32_t size = first + (count - 1) * 20;
        expect_carried(cable, cable.here.packet(frame(size), sizes), frame(size));
      }
    }
    const std::vector<uint32_t> sizes(most + 1, 20);
    ASSERT_EQ(cable.here.send(cable.here.packet(frame((most + 1) * 20), sizes)), 1);
    EXPECT_EQ(cable.here.xstat("tx_too_many_segments"), 1u);
    check_conservation(cable);
  }
}

/// One port of a shared device goes; the other goes on, and the memory stays.
TEST(DriverOwnership, RemovingOnePortOfADeviceLeavesTheOther) {
  const std::string args = "cpu=none,device=kept,mode=nicmem,split=force,header=64,wire=loop";
  ASSERT_EQ(rte_vdev_init("net_nicmem_gone", args.c_str()), 0);
  {
    const TestPort stays("net_nicmem_stays", "loop",
                         {.arguments = "device=kept,mode=nicmem,split=force,header=64"});
    ASSERT_EQ(rte_eth_promiscuous_enable(stays.id()), 0);
    ASSERT_EQ(rte_vdev_uninit("net_nicmem_gone"), 0);
    for (uint32_t i = 0; i < 100; ++i) {
      ASSERT_EQ(stays.send(stays.packet(frame(1000, i))), 1);
      while (rte_pmd_nicmem_step(stays.id(), 64) > 0) {
      }
      auto packets = stays.receive();
      ASSERT_EQ(packets.size(), 1u) << i;
      EXPECT_EQ(bytes_of(packets[0]), frame(1000, i));
      rte_pktmbuf_free(packets[0]);
    }
    EXPECT_GT(stays.xstat("rx_payload_nicmem_bytes"), 0u);
    check_buffers({&stays});
    check_frames(stays);
  }
}

}  // namespace
}  // namespace nicmem::test
