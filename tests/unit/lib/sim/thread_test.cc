// SPDX-License-Identifier: BSD-3-Clause
// A driver thread and a model thread: ordering by rings and records alone, control calls that get
// in, counters that can be read meanwhile. Runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sim/cable.h"
#include "sim/generator.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

/// Steps a device until it is destroyed.
class Stepper {
 public:
  explicit Stepper(sim::Nic& nic)
      : thread_([this, &nic] {
          while (!done_.load(std::memory_order_relaxed)) {
            if (nic.step(32) == 0) std::this_thread::yield();
          }
        }) {}
  ~Stepper() {
    done_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

TEST(SimThreads, ADriverForwardsWhileTheModelRunsBesideIt) {
  constexpr uint16_t kSlots = 64;
  constexpr uint32_t kFrames = 20'000;
  const auto nic = ok(sim::Nic::create({.sram_bytes = 1_MiB}));
  const hca::Domain domain = ok(nic->create_domain());
  auto owned = ok(sim::Generator::create(
      {.frame_bytes = {60, 200, 1514}, .flows = 64, .frames = kFrames, .check = true}));
  const sim::Generator& generator = *owned;
  const auto port = nic->open_port({}, std::move(owned));
  const Stepper stepper(*nic);
  Buffer host = Buffer::in_host(*nic, domain, kSlots * 64);
  Buffer card = Buffer::on_card(*nic, domain, kSlots * 2048);
  Receiver in(*port, domain, kSlots);
  Sender out(*port, domain, kSlots * 4);
  ok(port->steer({.promiscuous = true, .rss = {.table = std::vector{in.rq.get()}}}));
  ok(port->start());
  const auto post = [&](size_t slot) {
    in.post({host.at(slot * 64, 64), card.at(slot * 2048, 2048)});
  };
  for (uint16_t i = 0; i < kSlots; ++i) post(i);
  for (uint32_t done = 0; done < kFrames;) {
    const auto entry = in.completions.poll();
    if (!entry) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_FALSE(hw::is_error(entry->op_own));
    const size_t slot = entry->wqe_counter.get() % kSlots;
    const uint32_t size = entry->byte_count.get();
    const uint32_t head = std::min(size, 64u);
    std::vector<hw::DataSegment> rest;
    if (size > head) rest.push_back(card.at(slot * 2048, size - head));
    out.send(host.copy(slot * 64, head), rest);
    while (!out.completions.poll()) std::this_thread::yield();
    post(slot);
    if (++done % 1000 == 0) {
      EXPECT_LE(port->counters().tx_frames, kFrames);
      EXPECT_GT(port->pcie().total().out.bytes, 0u);
    }
  }
  while (generator.received().frames < kFrames) std::this_thread::yield();
  EXPECT_EQ(generator.sent(), generator.received());
}

TEST(SimThreads, ControlCallsGetInWhileTheModelSpins) {
  const auto nic = ok(sim::Nic::create({}));
  const hca::Domain domain = ok(nic->create_domain());
  const auto port = nic->open_port({}, sim::make_loopback());
  ok(port->start());
  const Stepper stepper(*nic);
  for (int i = 0; i < 300; ++i) {
    Buffer card = Buffer::on_card(*nic, domain, 4096);
    Receiver in(*port, domain, 8);
    Sender out(*port, domain, 8);
    ok(port->steer({.promiscuous = true, .rss = {.table = std::vector{in.rq.get()}}}));
    in.post({card.at(0, 2048)});
    out.send(pattern(100, static_cast<uint32_t>(i)), {});
    while (!in.completions.poll()) std::this_thread::yield();
    out.reset();
    in.reset();
  }
  EXPECT_EQ(port->counters().rx_frames, 300u);
}

}  // namespace
}  // namespace nicmem::test
