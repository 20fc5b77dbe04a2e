// SPDX-License-Identifier: BSD-3-Clause
#include "address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "nf/martian.h"

namespace nicmem::l3fwd {
namespace {

/// Sets every bit beyond the first `length` to `bit`.
IpAddress fill_host_bits(const Prefix& prefix, bool bit) {
  IpAddress out = prefix.address;
  if (!out.is_v6) {
    const uint32_t host =
        prefix.length == 0 ? ~0u : (prefix.length >= 32 ? 0 : ~0u >> prefix.length);
    out.v4 = bit ? out.v4 | host : out.v4 & ~host;
    return out;
  }
  for (unsigned i = prefix.length; i < 128; ++i) {
    const auto mask = static_cast<uint8_t>(0x80u >> (i % 8));
    uint8_t& byte = out.v6.bytes[i / 8];
    byte = static_cast<uint8_t>(bit ? byte | mask : byte & ~mask);
  }
  return out;
}

}  // namespace

std::optional<IpAddress> parse_address(std::string_view text) {
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) return std::nullopt;
  IpAddress out;
  in_addr v4{};
  if (inet_pton(AF_INET, copy.c_str(), &v4) == 1) {
    out.v4 = ntohl(v4.s_addr);
    return out;
  }
  out.is_v6 = true;
  if (inet_pton(AF_INET6, copy.c_str(), out.v6.bytes) == 1) return out;
  return std::nullopt;
}

std::optional<Prefix> parse_prefix(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = parse_address(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (!address || error != std::errc() || end != digits.data() + digits.size() ||
      length > address->bits()) {
    return std::nullopt;
  }
  return Prefix{.address = *address, .length = length};
}

std::optional<hw::MacAddress> parse_mac(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  hw::MacAddress mac;
  for (size_t i = 0; i < 6; ++i) {
    const char* at = text.data() + 3 * i;
    if (i < 5 && at[2] != ':') return std::nullopt;
    const auto [end, error] = std::from_chars(at, at + 2, mac.bytes[i], 16);
    if (error != std::errc() || end != at + 2) return std::nullopt;
  }
  return mac;
}

std::string format(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const in_addr v4{.s_addr = htonl(address.v4)};
  if (address.is_v6) {
    inet_ntop(AF_INET6, address.v6.bytes, text, sizeof text);
  } else {
    inet_ntop(AF_INET, &v4, text, sizeof text);
  }
  return text;
}

std::string format(const Prefix& prefix) {
  return format(prefix.address) + "/" + std::to_string(prefix.length);
}

std::string format(const hw::MacAddress& mac) {
  char text[18] = {};
  const uint8_t* b = mac.bytes;
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
                b[5]);
  return text;
}

IpAddress network_of(const Prefix& prefix) { return fill_host_bits(prefix, false); }
IpAddress broadcast_of(const Prefix& prefix) { return fill_host_bits(prefix, true); }

bool contains(const Prefix& prefix, const IpAddress& address) {
  return prefix.address.is_v6 == address.is_v6 &&
         network_of(prefix) == network_of({.address = address, .length = prefix.length});
}

bool is_link_local(const IpAddress& address) {
  return address.is_v6 && address.v6.bytes[0] == 0xfe && (address.v6.bytes[1] & 0xc0) == 0x80;
}

bool is_martian(const IpAddress& address) {
  return address.is_v6 ? nf::is_martian_v6(address.v6) : nf::is_martian_v4(address.v4);
}

}  // namespace nicmem::l3fwd
