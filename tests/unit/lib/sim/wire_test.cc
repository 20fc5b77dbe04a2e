// SPDX-License-Identifier: BSD-3-Clause
// The wires: generator and sink, loopback, cable; nothing is lost in them unseen.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "base/rng.h"
#include "sim/cable.h"
#include "sim/generator.h"
#include "sim/parser.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

std::vector<Bytes> take(sim::Wire& wire, size_t count, Nanos now = 0) {
  std::vector<sim::Frame> frames(count);
  frames.resize(wire.receive(frames, now));
  std::vector<Bytes> copies;
  for (const sim::Frame frame : frames) copies.emplace_back(frame.begin(), frame.end());
  return copies;
}

TEST(SimGenerator, BuildsValidFramesOfDistinctFlows) {
  const auto wire = ok(sim::Generator::create(
      {.frame_bytes = {60, 590, 1514}, .flows = 1000, .destination_mac = {{2, 0, 0, 0, 0, 9}}}));
  std::set<std::string> flows;
  for (const Bytes& frame : take(*wire, 1000)) {
    const uint16_t type = sim::header_type(frame, sim::parse(frame));
    EXPECT_EQ(hw::HeaderType::L4::get(type), hw::HeaderType::kL4Udp);
    EXPECT_EQ(hw::HeaderType::L3Ok::get(type), 1);
    EXPECT_EQ(hw::HeaderType::L4Ok::get(type), 1);
    EXPECT_EQ(frame[5], std::byte{9});
    flows.emplace(reinterpret_cast<const char*>(frame.data()) + 26, 12);  // addresses, ports
  }
  EXPECT_EQ(flows.size(), 1000u);
}

TEST(SimGenerator, UsesTheSizesInTurnAndCountsExactly) {
  const auto wire = ok(sim::Generator::create(
      {.frame_bytes = sim::GeneratorOptions::imix(), .flows = 1024, .frames = 12 * 500}));
  std::map<size_t, size_t> sizes;
  uint64_t bytes = 0;
  for (;;) {
    const auto frames = take(*wire, 64);
    if (frames.empty()) break;
    for (const Bytes& frame : frames) {
      ++sizes[frame.size()];
      bytes += frame.size();
    }
  }
  EXPECT_EQ(sizes, (std::map<size_t, size_t>{{60, 3500}, {590, 2000}, {1514, 500}}));
  EXPECT_EQ(wire->generated(), 6000u);
  EXPECT_EQ(wire->sent().bytes, bytes);
}

TEST(SimGenerator, TheSameSeedGivesTheSameBytes) {
  const auto frames = [](uint64_t seed) {
    return take(*ok(sim::Generator::create({.frame_bytes = {200}, .seed = seed})), 100);
  };
  EXPECT_EQ(frames(7), frames(7));
  EXPECT_NE(frames(7), frames(8));
}

