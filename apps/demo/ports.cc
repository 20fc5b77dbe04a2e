// SPDX-License-Identifier: BSD-3-Clause
#include "ports.h"

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "rte_pmd_nicmem.h"

namespace nicmem::demo {

Vdevs::~Vdevs() {
  while (!names_.empty()) {
    rte_vdev_uninit(names_.back().c_str());
    names_.pop_back();
  }
}

Result<void> Vdevs::plug(const std::string& name, const std::string& arguments) {
  const int error = rte_vdev_init(name.c_str(), arguments.c_str());
  if (error != 0)
    return fail(Code::kSystem, name + "," + arguments + ": " + rte_strerror(-error), -error);
  names_.push_back(name);
  return {};
}

Xstats xstats_of(const std::string& name) {
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port) != 0) return {};
  const int count = rte_eth_xstats_get_names(port, nullptr, 0);
  if (count <= 0) return {};
  std::vector<rte_eth_xstat_name> names(static_cast<size_t>(count));
  std::vector<rte_eth_xstat> values(names.size());
  rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(count));
  rte_eth_xstats_get(port, values.data(), static_cast<unsigned>(count));
  Xstats all;
  for (const rte_eth_xstat& value : values) all[names[value.id].name] = value.value;
  return all;
}

Xstats difference(const Xstats& after, const Xstats& before) {
  Xstats result = after;
  for (auto& [name, value] : result)
    if (const auto old = before.find(name); old != before.end()) value -= old->second;
  return result;
}

void step(const std::string& name, uint32_t budget) {
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port) == 0) rte_pmd_nicmem_step(port, budget);
}

}  // namespace nicmem::demo
