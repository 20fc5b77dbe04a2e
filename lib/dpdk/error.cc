// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/error.h"

#include <rte_errno.h>

#include <cstdlib>

#include "base/error_number.h"

namespace nicmem::dpdk {

Code from_rte(int rc) { return from_errno(std::abs(rc)); }

tl::unexpected<Error> fail_rte(const std::string& what, int rc) {
  const int number = std::abs(rc);
  return fail(from_rte(rc), what + ": " + rte_strerror(number), number);
}

}  // namespace nicmem::dpdk
