// SPDX-License-Identifier: BSD-3-Clause
// Where received payload may lie. Device memory belongs to one device: a port whose packets can
// leave through another device must receive into host memory (DESIGN.md section 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace nicmem::l3fwd {

/// What the PMD net_nicmem exports, as far as this program needs it. Null where it is absent, so
/// that the router runs on any ethdev and links to no driver.
struct NicmemApi {
  int (*same_device)(uint16_t port_a, uint16_t port_b) = nullptr;  // 1 yes, 0 no
  int (*set_mode_host_payload)(uint16_t port) = nullptr;  // before the port's configuration
};
/// From whichever loaded object has them, plugins (EAL -d) included.
NicmemApi find_nicmem_api();

struct PortPlacement {
  enum class Kind : uint8_t { kNotNicmem, kOnCard, kHostPayload };

  uint16_t port = 0;
  std::string name;
  Kind kind = Kind::kNotNicmem;
};

/// Decides for one receiving port, and switches it to host payload if it must. Call before the
/// port is configured. kUnsupported when the driver cannot be asked or switched: starting
/// nevertheless would lose packets.
Result<PortPlacement> place_port(const NicmemApi& api, uint16_t port, const std::string& name,
                                 const std::string& driver, std::span<const uint16_t> egress);

/// One line for people.
std::string describe(const PortPlacement& placement);

}  // namespace nicmem::l3fwd
