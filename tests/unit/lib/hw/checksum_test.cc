// SPDX-License-Identifier: BSD-3-Clause
// The fast sum against the obvious one, and the update's corner cases.
#include "hw/checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/rng.h"
#include "support/frames.h"
#include "support/seed.h"

namespace nicmem::hw {
namespace {

/// RFC 1071 as it is written: 16-bit words, carries folded as they appear.
uint16_t slow_sum(std::span<const std::byte> bytes, uint16_t start) {
  uint32_t sum = start;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const auto high = static_cast<uint32_t>(bytes[i]);
    const auto low = i + 1 < bytes.size() ? static_cast<uint32_t>(bytes[i + 1]) : 0;
    sum += high << 8 | low;
    if (sum > 0xffff) sum -= 0xffff;
  }
  return static_cast<uint16_t>(sum);
}

TEST(Checksum, IsTheExampleOfTheStandard) {  // RFC 1071, section 3
  const std::array<uint8_t, 8> data = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(sum_words(std::as_bytes(std::span(data))), 0xddf2);
}

TEST(Checksum, AgreesWithTheSlowSumAtEveryLength) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  for (size_t length = 0; length <= 130; ++length) {
    std::vector<std::byte> bytes(length);
    // A third of the rounds use only 0x00 and 0xff, where carries pile up.
    for (int round = 0; round < 30; ++round) {
      for (std::byte& b : bytes)
        b = static_cast<std::byte>(round % 3 == 0 ? (rng.next() & 1) * 0xff : rng.next());
      const auto start = static_cast<uint16_t>(rng.next());
      ASSERT_EQ(sum_words(bytes, start), slow_sum(bytes, start)) << "length " << length;
    }
  }
}

TEST(Checksum, OfAllOnesIsAllOnes) {
  const std::vector<std::byte> bytes(64, std::byte{0xff});
  EXPECT_EQ(sum_words(bytes), 0xffff);
  EXPECT_EQ(checksum_of(bytes), 0);
}

/// A header of the case, whose full checksum is computed, then TTL 64 to 63 both ways.
void expect_corner(uint16_t id, uint16_t before, uint16_t after) {
  test::Frame frame = test::make_ipv4({.protocol = kProtocolTcp, .id = id, .payload_bytes = 20});
  Ipv4Header& ip = test::ipv4_of(frame);
  ASSERT_EQ(ip.total_length.get(), 40);
  ASSERT_EQ(ip.checksum.get(), before);
  const uint16_t updated = checksum_update(ip.checksum.get(), uint16_t{0x4006}, uint16_t{0x3f06});
  EXPECT_EQ(updated, after);
  ip.ttl = 63;
  test::seal(frame);
  EXPECT_EQ(ip.checksum.get(), after) << "a full sum gives something else";
}

TEST(L3_04, UpdateAgreesWithRecomputationInTheFirstCarryCase) {
  expect_corner(0xeea9, 0xfeff, 0x0000);
}
TEST(L3_04, UpdateAgreesWithRecomputationInTheSecondCarryCase) {
  expect_corner(0xeea8, 0xff00, 0x0001);
}

TEST(L3_04, UpdateAgreesWithRecomputationForEveryChecksumAndTtl) {
  // Whatever the rest of the header sums to: `rest` stands for it. A header is never all zero.
  for (uint32_t rest = 1; rest <= 0xffff; ++rest) {
    for (const uint32_t ttl : {1u, 2u, 64u, 128u, 255u}) {
      const auto word = static_cast<uint16_t>(ttl << 8 | 6);
      const auto next = static_cast<uint16_t>((ttl - 1) << 8 | 6);
      const auto full = [rest](uint16_t w) {
        return static_cast<uint16_t>(~fold_sum(uint64_t{rest} + w));
      };
      ASSERT_EQ(checksum_update(full(word), word, next), full(next)) << rest << " " << ttl;
    }
  }
}

TEST(Checksum, UpdateOfAnAddressAgreesWithRecomputation) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  for (int round = 0; round < 10000; ++round) {
    test::Frame frame = test::make_ipv4(
        {.source = static_cast<uint32_t>(rng.next()), .id = static_cast<uint16_t>(rng.next())});
    Ipv4Header& ip = test::ipv4_of(frame);
    const uint32_t before = ip.source.get();
    const auto after = static_cast<uint32_t>(rng.next());
    const uint16_t updated = checksum_update(ip.checksum.get(), before, after);
    ip.source.set(after);
    test::seal(frame);
    ASSERT_EQ(updated, ip.checksum.get());
  }
}

}  // namespace
}  // namespace nicmem::hw
