// SPDX-License-Identifier: BSD-3-Clause
// The receive engine: scatter, completions, errors, drops.
#include <gtest/gtest.h>

#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::Syndrome;

struct SplitRig : Rig<> {
  SplitRig() { receive_on({receiver.rq.get()}); }
  void arrive(const Bytes& frame) { wire->inbox.push_back(frame); }
  void post_split(size_t slot, uint32_t payload = 2048) {
    receiver.post({host.at(slot * 128, 128), card.at(slot * 4096, payload)});
  }

  Buffer host = Buffer::in_host(*nic, domain, 8 * 128);
  Buffer card = Buffer::on_card(*nic, domain, 8 * 4096);
  Receiver receiver{*port, domain, 8};
};

TEST(SimRx, SplitsAFrameBetweenHostAndCard) {
  SplitRig rig;
  const Bytes frame = pattern(1500, 3);
  rig.post_split(2);
  rig.arrive(frame);
  rig.settle();
  const auto entry = rig.receiver.completions.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(hw::Cqe::Opcode::get(entry->op_own), uint8_t(hw::CqeOpcode::kResponderSend));
  EXPECT_EQ(entry->byte_count.get(), 1500u);
  EXPECT_EQ(entry->wqe_counter.get(), 0u);
  EXPECT_EQ(entry->timestamp.get(), 1u);
  EXPECT_EQ(entry->rx_hash_type, 0);
  EXPECT_EQ(rig.host.copy(256, 128), Bytes(frame.begin(), frame.begin() + 128));
  EXPECT_EQ(rig.card.copy(2 * 4096, 1372), Bytes(frame.begin() + 128, frame.end()));
  EXPECT_FALSE(rig.receiver.completions.poll().has_value());
  const hca::PortCounters counters = rig.port->counters();
  EXPECT_EQ(counters.rx_frames, 1u);
  EXPECT_EQ(counters.rx_bytes, 1500u);
}

TEST(SimRx, CountsOnlyWhatCrossesTheLink) {
  SplitRig rig;
  rig.post_split(0);
  rig.arrive(pattern(1500));
  rig.settle();
  const hw::PcieTally tally = rig.port->pcie();
  hw::PcieTally expected;
  expected[hw::PcieClass::kDoorbellRecord] = hw::dma_read(4);
  expected[hw::PcieClass::kRxDescriptor] = hw::dma_read(32);
  expected[hw::PcieClass::kHeader] = hw::dma_write(128);
  expected[hw::PcieClass::kRxCompletion] = hw::dma_write(64);
  EXPECT_TRUE(tally == expected);
}

TEST(SimRx, AFrameOfAtMostTheHeaderLengthUsesTheFirstEntryOnly) {
  for (const uint32_t size : {127u, 128u, 129u}) {
    SplitRig rig;
    std::ranges::fill(rig.card.data(), std::byte{0xee});
    rig.post_split(0);
    rig.arrive(pattern(size));
    rig.settle();
    ASSERT_TRUE(rig.receiver.completions.poll().has_value());
    EXPECT_EQ(rig.card.data()[0] != std::byte{0xee}, size > 128) << size;
  }
}

TEST(SimRx, AFrameLongerThanTheListIsAnErrorAndTheQueueGoesOn) {
  for (const uint32_t size : {227u, 228u, 229u}) {
    SplitRig rig;
    rig.post_split(0, 100);
    rig.post_split(1);
    rig.arrive(pattern(size));
    rig.arrive(pattern(64));
    rig.settle();
    const auto first = rig.receiver.completions.poll();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(hw::is_error(first->op_own), size > 228) << size;
    if (size > 228) {
      EXPECT_EQ(syndrome_of(*first), Syndrome::kLocalLength);
    }
    const auto second = rig.receiver.completions.poll();
    ASSERT_TRUE(second.has_value());
    EXPECT_FALSE(hw::is_error(second->op_own));
    EXPECT_EQ(second->wqe_counter.get(), 1u);
    EXPECT_EQ(rig.port->counters().rx_error, size > 228 ? 1u : 0u);
  }
}

TEST(SimRx, SkipsEmptyEntriesAndStopsAtTheEndOfTheList) {
  SplitRig rig;
  Receiver four(*rig.port, rig.domain, 4, 4);
  rig.receive_on({four.rq.get()});
  const auto empty = segment(rig.host.region->key, 1, 0);
  four.post({empty, rig.host.at(0, 64), empty, rig.card.at(0, 64)});
  four.post({rig.host.at(0, 64), end_of_list(), rig.card.at(0, 64)});
  rig.arrive(pattern(100));
  rig.arrive(pattern(100));
  rig.settle();
  EXPECT_FALSE(hw::is_error(four.completions.poll()->op_own));
  EXPECT_EQ(syndrome_of(*four.completions.poll()), Syndrome::kLocalLength);
}

