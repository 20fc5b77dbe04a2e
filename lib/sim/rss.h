// SPDX-License-Identifier: BSD-3-Clause
// Receive-side scaling: a Toeplitz hash of addresses and ports, and a table that it indexes.
// [Microsoft, "RSS Hashing Types" and "Verifying the RSS Hash Calculation"]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bits.h"
#include "hca/steering.h"
#include "hw/cqe.h"
#include "sim/parser.h"

namespace nicmem::sim {

/// Cqe::rx_hash_type: what the hash was computed over. The destination's bits are where Linux's
/// mlx5 driver has them (CQE_RSS_HTYPE_IP, CQE_RSS_HTYPE_L4), the source's are beside them.
struct HashType {
  using SourceIp = Bits<uint8_t, 1, 0>;  // 0 not hashed, 1 IPv4, 2 IPv6
  using DestinationIp = Bits<uint8_t, 3, 2>;
  using SourcePort = Bits<uint8_t, 5, 4>;  // 0 not hashed, 1 TCP, 2 UDP
  using DestinationPort = Bits<uint8_t, 7, 6>;
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

/// What `p` is, for the hash; none: it is not (well-formed) IP.
inline std::optional<hca::PacketKind> kind_of(const Parsed& p) {
  if (!p.l3_well_formed) return std::nullopt;
  const bool udp = p.l4 == hw::HeaderType::kL4Udp;
  const bool tcp = p.l4 != hw::HeaderType::kL4None && !udp;
  using enum hca::PacketKind;
  if (p.l3 == hw::HeaderType::kL3Ipv4) return udp ? kIpv4Udp : tcp ? kIpv4Tcp : kIpv4;
  return udp ? kIpv6Udp : tcp ? kIpv6Tcp : kIpv6;
}

/// Of two fields of equal length that lie one behind the other: those that are wanted.
inline std::span<const std::byte> select(std::span<const std::byte> both, bool first, bool second) {
  const size_t half = both.size() / 2;
  return both.subspan(first ? 0 : half, (first ? half : 0) + (second ? half : 0));
}

/// Over the fields that are wanted of the frame's kind; type 0 when there are none.
inline RssHash rss_hash(const Toeplitz& toeplitz, Frame frame, const Parsed& p,
                        const std::array<uint8_t, hca::kPacketKinds>& fields = hca::kHashAll) {
  using F = hca::HashFields;
  const auto kind = kind_of(p);
  if (!kind) return {};
  const uint8_t wanted = fields[static_cast<size_t>(*kind)];
  const auto has = [wanted](uint8_t field) { return (wanted & field) != 0; };
  const uint8_t ip = p.l3 == hw::HeaderType::kL3Ipv4 ? 1 : 2;
  const uint8_t l4 = p.l4 == hw::HeaderType::kL4Udp ? 2 : 1;
  uint8_t type = HashType::SourceIp::set(0, has(F::kSourceAddress) ? ip : 0);
  type = HashType::DestinationIp::set(type, has(F::kDestinationAddress) ? ip : 0);
  type = HashType::SourcePort::set(type, has(F::kSourcePort) ? l4 : 0);
  type = HashType::DestinationPort::set(type, has(F::kDestinationPort) ? l4 : 0);
  if (type == 0) return {};
  return {toeplitz.hash(
              select(addresses(frame, p), has(F::kSourceAddress), has(F::kDestinationAddress)),
              select(ports(frame, p), has(F::kSourcePort), has(F::kDestinationPort))),
          type};
}

}  // namespace nicmem::sim
