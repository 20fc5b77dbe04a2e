// SPDX-License-Identifier: BSD-3-Clause
// The ports of this process, for those who ask about them from threads of their own: telemetry and
// secondary processes. ethdev itself has no lock for this.
#pragma once

#include <mutex>
#include <vector>

#include "compat.h"

namespace nicmem::pmd {

struct Port;

/// Held by everything but the data path, events and the link. Never taken while PortEvents delivers
/// one, and PortEvents::detach() never called with it held.
std::recursive_mutex& control_mutex();

// With that lock held:
const std::vector<Port*>& live_ports();
void add_port(Port& port);
void remove_port(Port& port);
/// Null: no port of this driver, or one that has gone.
Port* live_port(const rte_eth_dev* dev);
Port* live_port(uint16_t port_id);

/// The same operation under the control lock.
template <auto kOperation>
struct Locked;
template <class R, class... Args, R (*kOperation)(Args...)>
struct Locked<kOperation> {
  static R call(Args... args) {
    const std::lock_guard lock(control_mutex());
    return kOperation(args...);
  }
};
template <auto kOperation>
inline constexpr auto locked = &Locked<kOperation>::call;

}  // namespace nicmem::pmd
