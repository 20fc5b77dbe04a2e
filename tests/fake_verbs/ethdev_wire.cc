// SPDX-License-Identifier: BSD-3-Clause
// wire=ethdev:NAME of the fake, in an object of its own: a program without DPDK never loads it.
#include "dpdk/ethdev_wire.h"

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>

#include <cstring>
#include <memory>
#include <string>

using Wire = nicmem::Result<std::unique_ptr<nicmem::sim::Wire>>;

namespace {

/// EAL probes PCI, and with it the program's mlx5 ports, before what --vdev asks for: the other end
/// of the wire is then brought forward.
void probe_early(const std::string& name) {
  uint16_t port;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port) == 0) return;
  rte_devargs* found = nullptr;
  RTE_EAL_DEVARGS_FOREACH("vdev", found) {
    if (name != found->name) continue;
    const std::string arguments = found->args != nullptr ? found->args : "";
    rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str());
    return;
  }
}

}  // namespace

/// The caller's to delete: a result that is not copied cannot be assigned.
extern "C" Wire* nm_fake_verbs_open_ethdev(const std::string& name) {
  probe_early(name);
  return new Wire(nicmem::dpdk::EthdevWire::open(name));
}
