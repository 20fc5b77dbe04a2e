// SPDX-License-Identifier: BSD-3-Clause
// The transmit engine: gather, inlining, completions, errors, flush, reset.
#include <gtest/gtest.h>

#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::Syndrome;

Bytes part(const Bytes& bytes, size_t from, size_t size) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
          bytes.begin() + static_cast<std::ptrdiff_t>(from + size)};
}

void set_queue(Bytes& wqe, uint32_t number) {
  auto& control = *reinterpret_cast<hw::ControlSegment*>(wqe.data());
  control.qpn_ds.set(hw::ControlSegment::QueueNumber::set(control.qpn_ds.get(), number));
}

struct SendRig : Rig<> {
  SendRig() {
    std::ranges::copy(frame, host.bytes.begin());
    std::ranges::copy(frame, card.data().begin());
  }

  Bytes frame = pattern(1500, 5);
  Buffer host = Buffer::in_host(*nic, domain, 4096);
  Buffer card = Buffer::on_card(*nic, domain, 4096);
  Sender sender{*port, domain, 16};
};

TEST(SimTx, GathersAnInlinedHeaderAndAPayloadOnTheCard) {
  for (const size_t inlined : {0u, 2u, 3u, 17u, 18u, 19u, 64u, 82u, 128u}) {
    SendRig rig;
    rig.sender.send(part(rig.frame, 0, inlined),
                    {rig.card.at(inlined, static_cast<uint32_t>(1500 - inlined))});
    rig.settle();
    ASSERT_EQ(rig.wire->outbox.size(), 1u) << inlined;
    EXPECT_EQ(rig.wire->outbox[0], rig.frame) << inlined;
    const auto entry = rig.sender.completions.poll();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(hw::Cqe::Opcode::get(entry->op_own), uint8_t(hw::CqeOpcode::kRequester));
    EXPECT_EQ(entry->wqe_counter.get(), 0u);
    EXPECT_EQ(entry->sop_drop_qpn.get(), 0x0a000000u | rig.sender.sq->number);
    Bytes newest(2000);
    ASSERT_EQ(rig.port->last_sent(newest), 1500u);
    newest.resize(1500);
    EXPECT_EQ(newest, rig.frame);
  }
}

TEST(SimTx, CountsOnlyWhatCrossesTheLink) {
  SendRig rig;
  rig.sender.send(part(rig.frame, 0, 64), {rig.card.at(64, 1436)});
  rig.settle();
  hw::PcieTally expected;
  expected[hw::PcieClass::kDoorbellRecord] = hw::dma_read(4);
  expected[hw::PcieClass::kTxDescriptor] = hw::dma_read(128);
  expected[hw::PcieClass::kTxCompletion] = hw::dma_write(64);
  EXPECT_TRUE(rig.port->pcie() == expected);
}

TEST(SimTx, DoesNothingBeforeTheDoorbell) {
  SendRig rig;
  rig.sender.put(rig.sender.build({}, {rig.host.at(0, 100)}));
  rig.sender.sq->producer->publish<NM_SQ_RECORD_RELEASE>(rig.sender.posted);
  rig.settle();
  EXPECT_TRUE(rig.wire->outbox.empty());
  rig.sender.ring();
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimTx, CompletesOnlyWhatAsksForIt) {
  SendRig rig;
  rig.sender.send({}, {rig.host.at(0, 100)}, hw::ControlSegment::kCompleteOnError);
  rig.sender.send({}, {rig.host.at(0, 101)}, hw::ControlSegment::kCompleteOnFirstError);
  rig.sender.send({}, {rig.host.at(0, 102)});
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 3u);
  EXPECT_EQ(rig.sender.completions.poll()->wqe_counter.get(), 2u);
  EXPECT_FALSE(rig.sender.completions.poll().has_value());
}

TEST(SimTx, CompletionModesOfAQueueInError) {
  using C = hw::ControlSegment;
  SendRig rig;
  const auto good = [&](uint8_t mode) { return rig.sender.build({}, {rig.host.at(0, 100)}, mode); };
  // The first error is told to all; those that only want that hear no more.
  rig.sender.put(rig.sender.build({}, {segment(0x123456, 0, 100)}, C::kCompleteOnFirstError));
  for (const uint8_t mode : {C::kCompleteOnFirstError, C::kCompleteOnError,
                             C::kCompleteOnFirstError, C::kCompleteAlways, uint8_t{3}}) {
    rig.sender.put(good(mode));
  }
  rig.sender.ring();
  rig.settle();
  const std::pair<Syndrome, uint32_t> want[] = {{Syndrome::kLocalProtection, 0},
                                                {Syndrome::kFlushed, 2},
                                                {Syndrome::kFlushed, 4},
                                                {Syndrome::kFlushed, 5}};
  for (const auto& [syndrome, index] : want) {
    const auto entry = rig.sender.completions.poll();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(syndrome_of(*entry), syndrome);
    EXPECT_EQ(entry->wqe_counter.get(), index);
  }
  EXPECT_FALSE(rig.sender.completions.poll().has_value());
  EXPECT_EQ(rig.port->counters().tx_error, 6u);
}