TEST(SimGenerator, KeepsToItsRate) {
  const auto wire = ok(sim::Generator::create({.rate = 1'000'000}));
  EXPECT_FALSE(wire->lossless());
  EXPECT_EQ(take(*wire, 64, 5'000).size(), 0u);
  EXPECT_EQ(take(*wire, 64, 5'999).size(), 0u);
  EXPECT_EQ(take(*wire, 64, 6'000).size(), 1u);
  EXPECT_EQ(take(*wire, 64, 36'500).size(), 30u);
  EXPECT_EQ(take(*wire, 64, 36'500).size(), 0u);
}

TEST(SimGenerator, RefusesWhatItCannotBuild) {
  const auto code = [](const sim::GeneratorOptions& options) {
    return sim::Generator::create(options).error().code;
  };
  EXPECT_EQ(code({.frame_bytes = {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.frame_bytes = {41}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.frame_bytes = {sim::kMaxFrameBytes + 1}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.flows = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.flows = (1u << 20) + 1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.destination_length = 33}), Code::kInvalidArgument);
  EXPECT_TRUE(sim::Generator::create({.frame_bytes = {42, sim::kMaxFrameBytes}}).has_value());
}

/// Moves frames from a receive to a send queue as a forwarder does, `count` of them.
void forward(sim::Nic& nic, Receiver& in, Sender& out, Buffer& buffer, uint32_t slots,
             uint64_t count) {
  const auto post = [&](uint16_t slot) {
    in.post({buffer.at(size_t{slot} * 2048, 64), buffer.at(size_t{slot} * 2048 + 64, 1984)});
  };
  for (uint16_t i = 0; i < slots; ++i) post(i);
  for (uint64_t done = 0; done < count;) {
    nic.step(32);
    const auto entry = in.completions.poll();
    if (!entry) continue;
    ASSERT_FALSE(hw::is_error(entry->op_own));
    const auto slot = static_cast<uint16_t>(entry->wqe_counter.get() % slots);
    out.send({}, {buffer.at(size_t{slot} * 2048, entry->byte_count.get())});
    while (!out.completions.poll()) nic.step(32);
    post(slot);
    ++done;
  }
}

TEST(SimGenerator, WhatIsForwardedComesBackWhole) {
  for (const bool on_card : {false, true}) {
    const auto nic = ok(sim::Nic::create({}));
    const hca::Domain domain = ok(nic->create_domain());
    auto owned = ok(sim::Generator::create(
        {.frame_bytes = sim::GeneratorOptions::imix(), .frames = 5000, .check = true}));
    const sim::Generator& generator = *owned;
    const auto port = nic->open_port({}, std::move(owned));
    Buffer buffer = on_card ? Buffer::on_card(*nic, domain, 16 * 2048)
                            : Buffer::in_host(*nic, domain, 16 * 2048);
    Receiver in(*port, domain, 16);
    Sender out(*port, domain, 16);
    ok(port->steer({.promiscuous = true, .rss = {.table = std::vector{in.rq.get()}}}));
    ok(port->start());
    forward(*nic, in, out, buffer, 16, 5000);
    EXPECT_EQ(generator.sent(), generator.received());
    EXPECT_NE(generator.sent().check, 0u);
    const hca::PortCounters counters = port->counters();
    EXPECT_EQ(counters.generated, 5000u);
    EXPECT_EQ(counters.rx_frames, 5000u);
    EXPECT_EQ(counters.tx_frames, 5000u);
    EXPECT_EQ(counters.rx_bytes, counters.tx_bytes);
    EXPECT_EQ(counters.wire_held, 0u);
  }
}

TEST(SimLoopback, GivesBackWhatItWasGivenInOrder) {
  Rng rng(test_seed());
  const auto wire = sim::make_loopback();
  std::deque<Bytes> inside;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Bytes> frames;
    const size_t room = wire->room();
    for (uint64_t n = rng.below(9); n > 0; --n) {
      const size_t most = rng.below(8) == 0 ? sim::kMaxFrameBytes : 1514;
      frames.push_back(pattern(14 + rng.below(most - 13), static_cast<uint32_t>(rng.next())));
    }
    const std::vector<sim::Frame> views(frames.begin(), frames.end());
    const size_t sent = wire->send(views, 0);
    EXPECT_GE(sent, std::min(room, frames.size())) << "room() promised more";
    inside.insert(inside.end(), frames.begin(), frames.begin() + static_cast<ptrdiff_t>(sent));
    EXPECT_EQ(wire->held(), inside.size());
    for (const Bytes& frame : take(*wire, rng.below(9))) {
      ASSERT_EQ(frame, inside.front()) << "round " << round;
      inside.pop_front();
    }
  }
}

TEST(SimLoopback, FramesCanBePutTogetherInItsMemory) {
  Rng rng(test_seed());
  const auto wire = sim::make_loopback(1 << 16);
  std::deque<Bytes> inside;
  size_t in_place = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::span<std::byte> lent = wire->lend();
    EXPECT_EQ(lent.empty(), lent.size() < sim::kFrameGap + sim::kMaxFrameBytes);
    if (wire->room() > 0) {
      EXPECT_FALSE(lent.empty());
    }
    // Some in place, the rest from elsewhere; not all of what was lent is used.
    std::vector<Bytes> made;
    std::vector<sim::Frame> frames;
    size_t at = sim::kFrameGap;
    for (uint64_t n = rng.below(6); n > 0; --n) {
      made.push_back(pattern(14 + rng.below(rng.below(8) == 0 ? sim::kMaxFrameBytes - 13 : 1500),
                             static_cast<uint32_t>(rng.next())));
      if (at + made.back().size() > lent.size()) {
        made.pop_back();
        break;
      }
      std::ranges::copy(made.back(), lent.begin() + static_cast<ptrdiff_t>(at));
      frames.emplace_back(lent.subspan(at, made.back().size()));
      at += round_up<size_t>(made.back().size(), sim::kFrameGap) + sim::kFrameGap;
    }
    ASSERT_EQ(wire->send(frames, 0), frames.size());
    in_place += frames.size();
    inside.insert(inside.end(), made.begin(), made.end());
    ASSERT_EQ(wire->held(), inside.size());
    for (const Bytes& frame : take(*wire, rng.below(9))) {
      ASSERT_EQ(frame, inside.front()) << "round " << round;
      inside.pop_front();
    }
  }
  EXPECT_GT(in_place, 5000u);
}

// Port::last_sent() is asked at any time: also after frames that the wire then did not take.
TEST(SimWire, TheNewestFrameStaysWhatItWas) {
  const auto nic = ok(sim::Nic::create({}));
  const hca::Domain domain = ok(nic->create_domain());
  for (const bool lends : {true, false}) {
    auto scripted = std::make_unique<ScriptedWire>();
    ScriptedWire& refusing = *scripted;
    const auto port = nic->open_port(
        {}, lends ? sim::make_loopback(1 << 16) : std::unique_ptr<sim::Wire>(std::move(scripted)));
    ok(port->set_max_frame(sim::kMaxFrameBytes));
    ok(port->start());
    Buffer buffer = Buffer::in_host(*nic, domain, sim::kMaxFrameBytes);
    Sender sender(*port, domain, 16);
    for (uint32_t i = 0; i < 50; ++i) {
      const uint32_t size = 14 + i * 997 % (sim::kMaxFrameBytes - 13);
      const Bytes frame = pattern(size, i);
      std::ranges::copy(frame, buffer.bytes.begin());
      sender.send({}, {buffer.at(0, size)});
      for (int step = 0; step < 4; ++step) nic->step(64);
      if (!lends) {
        refusing.takes = 0;
        sender.send({}, {buffer.at(0, sim::kMaxFrameBytes)});
        nic->step(64);
        refusing.takes = 1000;
      }
      Bytes newest(sim::kMaxFrameBytes);
      ASSERT_EQ(port->last_sent(newest), size);
      newest.resize(size);
      ASSERT_EQ(newest, frame) << i;
      while (sender.completions.poll()) {
      }
    }
  }
}

TEST(SimCable, AFullRingHoldsTheSenderBack) {
  auto [a, b] = sim::make_cable();
  const Bytes frame = pattern(sim::kMaxFrameBytes);
  size_t sent = 0;
  while (a->room() > 0) sent += a->send(std::vector<sim::Frame>{frame}, 0);
  EXPECT_GT(sent, 40u);
  EXPECT_EQ(b->held(), sent);
  EXPECT_EQ(a->held(), 0u);
  EXPECT_EQ(take(*b, 1000).size(), sent);
  EXPECT_EQ(a->room(), 0u);  // the frames that were handed out are still in use
  EXPECT_EQ(take(*b, 1000).size(), 0u);
  EXPECT_GT(a->room(), 40u);
}

/// A port that sends `count` numbered frames and wants the same from the other side.
void exchange(sim::Nic& nic, hca::Port& port, hca::Domain domain, uint32_t count) {
  constexpr uint16_t kSlots = 32;
  Buffer buffer = Buffer::in_host(nic, domain, 2 * kSlots * 2048);
  Receiver in(port, domain, kSlots);
  Sender out(port, domain, kSlots);
  ok(port.steer({.promiscuous = true, .rss = {.table = std::vector{in.rq.get()}}}));
  const auto slot_of = [](uint32_t i) { return size_t{i % kSlots} * 2048; };
  for (uint32_t i = 0; i < kSlots; ++i) in.post({buffer.at(slot_of(i), 2048)});
  uint32_t sent = 0, sure = 0, got = 0;
  while (got < count || sure < count) {
    nic.step(32);
    while (sent < count && sent - sure < kSlots) {
      const uint32_t size = 64 + sent % 1400;
      const size_t at = kSlots * 2048 + slot_of(sent);
      const Bytes frame = pattern(size, sent);
      std::ranges::copy(frame, buffer.bytes.begin() + static_cast<ptrdiff_t>(at));
      out.send({}, {buffer.at(at, size)});
      ++sent;
    }
    while (out.completions.poll()) ++sure;
    while (const auto entry = in.completions.poll()) {
      ASSERT_EQ(entry->byte_count.get(), 64 + got % 1400);
      ASSERT_EQ(buffer.copy(slot_of(got), 64 + got % 1400), pattern(64 + got % 1400, got));
      in.post({buffer.at(slot_of(got), 2048)});
      ++got;
    }
  }
}

TEST(SimCable, JoinsTwoDevicesSteppedByTwoThreads) {
  auto [a, b] = sim::make_cable(1 << 16);
  const auto run = [](std::unique_ptr<sim::Wire>& wire) {
    const auto nic = ok(sim::Nic::create({}));
    const hca::Domain domain = ok(nic->create_domain());
    const auto port = nic->open_port({}, std::move(wire));
    ok(port->start());
    exchange(*nic, *port, domain, 5000);
    const hca::PortCounters counters = port->counters();
    EXPECT_EQ(counters.rx_frames, 5000u);
    EXPECT_EQ(counters.tx_frames, 5000u);
  };
  std::thread other([&] { run(b); });
  run(a);
  other.join();
}

}  // namespace
}  // namespace nicmem::test
