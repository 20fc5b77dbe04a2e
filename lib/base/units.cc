// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.h"

#include <charconv>
#include <cstdint>
#include <limits>

namespace nicmem {
namespace {

/// log2 of the factor a suffix stands for, or -1.
int shift_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  if (suffix == "K" || suffix == "KiB") return 10;
  if (suffix == "M" || suffix == "MiB") return 20;
  if (suffix == "G" || suffix == "GiB") return 30;
  return -1;
}

}  // namespace

Result<std::size_t> parse_size(std::string_view text) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const int shift = shift_of({rest, static_cast<std::size_t>(end - rest)});
  if (error != std::errc{} || shift < 0 ||
      value > (std::numeric_limits<std::size_t>::max() >> shift))
    return fail(Code::kInvalidArgument,
                "size '" + std::string(text) +
                    "': a number with KiB, MiB or GiB is accepted, such as 256KiB");
  return value << shift;
}

std::string format_size(std::size_t bytes) {
  if (bytes != 0 && bytes % 1_MiB == 0) return std::to_string(bytes / 1_MiB) + "MiB";
  if (bytes != 0 && bytes % 1_KiB == 0) return std::to_string(bytes / 1_KiB) + "KiB";
  return std::to_string(bytes) + "B";
}

}  // namespace nicmem