TEST(SimTx, QueuesThatShareACompletionQueueAreToldApart) {
  SendRig rig;
  const auto other = ok(rig.port->create_send_queue(rig.domain, *rig.sender.completions.cq, 16));
  Bytes wqe = rig.sender.build({}, {rig.host.at(0, 200)});
  set_queue(wqe, other->number);
  std::ranges::copy(wqe, other->ring.begin());
  other->producer->publish<NM_SQ_RECORD_RELEASE>(1);
  other->doorbell->ring(other->ring.data());
  rig.sender.put(rig.sender.build({}, {segment(0x123456, 0, 100)}));
  rig.sender.ring();
  rig.settle();
  uint32_t failed = 0, sent = 0;
  while (const auto entry = rig.sender.completions.poll()) {
    if (hw::is_error(entry->op_own)) {
      failed = as_error(*entry).opcode_qpn.get() & 0xffffff;
    } else {
      sent = entry->sop_drop_qpn.get() & 0xffffff;
    }
  }
  EXPECT_EQ(failed, rig.sender.sq->number);
  EXPECT_EQ(sent, other->number);
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimTx, AStoppedQueueExecutesNothingUntilItIsReset) {
  SendRig rig;
  rig.sender.send({}, {rig.host.at(0, 100)});
  rig.settle();
  ok(rig.sender.sq->stop());
  rig.sender.send({}, {rig.host.at(0, 101)});
  rig.settle();
  ok(rig.sender.sq->stop());
  rig.settle();
  rig.port->stop();  // sends what was posted, but not this
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.port->counters().tx_error, 0u);
  ok(rig.port->start());
  rig.sender.reset();
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  rig.sender.send({}, {rig.host.at(0, 102)});
  rig.settle();
  ASSERT_EQ(rig.wire->outbox.size(), 2u);
  EXPECT_EQ(rig.wire->outbox[1].size(), 102u);
  EXPECT_EQ(rig.sender.completions.poll()->wqe_counter.get(), 0u);
}

TEST(SimTx, WorkRequestsWrapTheRingInlineDataIncluded) {
  SendRig rig;
  for (uint32_t i = 0; i < 100; ++i) {  // 3 blocks each in a ring of 16
    rig.sender.send(part(rig.frame, i, 140), {rig.host.at(i + 140, 60)});
    rig.settle();
    ASSERT_EQ(rig.wire->outbox.size(), i + 1);
    ASSERT_EQ(rig.wire->outbox.back(), part(rig.frame, i, 200)) << i;
    ASSERT_TRUE(rig.sender.completions.poll().has_value());
  }
}

TEST(SimTx, InlineDataSegmentsArePaddedTo16Bytes) {
  SendRig rig;
  for (const uint32_t size : {11u, 12u, 13u, 28u, 29u}) {
    const uint32_t segments = 2 + (4 + size + 15) / 16 + 1;
    Bytes wqe(size_t{segments} * 16);
    rig.sender.control(wqe, hw::SendOpcode::kSend, segments, 2);
    const be32 count(size | hw::DataSegment::kInline);
    std::memcpy(wqe.data() + 32, &count, 4);
    std::memcpy(wqe.data() + 36, rig.frame.data(), size);
    const hw::DataSegment rest = rig.host.at(size, 50);
    std::memcpy(wqe.data() + wqe.size() - 16, &rest, 16);
    rig.sender.put(wqe);
    rig.sender.ring();
    rig.settle();
    EXPECT_EQ(rig.wire->outbox.back(), part(rig.frame, 0, size + 50)) << size;
  }
}

TEST(SimTx, ANopSendsNothingAndCompletes) {
  SendRig rig;
  rig.sender.put(rig.sender.nop());
  rig.sender.ring();
  rig.settle();
  EXPECT_TRUE(rig.wire->outbox.empty());
  EXPECT_FALSE(hw::is_error(rig.sender.completions.poll()->op_own));
}

