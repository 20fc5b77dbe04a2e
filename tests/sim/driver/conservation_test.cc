// SPDX-License-Identifier: BSD-3-Clause
// Frames and buffers add up after every kind of trouble: dry pools, failed work requests, frames of
// a wrong length, stops in the middle of traffic, changes of configuration, removal of a port.
#include "conservation.h"

#include "base/rng.h"
#include "resources.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

constexpr const char* kNicmem = "mode=nicmem,split=force,header=64,sram=256KiB";

void free_all(std::vector<rte_mbuf*>& packets) {
  for (rte_mbuf* packet : packets) rte_pktmbuf_free(packet);
  packets.clear();
}

/// What has come, polled until nothing does.
std::vector<rte_mbuf*> drain(const Cable& cable, const TestPort& port) {
  std::vector<rte_mbuf*> packets;
  for (;;) {
    cable.settle();
    const auto some = port.receive();
    if (some.empty()) return packets;
    packets.insert(packets.end(), some.begin(), some.end());
  }
}

/// Sends `count` frames of `size` bytes to the port under test, as many as the cable takes.
void offer(const Cable& cable, uint32_t count, uint32_t size) {
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(cable.here.send(cable.here.packet(frame(size, i))), 1);
    if (i % 16 == 15) cable.settle();
  }
  cable.settle();
}

TEST(DriverConservation, DRV_32_DryPoolsOfEitherKindNeverMixFramesNorShrinkTheRing) {
  Rng rng(test_seed());
  Cable cable({.arguments = "mode=split,split=force,header=64", .ring = 16, .mbufs = 40});
  rte_mempool* const payload = cable.there.port().host_payload->pool();
  std::vector<void*> hoard(rte_mempool_avail_count(payload));
  std::vector<rte_mbuf*> held;
  for (uint32_t round = 0; round < 50; ++round) {
    // leaves 0 to 9 payload buffers, while the header pool has 0 to 24
    const auto take =
        static_cast<unsigned>(rte_mempool_avail_count(payload) -
                              std::min<uint64_t>(rng.below(10), rte_mempool_avail_count(payload)));
    ASSERT_EQ(rte_mempool_get_bulk(payload, hoard.data(), take), 0);
    const uint64_t before = cable.there.xstat("rx_no_mbuf");
    uint64_t came = 0;
    const uint64_t offered = 1 + rng.below(40);
    for (uint32_t i = 0; i < offered; ++i) {
      const uint32_t size = rng.below(2) == 0 ? 60 : 65 + static_cast<uint32_t>(rng.below(1000));
      const uint32_t mark = round * 100 + i;
      cable.carry(frame(size, mark));
      for (rte_mbuf* packet : cable.there.receive()) {
        ASSERT_EQ(bytes_of(packet), frame(size, mark)) << "round " << round;
        held.push_back(packet);
        ++came;
      }
    }
    EXPECT_EQ(offered, came + cable.there.xstat("rx_no_mbuf") - before);
    rte_mempool_put_bulk(payload, hoard.data(), take);
    check_conservation(cable, held);
    EXPECT_EQ(cable.there.xstat("payload_host_posted"), 16u) << "the ring shrank";
    if (rng.below(2) == 0) free_all(held);
  }
  free_all(held);
  EXPECT_GT(cable.there.xstat("rx_no_mbuf"), 0u);
  offer(cable, 16, 700);
  held = drain(cable, cable.there);
  EXPECT_EQ(held.size(), 16u);
  free_all(held);
  check_conservation(cable);
}

