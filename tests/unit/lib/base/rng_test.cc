// SPDX-License-Identifier: BSD-3-Clause
#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>

#include "support/seed.h"

namespace nicmem {
namespace {

// SplitMix64's published first values for seed 1234567 (Vigna's reference, as in Rosetta Code).
TEST(Rng, GivesThePublishedSequence) {
  Rng rng(1234567);
  EXPECT_EQ(rng.next(), 6457827717110365317u);
  EXPECT_EQ(rng.next(), 3203168211198807973u);
  EXPECT_EQ(rng.next(), 9817491932198370423u);
  EXPECT_EQ(rng.next(), 4593380528125082431u);
  EXPECT_EQ(rng.next(), 16408922859458223821u);
}

TEST(Rng, RepeatsForTheSameSeedAndDiffersForAnother) {
  Rng a(1), b(1), c(2);
  const uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
}

TEST(Rng, StaysBelowItsBoundAndReachesEachValue) {
  Rng rng(test::test_seed());
  EXPECT_EQ(rng.below(1), 0u);
  std::array<int, 10> hits{};
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = rng.below(hits.size());
    ASSERT_LT(value, hits.size());
    ++hits[value];
  }
  for (int n : hits) EXPECT_NEAR(n, 1000, 300);
}

}  // namespace
}  // namespace nicmem
