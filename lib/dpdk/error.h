// SPDX-License-Identifier: BSD-3-Clause
// The one place where an error number of DPDK becomes an Error.
#pragma once

#include <string>

#include "base/result.h"

namespace nicmem::dpdk {

/// `rc` is a negative error number as DPDK returns it, or a positive one as in rte_errno.
Code from_rte(int rc);

/// An Error saying `what` and the text of the error number.
tl::unexpected<Error> fail_rte(const std::string& what, int rc);

}  // namespace nicmem::dpdk