TEST(DriverConservation, DRV_07_SpilledAndReturnedPayloadsAddUp) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=96KiB", .ring = 256});
  const uint64_t on_card = cable.there.xstat("payload_nicmem_buffers");
  ASSERT_GT(on_card, 8u);
  std::vector<rte_mbuf*> held;
  for (uint32_t i = 0; i < 200; ++i) {
    cable.carry(frame(1064, i));
    for (rte_mbuf* packet : cable.there.receive()) held.push_back(packet);
  }
  ASSERT_EQ(held.size(), 200u);
  const Memory& memory = *cable.there.port().device->memory;
  for (uint32_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(bytes_of(held[i]), frame(1064, i)) << "order";
    // the ring was armed from the card until that was empty
    EXPECT_EQ(memory.contains(rte_pktmbuf_mtod(held[i]->next, void*)), i < on_card) << i;
  }
  EXPECT_EQ(cable.there.xstat("rx_payload_nicmem_bytes"), on_card * 1000);
  EXPECT_EQ(cable.there.xstat("rx_payload_host_bytes"), (200 - on_card) * 1000);
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 0u);
  check_conservation(cable, held);
  free_all(held);
  // drained: the next WQEs to be refilled get the card's buffers, met one lap later
  for (uint32_t i = 0; i < 256 + 64; ++i) {
    cable.carry(frame(1064, i));
    held = cable.there.receive();
    ASSERT_EQ(held.size(), 1u);
    const bool lap = i >= 256 && i < 256 + on_card;
    EXPECT_TRUE(!lap || memory.contains(rte_pktmbuf_mtod(held[0]->next, void*))) << i;
    free_all(held);
  }
  check_conservation(cable);
}

/// Frames that the model cannot send: what comes before and after them must not suffer.
TEST(DriverConservation, APacketOfAWrongLengthIsDroppedAlone) {
  for (const char* arguments : {"mode=host", "mode=nicmem,header=64"}) {
    Cable cable({.arguments = "mode=host", .mtu = 9600, .room = 9728},
                {.arguments = arguments, .mtu = 1500, .room = 9728});
    for (const uint32_t size : {1u, 2u, 13u, 1523u, 9000u}) {
      SCOPED_TRACE(std::string(arguments) + ", " + std::to_string(size) + " bytes");
      const uint64_t before = cable.here.xstat("tx_bad_length");
      rte_mbuf* packets[9];
      for (uint32_t i = 0; i < 9; ++i)
        packets[i] = cable.here.packet(i == 4 ? frame(size) : frame(200, i));
      ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets, 9), 9);
      auto came = drain(cable, cable.there);
      EXPECT_EQ(came.size(), 8u);
      free_all(came);
      EXPECT_EQ(cable.here.xstat("tx_bad_length"), before + 1);
    }
    for (const uint32_t size : {14u, 15u, 1521u, 1522u}) {
      ASSERT_EQ(cable.here.send(cable.here.packet(frame(size))), 1);
      auto came = drain(cable, cable.there);
      ASSERT_EQ(came.size(), 1u) << size;
      EXPECT_EQ(bytes_of(came[0]), frame(size));
      free_all(came);
    }
    EXPECT_EQ(cable.here.xstat("tx_wqe_error"), 0u);
    check_conservation(cable);
  }
}

/// A receive WQE whose bytes were damaged costs one frame: recovery writes the ring anew.
TEST(DriverConservation, DRV_01_RecoveryWritesTheReceiveRingAnew) {
  for (const uint32_t entry : {0u, 1u}) {
    Cable cable({.arguments = kNicmem, .ring = 16});
    pmd::RxQueue& queue = cable.there.rx();
    auto* const wqe =
        reinterpret_cast<hw::DataSegment*>(queue.wqes + size_t{5} * queue.stride_bytes);
    wqe[entry].key = be32(0xdead00);
    std::vector<rte_mbuf*> came;
    for (uint32_t i = 0; i < 100; ++i) {
      cable.carry(frame(500, i));
      for (rte_mbuf* packet : cable.there.receive()) {
        EXPECT_EQ(bytes_of(packet), frame(500, i)) << "not the newest frame";
        came.push_back(packet);
      }
      free_all(came);
    }
    EXPECT_EQ(cable.there.xstat("rx_wqe_error"), 1u) << "the same WQE failed again";
    EXPECT_EQ(cable.there.xstat("rx_good_packets"), 99u);
    check_conservation(cable);
  }
}

