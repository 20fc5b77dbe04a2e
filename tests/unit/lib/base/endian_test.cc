// SPDX-License-Identifier: BSD-3-Clause
#include "base/endian.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "support/seed.h"

namespace nicmem {
namespace {

template <class T>
std::array<uint8_t, sizeof(T)> bytes_of(const T& value) {
  std::array<uint8_t, sizeof(T)> out;
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

TEST(Endian, StoresTheMostSignificantByteFirst) {
  EXPECT_EQ(bytes_of(be16{0x0102}), (std::array<uint8_t, 2>{1, 2}));
  EXPECT_EQ(bytes_of(be24{0x010203}), (std::array<uint8_t, 3>{1, 2, 3}));
  EXPECT_EQ(bytes_of(be32{0x01020304}), (std::array<uint8_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(bytes_of(be64{0x0102030405060708}),
            (std::array<uint8_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Endian, KeepsTheLowBytesOfAValueThatIsTooWide) {
  EXPECT_EQ(be24{0xff123456}.get(), 0x123456u);
}

TEST(Endian, IsZeroByDefault) {
  EXPECT_EQ(be16{}.get(), 0u);
  EXPECT_EQ(be64{}.get(), 0u);
}

TEST(Endian, HasAlignmentOneSoThatFormatsHaveNoPadding) {
  struct Format {
    uint8_t a;
    be64 b;
    be16 c;
    be24 d;
  };
  EXPECT_EQ(sizeof(Format), 14u);
  EXPECT_EQ(alignof(Format), 1u);
}

// The compile-time form is a loop, the run-time form a byte swap: they must agree.
TEST(Endian, GivesTheSameBytesAtCompileTimeAndAtRunTime) {
  constexpr be32 compiled{0xa1b2c3d4};
  static_assert(compiled.get() == 0xa1b2c3d4);
  volatile uint32_t value = 0xa1b2c3d4;
  const be32 computed{value};
  EXPECT_EQ(bytes_of(compiled), bytes_of(computed));
  EXPECT_EQ(compiled, computed);
}

template <class B, class T>
void round_trips(T value) {
  const B stored{value};
  EXPECT_EQ(stored.get(), value);
  B assigned;
  assigned.set(value);
  EXPECT_EQ(assigned, stored);
  // An unaligned place, as in the middle of a frame.
  uint8_t room[sizeof(B) + 1] = {};
  std::memcpy(room + 1, &stored, sizeof stored);
  T wanted = 0;
  for (size_t i = 0; i < sizeof(B); ++i) wanted = static_cast<T>(wanted << 8 | room[1 + i]);
  EXPECT_EQ(wanted, value);
}

TEST(Endian, RoundTripsLimitsAndRandomValues) {
  Rng rng(test::test_seed());
  round_trips<be16>(uint16_t{0});
  round_trips<be16>(std::numeric_limits<uint16_t>::max());
  round_trips<be24>(0xffffffu);
  round_trips<be32>(std::numeric_limits<uint32_t>::max());
  round_trips<be64>(std::numeric_limits<uint64_t>::max());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = rng.next();
    round_trips<be16>(static_cast<uint16_t>(value));
    round_trips<be24>(static_cast<uint32_t>(value & 0xffffff));
    round_trips<be32>(static_cast<uint32_t>(value));
    round_trips<be64>(value);
  }
}

template <class B, class T>
concept TakesSilently = requires(B b, T t) { b = t; };
template <class B, class T>
concept GivesSilently = requires(B b, T t) { t = b; };

TEST(Endian, DoesNotConvertSilently) {
  EXPECT_FALSE((TakesSilently<be32, uint32_t>));
  EXPECT_FALSE((GivesSilently<be32, uint32_t>));
}

}  // namespace
}  // namespace nicmem
