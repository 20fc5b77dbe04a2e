// SPDX-License-Identifier: BSD-3-Clause
// Split rings, in both forms: a card whose memory is smaller than the ring loses no frame that a
// plain ring of the same size would not lose, keeps the order, and takes payloads again when its
// buffers have come back.
#include "conservation.h"

namespace nicmem::test {
namespace {

/// Puts `count` frames on the cable at once; `first` is the seed of the first one.
void burst(const Cable& cable, uint32_t count, uint32_t bytes, uint32_t first) {
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(cable.here.send(cable.here.packet(frame(bytes, first + i))), 1) << i;
  cable.settle();
}

/// All that is complete: in the order of sending, every byte of it. Order of all frames is more
/// than order per flow.
std::vector<rte_mbuf*> take_in_order(const Cable& cable, uint32_t bytes, uint32_t first) {
  std::vector<rte_mbuf*> packets = cable.there.receive(4096);
  for (size_t i = 0; i < packets.size(); ++i)
    EXPECT_EQ(bytes_of(packets[i]), frame(bytes, first + static_cast<uint32_t>(i))) << i;
  return packets;
}

/// How many of these packets have their payload on the card.
uint32_t on_card(const std::vector<rte_mbuf*>& packets) {
  uint32_t count = 0;
  nicmem_region region{};
  for (const rte_mbuf* packet : packets) count += rte_pmd_nicmem_region_of(packet, &region) == 0;
  return count;
}

void free_all(std::vector<rte_mbuf*>& packets) {
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  packets.clear();
}

constexpr uint32_t kBytes = 500;
const PortSetUp kSender{.arguments = "mode=host", .ring = 2048, .mbufs = 8191};

class DriverSpill : public testing::TestWithParam<const char*> {
 protected:
  static std::string arguments(const char* sram) {
    return std::string("mode=nicmem,split=force,header=64,guard=1,spill=") + GetParam() +
           ",sram=" + sram;
  }
};

/// Ring 256: the first lap of spill=sw begins with the card's 64.
TEST_P(DriverSpill, DRV_07_PrimaryEmptiesSecondaryTakesOverAndTheCardIsMetAgain) {
  Cable cable({.arguments = arguments("99KiB"), .ring = 256, .mbufs = 2047}, kSender);
  ASSERT_EQ(cable.there.xstat("payload_nicmem_buffers"), 64u);

  burst(cable, 200, kBytes, 0);
  std::vector<rte_mbuf*> held = take_in_order(cable, kBytes, 0);
  ASSERT_EQ(held.size(), 200u);
  EXPECT_EQ(on_card(held), 64u);
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(on_card({held[i]}), i < 64) << i;
  check_conservation(cable, held);
  EXPECT_EQ(cable.there.xstat("payload_nicmem_free"), 0u);

  // All that the card has is held by the program: the host ring stands in.
  burst(cable, 40, kBytes, 200);
  std::vector<rte_mbuf*> more = take_in_order(cable, kBytes, 200);
  ASSERT_EQ(more.size(), 40u);
  EXPECT_EQ(on_card(more), 0u);
  free_all(more);
  free_all(held);

  // Back on the card: spill=hw with the next frame but for those that find the ring not yet
  // refilled, spill=sw a lap of the ring later.
  uint32_t seed = 240, again = 0;
  for (int round = 0; round < 6; ++round, seed += 64) {
    burst(cable, 64, kBytes, seed);
    std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, seed);
    ASSERT_EQ(packets.size(), 64u);
    again += on_card(packets);
    free_all(packets);
  }
  EXPECT_GE(again, 64u);