TEST(DriverConservation, ABadKeyOnTransmitLosesWhatFollowsAndNoBuffer) {
  Cable cable({.arguments = "mode=host", .ring = 256},
              {.arguments = "mode=nicmem,header=64,tx_inline=18", .ring = 256});
  for (const uint32_t bad : {0u, 3u, 31u, 39u}) {
    SCOPED_TRACE(bad);
    const uint64_t errors = cable.here.xstat("tx_wqe_error");
    pmd::TxQueue& queue = cable.here.tx();
    const uint32_t first = queue.producer;
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < 40; ++i) packets.push_back(cable.here.packet(frame(200, i)));
    ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 40), 40);
    // control, eth, 16 further bytes of the header, pointer: one block each
    ASSERT_EQ(queue.producer - first, 40u);
    auto* const wqe = reinterpret_cast<hw::DataSegment*>(
        queue.wqes + size_t{(first + bad) & (queue.depth - 1)} * hw::kWqeBlockBytes);
    wqe[3].key = be32(0xdead00);
    auto came = drain(cable, cable.there);
    EXPECT_EQ(came.size(), bad);
    free_all(came);
    rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
    EXPECT_EQ(cable.here.xstat("tx_wqe_error") - errors, 40 - bad);
    for (uint32_t i = 0; i < 100; ++i) {
      ASSERT_EQ(cable.here.send(cable.here.packet(frame(90, i))), 1);
      came = drain(cable, cable.there);
      ASSERT_EQ(came.size(), 1u) << i;
      EXPECT_EQ(bytes_of(came[0]), frame(90, i));
      free_all(came);
    }
    rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
    check_conservation(cable);
  }
}

/// Frames that were complete and not polled at a stop are neither delivered nor forgotten.
TEST(DriverConservation, DRV_25_AStopCountsWhatItLeavesBehind) {
  Cable cable({.arguments = kNicmem, .ring = 64});
  uint64_t received = 0, last_good = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    offer(cable, 12, 300);
    auto packets = cable.there.receive(static_cast<uint16_t>(i % 13));
    received += packets.size();
    free_all(packets);
    cable.there.stop();
    ASSERT_EQ(rte_mempool_in_use_count(cable.there.pool()), 0u) << i;
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    ASSERT_TRUE(cable.there.receive().empty()) << "a stale completion";
    const uint64_t good = cable.there.xstat("rx_good_packets");
    ASSERT_GE(good, last_good);
    ASSERT_EQ(good, received);
    last_good = good;
  }
  EXPECT_EQ(cable.there.xstat("rx_stopped") + received, 12'000u);
  check_conservation(cable);
}

/// What the wire had no room for when the port stopped was not sent.
TEST(DriverConservation, AStopCountsWhatItCouldNotSend) {
  Cable cable({.arguments = "mode=host", .mtu = 9600, .room = 9728},
              {.arguments = "mode=nicmem", .ring = 512, .mtu = 9600, .room = 9728});
  uint64_t given = 0;
  for (uint32_t i = 0; i < 400; ++i)
    given += cable.here.send(cable.here.packet(frame(9000, i)));  // more than the cable holds
  ASSERT_EQ(given, 400u);
  cable.here.stop();
  EXPECT_EQ(rte_mempool_in_use_count(cable.here.pool()), 0u);
  EXPECT_GT(cable.here.xstat("tx_stopped"), 0u);
  EXPECT_EQ(cable.here.xstat("tx_good_packets") + cable.here.xstat("tx_stopped"), given);
  EXPECT_EQ(cable.here.xstat("tx_good_packets"), cable.here.xstat("tx_device_frames"));
  ASSERT_EQ(rte_eth_dev_start(cable.here.id()), 0);
  auto came = drain(cable, cable.there);
  EXPECT_EQ(came.size(), cable.here.xstat("tx_good_packets"));
  free_all(came);
  check_conservation(cable);
}

