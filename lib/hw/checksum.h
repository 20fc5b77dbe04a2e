// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum: whole sum, and update after one field changed. [RFC 1071, RFC 1624]
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace nicmem::hw {

/// Folds carries back in until 16 bits are left.
constexpr uint16_t fold_sum(uint64_t sum) {
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

/// A sum in the making: `bytes` added to `sum` as words in host order, an odd rest padded with
/// zeros. Not folded; sums of pieces of even length add up.
///
/// The sum does not depend on byte order but for one swap at the end [RFC 1071, 2 (B)], and wider
/// words fold to the same value, so the loop adds eight bytes at a time.
inline uint64_t add_words(uint64_t sum, std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  const auto add = [&sum](uint64_t word) {
    sum += word;
    sum += sum < word;  // the carry out of bit 63 is worth one
  };
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  uint64_t word = 0;
  for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
    std::memcpy(&word, at, sizeof word);
    add(word);
  }
  if (left == 0) return sum;
  if (bytes.size() >= sizeof word) {  // the last eight bytes, without those already added
    std::memcpy(&word, at + left - sizeof word, sizeof word);
    word >>= 8 * (sizeof word - left);
  } else {
    std::memcpy(&word, at, left);
  }
  add(word);
  return sum;
}

/// The ones-complement sum of `bytes` as big-endian 16-bit words (an odd last byte is padded with
/// zero), continuing from `start`. It is not complemented.
inline uint16_t sum_words(std::span<const std::byte> bytes, uint16_t start = 0) {
  return __builtin_bswap16(fold_sum(add_words(__builtin_bswap16(start), bytes)));
}

/// Whether what was added up, its checksum included, folds to all ones: whether it is a multiple of
/// 65,535 other than zero. A multiplication instead of the four folds.
constexpr bool sum_holds(uint64_t sum) { return sum != 0 && sum % 0xffff == 0; }

/// The checksum field (host order) of bytes in which that field is zero.
inline uint16_t checksum_of(std::span<const std::byte> bytes, uint16_t start = 0) {
  return static_cast<uint16_t>(~sum_words(bytes, start));
}

/// Whether bytes that contain their checksum add up.
inline bool checksum_holds(std::span<const std::byte> bytes, uint16_t start = 0) {
  return sum_holds(add_words(__builtin_bswap16(start), bytes));
}

/// The checksum after one 16-bit word went from `before` to `after`: HC' = ~(~HC + ~m + m')
/// [RFC 1624, 3, equation 3]. Equation 2 and 'add 0x0100' differ from it in the two corner cases
/// where the sum is zero; this form gives what a full sum over a nonzero header gives.
constexpr uint16_t checksum_update(uint16_t checksum, uint16_t before, uint16_t after) {
  const uint32_t sum =
      static_cast<uint16_t>(~checksum) + uint32_t{static_cast<uint16_t>(~before)} + after;
  return static_cast<uint16_t>(~fold_sum(sum));
}

/// The same for a 32-bit field, such as an address.
constexpr uint16_t checksum_update(uint16_t checksum, uint32_t before, uint32_t after) {
  const uint16_t high = checksum_update(checksum, static_cast<uint16_t>(before >> 16),
                                        static_cast<uint16_t>(after >> 16));
  return checksum_update(high, static_cast<uint16_t>(before), static_cast<uint16_t>(after));
}

}  // namespace nicmem::hw
