// SPDX-License-Identifier: BSD-3-Clause
// Addresses and prefixes as people write them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hw/ether.h"
#include "hw/ipv6.h"

namespace nicmem::l3fwd {

/// An IPv4 (host order) or IPv6 address.
struct IpAddress {
  bool is_v6 = false;
  uint32_t v4 = 0;
  hw::Ipv6Address v6 = {};

  unsigned bits() const { return is_v6 ? 128 : 32; }
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

struct Prefix {
  IpAddress address = {};
  unsigned length = 0;

  friend auto operator<=>(const Prefix&, const Prefix&) = default;
  friend bool operator==(const Prefix&, const Prefix&) = default;
};

/// Nothing when the text is not one.
std::optional<IpAddress> parse_address(std::string_view text);
/// "address/length"; bits beyond the length are kept, as interface addresses need them.
std::optional<Prefix> parse_prefix(std::string_view text);
/// Six pairs of hexadecimal digits, with colons.
std::optional<hw::MacAddress> parse_mac(std::string_view text);

std::string format(const IpAddress& address);
std::string format(const Prefix& prefix);
std::string format(const hw::MacAddress& mac);

/// The address with all bits beyond the first `length` zero, or one.
IpAddress network_of(const Prefix& prefix);
IpAddress broadcast_of(const Prefix& prefix);
bool contains(const Prefix& prefix, const IpAddress& address);
bool is_link_local(const IpAddress& address);
/// Addresses that no packet on its way through a router may carry.
bool is_martian(const IpAddress& address);

}  // namespace nicmem::l3fwd