/// A queue with one bad work request: the error, then nothing more until reset.
void expect_protection_error(SplitRig& rig, const std::vector<hw::DataSegment>& list) {
  rig.receiver.post(list);
  rig.post_split(1);
  rig.arrive(pattern(200));
  rig.arrive(pattern(64));
  rig.settle();
  const auto entry = rig.receiver.completions.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(syndrome_of(*entry), Syndrome::kLocalProtection);
  EXPECT_EQ(as_error(*entry).opcode_qpn.get() & 0xffffff, rig.receiver.rq->number);
  EXPECT_EQ(entry->wqe_counter.get(), 0u);
  EXPECT_FALSE(rig.receiver.completions.poll().has_value());
  hca::PortCounters counters = rig.port->counters();
  EXPECT_EQ(counters.rx_error, 1u);
  EXPECT_EQ(counters.rx_no_buffer, 1u);  // a queue in error never holds up the wire

  rig.receiver.reset();
  rig.post_split(3);
  rig.arrive(pattern(300, 9));
  rig.settle();
  const auto after = rig.receiver.completions.poll();
  ASSERT_TRUE(after.has_value());
  EXPECT_FALSE(hw::is_error(after->op_own));
  EXPECT_EQ(after->wqe_counter.get(), 0u);
  EXPECT_EQ(rig.host.copy(3 * 128, 128), [] {
    Bytes b = pattern(300, 9);
    b.resize(128);
    return b;
  }());
}

TEST(SimRx, ABadKeyStopsTheQueueUntilReset) {
  SplitRig rig;
  expect_protection_error(rig, {rig.host.at(0, 128), segment(0xdead00, 0, 2048)});
}

TEST(SimRx, AKeyOfAnotherDomainIsRefused) {
  SplitRig rig;
  const hca::Domain other = ok(rig.nic->create_domain());
  Buffer foreign = Buffer::on_card(*rig.nic, other, 4096);
  expect_protection_error(rig, {rig.host.at(0, 128), foreign.at(0, 2048)});
}

TEST(SimRx, AReadOnlyRegionIsNotWritten) {
  SplitRig rig;
  Buffer constant = Buffer::in_host(*rig.nic, rig.domain, 4096, hca::Access::kRead);
  expect_protection_error(rig, {constant.at(0, 2048)});
  EXPECT_EQ(constant.bytes, Bytes(4096));
}

TEST(SimRx, AKeyDiesWithItsRegion) {
  SplitRig rig;
  Buffer old = Buffer::in_host(*rig.nic, rig.domain, 4096);
  const hw::DataSegment stale = old.at(0, 2048);
  old.region.reset();
  Buffer fresh = Buffer::in_host(*rig.nic, rig.domain, 4096);  // takes the entry again
  EXPECT_EQ(fresh.region->key >> 8, stale.key.get() >> 8);
  expect_protection_error(rig, {stale});
}

TEST(SimRx, ChecksTheEndOfAZeroBasedRegion) {
  for (const uint64_t over : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    SplitRig rig;
    // The region has 32768 bytes; 100 bytes end at 32767, 32768 and 32769.
    const uint64_t address = 32768 - 100 + over;
    rig.receiver.post({segment(rig.card.region->key, address, 100)});
    rig.arrive(pattern(100));
    rig.settle();
    EXPECT_EQ(hw::is_error(rig.receiver.completions.poll()->op_own), over == 1) << over;
  }
  SplitRig rig;  // an address so high that address + length wraps
  expect_protection_error(rig, {segment(rig.card.region->key, ~uint64_t{0} - 50, 200)});
}

TEST(SimRx, ALosslessWireWaitsForAWorkRequest) {
  SplitRig rig;
  for (uint32_t i = 0; i < 3; ++i) rig.arrive(pattern(64, i));
  rig.settle();
  EXPECT_EQ(rig.port->counters().wire_held, 3u);
  rig.post_split(0);
  rig.settle();
  EXPECT_EQ(rig.port->counters().wire_held, 2u);
  rig.post_split(1);
  rig.post_split(2);
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 3u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 0u);
}

TEST(SimRx, ALossyWireDropsWithoutAWorkRequest) {
  SplitRig rig;
  rig.wire->waits = false;
  for (uint32_t i = 0; i < 3; ++i) rig.arrive(pattern(64, i));
  rig.post_split(0);
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 1u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 2u);
  EXPECT_EQ(rig.port->counters().wire_held, 0u);
}

