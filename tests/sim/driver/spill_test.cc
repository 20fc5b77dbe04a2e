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

INSTANTIATE_TEST_SUITE_P(Form, DriverSpill, testing::Values("sw"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace nicmem::test
