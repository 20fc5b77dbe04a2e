// SPDX-License-Identifier: BSD-3-Clause
#include "ports.h"

#include <algorithm>

#include "port.h"

namespace nicmem::pmd {
namespace {

std::vector<Port*>& ports() {
  static auto& instance = *new std::vector<Port*>;  // telemetry's threads outlive destructors
  return instance;
}

template <class Matches>
Port* find(Matches&& matches) {
  const auto at = std::ranges::find_if(ports(), matches);
  return at == ports().end() ? nullptr : *at;
}

}  // namespace

std::recursive_mutex& control_mutex() {
  static auto& instance = *new std::recursive_mutex;
  return instance;
}

const std::vector<Port*>& live_ports() { return ports(); }
void add_port(Port& port) { ports().push_back(&port); }
void remove_port(Port& port) { std::erase(ports(), &port); }

Port* live_port(const rte_eth_dev* dev) {
  return find([dev](const Port* port) { return port->ethdev == dev; });
}

Port* live_port(uint16_t port_id) {
  return find([port_id](const Port* port) { return port->ethdev->data->port_id == port_id; });
}

}  // namespace nicmem::pmd
