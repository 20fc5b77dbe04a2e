// SPDX-License-Identifier: BSD-3-Clause
// The parser on random packets: its short way for the commonest shape finds what the long one does,
// and its checksums are those of a sum byte by byte.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "sim/parser.h"
#include "support/random_packet.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

class ParserProperty : public testing::Test {
 protected:
  RandomPacket packet() {
    return random_packet(rng, rng.below(4) == 0 ? 1400 : rng.below(130), rng.below(2) == 0);
  }

  /// Makes the checksum whose field is at `at` good, or off by one bit. `adds_up` says of which
  /// sum.
  template <class AddsUp>
  void seal(RandomPacket& p, size_t at, AddsUp&& adds_up) {
    uint32_t field = static_cast<uint32_t>(rng.next()) & 0xffff;
    set_octets(p.bytes, at, 2, 0);
    const uint32_t sum = adds_up();
    if (rng.below(4) != 0) field = ~sum & 0xffff;
    if (rng.below(4) == 0) field ^= 1u << rng.below(16);
    set_octets(p.bytes, at, 2, field);
  }

  Rng rng{test_seed()};
};

TEST_F(ParserProperty, ChecksumsAreThoseOfASumByteByByte) {
  using T = hw::HeaderType;
  uint64_t good = 0;
  constexpr int kRounds = 30'000;
  for (int round = 0; round < kRounds; ++round) {
    RandomPacket p = packet();
    const auto length = static_cast<uint32_t>(p.bytes.size() - p.l4);
    if (p.v4) {
      const size_t end = p.l3 + 4u * (octet(p.bytes, p.l3) & 0xf);
      seal(p, p.l3_checksum_at(), [&] { return naive_sum(p.bytes, p.l3, end); });
    }
    seal(p, p.l4_checksum_at(), [&] {
      const size_t addresses = p.l3 + (p.v4 ? 12 : 8);
      const uint32_t sum =
          naive_sum(p.bytes, addresses, p.l3 + (p.v4 ? 20 : 40), (p.tcp ? 6u : 17u) + length);
      return naive_sum(p.bytes, p.l4, p.bytes.size(), sum);
    });
    const bool none = !p.tcp && octets(p.bytes, p.l4_checksum_at(), 2) == 0;
    const uint16_t type = sim::header_type(p.bytes, sim::parse(p.bytes));
    ASSERT_EQ(T::L3Ok::get(type) != 0, !p.v4 || l3_adds_up(p)) << round;
    ASSERT_EQ(T::L4Ok::get(type) != 0, none ? p.v4 : l4_adds_up(p)) << round;
    good += T::L4Ok::get(type);
  }
  EXPECT_GT(good, kRounds / 4);
  EXPECT_LT(good, kRounds);
}

TEST_F(ParserProperty, TheShortWayFindsWhatTheLongOneDoes) {
  uint64_t plain = 0;
  for (int round = 0; round < 300'000; ++round) {
    RandomPacket p = packet();
    if (p.v4) {  // most without options
      if (rng.below(4) != 0) p.bytes[p.l3] = std::byte{0x45};
    }
    for (uint64_t n = rng.below(3); n > 0; --n) {
      p.bytes[12 + rng.below(p.bytes.size() - 12) % 30] ^=
          static_cast<std::byte>(1 << rng.below(8));
    }
    if (rng.below(3) == 0) p.bytes.resize(rng.below(p.bytes.size() + 1));
    sim::Parsed expected;
    sim::parser::parse_any(p.bytes, expected);
    ASSERT_EQ(sim::parse(p.bytes), expected) << round;
    plain += sim::parser::is_plain_ipv4(p.bytes);
  }
  EXPECT_GT(plain, 10'000u);
}

}  // namespace
}  // namespace nicmem::test