TEST(DriverConservation, DRV_26_CountersAndMemorySurviveReconfiguration) {
  Cable cable({.arguments = kNicmem, .room = 2048, .mbufs = 2047});
  size_t heap = 0, files = 0;
  uint64_t last_rx = 0, last_tx = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    cable.there.stop();
    const uint16_t mtus[] = {1500, 68, 576, 1400};
    const auto ring = static_cast<uint16_t>(8 << (i % 8));
    ASSERT_EQ(cable.there.configure({.ring = ring, .mtu = mtus[i % 4]}), 0);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    offer(cable, 5, 80);
    auto packets = drain(cable, cable.there);
    ASSERT_EQ(packets.size(), 5u);
    for (rte_mbuf* packet : packets) ASSERT_EQ(cable.there.send(packet), 1);
    packets = drain(cable, cable.here);
    ASSERT_EQ(packets.size(), 5u);
    free_all(packets);
    rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
    const uint64_t rx = cable.there.xstat("rx_good_packets");
    const uint64_t tx = cable.there.xstat("tx_good_packets");
    ASSERT_EQ(rx, last_rx + 5) << "configured anew, the port forgot what it had counted";
    ASSERT_EQ(tx, last_tx + 5);
    last_rx = rx, last_tx = tx;
    if (i == 7) heap = heap_bytes(), files = open_files();  // every size has been met once
    if (i >= 7 && i % 8 == 7) {
      ASSERT_EQ(heap_bytes(), heap) << "after " << i + 1;
      ASSERT_EQ(open_files(), files);
    }
    check_conservation(cable);
  }
}

TEST(DriverConservation, DRV_26_RemovedPortsLeaveNothing) {
  size_t heap = 0, files = 0;
  for (uint32_t i = 0; i < 30; ++i) {
    {
      Cable cable({.arguments = kNicmem});
      offer(cable, 20, 500);
      auto packets = cable.there.receive(10);  // the others go with the port
      free_all(packets);
    }
    if (i == 2) heap = heap_bytes(), files = open_files();
    if (i > 2) {
      ASSERT_EQ(heap_bytes(), heap) << i;
      ASSERT_EQ(open_files(), files) << i;
    }
  }
}

TEST(DriverConservation, DRV_31_AResetStartsEveryEquationAnew) {
  Cable cable({.arguments = kNicmem, .ring = 16, .mbufs = 31});
  std::vector<rte_mbuf*> held;
  const auto drop = [&](uint32_t frames) {
    for (uint32_t i = 0; i < frames; ++i) {
      cable.carry(frame(300, i));
      for (rte_mbuf* packet : cable.there.receive()) held.push_back(packet);
    }
  };
  drop(15 + 50);  // 31 buffers, 16 posted, 15 to hold
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 50u);
  for (const TestPort* port : {&cable.here, &cable.there})
    ASSERT_EQ(rte_eth_stats_reset(port->id()), 0);
  drop(3);
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 3u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(cable.there.id(), &stats), 0);
  EXPECT_EQ(stats.rx_nombuf, 3u);
  EXPECT_EQ(stats.ipackets, 0u);
  check_conservation(cable, held);
  free_all(held);
  cable.there.stop();
  EXPECT_EQ(rte_eth_stats_reset(cable.there.id()), 0);
  EXPECT_EQ(rte_eth_xstats_reset(cable.there.id()), 0);
  EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 0u);
}