/// Posts `bad`, two good ones; wants one error, two flushes, nothing sent; then resets and sends.
void expect_error(SendRig& rig, const Bytes& bad, Syndrome syndrome) {
  rig.sender.put(bad);
  rig.sender.put(rig.sender.build({}, {rig.host.at(0, 100)}));
  rig.sender.put(rig.sender.build({}, {rig.host.at(0, 100)}, 0));
  rig.sender.ring();
  rig.settle();
  const auto entry = rig.sender.completions.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(hw::Cqe::Opcode::get(entry->op_own), uint8_t(hw::CqeOpcode::kRequesterError));
  EXPECT_EQ(syndrome_of(*entry), syndrome);
  EXPECT_EQ(entry->wqe_counter.get(), 0u);
  EXPECT_EQ(as_error(*entry).opcode_qpn.get() & 0xffffff, rig.sender.sq->number);
  for (int i = 0; i < 2; ++i) {
    const auto flushed = rig.sender.completions.poll();
    ASSERT_TRUE(flushed.has_value());
    EXPECT_EQ(syndrome_of(*flushed), Syndrome::kFlushed);
  }
  EXPECT_FALSE(rig.sender.completions.poll().has_value());
  EXPECT_TRUE(rig.wire->outbox.empty());
  EXPECT_EQ(rig.port->counters().tx_error, 3u);

  rig.sender.reset();
  rig.settle();  // the old doorbell value is not news
  rig.sender.send({}, {rig.card.at(0, 777)});
  rig.settle();
  ASSERT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.wire->outbox[0], part(rig.frame, 0, 777));
  EXPECT_FALSE(hw::is_error(rig.sender.completions.poll()->op_own));
}

TEST(SimTx, ABadKeyIsAnErrorAndWhatFollowsIsFlushed) {
  SendRig rig;
  expect_error(rig, rig.sender.build({}, {segment(0x123456, 0, 100)}), Syndrome::kLocalProtection);
}

TEST(SimTx, AKeyOfAnotherDomainIsRefused) {
  SendRig rig;
  const hca::Domain other = ok(rig.nic->create_domain());
  Buffer foreign = Buffer::on_card(*rig.nic, other, 4096);
  expect_error(rig, rig.sender.build({}, {foreign.at(0, 100)}), Syndrome::kLocalProtection);
  Sender theirs(*rig.port, other, 16);
  theirs.send({}, {foreign.at(0, 100)});
  rig.settle();
  EXPECT_FALSE(hw::is_error(theirs.completions.poll()->op_own));
}

TEST(SimTx, ChecksTheEndOfARegion) {
  for (const uint32_t size : {99u, 100u, 101u}) {
    for (const bool on_card : {false, true}) {
      SendRig rig;
      Buffer& buffer = on_card ? rig.card : rig.host;
      rig.sender.send({}, {buffer.at(4096 - 100, size)});
      rig.settle();
      EXPECT_EQ(hw::is_error(rig.sender.completions.poll()->op_own), size > 100) << size;
    }
  }
}

TEST(SimTx, MayReadWhatItMayNotWrite) {
  SendRig rig;
  Buffer constant = Buffer::in_host(*rig.nic, rig.domain, 4096, hca::Access::kRead);
  rig.sender.send({}, {constant.at(0, 100)});
  rig.settle();
  EXPECT_FALSE(hw::is_error(rig.sender.completions.poll()->op_own));
}

struct BadField {
  const char* name;
  size_t at;
  uint8_t value;
};
class SimTxMalformed : public testing::TestWithParam<BadField> {};

TEST_P(SimTxMalformed, IsAnErrorOfTheWorkRequest) {
  SendRig rig;
  Bytes wqe = rig.sender.build(part(rig.frame, 0, 18), {rig.host.at(0, 100)});
  wqe[GetParam().at] = static_cast<std::byte>(GetParam().value);
  expect_error(rig, wqe, Syndrome::kLocalQpOperation);
}
INSTANTIATE_TEST_SUITE_P(
    Field, SimTxMalformed,
    testing::Values(BadField{"opcode", 3, 0x0b}, BadField{"enhanced_multi_packet", 3, 0x29},
                    BadField{"segmentation_without_size", 3, 0x0e}, BadField{"index_high", 1, 1},
                    BadField{"index_low", 2, 1}, BadField{"queue", 6, 0xff},
                    BadField{"too_few_segments", 7, 1}, BadField{"segment_size", 22, 1},
                    BadField{"inner_l3_checksum", 20, 0x10},
                    BadField{"inner_l4_checksum", 20, 0x20}, BadField{"inline_past_end", 29, 100},
                    BadField{"vlan_insert", 28, 0x80}),
    [](const auto& field) { return field.param.name; });

