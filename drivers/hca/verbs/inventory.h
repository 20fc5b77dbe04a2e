// SPDX-License-Identifier: BSD-3-Clause
// Which cards there are, and what each says of itself.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/hca/verbs/plugin.h"

namespace nicmem::hca_verbs {

/// See Plugin::list(), find(), report().
Result<std::vector<DeviceName>> list_devices();
Result<DeviceName> find_device(const std::string& ibdev);
Result<DeviceReport> report_on(const DeviceName& device);

}  // namespace nicmem::hca_verbs
