// SPDX-License-Identifier: BSD-3-Clause
// The transmit engine on a link that fails: each kind of access, and how the queue comes back.
#include <gtest/gtest.h>

#include "support/failing_bus.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::PcieClass;
using hw::Syndrome;
using Nic = sim::BasicNic<FailingBus>;

struct FailingRig : Rig<Nic> {
  FailingRig() { FailingBus::forget_plans(); }
  ~FailingRig() { FailingBus::forget_plans(); }

  /// Posts `count` frames, each of 100 bytes more than the one before.
  void send(uint32_t count) {
    for (uint32_t i = 1; i <= count; ++i) {
      sender.put(sender.build({}, {buffer.at(0, 100 * i), buffer.at(1000, 50)}));
    }
    sender.ring();
  }
  std::vector<Syndrome> outcomes() { return test::outcomes(sender.completions); }
  /// After a reset all is well.
  void expect_recovery() {
    wire->outbox.clear();
    sender.reset();
    send(1);
    settle();
    EXPECT_EQ(outcomes(), std::vector{Syndrome::kNone});
    EXPECT_EQ(wire->outbox.size(), 1u);
  }

  Buffer buffer = Buffer::in_host(*nic, domain, 4096);
  Sender sender{*port, domain, 16};
};

TEST(SimTxFailure, OfADescriptorReadEndsTheRequest) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kTxDescriptor, 1, 1);
  rig.send(3);
  rig.settle();
  EXPECT_EQ(rig.outcomes(),
            (std::vector{Syndrome::kNone, Syndrome::kLocalQpOperation, Syndrome::kFlushed}));
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.port->counters().tx_error, 2u);
  EXPECT_EQ(rig.port->counters().tx_frames, 1u);
  rig.expect_recovery();
}

// The second piece of the second frame: nothing of that frame may leave.
TEST(SimTxFailure, OfADataReadEndsTheRequest) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kPayload, 2, 1);  // pieces that do not start a short frame
  rig.send(3);
  rig.settle();
  EXPECT_EQ(rig.outcomes(),
            (std::vector{Syndrome::kNone, Syndrome::kLocalProtection, Syndrome::kFlushed}));
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.port->counters().tx_error, 2u);
  rig.expect_recovery();
}

TEST(SimTxFailure, OfACompletionWriteLosesThatEntryOnly) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kTxCompletion, 1, 1);
  rig.send(3);
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 3u);
  const auto& ring = rig.sender.completions.cq->ring;
  EXPECT_EQ(ring[0].wqe_counter.get(), 0u);
  EXPECT_EQ(hw::load_op_own(ring[1]), hw::kOpOwnInitial);
  EXPECT_EQ(ring[2].wqe_counter.get(), 2u);
  EXPECT_EQ(hw::Cqe::Opcode::get(hw::load_op_own(ring[2])), uint8_t(hw::CqeOpcode::kRequester));
  EXPECT_EQ(rig.port->pcie()[PcieClass::kTxCompletion], hw::times(2, hw::dma_write(64)));
  EXPECT_EQ(rig.port->counters().tx_frames, 3u);
  EXPECT_EQ(rig.port->counters().tx_error, 0u);
  rig.expect_recovery();
}

TEST(SimTxFailure, OfARecordReadShowsThePostedRequestsLater) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kDoorbellRecord, 0, 2);
  rig.send(2);
  for (const size_t sent : {0u, 0u, 2u}) {
    rig.nic->step(++rig.now, 64);
    EXPECT_EQ(rig.wire->outbox.size(), sent);
  }
  EXPECT_EQ(rig.port->pcie()[PcieClass::kDoorbellRecord], hw::dma_read(4));
  rig.expect_recovery();
}

TEST(SimTxFailure, OfAConsumerRecordReadLeavesTheCompletionRingFullForNow) {
  FailingRig rig;
  Sender small(*rig.port, rig.domain, 16, 2);
  for (int i = 0; i < 3; ++i) small.send({}, {rig.buffer.at(0, 100)});
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 2u);
  FailingBus::plan(PcieClass::kDoorbellRecord, 0, 1);
  ASSERT_TRUE(small.completions.poll().has_value());
  rig.nic->step(++rig.now, 64);
  EXPECT_EQ(rig.wire->outbox.size(), 2u);
  rig.nic->step(++rig.now, 64);
  EXPECT_EQ(rig.wire->outbox.size(), 3u);
}

}  // namespace
}  // namespace nicmem::test
