// SPDX-License-Identifier: BSD-3-Clause
// Opens the verbs piece.
#pragma once

#include "base/result.h"
#include "drivers/hca/verbs/plugin.h"

namespace nicmem::hca_verbs {

/// The verbs piece, opened once and for good. kUnsupported: it or rdma-core is not there, or it is
/// of another version; the error says what to install.
Result<Plugin*> load();

}  // namespace nicmem::hca_verbs
