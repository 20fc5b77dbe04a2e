// SPDX-License-Identifier: BSD-3-Clause
// Bit fields in the manual's own coordinates, and small power-of-two arithmetic.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace nicmem {

/// Bits [Hi:Lo] of a word, numbered as the manual prints them.
template <std::unsigned_integral Word, unsigned Hi, unsigned Lo>
struct Bits {
  static_assert(Hi >= Lo && Hi < 8 * sizeof(Word));
  static constexpr Word kMax =
      static_cast<Word>(static_cast<Word>(~Word{0}) >> (8 * sizeof(Word) - 1 - (Hi - Lo)));
  static constexpr Word kMask = static_cast<Word>(kMax << Lo);
  static constexpr Word get(Word w) { return static_cast<Word>((w & kMask) >> Lo); }
  static constexpr Word set(Word w, Word v) {
    NM_DCHECK(v <= kMax);
    return static_cast<Word>((w & static_cast<Word>(~kMask)) | static_cast<Word>(v << Lo));
  }
};

template <std::unsigned_integral T>
constexpr T round_up(T value, T multiple) {
  return static_cast<T>((value + multiple - 1) / multiple * multiple);
}

template <std::unsigned_integral T>
constexpr T div_ceil(T value, T divisor) {
  return static_cast<T>((value + divisor - 1) / divisor);
}

}  // namespace nicmem
