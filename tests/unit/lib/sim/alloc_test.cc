// SPDX-License-Identifier: BSD-3-Clause
// The model allocates nothing per frame.
#include <gtest/gtest.h>

#include "sim/cable.h"
#include "sim/generator.h"
#include "support/alloc_guard.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

TEST(SimHotPath, DoesNotAllocate) {
  const auto nic = ok(sim::Nic::create({}));
  const hca::Domain domain = ok(nic->create_domain());
  const auto source = nic->open_port(
      {}, ok(sim::Generator::create({.frame_bytes = sim::GeneratorOptions::imix()})));
  const auto loop = nic->open_port({}, sim::make_loopback());
  Buffer host = Buffer::in_host(*nic, domain, 4096);
  Buffer card = Buffer::on_card(*nic, domain, 4096);
  Receiver in(*source, domain, 64);
  Receiver back(*loop, domain, 64);
  Sender out(*loop, domain, 64, 256);
  ok(source->steer({.promiscuous = true, .rss = {.table = std::vector{in.rq.get(), in.rq.get()}}}));
  ok(loop->steer({.promiscuous = true, .rss = {.table = std::vector{back.rq.get()}}}));
  ok(source->start());
  ok(loop->start());
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 32; ++i) {
      in.post({host.at(0, 128), card.at(0, 2048)});
      back.post({host.at(0, 128), card.at(0, 2048)});
      out.send(pattern(64), {card.at(0, static_cast<uint32_t>(i * 40 + 1))});
    }
    const AllocGuard guard;
    while (nic->step(32) > 0) {
    }
    ASSERT_EQ(guard.count(), 0u) << "round " << round;
    while (in.completions.poll() || back.completions.poll() || out.completions.poll()) {
    }
  }
  EXPECT_EQ(source->counters().rx_frames, 3200u);
  EXPECT_EQ(loop->counters().rx_frames, 3200u);
}

}  // namespace
}  // namespace nicmem::test
