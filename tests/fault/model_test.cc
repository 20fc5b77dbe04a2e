// SPDX-License-Identifier: BSD-3-Clause
// The model that can fail, at the level of work requests and completions.
#include <array>

#include "support/log_on_failure.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using sim::FaultClass;

/// A receiver, a sender and buffers on a device with a plan.
struct FaultRig {
  explicit FaultRig(std::function<void(hca::PortEvent)> on_event = {})
      : rig({.faults = plan}, {.name = "p0", .header_bytes = 64, .on_event = std::move(on_event)}),
        host(Buffer::in_host(*rig.nic, rig.domain, 64_KiB)),
        receiver(*rig.port, rig.domain, 16),
        sender(*rig.port, rig.domain, 16) {
    rig.receive_on({receiver.rq.get()});
    plan->restart();
  }
  void post() { receiver.post({host.at(0, 64), host.at(64, 2048)}); }
  void send() { sender.send({}, {host.at(4096, 100)}); }
  void step(uint32_t times = 1) {
    for (uint32_t i = 0; i < times; ++i) rig.nic->step(++rig.now, 64);
  }

  std::shared_ptr<sim::FaultPlan> plan = std::make_shared<sim::FaultPlan>();
  LogOnFailure log{plan->log};
  Rig<sim::FaultyNic> rig;
  Buffer host;
  Receiver receiver;
  Sender sender;
};

TEST(FaultModel, EveryClassIsCounted) {
  FaultRig f;
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step(2);
  ASSERT_TRUE(f.receiver.completions.poll());
  EXPECT_EQ(f.plan->seen(FaultClass::kDoorbell), 1u);  // the record
  EXPECT_EQ(f.plan->seen(FaultClass::kDma), 3u);       // descriptor, header, payload
  EXPECT_EQ(f.plan->seen(FaultClass::kCompletion), 1u);
  EXPECT_EQ(f.plan->seen(FaultClass::kAllocation), 0u);
  f.send();
  f.step(2);
  ASSERT_TRUE(f.sender.completions.poll());
  EXPECT_EQ(f.plan->seen(FaultClass::kDoorbell), 2u);
  EXPECT_EQ(f.plan->seen(FaultClass::kDma), 5u);  // descriptor, frame
  EXPECT_EQ(f.plan->seen(FaultClass::kCompletion), 2u);
  const Buffer more = Buffer::in_host(*f.rig.nic, f.rig.domain, 64);
  EXPECT_EQ(f.plan->seen(FaultClass::kAllocation), 1u);
  for (const FaultClass c :
       {FaultClass::kAllocation, FaultClass::kDma, FaultClass::kCompletion, FaultClass::kDoorbell})
    EXPECT_EQ(f.plan->hit(c), 0u);
}

TEST(FaultModel, OnlyTheKthAllocationFails) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kAllocation, .point = 2});
  for (const bool works : {true, false, true}) {
    const auto memory = f.rig.nic->allocate_device_memory(64);
    ASSERT_EQ(memory.has_value(), works);
    if (works) continue;
    EXPECT_EQ(memory.error().code, Code::kExhausted);
    EXPECT_EQ(memory.error().what, "device memory: fails by plan, as allocation 2");
  }
  EXPECT_EQ(f.plan->hit(FaultClass::kAllocation), 1u);
}

TEST(FaultModel, AllFromTheKthAllocationOnFailUntilDisarmed) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kAllocation, .point = 2, .and_later = true});
  for (const bool works : {true, false, false})
    EXPECT_EQ(f.rig.port->create_completion_queue({.depth = 8}).has_value(), works);
  f.plan->disarm();
  EXPECT_TRUE(f.rig.port->create_completion_queue({.depth = 8}));
}

TEST(FaultModel, EachKindOfControlCallIsAPoint) {
  FaultRig f;
  hca::Hca& nic = *f.rig.nic;
  auto cq = ok(f.rig.port->create_completion_queue({.depth = 8}));
  auto memory = ok(nic.allocate_device_memory(64));
  f.plan->arm({.at = FaultClass::kAllocation, .point = 1, .and_later = true});
  std::byte bytes[64];
  EXPECT_FALSE(nic.create_domain());
  EXPECT_FALSE(nic.allocate_device_memory(64));
  EXPECT_FALSE(nic.register_host_memory(f.rig.domain, bytes, 64, hca::Access::kRead));
  EXPECT_FALSE(nic.register_device_memory(f.rig.domain, *memory, 0, 64, hca::Access::kRead));
  EXPECT_FALSE(nic.open_port({}));
  EXPECT_FALSE(f.rig.port->create_completion_queue({.depth = 8}));
  EXPECT_FALSE(f.rig.port->create_receive_queue(f.rig.domain, *cq, {.depth = 8}));
  EXPECT_FALSE(f.rig.port->create_send_queue(f.rig.domain, *cq, 8));
  EXPECT_FALSE(f.receiver.rq->reset());
  EXPECT_FALSE(f.sender.sq->reset());
  EXPECT_EQ(f.plan->hit(FaultClass::kAllocation), 10u);
}