  const auto x = [&cable](const char* name) { return cable.there.xstat(name); };
  const uint64_t payload = kBytes - 64;
  EXPECT_EQ(x("rx_payload_nicmem_bytes"), (64 + again) * payload);
  EXPECT_EQ(x("rx_payload_nicmem_bytes") + x("rx_payload_host_bytes"),
            x("rx_good_packets") * payload);
  EXPECT_EQ(x("rx_good_packets") + x("rx_no_mbuf") + x("rx_no_buffer"), seed);
  EXPECT_EQ(x("rx_good_packets"), seed);
  check_conservation(cable);
}

/// The program polls only when the whole burst has come.
TEST_P(DriverSpill, DRV_07_ABurstAsLongAsTheRingAfterSilenceLosesNothing) {
  constexpr uint32_t kRing = 1024;
  for (const uint32_t length : {64u, 256u, kRing}) {
    SCOPED_TRACE(length);
    Cable cable({.arguments = arguments("128KiB"), .ring = kRing, .mbufs = 4095}, kSender);
    uint32_t seed = 0;
    for (int round = 0; round < 4; ++round, seed += length) {
      // Silence is long enough for the checks that idle polls make.
      for (uint32_t i = 0; i < 4 * pmd::kRxIdleCheck; ++i) {
        if (i % 64 == 0) cable.there.step();
        ASSERT_TRUE(cable.there.receive(32).empty());
      }
      burst(cable, length, kBytes, seed);
      EXPECT_EQ(cable.there.xstat("wire_held"), 0u);  // all of it found a buffer
      std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, seed);
      ASSERT_EQ(packets.size(), length);
      if (round == 0) {
        EXPECT_GT(on_card(packets), 0u);
      }
      check_conservation(cable, packets);
      free_all(packets);
    }
    for (const char* lost : {"rx_no_buffer", "rx_no_mbuf", "rx_wqe_error", "wire_held"})
      EXPECT_EQ(cable.there.xstat(lost), 0u) << lost;
    check_conservation(cable);
  }
}

/// Bursts around the ring's length, beside a plain ring. The cable waits with what no ring has a
/// buffer for; that is what another wire would lose.
TEST_P(DriverSpill, DRV_07_LosesWhatAPlainRingOfThatSizeLosesAndNoMore) {
  constexpr uint16_t kRing = 128;
  const auto carried = [](const std::string& arguments, uint32_t length) {
    Cable cable({.arguments = arguments, .ring = kRing, .mbufs = 2047}, kSender);
    burst(cable, length, kBytes, 0);
    std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, 0);
    const auto got = static_cast<uint32_t>(packets.size());
    EXPECT_EQ(got + cable.there.xstat("wire_held"), length);
    free_all(packets);
    cable.settle();
    packets = take_in_order(cable, kBytes, got);
    EXPECT_EQ(got + packets.size(), length);
    free_all(packets);
    check_conservation(cable);
    return got;
  };
  for (const uint32_t length : {kRing - 1u, kRing + 0u, kRing + 1u, 2u * kRing}) {
    SCOPED_TRACE(length);
    const uint32_t plain = carried("mode=host", length);
    EXPECT_GE(carried(arguments("64KiB"), length), plain);
  }
}

const std::string kHardware = "mode=nicmem,split=force,header=64,guard=1,spill=hw,sram=99KiB";

/// What the two rings and the drops count adds up to what came.
void check_hits(const Cable& cable, const std::vector<rte_mbuf*>& held = {}) {
  const auto x = [&cable](const char* name) { return cable.there.xstat(name); };
  EXPECT_EQ(x("rx_primary_frames") + x("rx_secondary_frames"), x("rx_good_packets"));
  EXPECT_EQ(cable.here.xstat("tx_device_frames"),
            x("rx_primary_frames") + x("rx_secondary_frames") + x("rx_no_mbuf") + x("rx_stopped") +
                x("rx_no_buffer") + x("rx_wqe_error") + x("wire_held"));
  check_conservation(cable, held);
}

TEST(DriverSpillHardware, DRV_07_PrimaryAndSecondaryHitsAreCounted) {
  Cable cable({.arguments = kHardware, .ring = 256, .mbufs = 2047}, kSender);
  burst(cable, 200, kBytes, 0);
  std::vector<rte_mbuf*> held = take_in_order(cable, kBytes, 0);
  EXPECT_EQ(cable.there.xstat("rx_primary_frames"), 64u);
  EXPECT_EQ(cable.there.xstat("rx_secondary_frames"), 136u);
  check_hits(cable, held);
  free_all(held);
  ASSERT_TRUE(cable.there.receive().empty());  // a poll finds that the buffers have come back
  EXPECT_EQ(cable.there.xstat("payload_nicmem_posted"), 64u);
  burst(cable, 64, kBytes, 200);
  held = take_in_order(cable, kBytes, 200);
  EXPECT_EQ(on_card(held), 64u);
  EXPECT_EQ(cable.there.xstat("rx_primary_frames"), 128u);
  free_all(held);
  ASSERT_TRUE(cable.there.receive().empty());
  // frames that end in the header buffer leave the card's where they are
  for (int round = 0; round < 3; ++round) {
    burst(cable, 64, 64, 1);
    held = take_in_order(cable, 64, 1);
    EXPECT_EQ(held.size(), 64u);
    EXPECT_EQ(cable.there.xstat("payload_nicmem_posted"), 64u);
    free_all(held);
  }
  EXPECT_EQ(cable.there.xstat("rx_primary_frames"), 128u + 3 * 64);
  check_hits(cable);
}

