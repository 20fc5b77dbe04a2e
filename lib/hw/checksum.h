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

/// The ones-complement sum of `bytes` as big-endian 16-bit words (an odd last byte is padded with
/// zero), continuing from `start`. It is not complemented: sums of pieces of even length add up.
///
/// The sum does not depend on byte order but for one swap at the end [RFC 1071, 2 (B)], and wider
/// words fold to the same value, so the loop adds eight bytes at a time in host order.
inline uint16_t sum_words(std::span<const std::byte> bytes, uint16_t start = 0) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t sum = __builtin_bswap16(start);
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    sum += word;
    sum += sum < word;  // the carry out of bit 63 is worth one
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    sum += word;
    sum += sum < word;
  }
  return __builtin_bswap16(fold_sum(sum));
}

/// The checksum field (host order) of bytes in which that field is zero.
inline uint16_t checksum_of(std::span<const std::byte> bytes, uint16_t start = 0) {
  return static_cast<uint16_t>(~sum_words(bytes, start));
}

/// Whether bytes that contain their checksum add up.
inline bool checksum_holds(std::span<const std::byte> bytes, uint16_t start = 0) {
  return sum_words(bytes, start) == 0xffff;
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
