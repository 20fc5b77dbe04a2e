// SPDX-License-Identifier: BSD-3-Clause
#include "base/bits.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "support/seed.h"

namespace nicmem {
namespace {

TEST(Bits, NamesAFieldAsTheManualPrintsIt) {
  using Opcode = Bits<uint8_t, 7, 4>;
  EXPECT_EQ(Opcode::get(0xd1), 0xd);
  EXPECT_EQ(Opcode::set(0x01, 0xd), 0xd1);
  EXPECT_EQ(Opcode::kMax, 0xf);
  EXPECT_EQ(Opcode::kMask, 0xf0);
}

TEST(Bits, TakesSingleBitsAtBothEnds) {
  using Low = Bits<uint32_t, 0, 0>;
  using High = Bits<uint32_t, 31, 31>;
  EXPECT_EQ(Low::set(0, 1), 1u);
  EXPECT_EQ(High::set(0, 1), 0x80000000u);
  EXPECT_EQ(High::get(0x7fffffff), 0u);
}

TEST(Bits, TakesTheWholeWord) {
  using Byte = Bits<uint8_t, 7, 0>;
  using Quad = Bits<uint64_t, 63, 0>;
  EXPECT_EQ(Byte::kMax, 0xff);
  EXPECT_EQ(Quad::kMax, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Quad::set(0, Quad::kMax), Quad::kMax);
}

TEST(Bits, LeavesItsNeighboursAlone) {
  Rng rng(test::test_seed());
  using Field = Bits<uint32_t, 23, 8>;
  for (int i = 0; i < 1000; ++i) {
    const auto word = static_cast<uint32_t>(rng.next());
    const auto value = static_cast<uint32_t>(rng.below(Field::kMax + 1));
    const uint32_t changed = Field::set(word, value);
    EXPECT_EQ(Field::get(changed), value);
    EXPECT_EQ(changed & ~Field::kMask, word & ~Field::kMask);
  }
}

#ifndef NDEBUG
TEST(BitsDeathTest, RefusesAValueThatDoesNotFit) {
  using Field = Bits<uint8_t, 3, 2>;
  EXPECT_DEATH(Field::set(0, 4), "check failed");
}
#endif

TEST(RoundUp, IsExactAtAMultipleAndGoesUpAfterIt) {
  EXPECT_EQ(round_up(0u, 64u), 0u);
  EXPECT_EQ(round_up(1u, 64u), 64u);
  EXPECT_EQ(round_up(63u, 64u), 64u);
  EXPECT_EQ(round_up(64u, 64u), 64u);
  EXPECT_EQ(round_up(65u, 64u), 128u);
}

TEST(DivCeil, CountsAStartedPieceAsAPiece) {
  EXPECT_EQ(div_ceil(0u, 256u), 0u);
  EXPECT_EQ(div_ceil(255u, 256u), 1u);
  EXPECT_EQ(div_ceil(256u, 256u), 1u);
  EXPECT_EQ(div_ceil(257u, 256u), 2u);
}

}  // namespace
}  // namespace nicmem
