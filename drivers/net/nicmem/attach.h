// SPDX-License-Identifier: BSD-3-Clause
// From device arguments to a device and one of its ports. attach.cc is the only file of the driver
// that knows which control paths exist.
#pragma once

#include <memory>

#include "device.h"

namespace nicmem::pmd {

/// Opens the device that `args` names, or joins it when another port has opened it. `port_name` is
/// the ethdev's name. Errors: an unknown argument (names the accepted ones), what the control path
/// says, or arguments of the device given differently by two of its ports.
Result<std::shared_ptr<Device>> attach(const std::string& port_name, const Devargs& args);

}  // namespace nicmem::pmd
