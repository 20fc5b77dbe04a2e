// SPDX-License-Identifier: BSD-3-Clause
// What `wire=` plugs a port into. Without DPDK: a wire to another ethdev comes from who has it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/core.h"
#include "base/result.h"
#include "drivers/hca/sim/options.h"
#include "hca/hca.h"
#include "sim/wire.h"

namespace nicmem::hca_sim {

using EthdevWires = std::function<Result<std::unique_ptr<sim::Wire>>(const std::string& name)>;

Result<std::unique_ptr<sim::Wire>> make_wire(const Options& options, const hca::PortOptions& port,
                                             const EthdevWires& ethdev);

/// The time of a model that runs by itself.
Nanos steady_now();

}  // namespace nicmem::hca_sim
