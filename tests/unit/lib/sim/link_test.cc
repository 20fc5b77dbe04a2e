// SPDX-License-Identifier: BSD-3-Clause
// A link that goes down and comes up, and a queue that is stopped.
#include "sim/link.h"

#include <gtest/gtest.h>

#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

struct LinkRig : Rig<> {
  LinkRig() : Rig({}, {.on_event = [this](hca::PortEvent event) { events.push_back(event); }}) {
    receive_on({receiver.rq.get()});
    for (size_t i = 0; i < 8; ++i) receiver.post({host.at(0, 2048)});
  }

  std::vector<hca::PortEvent> events;
  Buffer host = Buffer::in_host(*nic, domain, 2048);
  Receiver receiver{*port, domain, 8};
  Sender sender{*port, domain, 8};
};

TEST(SimLink, IsUpWhenBothEndsAreAndThePortIsStarted) {
  LinkRig rig;
  EXPECT_TRUE(rig.port->link().up);
  EXPECT_EQ(rig.port->link().speed_mbps, 100'000u);
  rig.wire->other_end_up = false;
  EXPECT_FALSE(rig.port->link().up);
  rig.wire->other_end_up = true;
  ok(rig.port->set_link(false));
  EXPECT_FALSE(rig.port->link().up);
  ok(rig.port->set_link(true));
  EXPECT_TRUE(rig.port->link().up);
  rig.port->stop();
  EXPECT_FALSE(rig.port->link().up);
}

TEST(SimLink, TellsOnceOfEachChange) {
  LinkRig rig;
  rig.settle();
  EXPECT_TRUE(rig.events.empty());
  for (size_t changes = 1; changes <= 4; ++changes) {
    ok(rig.port->set_link(changes % 2 == 0));
    for (int i = 0; i < 3; ++i) rig.settle();
    EXPECT_EQ(rig.events.size(), changes);
  }
  rig.wire->other_end_up = false;
  rig.settle();
  rig.settle();
  EXPECT_EQ(rig.events.size(), 5u);
  ok(rig.port->set_link(false));  // down already
  rig.settle();
  EXPECT_EQ(rig.events.size(), 5u);
  rig.wire->other_end_up = true;
  ok(rig.port->set_link(true));
  rig.settle();
  EXPECT_EQ(rig.events, std::vector(6, hca::PortEvent::kLinkChanged));
}

TEST(SimLink, FramesFromTheWireWaitWhileItIsDown) {
  LinkRig rig;
  ok(rig.port->set_link(false));
  for (uint32_t i = 0; i < 3; ++i) rig.wire->inbox.push_back(pattern(60, i));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 0u);
  EXPECT_EQ(rig.port->counters().wire_held, 3u);
  ok(rig.port->set_link(true));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 3u);
  EXPECT_EQ(rig.port->counters().wire_held, 0u);
}

// Frames that have left the wire and wait for a work request are still good when the link is back.
TEST(SimLink, AFrameThatWaitsForAWorkRequestOutlivesTheLink) {
  LinkRig rig;
  for (uint32_t i = 0; i < 10; ++i) rig.wire->inbox.push_back(pattern(60, i));
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 8u);
  rig.wire->other_end_up = false;
  rig.settle();
  while (rig.receiver.completions.poll()) rig.receiver.post({rig.host.at(0, 2048)});
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 8u);
  rig.wire->other_end_up = true;
  rig.settle();
  EXPECT_EQ(rig.port->counters().rx_frames, 10u);
  EXPECT_EQ(rig.host.copy(0, 60), pattern(60, 9));
}

TEST(SimLink, WhatIsSentWhileItIsDownIsExecutedLostAndCounted) {
  LinkRig rig;
  rig.wire->other_end_up = false;
  rig.settle();
  rig.sender.send(pattern(60), {});
  rig.settle();
  const auto entry = rig.sender.completions.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(hw::is_error(entry->op_own));
  EXPECT_EQ(rig.port->counters().tx_frames, 0u);
  EXPECT_EQ(rig.port->counters().tx_wire_drops, 1u);
  EXPECT_TRUE(rig.wire->outbox.empty());
  rig.wire->other_end_up = true;
  rig.sender.send(pattern(60), {});
  rig.settle();
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimLink, AFullWireDoesNotHoldUpWorkRequestsWhileItIsDown) {
  LinkRig rig;
  rig.wire->room_frames = 0;
  ok(rig.port->set_link(false));
  rig.settle();
  rig.sender.send(pattern(60), {});
  rig.settle();
  EXPECT_TRUE(rig.sender.completions.poll().has_value());
}

/// Two queues, told apart by rules on the destination address.
struct StopRig : Rig<> {
  StopRig() {
    for (uint8_t i = 0; i < 2; ++i) {
      hca::Match match;
      match.ether.emplace();
      match.ether->value.destination.bytes[5] = i;
      match.ether->mask.destination.bytes[5] = 0xff;
      hca::ReceiveQueue* const queue = receivers[i].rq.get();
      rules.push_back(ok(port->create_rule({.match = match, .rss = {.table = {&queue, 1}}})));
      for (size_t n = 0; n < 8; ++n) receivers[i].post({host.at(0, 2048)});
    }
  }
  void arrive(uint8_t queue) {
    Bytes frame = pattern(60);
    frame[5] = std::byte{queue};
    wire->inbox.push_back(frame);
  }

  Buffer host = Buffer::in_host(*nic, domain, 2048);
  std::array<Receiver, 2> receivers{Receiver(*port, domain, 8), Receiver(*port, domain, 8)};
  std::vector<std::unique_ptr<hca::Rule>> rules;
};

TEST(SimQueueStop, ItsFramesAreDroppedAndOtherQueuesGoOn) {
  for (const bool lossless : {true, false}) {
    StopRig rig;
    rig.wire->waits = lossless;
    ok(rig.receivers[0].rq->stop());
    for (int i = 0; i < 3; ++i) {
      rig.arrive(0);
      rig.arrive(1);
    }
    rig.settle();
    EXPECT_FALSE(rig.receivers[0].completions.poll().has_value());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(rig.receivers[1].completions.poll().has_value());
    EXPECT_EQ(rig.port->counters().rx_no_buffer, 3u) << lossless;
    EXPECT_EQ(rig.port->counters().rx_frames, 3u);
    EXPECT_EQ(rig.port->counters().wire_held, 0u);

    rig.receivers[0].reset();
    rig.receivers[0].post({rig.host.at(0, 2048)});
    rig.arrive(0);
    rig.settle();
    const auto entry = rig.receivers[0].completions.poll();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->wqe_counter.get(), 0u);
  }
}

// The queue at which a frame waits is stopped: the frame goes, and those behind it come through.
TEST(SimQueueStop, LetsGoOfAFrameThatWaits) {
  StopRig rig;
  for (int i = 0; i < 9; ++i) rig.arrive(0);
  rig.arrive(1);
  rig.settle();
  EXPECT_EQ(rig.port->counters().wire_held, 2u);
  ok(rig.receivers[0].rq->stop());
  rig.settle();
  EXPECT_EQ(rig.port->counters().wire_held, 0u);
  EXPECT_EQ(rig.port->counters().rx_no_buffer, 1u);
  EXPECT_TRUE(rig.receivers[1].completions.poll().has_value());
}

}  // namespace
}  // namespace nicmem::test
