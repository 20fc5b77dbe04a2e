// SPDX-License-Identifier: BSD-3-Clause
// wire=ethdev:NAME of the fake, in an object of its own: a program without DPDK never loads it.
#include "dpdk/ethdev_wire.h"

#include <memory>
#include <string>

using Wire = nicmem::Result<std::unique_ptr<nicmem::sim::Wire>>;

/// The caller's to delete: a result that is not copied cannot be assigned.
extern "C" Wire* nm_fake_verbs_open_ethdev(const std::string& name) {
  return new Wire(nicmem::dpdk::EthdevWire::open(name));
}
