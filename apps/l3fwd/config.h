// SPDX-License-Identifier: BSD-3-Clause
// The router's configuration: one YAML file, checked whole before any port is touched.
//
//   interfaces:                      # at least one
//     - port: net_nicmem0            # name of the ethdev
//       mac: 02:00:00:00:00:01       # default: the port's own
//       addresses: [198.18.0.1/24, 2001:db8::1/64]
//       mtu: 1500                    # largest IP packet, bytes
//       accept_any_mac: false        # forward frames sent to other stations' MACs too
//       rx_buffers: 4096             # packets the port can hold
//   neighbours:
//     - {address: 198.18.0.2, mac: 02:00:00:00:01:02, interface: net_nicmem0}
//   routes:
//     - {prefix: 0.0.0.0/0, via: 198.18.0.2}          # a neighbour, of the same family
//     - {prefix: "2001:db8:1::/48", via: "fe80::2", interface: net_nicmem0}
//     - {prefix: 203.0.113.0/24, interface: net_nicmem0, mac: 02:00:00:00:01:03}
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "address.h"
#include "base/result.h"

namespace nicmem::l3fwd {

inline constexpr uint32_t kMinMtuBytes = 68;  // RFC 791
inline constexpr uint32_t kMaxMtuBytes = 16384;
inline constexpr uint32_t kMinRxBuffers = 2048;  // twice the receive ring
inline constexpr uint32_t kMaxRxBuffers = 1u << 22;

struct InterfaceConfig {
  std::string port = {};
  std::optional<hw::MacAddress> mac = {};
  std::vector<Prefix> addresses = {};  // own address and length of the connected network
  uint32_t mtu_bytes = 1500;
  bool accept_any_mac = false;
  uint32_t rx_buffers = 4096;
};

struct NeighbourConfig {
  IpAddress address = {};
  hw::MacAddress mac = {};
  size_t interface = 0;  // index in Config::interfaces
};

struct RouteConfig {
  Prefix prefix = {};
  hw::MacAddress mac = {};  // of the next hop
  size_t interface = 0;
};

struct Config {
  std::vector<InterfaceConfig> interfaces = {};
  std::vector<NeighbourConfig> neighbours = {};
  std::vector<RouteConfig> routes = {};
};

/// kInvalidArgument: `what` is "file:line: what is wrong; accepted: ..." of the first error.
/// kSystem: the file cannot be read.
Result<Config> load_config(const std::string& path);

/// The same from text; `name` stands for the file in errors.
Result<Config> parse_config(const std::string& text, const std::string& name);

/// What will be configured, for people.
std::string summary(const Config& config);

}  // namespace nicmem::l3fwd