/// Receive descriptor, header, payload; send descriptor, frame.
TEST(FaultModel, AFailedAccessEndsItsWorkRequestWithAnError) {
  const hw::Syndrome syndromes[] = {hw::Syndrome::kLocalQpOperation, hw::Syndrome::kLocalProtection,
                                    hw::Syndrome::kLocalProtection, hw::Syndrome::kLocalQpOperation,
                                    hw::Syndrome::kLocalProtection};
  for (uint64_t k = 1; k <= std::size(syndromes); ++k) {
    SCOPED_TRACE(k);
    FaultRig f;
    f.plan->arm({.at = FaultClass::kDma, .point = k});
    f.post();
    f.rig.wire->inbox.push_back(pattern(100));
    f.step();
    f.send();
    f.step();
    const auto received = f.receiver.completions.poll(), sent = f.sender.completions.poll();
    ASSERT_TRUE(received && sent);
    EXPECT_EQ(hw::is_error(received->op_own), k <= 3);
    EXPECT_EQ(hw::is_error(sent->op_own), k > 3);
    EXPECT_EQ(syndrome_of(k <= 3 ? *received : *sent), syndromes[k - 1]);
    EXPECT_EQ(f.rig.port->counters().rx_error, k <= 3 ? 1u : 0u);
    EXPECT_EQ(f.rig.wire->outbox.size(), k <= 3 ? 1u : 0u);
  }
}

TEST(FaultModel, AFailedCompletionIsLostAndLeavesAHole) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kCompletion, .point = 2});
  for (uint32_t i = 0; i < 3; ++i) {
    f.post();
    f.rig.wire->inbox.push_back(pattern(100, i));
  }
  f.step(3);
  EXPECT_TRUE(f.receiver.completions.poll());
  EXPECT_FALSE(f.receiver.completions.poll());
  const hw::Cqe& third = f.receiver.completions.cq->ring[2];
  EXPECT_TRUE(hw::software_owns(hw::load_op_own(third), 2, 16));
  EXPECT_EQ(third.wqe_counter.get(), 2);
}

TEST(FaultModel, ALateCompletionComesAtItsTimeAndInOrder) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kCompletion, .point = 1, .delay = 5});
  f.post();
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step();  // now = 1: due at 6
  f.rig.wire->inbox.push_back(pattern(100));
  f.send();
  f.step();
  EXPECT_TRUE(f.sender.completions.poll()) << "another queue's completion waited";
  for (; f.rig.now < 5; f.step()) EXPECT_FALSE(f.receiver.completions.poll()) << f.rig.now;
  EXPECT_FALSE(f.receiver.completions.poll());
  f.step();
  for (const uint32_t index : {0u, 1u}) {
    const auto entry = f.receiver.completions.poll();
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->wqe_counter.get(), index);
  }
}

TEST(FaultModel, ALateAccessHoldsItsCompletionBack) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kDma, .point = 3, .delay = 4});  // the payload
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step();
  for (; f.rig.now < 4; f.step()) EXPECT_FALSE(f.receiver.completions.poll());
  f.step();
  EXPECT_TRUE(f.receiver.completions.poll());
  EXPECT_EQ(f.host.copy(0, 100), pattern(100));
}

TEST(FaultModel, StopHandsLateCompletionsOver) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kCompletion, .point = 1, .delay = 1000});
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step();
  EXPECT_FALSE(f.receiver.completions.poll());
  f.rig.port->stop();
  EXPECT_TRUE(f.receiver.completions.poll());
}

/// The doorbell is seen, its record a while later; nothing may be executed twice or not at all.
TEST(FaultModel, ADoorbellMayBeSeenBeforeItsRecord) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kDoorbell, .point = 1});              // fails once
  f.plan->arm({.at = FaultClass::kDoorbell, .point = 2, .delay = 3});  // then is late
  f.send();
  f.step(4);
  EXPECT_TRUE(f.rig.wire->outbox.empty());
  f.step();
  EXPECT_EQ(f.rig.wire->outbox.size(), 1u);
  f.step(5);
  EXPECT_EQ(f.rig.wire->outbox.size(), 1u);
  EXPECT_TRUE(f.sender.completions.poll());
}

