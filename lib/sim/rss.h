// SPDX-License-Identifier: BSD-3-Clause
// Receive-side scaling: a Toeplitz hash of addresses and ports, and a table that it indexes.
// [Microsoft, "RSS Hashing Types" and "Verifying the RSS Hash Calculation"]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bits.h"
#include "hw/cqe.h"
#include "sim/parser.h"

namespace nicmem::sim {

/// Cqe::rx_hash_type: what the hash was computed over.
struct HashType {
  using Ip = Bits<uint8_t, 3, 2>;  // 0 none, 1 IPv4, 2 IPv6
  using L4 = Bits<uint8_t, 7, 6>;  // 0 none, 1 TCP, 2 UDP
};

/// The hash, by a table of what each value of each input byte contributes: 36 KiB.
class Toeplitz {
 public:
  static constexpr size_t kKeyBytes = 40;
  static constexpr size_t kMaxInput = 36;  // two IPv6 addresses, two ports

  explicit Toeplitz(const std::array<uint8_t, kKeyBytes>& key) {
    for (size_t at = 0; at < kMaxInput; ++at) {
      for (uint32_t value = 0; value < 256; ++value) {
        uint32_t sum = 0;
        for (uint32_t bit = 0; bit < 8; ++bit) {
          if ((value & (0x80u >> bit)) != 0) sum ^= window(key, at, bit);
        }
        table_[at][value] = sum;
      }
    }
  }

  /// Of `first` followed by `second`, at most kMaxInput bytes together.
  uint32_t hash(std::span<const std::byte> first, std::span<const std::byte> second) const {
    uint32_t sum = 0;
    size_t at = 0;
    for (const std::byte byte : first) sum ^= table_[at++][static_cast<uint8_t>(byte)];
    for (const std::byte byte : second) sum ^= table_[at++][static_cast<uint8_t>(byte)];
    return sum;
  }

 private:
  /// The 32 bits of the key that start at bit `bit` of byte `at`.
  static uint32_t window(const std::array<uint8_t, kKeyBytes>& key, size_t at, uint32_t bit) {
    uint64_t bits = 0;
    for (size_t i = 0; i < 5; ++i) bits = bits << 8 | (at + i < kKeyBytes ? key[at + i] : 0u);
    return static_cast<uint32_t>(bits >> (8 - bit));
  }

  std::array<std::array<uint32_t, 256>, kMaxInput> table_;
};

/// A hash as a completion reports it; type 0: none was computed.
struct RssHash {
  uint32_t value = 0;
  uint8_t type = 0;
};

/// Over addresses and ports; without ports (fragments, other protocols) over addresses only.
inline RssHash rss_hash(const Toeplitz& toeplitz, Frame frame, const Parsed& p) {
  const auto ip = addresses(frame, p);
  if (ip.empty()) return {};
  uint8_t type = HashType::Ip::set(0, p.l3 == hw::HeaderType::kL3Ipv4 ? 1 : 2);
  if (p.l4 != hw::HeaderType::kL4None) {
    type = HashType::L4::set(type, p.l4 == hw::HeaderType::kL4Udp ? 2 : 1);
  }
  return {toeplitz.hash(ip, ports(frame, p)), type};
}

}  // namespace nicmem::sim
