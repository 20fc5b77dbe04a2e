// SPDX-License-Identifier: BSD-3-Clause
// Random TCP and UDP packets over IPv4 and IPv6, with VLAN tags, IP options, extension headers and
// TCP options, and a checker of their checksums that shares no code with the product: bytes, one
// after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace nicmem::test {

struct RandomPacket {
  std::vector<std::byte> bytes;
  bool v4 = false, tcp = false;
  size_t l3 = 0;       // where the IP header starts
  size_t l4 = 0;       // TCP or UDP
  size_t payload = 0;  // behind it

  size_t l3_checksum_at() const { return l3 + 10; }
  size_t l4_checksum_at() const { return l4 + (tcp ? 16 : 6); }
};

inline uint8_t octet(const std::vector<std::byte>& bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]);
}
inline uint32_t octets(const std::vector<std::byte>& bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | octet(bytes, at + i);
  return value;
}
inline void set_octets(std::vector<std::byte>& bytes, size_t at, size_t count, uint32_t value) {
  for (size_t i = count; i-- > 0; value >>= 8) bytes[at + i] = static_cast<std::byte>(value);
}

/// The ones-complement sum of [from, to) as 16-bit words, from `sum` on.
inline uint32_t naive_sum(const std::vector<std::byte>& bytes, size_t from, size_t to,
                          uint32_t sum = 0) {
  for (size_t at = from; at < to; ++at) {
    sum += (at - from) % 2 == 0 ? uint32_t{octet(bytes, at)} << 8 : octet(bytes, at);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

/// Whether the IPv4 header of `p` adds up.
inline bool l3_adds_up(const RandomPacket& p) {
  const size_t header = 4u * (octet(p.bytes, p.l3) & 0xf);
  return naive_sum(p.bytes, p.l3, p.l3 + header) == 0xffff;
}

/// Whether TCP or UDP adds up to the frame's end.
inline bool l4_adds_up(const RandomPacket& p) {
  const auto length = static_cast<uint32_t>(p.bytes.size() - p.l4);
  uint32_t sum = (p.tcp ? 6u : 17u) + (length >> 16) + (length & 0xffff);
  sum = p.v4 ? naive_sum(p.bytes, p.l3 + 12, p.l3 + 20, sum)
             : naive_sum(p.bytes, p.l3 + 8, p.l3 + 40, sum);
  return naive_sum(p.bytes, p.l4, p.bytes.size(), sum) == 0xffff;
}

/// A packet with `payload_bytes` behind its headers. Lengths are right, the checksum fields hold
/// anything.
inline RandomPacket random_packet(Rng& rng, size_t payload_bytes, bool tcp) {
  RandomPacket p;
  p.v4 = rng.below(2) == 0;
  p.tcp = tcp;
  std::vector<std::byte>& out = p.bytes;
  const auto random = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<std::byte>(rng.next()));
  };
  const auto put = [&](std::initializer_list<int> values) {
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
  };
  random(12);
  for (uint64_t tags = rng.below(3); tags > 0; --tags) {
    put({0x81, 0x00});
    random(2);
  }
  const int protocol = tcp ? 6 : 17;
  if (p.v4) {
    put({0x08, 0x00});
    p.l3 = out.size();
    const size_t words = 5 + rng.below(11);
    put({0x40 | static_cast<int>(words)});
    random(words * 4 - 1);
    out[p.l3 + 6] &= std::byte{0x40};  // no fragment
    out[p.l3 + 7] = std::byte{0};
    out[p.l3 + 9] = static_cast<std::byte>(protocol);
  } else {
    put({0x86, 0xdd});
    p.l3 = out.size();
    put({0x60});
    random(39);
    size_t next = p.l3 + 6;  // where the type of the next header is to be written
    constexpr int kExtensions[] = {0, 60, 60};  // hop by hop, destination options
    for (size_t i = rng.below(4); i > 0; --i) {
      out[next] = static_cast<std::byte>(kExtensions[i - 1]);
      next = out.size();
      const size_t units = rng.below(3);
      put({0, static_cast<int>(units)});
      random(units * 8 + 6);
    }
    out[next] = static_cast<std::byte>(protocol);
  }
  p.l4 = out.size();
  const size_t words = tcp ? 5 + rng.below(11) : 2;
  random(words * 4);
  if (tcp) out[p.l4 + 12] = static_cast<std::byte>(words << 4 | rng.below(16));
  p.payload = out.size();
  random(payload_bytes);
  const auto l3_bytes = static_cast<uint32_t>(out.size() - p.l3);
  if (p.v4) {
    set_octets(out, p.l3 + 2, 2, l3_bytes);
  } else {
    set_octets(out, p.l3 + 4, 2, l3_bytes - 40);
  }
  if (!tcp) set_octets(out, p.l4 + 4, 2, static_cast<uint32_t>(out.size() - p.l4));
  return p;
}

}  // namespace nicmem::test