TEST(FaultModel, AReceiveRecordThatFailsIsReadAgain) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kDoorbell, .point = 1});
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step();
  EXPECT_FALSE(f.receiver.completions.poll());
  f.step();
  EXPECT_TRUE(f.receiver.completions.poll());
}

/// A full completion ring: the driver has made room, the first look at its record fails.
TEST(FaultModel, AConsumerRecordThatFailsIsReadAgain) {
  FaultRig f;
  for (uint32_t i = 0; i < 17; ++i) f.rig.wire->inbox.push_back(pattern(100));
  for (uint32_t i = 0; i < 16; ++i) f.post();
  f.step();
  ASSERT_TRUE(f.receiver.completions.poll());
  f.post();
  f.plan->restart();
  f.plan->arm({.at = FaultClass::kDoorbell, .point = 2});  // the first is the producer's
  f.step();
  EXPECT_EQ(f.rig.port->counters().rx_frames, 16u);
  f.step();
  EXPECT_EQ(f.rig.port->counters().rx_frames, 17u);
}

TEST(FaultModel, AResetDeviceStopsForGood) {
  for (const hca::PortEvent what : {hca::PortEvent::kDeviceReset, hca::PortEvent::kRemoved}) {
    std::vector<hca::PortEvent> events;
    FaultRig f([&events](hca::PortEvent event) { events.push_back(event); });
    f.post();
    f.plan->at_step(2, what);
    f.step();
    EXPECT_TRUE(events.empty());
    f.rig.wire->inbox.push_back(pattern(100));
    f.send();
    f.step(3);
    EXPECT_EQ(events, std::vector{what});
    EXPECT_FALSE(f.receiver.completions.poll());
    EXPECT_TRUE(f.rig.wire->outbox.empty());
    const auto queue = f.rig.port->create_completion_queue({.depth = 8});
    ASSERT_FALSE(queue);
    EXPECT_EQ(queue.error().code, Code::kSystem);
    EXPECT_FALSE(f.receiver.rq->reset());
    EXPECT_FALSE(f.rig.nic->create_domain());
    f.rig.port->stop();  // and all objects can go
  }
}

/// The counting model takes what needs no bus: allocations and what happens to the device.
TEST(FaultModel, TheCountingModelHeedsThePlanToo) {
  auto plan = std::make_shared<sim::FaultPlan>();
  Rig rig({.faults = plan});
  plan->arm({.at = FaultClass::kAllocation, .point = plan->seen(FaultClass::kAllocation) + 1});
  EXPECT_FALSE(rig.port->create_completion_queue({.depth = 8}));
  EXPECT_TRUE(rig.port->create_completion_queue({.depth = 8}));
  plan->at_step(1, hca::PortEvent::kDeviceReset);
  rig.settle();
  EXPECT_FALSE(rig.port->create_completion_queue({.depth = 8}));
}

TEST(FaultModel, TheLogSaysWhatHappened) {
  FaultRig f;
  f.plan->arm({.at = FaultClass::kDma, .point = 3});
  f.post();
  f.rig.wire->inbox.push_back(pattern(100));
  f.step();
  const std::string text = f.plan->log.text();
  const std::string rq = "rq " + std::to_string(f.receiver.rq->number) + " [0] ";
  for (const std::string& line :
       {rq + "read doorbell_record 4 B", rq + "read rx_descriptor 32 B",
        std::string("write header 64 B at host"), std::string("write payload 36 B at host"),
        std::string(" FAILED"),
        "cq " + std::to_string(f.receiver.completions.cq->number) + " [0] write rx_completion 64 B",
        std::string("completes WQE 0: opcode 0xe, syndrome 0x04")})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
}

TEST(FaultModel, TheLogKeepsTheNewest) {
  sim::EventLog log;
  for (uint32_t i = 0; i < sim::EventLog::kEvents + 1; ++i) log.add({.now = i, .what = "x"});
  EXPECT_EQ(log.text().find("#0 "), std::string::npos);
  EXPECT_EQ(log.text().substr(0, 3), "#1 ");
  EXPECT_NE(log.text().find("#256 t=256 x\n"), std::string::npos);
}

}  // namespace
}  // namespace nicmem::test
