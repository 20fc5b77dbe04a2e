// SPDX-License-Identifier: BSD-3-Clause
// The receive engine on a link that fails: each kind of access is made and heeded once.
#include <gtest/gtest.h>

#include "support/failing_bus.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::PcieClass;
using hw::Syndrome;
using Nic = sim::BasicNic<FailingBus>;

struct FailingRig : Rig<Nic> {
  FailingRig() {
    FailingBus::forget_plans();
    receive_on({receiver.rq.get()});
  }
  ~FailingRig() { FailingBus::forget_plans(); }

  void post(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) receiver.post({buffer.at(0, 128), buffer.at(128, 2048)});
  }
  void arrive(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) wire->inbox.push_back(pattern(200, i));
    settle();
  }
  std::vector<Syndrome> outcomes() { return test::outcomes(receiver.completions); }
  /// After a reset all is well.
  void expect_recovery() {
    receiver.reset();
    post(1);
    arrive(1);
    EXPECT_EQ(outcomes(), std::vector{Syndrome::kNone});
  }

  Buffer buffer = Buffer::in_host(*nic, domain, 4096);
  Receiver receiver{*port, domain, 8};
};

TEST(SimRxFailure, OfADescriptorReadStopsTheQueue) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kRxDescriptor, 1, 1);
  rig.post(3);
  rig.arrive(3);
  EXPECT_EQ(rig.outcomes(), (std::vector{Syndrome::kNone, Syndrome::kLocalQpOperation}));
  EXPECT_EQ(rig.port->counters().rx_frames, 1u);
  EXPECT_EQ(rig.port->counters().rx_error, 1u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 1u);
  EXPECT_EQ(rig.port->pcie()[PcieClass::kRxDescriptor], hw::dma_read(32));
  rig.expect_recovery();
}

TEST(SimRxFailure, OfADataWriteStopsTheQueueAndMovesNoByteOfThatPiece) {
  for (const PcieClass c : {PcieClass::kHeader, PcieClass::kPayload}) {
    FailingRig rig;
    FailingBus::plan(c, 1, 1);
    rig.post(3);
    rig.arrive(3);
    EXPECT_EQ(rig.outcomes(), (std::vector{Syndrome::kNone, Syndrome::kLocalProtection}));
    EXPECT_EQ(rig.port->counters().rx_frames, 1u);
    EXPECT_EQ(rig.port->counters().rx_error, 1u);
    EXPECT_EQ(rig.port->counters().rx_no_buffer, 1u);
    const Bytes first = pattern(200, 0), second = pattern(200, 1);
    EXPECT_EQ(rig.buffer.bytes[0], c == PcieClass::kHeader ? first[0] : second[0]);
    EXPECT_EQ(rig.buffer.bytes[199], first[199]);
    rig.expect_recovery();
  }
}

TEST(SimRxFailure, OfACompletionWriteLosesThatEntryOnly) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kRxCompletion, 1, 1);
  rig.post(3);
  rig.arrive(3);
  const auto& ring = rig.receiver.completions.cq->ring;
  EXPECT_EQ(ring[0].wqe_counter.get(), 0u);
  EXPECT_EQ(hw::load_op_own(ring[1]), hw::kOpOwnInitial);
  EXPECT_EQ(ring[2].wqe_counter.get(), 2u);
  EXPECT_EQ(hw::Cqe::Opcode::get(hw::load_op_own(ring[2])), uint8_t(hw::CqeOpcode::kResponderSend));
  EXPECT_EQ(rig.port->pcie()[PcieClass::kRxCompletion], hw::times(2, hw::dma_write(64)));
  EXPECT_EQ(rig.port->counters().rx_frames, 3u);
  EXPECT_EQ(rig.port->counters().rx_error, 0u);
  rig.expect_recovery();
}

TEST(SimRxFailure, OfARecordReadShowsThePostedRequestsLater) {
  FailingRig rig;
  FailingBus::plan(PcieClass::kDoorbellRecord, 0, 2);
  rig.post(2);
  rig.wire->inbox.push_back(pattern(200));
  for (const uint64_t frames : {0u, 0u, 1u}) {
    rig.nic->step(++rig.now, 64);
    EXPECT_EQ(rig.port->counters().rx_frames, frames);
  }
  EXPECT_EQ(rig.port->pcie()[PcieClass::kDoorbellRecord], hw::dma_read(4));
  EXPECT_EQ(rig.port->counters().rx_error + rig.port->counters().rx_no_buffer, 0u);
  rig.expect_recovery();
}

TEST(SimRxFailure, OfARecordReadOnALossyWireDropsTheFrame) {
  FailingRig rig;
  rig.wire->waits = false;
  FailingBus::plan(PcieClass::kDoorbellRecord, 0, 1);
  rig.post(2);
  rig.arrive(2);
  EXPECT_EQ(rig.port->counters().rx_frames, 1u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 1u);
}

TEST(SimRxFailure, OfAConsumerRecordReadLeavesTheCompletionRingFullForNow) {
  FailingRig rig;
  Receiver small(*rig.port, rig.domain, 8, 2, 2);
  rig.receive_on({small.rq.get()});
  for (int i = 0; i < 4; ++i) small.post({rig.buffer.at(0, 2048)});
  rig.arrive(3);
  EXPECT_EQ(rig.port->counters().rx_frames, 2u);
  FailingBus::plan(PcieClass::kDoorbellRecord, 0, 1);
  ASSERT_TRUE(small.completions.poll().has_value());
  rig.nic->step(++rig.now, 64);
  EXPECT_EQ(rig.port->counters().rx_frames, 2u);
  rig.nic->step(++rig.now, 64);
  EXPECT_EQ(rig.port->counters().rx_frames, 3u);
}

}  // namespace
}  // namespace nicmem::test