TEST(SimTx, FrameLengthsAreChecked) {
  for (const uint32_t size : {13u, 14u, 1500u, 1501u}) {
    SendRig rig;
    ok(rig.port->set_max_frame(1500));
    rig.sender.send({}, {rig.host.at(0, size)});
    rig.settle();
    const auto entry = rig.sender.completions.poll();
    const bool bad = size < 14 || size > 1500;
    EXPECT_EQ(hw::is_error(entry->op_own), bad) << size;
    if (bad) {
      EXPECT_EQ(syndrome_of(*entry), Syndrome::kLocalLength);
    }
  }
}

TEST(SimTx, ALengthOfZeroWouldMean2GiB) {
  SendRig rig;
  expect_error(rig, rig.sender.build(part(rig.frame, 0, 60), {rig.host.at(0, 0)}),
               Syndrome::kLocalLength);
}

TEST(SimTx, AWorkRequestLongerThanWhatIsPostedIsMalformed) {
  SendRig rig;
  Bytes wqe = rig.sender.build(part(rig.frame, 0, 18), {rig.host.at(0, 100)});
  wqe[7] = std::byte{5};  // 2 blocks, 1 posted
  rig.sender.put(wqe);
  rig.sender.ring();
  rig.settle();
  EXPECT_EQ(syndrome_of(*rig.sender.completions.poll()), Syndrome::kLocalQpOperation);
}

TEST(SimTx, ARecordThatClaimsMoreThanTheRingHasStopsTheQueue) {
  SendRig rig;
  rig.sender.put(rig.sender.build({}, {rig.host.at(0, 100)}));
  rig.sender.posted = 17;
  rig.sender.ring();
  rig.settle();
  EXPECT_EQ(syndrome_of(*rig.sender.completions.poll()), Syndrome::kLocalQpOperation);
  EXPECT_TRUE(rig.wire->outbox.empty());
}

TEST(SimTx, WaitsForRoomOnTheWire) {
  SendRig rig;
  rig.wire->room_frames = 0;
  rig.sender.send({}, {rig.host.at(0, 100)});
  rig.settle();
  EXPECT_FALSE(rig.sender.completions.poll().has_value());
  rig.wire->room_frames = 1;
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimTx, CountsWhatTheWireDoesNotTake) {
  SendRig rig;
  rig.wire->takes = 2;
  for (int i = 0; i < 5; ++i) rig.sender.put(rig.sender.build({}, {rig.host.at(0, 100)}, 0));
  rig.sender.ring();
  rig.settle();
  EXPECT_EQ(rig.port->counters().tx_frames, 2u);
  EXPECT_EQ(rig.port->counters().tx_bytes, 200u);
  EXPECT_EQ(rig.port->counters().tx_wire_drops, 3u);
}

TEST(SimTx, StandsStillWhileTheCompletionRingIsFull) {
  SendRig rig;
  Sender small(*rig.port, rig.domain, 16, 2);
  for (uint32_t i = 0; i < 5; ++i) small.send({}, {rig.host.at(0, 100 + i)});
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 2u);
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(small.completions.poll()->wqe_counter.get(), i);
    rig.settle();
  }
  EXPECT_EQ(rig.wire->outbox.size(), 5u);
}

TEST(SimTx, TheConsumerRecordMayBe16BitsWide) {
  SendRig rig;
  for (uint32_t i = 0; i < 66000; ++i) {
    rig.sender.send({}, {rig.host.at(0, 60)});
    rig.settle();
    ASSERT_TRUE(rig.sender.completions.poll(true).has_value()) << i;
    rig.sender.completions.cq->consumer->publish<NM_CQ_CONSUMER_RELEASE>((i + 1) & 0xffff);
    rig.wire->outbox.clear();
  }
}

TEST(SimTx, TheSameWorkRequestAfterAResetRingsAgain) {
  SendRig rig;
  for (size_t i = 1; i <= 3; ++i) {
    rig.sender.send({}, {rig.host.at(0, 100)});
    rig.settle();
    EXPECT_EQ(rig.wire->outbox.size(), i);
    rig.sender.reset();
    rig.settle();
  }
}

TEST(SimTx, StopSendsWhatWasPosted) {
  SendRig rig;
  rig.sender.send({}, {rig.host.at(0, 100)});
  rig.port->stop();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  rig.port->stop();
  rig.sender.send({}, {rig.host.at(0, 100)});
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  ok(rig.port->start());
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 2u);
}

}  // namespace
}  // namespace nicmem::test
