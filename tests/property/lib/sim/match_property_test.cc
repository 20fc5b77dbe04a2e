// SPDX-License-Identifier: BSD-3-Clause
// Random patterns against random packets, whole and cut off anywhere. The packets' maker knows
// where their headers are: the expectation parses nothing.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "sim/match.h"
#include "support/random_packet.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

class MatchProperty : public testing::Test {
 protected:
  /// A frame to be matched. random_packet() makes no ICMP and no fragments: some become such.
  void make_packet() {
    packet = random_packet(rng, rng.below(40), rng.below(2) == 0);
    protocol = packet.tcp ? 6 : 17;
    fragment = false;
    if (packet.v4 && rng.below(3) == 0) {
      protocol = 1;
      packet.bytes[packet.l3 + 9] = std::byte{1};
    }
    if (packet.v4 && rng.below(8) == 0) {
      fragment = true;
      set_octets(packet.bytes, packet.l3 + 6, 2, rng.below(2) == 0 ? 0x2000 : 0x0007);
    }
    size = packet.bytes.size();
    if (rng.below(3) == 0) size = 14 + rng.below(size - 13);
  }

  /// Puts a pattern for the header at `at` into the rule, perhaps; says whether a frame agrees in
  /// which that header is there or not.
  template <class Header>
  bool add(std::optional<hca::Pattern<Header>>& pattern, bool there, size_t at) {
    if (rng.below(3) != 0) return true;
    pattern.emplace();
    auto* value = reinterpret_cast<uint8_t*>(&pattern->value);
    auto* mask = reinterpret_cast<uint8_t*>(&pattern->mask);
    const uint64_t density = rng.below(4);  // of bytes that are compared
    bool equal = true;
    for (size_t i = 0; i < sizeof(Header); ++i) {
      if (rng.below(4) < density) mask[i] = static_cast<uint8_t>(rng.next());
      const uint8_t seen = there ? octet(packet.bytes, at + i) : 0;
      // Outside the mask anything; inside it nearly always what the frame has.
      value[i] = static_cast<uint8_t>((seen & mask[i]) | (rng.next() & ~mask[i]));
      if (rng.below(100) == 0) value[i] = static_cast<uint8_t>(rng.next());
      for (int bit = 0; bit < 8; ++bit) {
        const int one = 1 << bit;
        if ((mask[i] & one) != 0 && (value[i] & one) != (seen & one)) equal = false;
      }
    }
    return there && equal;
  }

  Rng rng{test_seed()};
  RandomPacket packet;
  uint8_t protocol = 0;
  bool fragment = false;
  size_t size = 0;  // of the frame, which may be a part of the packet
};

TEST_F(MatchProperty, AgreesWithAComparisonByteByByte) {
  uint64_t matched = 0;
  for (int round = 0; round < 300'000; ++round) {
    make_packet();
    const RandomPacket& p = packet;
    const bool l3 = size >= (p.v4 ? p.l4 : p.l3 + 40);
    const auto l4 = [&](uint8_t of, size_t bytes) {
      return protocol == of && !fragment && size >= p.l4 + bytes;
    };
    hca::Match match;
    bool expected = add(match.ether, true, 0);
    expected &= add(match.vlan, p.l3 > 14 && size >= 18, 14);
    if (rng.below(2) == 0) {
      expected &= add(match.ipv4, p.v4 && l3, p.l3);
    } else {
      expected &= add(match.ipv6, !p.v4 && l3, p.l3);
    }
    switch (rng.below(3)) {
      case 0:
        expected &= add(match.udp, l4(17, 8), p.l4);
        break;
      case 1:
        expected &= add(match.tcp, l4(6, 20), p.l4);
        break;
      default:
        expected &= add(match.icmp, l4(1, 8), p.l4);
    }
    const sim::Frame frame(p.bytes.data(), size);
    ASSERT_EQ(sim::matches(match, frame, sim::parse(frame)), expected) << "round " << round;
    matched += expected;
  }
  EXPECT_GT(matched, 30'000u);  // both outcomes happen
  EXPECT_LT(matched, 270'000u);
}

}  // namespace
}  // namespace nicmem::test