/// Counters of the driver have 32 bits, those of the device 16 and 24: all wrap on the way.
TEST(DriverConservation, FreeRunningCountersWrap) {
  Cable cable({.arguments = kNicmem, .ring = 64});
  pmd::RxQueue& rx = cable.there.rx();
  pmd::TxQueue& tx = cable.there.tx();
  // the device sees the low bits only: to it these are the zeros that it starts with
  rx.head = tx.producer = tx.consumer = tx.cq_head = 0xffff0000;
  tx.signalled_block = tx.producer;
  tx.sent_head = tx.sent_done = tx.sent_tail = 0xffffff80;
  const Bytes bytes = frame(200);
  for (uint32_t moved = 0; moved < 66'000;) {
    for (uint32_t i = 0; i < 32; ++i) ASSERT_EQ(cable.here.send(cable.here.packet(bytes)), 1);
    for (uint32_t i = 0; i < 2; ++i) cable.here.step(), cable.there.step();
    auto packets = cable.there.receive();
    ASSERT_EQ(packets.size(), 32u) << moved;
    ASSERT_EQ(rte_eth_tx_burst(cable.there.id(), 0, packets.data(), 32), 32);
    for (uint32_t i = 0; i < 2; ++i) cable.there.step(), cable.here.step();
    auto back = cable.here.receive();
    ASSERT_EQ(back.size(), 32u) << moved;
    ASSERT_TRUE(bytes_of(back[0]) == bytes && bytes_of(back[31]) == bytes) << moved;
    rte_pktmbuf_free_bulk(back.data(), 32);
    moved += 32;
  }
  EXPECT_LT(rx.head, 0x10000u);
  EXPECT_LT(tx.producer, 0x20000u);
  check_conservation(cable);
}

TEST(DriverConservation, AFailedStartGivesEverythingBack) {
  Cable cable({.arguments = kNicmem});
  for (uint32_t i = 0; i < 20; ++i) {
    cable.there.stop();
    ASSERT_EQ(cable.there.configure({.ring = 2048}), 0);
    ASSERT_LT(rte_eth_dev_start(cable.there.id()), 0) << "1023 buffers for a ring of 2048";
    EXPECT_EQ(rte_mempool_in_use_count(cable.there.pool()), 0u);
    ASSERT_EQ(cable.there.configure({.ring = 64}), 0);
    ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    offer(cable, 10, 400);
    auto packets = drain(cable, cable.there);
    EXPECT_EQ(packets.size(), 10u);
    free_all(packets);
    check_conservation(cable);
  }
}

/// Payloads that the program holds stay readable when the pools they came from are replaced.
TEST(DriverConservation, HeldPayloadsOutliveTheirPool) {
  Cable cable({.arguments = kNicmem, .mtu = 600});
  cable.carry(frame(500, 5));
  auto held = cable.there.receive();
  ASSERT_EQ(held.size(), 1u);
  cable.there.stop();
  ASSERT_EQ(cable.there.configure({.mtu = 1500}), 0);
  ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
  for (uint32_t i = 0; i < 200; ++i) {
    cable.carry(frame(1500, i));
    auto packets = cable.there.receive();
    ASSERT_EQ(packets.size(), 1u);
    ASSERT_EQ(bytes_of(packets[0]), frame(1500, i));
    free_all(packets);
  }
  EXPECT_EQ(bytes_of(held[0]), frame(500, 5));
  check_conservation(cable, held);
  const uint64_t beside_it = cable.there.xstat("payload_nicmem_buffers");
  free_all(held);
  cable.there.stop();
  ASSERT_EQ(cable.there.configure({.mtu = 1600}), 0);
  ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
  EXPECT_GT(cable.there.xstat("payload_nicmem_buffers"), beside_it) << "its memory has come back";
}

/// They outlive their port, too; once they are back, the device's name stands for a new device.
TEST(DriverConservation, HeldPayloadsOutliveTheirPort) {
  for (const char* sram : {"256KiB", "512KiB"}) {
    std::vector<rte_mbuf*> held;
    {
      const Cable cable(
          {.arguments = std::string("mode=nicmem,split=force,header=64,sram=") + sram});
      cable.carry(frame(1000, 5));
      held = cable.there.receive();
      ASSERT_EQ(held.size(), 1u);
      rte_mbuf* const payload = held[0]->next;  // the header's pool is the fixture's, and goes
      held[0]->next = nullptr;
      held[0]->nb_segs = 1;
      rte_pktmbuf_free(held[0]);
      held[0] = payload;
    }
    const auto* const bytes = rte_pktmbuf_mtod(held[0], const uint8_t*);
    EXPECT_TRUE(std::equal(bytes, bytes + 936, frame(1000, 5).begin() + 64));
    free_all(held);
  }
}

}  // namespace
}  // namespace nicmem::test
