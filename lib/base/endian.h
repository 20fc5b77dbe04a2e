// SPDX-License-Identifier: BSD-3-Clause
// Integers in network byte order, as types: a forgotten swap does not compile.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nicmem {

/// An unsigned integer held in memory in big-endian order, N bytes wide. Alignment 1, so a struct
/// of these has no padding and may overlay any byte buffer. Conversions are explicit.
template <std::unsigned_integral T, std::size_t N = sizeof(T)>
class Be {
 public:
  constexpr Be() = default;
  constexpr explicit Be(T host) { set(host); }

  constexpr T get() const {
    if constexpr (N == sizeof(T)) {
      if (!std::is_constant_evaluated()) {
        T raw;  // GCC 12 does not fold the loop below into one load and a bswap; this it does
        std::memcpy(&raw, bytes_, sizeof raw);
        return swap(raw);
      }
    }
    T value = 0;
    for (std::size_t i = 0; i < N; ++i)
      value = static_cast<T>(static_cast<T>(value << 8) | bytes_[i]);
    return value;
  }

  constexpr void set(T host) {
    if constexpr (N == sizeof(T)) {
      if (!std::is_constant_evaluated()) {
        const T raw = swap(host);
        std::memcpy(bytes_, &raw, sizeof raw);
        return;
      }
    }
    for (std::size_t i = 0; i < N; ++i) bytes_[N - 1 - i] = static_cast<uint8_t>(host >> (8 * i));
  }

  friend constexpr bool operator==(const Be&, const Be&) = default;

 private:
  static constexpr T swap(T v) {
    static_assert(std::endian::native == std::endian::little);
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
  }

  uint8_t bytes_[N] = {};
};

using be16 = Be<uint16_t>;
using be24 = Be<uint32_t, 3>;
using be32 = Be<uint32_t>;
using be64 = Be<uint64_t>;

static_assert(sizeof(be24) == 3 && sizeof(be64) == 8 && alignof(be64) == 1);
static_assert(be24{0x010203}.get() == 0x010203);

}  // namespace nicmem
