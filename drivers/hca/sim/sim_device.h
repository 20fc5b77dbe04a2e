// SPDX-License-Identifier: BSD-3-Clause
// The model as a control path of the PMD: opens a device, gives its ports their wires, and runs it
// on a thread unless the program steps it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "drivers/hca/sim/options.h"
#include "hca/hca.h"

namespace nicmem::hca_sim {

/// Opens a device for the port named in `options`.
Result<std::unique_ptr<hca::Hca>> open(const std::string& name, const Options& options);

/// Prepares `device`, which open() made, for one more port. kInvalidArgument when the port's
/// arguments ask for another device than the one that is there.
Result<void> join(hca::Hca& device, const Options& options);

/// What goes wrong in `device`, which open() made, and its log. Null unless it was opened with
/// `fault`.
std::shared_ptr<sim::FaultPlan> fault_plan(hca::Hca& device);

}  // namespace nicmem::hca_sim
