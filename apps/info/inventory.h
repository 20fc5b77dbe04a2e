// SPDX-License-Identifier: BSD-3-Clause
// Which devices there are: cards through the piece that needs rdma-core, which is opened as the
// driver opens it, and the model.
#pragma once

#include "base/result.h"
#include "device.h"

namespace nicmem::info {

/// Opens every card once, for a moment, and tries there what nicmem needs; takes no frame from
/// anybody. Fails only where there is no memory for the model.
Result<Inventory> look_around();

}  // namespace nicmem::info
