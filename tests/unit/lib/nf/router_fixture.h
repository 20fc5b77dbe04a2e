// SPDX-License-Identifier: BSD-3-Clause
// A router with two interfaces over small obvious tables, for the tests of the packet function.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "nf/l3fwd.h"
#include "support/frames.h"

namespace nicmem::nf {

/// Longest prefix match by looking at every prefix, bit by bit: also the model of the real tables.
class LinearRoutes {
 public:
  void add(uint32_t address, unsigned length, NextHopId hop) {
    v4_.push_back({address, length, hop});
  }
  void add(const hw::Ipv6Address& address, unsigned length, NextHopId hop) {
    v6_.push_back({address, length, hop});
  }

  NextHopId lookup(uint32_t address) const {
    return longest(v4_, address, [](uint32_t a, unsigned bit) { return a >> (31 - bit) & 1; });
  }
  NextHopId lookup(const hw::Ipv6Address& address) const {
    return longest(v6_, address, [](const hw::Ipv6Address& a, unsigned bit) {
      return static_cast<uint32_t>(a.bytes[bit / 8] >> (7 - bit % 8) & 1);
    });
  }

 private:
  template <class A>
  struct Entry {
    A address;
    unsigned length;
    NextHopId hop;
  };

  template <class A, class BitOf>
  static NextHopId longest(const std::vector<Entry<A>>& entries, const A& address, BitOf bit_of) {
    NextHopId best = kNoRoute;
    int best_length = -1;
    for (const Entry<A>& entry : entries) {
      bool matches = true;
      for (unsigned bit = 0; bit < entry.length; ++bit)
        matches = matches && bit_of(entry.address, bit) == bit_of(address, bit);
      // Of equal lengths the later entry wins: it replaced the earlier one.
      if (matches && static_cast<int>(entry.length) >= best_length) {
        best = entry.hop;
        best_length = static_cast<int>(entry.length);
      }
    }
    return best;
  }

  std::vector<Entry<uint32_t>> v4_;
  std::vector<Entry<hw::Ipv6Address>> v6_;
};

inline constexpr hw::MacAddress kNextMac{{0x02, 0, 0, 0, 0x01, 0x01}};
inline constexpr hw::MacAddress kEgressMac{{0x02, 0, 0, 0, 0, 0x95}};

class Router : public testing::Test {
 protected:
  enum Hop : NextHopId { kEast, kNowhere, kOwn, kBroadcast };

  Router() {
    routes.add(test::v4(198, 18, 1, 0), 24, kEast);
    routes.add(test::v4(198, 18, 2, 0), 24, kNowhere);
    routes.add(test::v4(198, 18, 2, 1), 32, kOwn);
    routes.add(test::v4(198, 18, 2, 255), 32, kBroadcast);
    routes.add(test::v6({0x2001, 0xdb8, 1}), 48, kEast);
    routes.add(test::v6({0x2001, 0xdb8, 2, 0, 0, 0, 0, 1}), 128, kOwn);
    hops = {{.kind = NextHop::Kind::kForward,
             .port = 1,
             .mtu_bytes = 1500,
             .destination = kNextMac,
             .source = kEgressMac},
            {.kind = NextHop::Kind::kUnresolved, .port = 1},
            {.kind = NextHop::Kind::kLocal},
            {.kind = NextHop::Kind::kBroadcast}};
    in.mac = test::kRouterMac;
    in.refused_sources_v4 = refused_v4;
    in.refused_sources_v6 = refused_v6;
  }

  /// Runs the packet function over a frame of which the first `first` bytes are its first segment.
  Verdict run(test::Frame& frame, std::optional<size_t> first = std::nullopt,
              ChecksumStatus status = ChecksumStatus::kUnknown) {
    // A copy of exactly the segment: a read beyond it is a heap overflow that ASan sees.
    test::Frame segment(frame.begin(),
                        frame.begin() + static_cast<std::ptrdiff_t>(first.value_or(frame.size())));
    segment.shrink_to_fit();
    const Verdict verdict = forward(Tables<LinearRoutes, std::vector<NextHop>>{routes, hops}, in,
                                    {.headers = segment,
                                     .frame_bytes = static_cast<uint32_t>(frame.size()),
                                     .ipv4_checksum = status});
    std::copy(segment.begin(), segment.end(), frame.begin());
    return verdict;
  }

  /// The frame is dropped for that reason, and left as it was.
  void expect_drop(const test::Frame& frame, DropReason reason,
                   std::optional<size_t> first = std::nullopt) {
    test::Frame copy = frame;
    const Verdict verdict = run(copy, first);
    EXPECT_EQ(verdict.kind, Verdict::Kind::kDrop);
    EXPECT_STREQ(name_of(verdict.reason), name_of(reason));
    EXPECT_EQ(copy, frame) << "a dropped frame was changed";
  }

  /// The frame is forwarded: MACs, TTL and checksum are new, every other byte is as before.
  void expect_forwarded(const test::Frame& frame, std::optional<size_t> first = std::nullopt) {
    test::Frame got = frame;
    const Verdict verdict = run(got, first);
    ASSERT_EQ(verdict.kind, Verdict::Kind::kForward) << name_of(verdict.reason);
    EXPECT_EQ(verdict.port, 1);
    test::Frame want = frame;
    test::ether_of(want).destination = kNextMac;
    test::ether_of(want).source = kEgressMac;
    if (test::ether_of(want).type.get() == hw::kEtherTypeIpv4) {
      --test::ipv4_of(want).ttl;
      test::seal(want);
    } else {
      --test::ipv6_of(want).hop_limit;
    }
    EXPECT_EQ(got, want);
  }

  LinearRoutes routes;
  std::vector<NextHop> hops;
  std::vector<uint32_t> refused_v4 = {test::v4(198, 18, 2, 1), test::v4(198, 18, 2, 255)};
  std::vector<hw::Ipv6Address> refused_v6 = {test::v6({0x2001, 0xdb8, 2, 0, 0, 0, 0, 1})};
  Interface in;
};

}  // namespace nicmem::nf
