// SPDX-License-Identifier: BSD-3-Clause
// What a driver that is not ours asks of the model: many frames in a work request, rings in memory
// of its own, queues that start anew beside completions that stay, frames that wait for rules.
#include <gtest/gtest.h>

#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

struct ManyRig : Rig<> {
  explicit ManyRig(sim::NicOptions options = {}) : Rig(std::move(options)) {
    const Bytes source = pattern(host.bytes.size(), 3);
    host.bytes = source;
    host.region = ok(nic->register_host_memory(domain, host.bytes.data(), host.bytes.size(),
                                               hca::Access::kReadWrite));
  }

  /// A multi-packet request of what `body` holds behind the eth segment.
  Bytes build(const Bytes& body) const {
    Bytes wqe(32);
    wqe.insert(wqe.end(), body.begin(), body.end());
    sender.control(wqe, hw::SendOpcode::kEnhancedMultiPacket,
                   static_cast<uint32_t>(wqe.size() / hw::kWqeSegmentBytes),
                   hw::ControlSegment::kCompleteAlways);
    return wqe;
  }
  static void add(Bytes& body, const hw::DataSegment& pointer) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&pointer);
    body.insert(body.end(), bytes, bytes + sizeof pointer);
  }
  /// Bytes of the request itself, padded to its unit.
  static void add(Bytes& body, const Bytes& frame) {
    const be32 count(hw::DataSegment::kInline | static_cast<uint32_t>(frame.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(&count);
    body.insert(body.end(), bytes, bytes + sizeof count);
    body.insert(body.end(), frame.begin(), frame.end());
    body.resize(round_up<size_t>(body.size(), hw::kWqeSegmentBytes));
  }
  void send(const Bytes& body) {
    sender.put(build(body));
    sender.ring();
    settle();
  }

  Buffer host = Buffer::in_host(*nic, domain, 4096);
  Sender sender{*port, domain, 16};
};

TEST(SimManyFrames, PointedToAndInlinedOnesLeaveInOrder) {
  ManyRig rig;
  Bytes body;
  ManyRig::add(body, rig.host.at(0, 60));
  ManyRig::add(body, pattern(61, 9));
  ManyRig::add(body, rig.host.at(100, 1500));
  ManyRig::add(body, pattern(14, 8));
  rig.send(body);
  EXPECT_EQ(rig.wire->outbox, (std::vector<Bytes>{rig.host.copy(0, 60), pattern(61, 9),
                                                  rig.host.copy(100, 1500), pattern(14, 8)}));
  EXPECT_EQ(outcomes(rig.sender.completions), std::vector{hw::Syndrome::kNone});
}

TEST(SimManyFrames, OneRequestMayWrapTheRing) {
  ManyRig rig;
  for (uint32_t lap = 0; lap < 20; ++lap) {
    Bytes body;
    for (uint32_t i = 0; i < 8; ++i) ManyRig::add(body, pattern(60 + i, lap));
    rig.send(body);
    ASSERT_EQ(rig.wire->outbox.size(), 8u);
    for (uint32_t i = 0; i < 8; ++i) ASSERT_EQ(rig.wire->outbox[i], pattern(60 + i, lap));
    rig.wire->outbox.clear();
    ASSERT_EQ(outcomes(rig.sender.completions), std::vector{hw::Syndrome::kNone});
  }
}

TEST(SimManyFrames, RoomForSomeIsUsedAndTheRestFollows) {
  ManyRig rig;
  rig.wire->room_frames = 3;
  Bytes body;
  for (uint32_t i = 0; i < 20; ++i) ManyRig::add(body, rig.host.at(i, 60 + i));
  rig.send(body);
  ASSERT_EQ(rig.wire->outbox.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(rig.wire->outbox[i], rig.host.copy(i, 60 + i));
  EXPECT_EQ(outcomes(rig.sender.completions), std::vector{hw::Syndrome::kNone});
}

TEST(SimManyFrames, WhatIsWrongEndsTheRequestBeforeAnyLeaves) {
  const auto outcome = [](const hw::DataSegment& last, uint16_t inline_bytes = 0) {
    ManyRig rig;
    Bytes body;
    ManyRig::add(body, rig.host.at(0, 60));
    hw::DataSegment own = last;
    if (own.key.get() == 1) own.key = rig.host.at(0, 1).key;
    if (own.key.get() != 2) ManyRig::add(body, own);
    Bytes wqe = rig.build(body);
    Sender::eth_of(wqe).inline_bytes.set(inline_bytes);
    rig.sender.put(wqe);
    rig.sender.ring();
    rig.settle();
    EXPECT_TRUE(rig.wire->outbox.empty());
    return outcomes(rig.sender.completions);
  };
  using S = hw::Syndrome;
  EXPECT_EQ(outcome(segment(77, 0, 60)), std::vector{S::kLocalProtection});
  EXPECT_EQ(outcome(segment(1, 0, 13)), std::vector{S::kLocalProtection});
  EXPECT_EQ(outcome(segment(1, 0, 0)), std::vector{S::kLocalLength});
  EXPECT_EQ(outcome(segment(1, 0, 1519)), std::vector{S::kLocalLength});
  EXPECT_EQ(outcome(segment(2, 0, 0), 18), std::vector{S::kLocalQpOperation});
}

TEST(SimForeign, RingsLieWhereTheCallerWantsThem) {
  std::vector<sim::QueueKind> asked;
  std::vector<const std::byte*> rings;
  sim::NicOptions options;
  options.memory = [&](sim::QueueKind kind, size_t bytes) {
    auto memory = sim::make_queue_memory(kind, bytes);
    asked.push_back(kind);
    rings.push_back(memory->ring);
    return memory;
  };
  Rig<> rig(std::move(options));
  const Receiver receiver(*rig.port, rig.domain, 8);
  const Sender sender(*rig.port, rig.domain, 8);
  using K = sim::QueueKind;
  EXPECT_EQ(asked, (std::vector{K::kCompletion, K::kReceive, K::kCompletion, K::kSend}));
  EXPECT_EQ(rings[1], receiver.rq->ring.data());
  EXPECT_EQ(rings[3], sender.sq->ring.data());
}

TEST(SimForeign, ARestartedQueueCompletesBehindWhatItHasCompleted) {
  Rig<> rig;
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
  Receiver receiver(*rig.port, rig.domain, 8);
  rig.receive_on({receiver.rq.get()});
  receiver.post({host.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(60, 1));
  rig.settle();
  ok(static_cast<sim::SimReceiveQueue&>(*receiver.rq).restart());
  EXPECT_EQ(receiver.rq->producer->read(), 0u);
  receiver.posted = 0;
  receiver.post({host.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(61, 2));
  rig.settle();
  EXPECT_EQ(receiver.completions.poll()->byte_count.get(), 60u);
  const auto second = receiver.completions.poll();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->byte_count.get(), 61u);
  EXPECT_EQ(second->wqe_counter.get(), 0u);
}

TEST(SimForeign, AReceiveQueueInErrorFlushesWhatIsPostedIfAskedTo) {
  Rig<> rig({.ports = {.flush_receives = true}});
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
  Receiver receiver(*rig.port, rig.domain, 4, 2, 4);
  rig.receive_on({receiver.rq.get()});
  receiver.post({segment(99, 0, 2048)});
  for (int i = 0; i < 3; ++i) receiver.post({host.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(60, 1));
  rig.settle();
  using S = hw::Syndrome;
  EXPECT_EQ(outcomes(receiver.completions),
            (std::vector{S::kLocalProtection, S::kFlushed, S::kFlushed, S::kFlushed}));
  for (int i = 0; i < 2; ++i) receiver.post({host.at(0, 2048)});  // too late: they are flushed too
  rig.settle();
  EXPECT_EQ(outcomes(receiver.completions), (std::vector{S::kFlushed, S::kFlushed}));
  ok(static_cast<sim::SimReceiveQueue&>(*receiver.rq).restart());
  receiver.posted = 0;
  receiver.post({host.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(61, 2));
  rig.settle();
  EXPECT_EQ(outcomes(receiver.completions), std::vector{S::kNone});
}

TEST(SimForeign, ASendQueueCanBePutIntoErrorAndRestarted) {
  Rig<> rig;
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
  Sender sender(*rig.port, rig.domain, 8);
  auto& queue = static_cast<sim::SimSendQueue&>(*sender.sq);
  queue.set_error();
  EXPECT_TRUE(queue.in_error());
  sender.send({}, {host.at(0, 60)});
  rig.settle();
  ok(queue.restart());
  sender.posted = 0;
  sender.send({}, {host.at(0, 60)});
  rig.settle();
  EXPECT_EQ(outcomes(sender.completions),
            (std::vector{hw::Syndrome::kFlushed, hw::Syndrome::kNone}));
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimForeign, FramesThatNothingTakesWaitForARuleIfAskedTo) {
  Rig<> rig({.ports = {.keep_unmatched = true}});
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
  Receiver receiver(*rig.port, rig.domain, 8);
  receiver.post({host.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(60, 1));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_filtered, 0u);
  EXPECT_EQ(rig.port->counters().wire_held, 1u);
  rig.receive_on({receiver.rq.get()});
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 1u);
}

}  // namespace
}  // namespace nicmem::test
