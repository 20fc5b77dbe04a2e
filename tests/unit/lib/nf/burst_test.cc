// SPDX-License-Identifier: BSD-3-Clause
// The burst driver over fake packets: every packet is handed over once, in order, and counted.
#include "nf/burst.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "router_fixture.h"

namespace nicmem::nf {
namespace {

struct FakePacket {
  test::Frame frame;
  bool whole = true;
  int prefetched = 0;
};

struct FakeAccess {
  using Packet = FakePacket*;

  void prefetch(FakePacket* p) { ++p->prefetched; }
  std::optional<PacketView> view(FakePacket* p) {
    if (!p->whole) return std::nullopt;
    return PacketView{.headers = p->frame, .frame_bytes = static_cast<uint32_t>(p->frame.size())};
  }
  uint32_t frame_bytes(FakePacket* p) { return static_cast<uint32_t>(p->frame.size()); }
  void emit(FakePacket* p, uint16_t port) { emitted.emplace_back(p, port); }
  void discard(FakePacket* p) { discarded.push_back(p); }
  void punt(FakePacket* p) { punted.push_back(p); }

  std::vector<std::pair<FakePacket*, uint16_t>> emitted;
  std::vector<FakePacket*> discarded;
  std::vector<FakePacket*> punted;
};

class Burst : public Router {
 protected:
  void run_all(std::vector<FakePacket>& packets) {
    std::vector<FakePacket*> pointers;
    for (FakePacket& packet : packets) pointers.push_back(&packet);
    const Tables<LinearRoutes, std::vector<NextHop>> tables{routes, hops};
    run_burst(access, counts, std::span(pointers),
              [&](const PacketView& view) { return forward(tables, in, view); });
  }

  FakeAccess access;
  Counts counts;
};
using L3_19 = Burst;

TEST_F(L3_19, MixedBurstsOfEverySizeAreSortedByTheirOwnClass) {
  uint64_t sent = 0;
  std::array<uint64_t, 4> of_class{};
  for (size_t size = 0; size <= 33; ++size) {
    std::vector<FakePacket> packets;
    for (size_t i = 0; i < size; ++i) {
      test::Frame frame;
      switch (i % 4) {
        case 0:
          frame = test::make_ipv4();
          break;
        case 1:
          frame = test::make_ipv6();
          break;
        case 2:
          frame = test::make_ipv4();
          test::ether_of(frame).type.set(hw::kEtherTypeArp);
          break;
        case 3:
          frame = test::make_ipv4({.destination = test::v4(9, 9, 9, 9)});
          break;
      }
      ++of_class[i % 4];
      packets.push_back({.frame = std::move(frame)});
    }
    access = {};
    run_all(packets);
    sent += size;
    for (size_t i = 0, emitted = 0, discarded = 0; i < size; ++i) {
      EXPECT_EQ(packets[i].prefetched, 1);
      if (i % 4 < 2) {
        ASSERT_LT(emitted, access.emitted.size());
        EXPECT_EQ(access.emitted[emitted].first, &packets[i]) << "order";
        EXPECT_EQ(access.emitted[emitted++].second, 1);
      } else {
        ASSERT_LT(discarded, access.discarded.size());
        EXPECT_EQ(access.discarded[discarded++], &packets[i]);
      }
    }
    EXPECT_EQ(access.emitted.size() + access.discarded.size(), size);
  }
  const CountsSnapshot got = counts.snapshot();
  EXPECT_EQ(got.received, sent);
  EXPECT_EQ(got.drops(DropReason::kNotIp), of_class[2]);
  EXPECT_EQ(got.drops(DropReason::kNoRoute), of_class[3]);
  EXPECT_EQ(got.dropped_total(), of_class[2] + of_class[3]);
}

TEST_F(Burst, APacketWhoseBuffersDoNotAddUpIsNotLookedAt) {
  std::vector<FakePacket> packets = {{.frame = test::make_ipv4(), .whole = false}};
  run_all(packets);
  EXPECT_EQ(counts.snapshot().drops(DropReason::kLengthMismatch), 1u);
  EXPECT_EQ(access.discarded.size(), 1u);
}

TEST_F(Burst, PuntsAreCountedAndHandedOver) {
  FakePacket packet{.frame = test::make_ipv4()};
  std::vector<FakePacket*> burst = {&packet};
  run_burst(access, counts, std::span(burst), [](const PacketView&) { return Verdict::punt(); });
  EXPECT_EQ(access.punted, burst);
  EXPECT_EQ(counts.snapshot().punted, 1u);
  EXPECT_EQ(counts.snapshot().received_bytes, 60u);
}

}  // namespace
}  // namespace nicmem::nf