/// The program's pool ends before the rings do: it holds as many frames as with a plain ring.
TEST(DriverSpillHardware, DRV_07_ADryHeaderPoolCostsNoMoreThanWithAPlainRing) {
  for (const std::string& arguments : {std::string("mode=host"), kHardware}) {
    Cable cable({.arguments = arguments, .ring = 64, .mbufs = 100}, kSender);
    std::vector<rte_mbuf*> held;
    for (uint32_t i = 0; i < 80; ++i) {
      cable.carry(frame(kBytes, i));
      for (rte_mbuf* packet : cable.there.receive()) held.push_back(packet);
    }
    EXPECT_EQ(held.size(), 36u) << arguments;
    EXPECT_EQ(cable.there.xstat("rx_no_mbuf"), 44u) << arguments;
    check_conservation(cable, held);
    free_all(held);
  }
}

/// A bad key in a WQE of either ring: the pair starts anew and loses that frame only.
TEST(DriverSpillHardware, DRV_01_AnErrorInEitherRingResetsBoth) {
  Cable cable({.arguments = kHardware, .ring = 128, .mbufs = 2047}, kSender);
  std::vector<rte_mbuf*> held;
  const auto breaks = [&](std::byte* wqe) {
    reinterpret_cast<hw::DataSegment*>(wqe)[1].key = be32(0xdead00);
    burst(cable, 1, kBytes, 0);
    EXPECT_TRUE(cable.there.receive().empty());
    burst(cable, 100, kBytes, 7);
    std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, 7);
    EXPECT_EQ(packets.size(), 100u);
    return packets;
  };
  pmd::PrimaryRing& primary = *cable.there.rx().primary;
  ASSERT_EQ(primary.posted - primary.head, 64u);
  held = breaks(primary.wqes + size_t{primary.slot(primary.head)} * primary.stride_bytes);
  EXPECT_EQ(on_card(held), 64u);
  pmd::RxQueue& queue = cable.there.rx();  // the program holds what the card has
  std::vector<rte_mbuf*> more =
      breaks(reinterpret_cast<std::byte*>(queue.entries(queue.head - primary.head)));
  EXPECT_EQ(on_card(more), 0u);
  EXPECT_EQ(queue.counters.errors, 2u);
  held.insert(held.end(), more.begin(), more.end());
  check_hits(cable, held);
  EXPECT_EQ(cable.there.xstat("rx_wqe_error"), 2u);
  free_all(held);
  burst(cable, 1, kBytes, 0);
  more = take_in_order(cable, kBytes, 0);
  free_all(more);
  check_hits(cable);
}

/// Frames that are complete and not polled are counted; all buffers come back, and go out again.
TEST(DriverSpillHardware, DRV_07_AStopDrainsBothRingsAndAStartFillsThem) {
  Cable cable({.arguments = kHardware, .ring = 128, .mbufs = 2047}, kSender);
  for (uint32_t round = 1; round <= 3; ++round) {
    burst(cable, 100, kBytes, 0);
    if (round == 2) {
      ASSERT_EQ(rte_eth_dev_rx_queue_stop(cable.there.id(), 0), 0);
      EXPECT_EQ(cable.there.xstat("payload_nicmem_posted"), 0u);
      EXPECT_EQ(cable.there.xstat("payload_nicmem_free"), 64u);
      ASSERT_EQ(rte_eth_dev_rx_queue_start(cable.there.id(), 0), 0);
    } else {
      cable.there.stop();
      ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
    }
    EXPECT_EQ(cable.there.xstat("rx_stopped"), 100 * round);
    EXPECT_EQ(cable.there.xstat("payload_nicmem_posted"), 64u);
  }
  burst(cable, 100, kBytes, 0);
  std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, 0);
  EXPECT_EQ(packets.size(), 100u);
  EXPECT_EQ(on_card(packets), 64u);
  free_all(packets);
  check_hits(cable);
}

/// The card's buffers at the limits of the ring: one, as many as descriptors, more.
TEST(DriverSpillHardware, DRV_07_CardsOfAnySize) {
  for (const char* sram :
       {"8KiB", "12KiB", "97KiB", "98KiB", "99KiB", "100KiB", "102KiB", "1MiB"}) {
    SCOPED_TRACE(sram);
    Cable cable(
        {.arguments = "mode=nicmem,split=force,header=64,spill=hw,sram=" + std::string(sram),
         .ring = 64,
         .mbufs = 1023},
        kSender);
    const uint64_t card = std::min<uint64_t>(64, cable.there.xstat("payload_nicmem_buffers"));
    EXPECT_GT(card, 0u);
    for (int round = 0; round < 5; ++round) {
      burst(cable, 64, kBytes, 3);
      std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, 3);
      ASSERT_EQ(packets.size(), 64u);
      EXPECT_EQ(on_card(packets), card);
      free_all(packets);
      ASSERT_TRUE(cable.there.receive().empty());
    }
    check_hits(cable);
  }
}

