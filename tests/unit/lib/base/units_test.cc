// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace nicmem {
namespace {

TEST(ParseSize, TakesBytesAndBinaryUnits) {
  const struct {
    const char* text;
    std::size_t bytes;
  } cases[] = {{"0", 0},           {"1", 1},           {"4096", 4096},     {"100B", 100},
               {"1K", 1024},       {"256KiB", 262144}, {"8M", 8_MiB},      {"8MiB", 8388608},
               {"1G", 1073741824}, {"2GiB", 2048_MiB}, {"007KiB", 7_KiB}};
  for (const auto& c : cases) {
    const auto size = parse_size(c.text);
    ASSERT_TRUE(size.has_value()) << c.text;
    EXPECT_EQ(*size, c.bytes) << c.text;
  }
}

TEST(ParseSize, RefusesEverythingElseAndNamesIt) {
  for (const char* text : {"", " ", "x", "KiB", "-1", "+1", "1 K", " 1", "1 ", "1k", "1kb", "1KB",
                           "1T", "1.5M", "0x10", "1KiBx", "1KK", "256KiB,", "1\n"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().code, Code::kInvalidArgument) << text;
    const std::string& what = size.error().what;
    EXPECT_EQ(what.rfind(std::string("size '") + text + "'", 0), 0u) << what;
    EXPECT_NE(what.find("accepted"), std::string::npos) << what;
  }
}

TEST(ParseSize, HoldsAtTheLimitOfSizeT) {
  EXPECT_EQ(*parse_size("18446744073709551614"), std::numeric_limits<std::size_t>::max() - 1);
  EXPECT_EQ(*parse_size("18446744073709551615"), std::numeric_limits<std::size_t>::max());
  EXPECT_FALSE(parse_size("18446744073709551616").has_value());
  EXPECT_TRUE(parse_size("17179869183GiB").has_value());
  EXPECT_FALSE(parse_size("17179869184GiB").has_value());
}

TEST(FormatSize, TakesTheLargestUnitThatIsExact) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(1023), "1023B");
  EXPECT_EQ(format_size(1024), "1KiB");
  EXPECT_EQ(format_size(1025), "1025B");
  EXPECT_EQ(format_size(256_KiB), "256KiB");
  EXPECT_EQ(format_size(1_MiB), "1MiB");
  EXPECT_EQ(format_size(1_MiB + 1_KiB), "1025KiB");
  EXPECT_EQ(format_size(8_MiB), "8MiB");
}

TEST(FormatSize, IsReadBackByParseSize) {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, 128_KiB, 256_KiB, 3_MiB, 128_MiB})
    EXPECT_EQ(*parse_size(format_size(bytes)), bytes);
}

}  // namespace
}  // namespace nicmem