// Drivers post the next work requests before they give completions back: with as many entries as
// work requests the completion ring is full for a moment. No frame is lost by that, on any wire.
TEST(SimRx, HoldsAFrameWhileTheCompletionRingIsFull) {
  SplitRig rig;
  rig.wire->waits = false;
  Receiver small(*rig.port, rig.domain, 8, 2, 2);
  rig.receive_on({small.rq.get()});
  for (size_t i = 0; i < 4; ++i) small.post({rig.host.at(i * 128, 128)});
  for (uint32_t i = 0; i < 4; ++i) rig.arrive(pattern(64, i));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 2u);
  for (uint32_t i = 0; i < 4; ++i) {
    const auto entry = small.completions.poll();
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->wqe_counter.get(), i);
    rig.settle();
  }
  EXPECT_EQ(rig.port->counters().rx_frames, 4u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 0u);
}

TEST(SimRx, CountersOf16BitsWrap) {
  SplitRig rig;
  for (uint32_t i = 0; i < 70000; ++i) {
    rig.receiver.post({rig.host.at(0, 128)});
    rig.arrive(pattern(60));
    rig.settle();
    const auto entry = rig.receiver.completions.poll();
    ASSERT_TRUE(entry.has_value()) << i;
    ASSERT_EQ(entry->wqe_counter.get(), i & 0xffff);
  }
}

// Drivers that keep 16 bits of the completion queue's consumer counter, and publish them so.
TEST(SimRx, AConsumerCounterOf16BitsWrapsToo) {
  SplitRig rig;
  const auto& cq = *rig.receiver.completions.cq;
  for (uint32_t i = 0; i < 140'000; ++i) {
    rig.receiver.post({rig.host.at(0, 128)});
    rig.arrive(pattern(60));
    rig.settle();
    ASSERT_TRUE(rig.receiver.completions.poll(true).has_value()) << i;
    cq.consumer->publish<NM_CQ_CONSUMER_RELEASE>((i + 1) & 0xffff);
  }
}

TEST(SimRx, ARecordThatClaimsMoreThanTheRingHasStopsTheQueue) {
  SplitRig rig;
  rig.receiver.rq->producer->publish<NM_RQ_RECORD_RELEASE>(9);
  rig.arrive(pattern(64));
  rig.settle();
  EXPECT_EQ(syndrome_of(*rig.receiver.completions.poll()), Syndrome::kLocalQpOperation);
  EXPECT_EQ(rig.port->counters().wire_held + rig.port->counters().rx_no_buffer, 1u);
}

TEST(SimRx, RefusesWhatThePortDoesNotTake) {
  SplitRig rig;
  ok(rig.port->set_max_frame(1000));
  const hw::MacAddress own{{2, 0, 0, 0, 0, 1}};
  ok(rig.port->steer({.unicast = {&own, 1}, .rss = {.table = std::vector{rig.receiver.rq.get()}}}));
  const auto to = [](size_t size, std::initializer_list<int> mac) {
    Bytes frame = pattern(size);
    std::ranges::transform(mac, frame.begin(), [](int b) { return static_cast<std::byte>(b); });
    return frame;
  };
  for (size_t i = 0; i < 8; ++i) rig.post_split(i);
  rig.arrive(to(13, {2, 0, 0, 0, 0, 1}));
  rig.arrive(to(14, {2, 0, 0, 0, 0, 1}));
  rig.arrive(to(1000, {2, 0, 0, 0, 0, 1}));
  rig.arrive(to(1001, {2, 0, 0, 0, 0, 1}));
  rig.arrive(to(60, {2, 0, 0, 0, 0, 2}));
  rig.arrive(to(60, {1, 0, 0x5e, 0, 0, 2}));
  rig.arrive(to(60, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  rig.settle();
  const hca::PortCounters counters = rig.port->counters();
  EXPECT_EQ(counters.rx_malformed, 1u);
  EXPECT_EQ(counters.rx_oversize, 1u);
  EXPECT_EQ(counters.rx_filtered, 2u);
  EXPECT_EQ(counters.rx_frames, 3u);
}

TEST(SimRx, AQueueThatIsDestroyedWhileSteeredToLeavesNothingBehind) {
  Rig<> rig;
  {
    Receiver receiver(*rig.port, rig.domain, 8);
    rig.receive_on({receiver.rq.get()});
  }
  rig.wire->inbox.push_back(pattern(64));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_filtered, 1u);
}

}  // namespace
}  // namespace nicmem::test
