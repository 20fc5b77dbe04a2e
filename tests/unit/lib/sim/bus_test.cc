// SPDX-License-Identifier: BSD-3-Clause
// PCIe accounting: a second counter, with arithmetic of its own, watches every access of the model
// and must agree with the tally to the byte.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/recording_bus.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using RecordingNic = sim::BasicNic<RecordingBus>;

TEST(SimBus, ASecondCounterAgreesToTheByte) {
  Rng rng(test_seed());
  Rig<RecordingNic> rig({}, {.name = "p0", .header_bytes = 64});
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 64_KiB);
  Buffer card = Buffer::on_card(*rig.nic, rig.domain, 64_KiB);
  Receiver receiver(*rig.port, rig.domain, 64);
  Sender sender(*rig.port, rig.domain, 64);
  rig.receive_on({receiver.rq.get()});
  ok(rig.port->set_max_frame(4096));
  for (int round = 0; round < 2000; ++round) {
    const auto bytes = static_cast<uint32_t>(60 + rng.below(4000));
    const auto header = static_cast<uint32_t>(18 + rng.below(200));
    Buffer& payload = rng.below(2) == 0 ? host : card;
    receiver.post({host.at(0, header), payload.at(1024, 8192)});
    rig.wire->inbox.push_back(pattern(bytes));
    sender.send(pattern(rng.below(2) * rng.below(130)), {payload.at(1024, bytes)});
    rig.settle();
    while (receiver.completions.poll()) {
    }
    while (sender.completions.poll()) {
    }
    rig.wire->outbox.clear();
  }
  EXPECT_GT(rig.port->counters().rx_frames, 1900u);
  EXPECT_TRUE(rig.port->bus().count_again() == rig.port->pcie());
}

/// One frame each way; what the model touched, in order.
TEST(SimBus, EveryAccessIsAnnounced) {
  Rig<RecordingNic> rig({}, {.name = "p0", .header_bytes = 64});
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
  Buffer card = Buffer::on_card(*rig.nic, rig.domain, 4096);
  Receiver receiver(*rig.port, rig.domain, 8);
  Sender sender(*rig.port, rig.domain, 8);
  rig.receive_on({receiver.rq.get()});
  receiver.post({host.at(0, 64), card.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(500));
  rig.settle();
  sender.send(pattern(64), {card.at(0, 436)});
  rig.settle();
  using hw::PcieClass;
  struct Expected {
    bool write;
    PcieClass c;
    sim::Location at;
    uint32_t bytes;
  };
  const auto at = [](const void* p) { return sim::Location::host(p); };
  const Expected expected[] = {
      {false, PcieClass::kDoorbellRecord, at(receiver.rq->producer), 4},
      {false, PcieClass::kRxDescriptor, at(receiver.rq->ring.data()), 32},
      {true, PcieClass::kHeader, at(host.bytes.data()), 64},
      {true, PcieClass::kPayload, sim::Location::sram(0), 436},
      {true, PcieClass::kRxCompletion, at(receiver.completions.cq->ring.data()), 64},
      {false, PcieClass::kDoorbellRecord, at(sender.sq->producer), 4},
      {false, PcieClass::kTxDescriptor, at(sender.sq->ring.data()), 128},
      {false, PcieClass::kPayload, sim::Location::sram(0), 436},
      {true, PcieClass::kTxCompletion, at(sender.completions.cq->ring.data()), 64},
  };
  const auto& log = rig.port->bus().log;
  ASSERT_EQ(log.size(), std::size(expected));
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].write, expected[i].write) << i;
    EXPECT_EQ(log[i].c, expected[i].c) << i;
    EXPECT_EQ(log[i].at.kind, expected[i].at.kind) << i;
    EXPECT_EQ(log[i].at.address, expected[i].at.address) << i;
    EXPECT_EQ(log[i].bytes, expected[i].bytes) << i;
  }
}

TEST(SimBus, HeaderIsWhatStartsAFrameAndIsNoLongerThanTheHeaderLength) {
  for (const uint32_t size : {63u, 64u, 65u}) {
    Rig<RecordingNic> rig({}, {.name = "p0", .header_bytes = 64});
    Buffer host = Buffer::in_host(*rig.nic, rig.domain, 4096);
    Receiver receiver(*rig.port, rig.domain, 8);
    rig.receive_on({receiver.rq.get()});
    receiver.post({host.at(0, 2048)});
    rig.wire->inbox.push_back(pattern(size));
    rig.settle();
    EXPECT_EQ(rig.port->pcie()[hw::PcieClass::kHeader].out.tlps, size <= 64 ? 1u : 0u) << size;
  }
}

}  // namespace
}  // namespace nicmem::test
