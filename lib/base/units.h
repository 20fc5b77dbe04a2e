// SPDX-License-Identifier: BSD-3-Clause
// Sizes in the words people use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace nicmem {

constexpr std::size_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return n << 20; }

/// Parses a size: digits, then nothing (bytes), or K, M, G with an optional iB ("256KiB", "8M").
Result<std::size_t> parse_size(std::string_view text);

/// The shortest exact form: "256KiB", "8MiB", "100B".
std::string format_size(std::size_t bytes);

}  // namespace nicmem