TEST(DriverSpillHardware, ADeviceThatCannotChooseSaysSo) {
  hca::Capabilities card{.name = "mlx5_0"};
  EXPECT_TRUE(pmd::check_spill(pmd::Spill::kSoftware, card));
  const auto refused = pmd::check_spill(pmd::Spill::kHardware, card);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  for (const char* part : {"spill=hw", "mlx5_0", "accepted: sw"})
    EXPECT_NE(refused.error().what.find(part), std::string::npos) << refused.error().what;
  card.spill = true;
  EXPECT_TRUE(pmd::check_spill(pmd::Spill::kHardware, card));
}

/// What a stream of bursts of 32 leaves on the card, in thousandths; all of it arrives.
uint64_t share_of_stream(const std::string& more) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,guard=1,sram=128KiB" + more,
               .ring = 1024,
               .mbufs = 4095},
              kSender);
  uint32_t seed = 0;
  for (int round = 0; round < 128; ++round, seed += 32) {
    burst(cable, 32, kBytes, seed);
    std::vector<rte_mbuf*> packets = cable.there.receive(4096);
    EXPECT_EQ(packets.size(), 32u);
    free_all(packets);
  }
  check_conservation(cable);
  EXPECT_EQ(cable.there.xstat("rx_short_ring"), 0u);
  return cable.there.xstat("rx_payload_nicmem_permille");
}

TEST(DriverShortRing, AStreamMeetsTheCardMoreOften) {
  const uint64_t full = share_of_stream("");
  EXPECT_LT(full, 150u);
  EXPECT_GT(share_of_stream(",min_posted=auto"), 3 * full) << "the first lap is posted whole";
  // the card's 83 buffers by the posted ones and the 32 that the program has
  EXPECT_GT(share_of_stream(",min_posted=128"), 1000u * 80 / (128 + 32));
  EXPECT_GT(share_of_stream(",min_posted=64"), 1000u * 80 / (64 + 32));
}

/// What a ring of 64 cannot take waits on the cable, and comes in order; the ring follows.
TEST(DriverShortRing, ABurstBeyondItComesLaterOnAWireThatLosesNothing) {
  for (const char* form : {"64", "auto"}) {
    SCOPED_TRACE(form);
    Cable cable({.arguments = "mode=nicmem,split=force,header=64,guard=1,sram=128KiB,min_posted=" +
                              std::string(form),
                 .ring = 1024,
                 .mbufs = 4095},
                kSender);
    uint32_t seed = 0;
    for (const uint32_t length : {32u, 900u, 32u, 500u}) {
      burst(cable, length, kBytes, seed);
      while (length > 0) {
        std::vector<rte_mbuf*> packets = take_in_order(cable, kBytes, seed);
        if (packets.empty()) break;
        seed += static_cast<uint32_t>(packets.size());
        check_conservation(cable, packets);
        free_all(packets);
        cable.settle();
      }
    }
    EXPECT_EQ(seed, 32u + 900 + 32 + 500);
    check_conservation(cable);
  }
}

/// Frames that end in the header buffer give the card's buffer back at once.
TEST(DriverShortRing, ShortFramesHoldNothingOfTheCard) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=99KiB,min_posted=64",
               .ring = 256,
               .mbufs = 2047},
              kSender);
  for (uint32_t seed = 0; seed < 512; seed += 32) {
    burst(cable, 32, 60, seed);
    std::vector<rte_mbuf*> packets = take_in_order(cable, 60, seed);
    ASSERT_EQ(packets.size(), 32u);
    check_conservation(cable, packets);
    free_all(packets);
  }
  EXPECT_EQ(cable.there.xstat("payload_nicmem_posted"), 64u);
  EXPECT_EQ(cable.there.xstat("payload_host_posted"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Form, DriverSpill, testing::Values("sw", "hw", "sw,min_posted=auto"),
                         [](const auto& form) {
                           return std::string(form.param).substr(0, 2) +
                                  (form.index == 2 ? "Auto" : "");
                         });

}  // namespace
}  // namespace nicmem::test
