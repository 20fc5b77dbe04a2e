// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/error.h"

#include <rte_errno.h>

#include <cerrno>
#include <cstdlib>

namespace nicmem::dpdk {

Code from_rte(int rc) {
  switch (std::abs(rc)) {
    case EINVAL:
      return Code::kInvalidArgument;
    case ENODEV:
    case ENOENT:
      return Code::kNotFound;
    case ENOMEM:
    case ENOSPC:
      return Code::kExhausted;
    case ENOTSUP:
      return Code::kUnsupported;
    case EIO:
      return Code::kDevice;
    default:
      return Code::kSystem;
  }
}

tl::unexpected<Error> fail_rte(const std::string& what, int rc) {
  const int number = std::abs(rc);
  return fail(from_rte(rc), what + ": " + rte_strerror(number), number);
}

}  // namespace nicmem::dpdk
