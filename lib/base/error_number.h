// SPDX-License-Identifier: BSD-3-Clause
// What kind of failure an errno is.
#pragma once

#include <cerrno>

#include "base/result.h"

namespace nicmem {

inline Code from_errno(int number) {
  switch (number) {
    case EINVAL:
      return Code::kInvalidArgument;
    case ENODEV:
    case ENOENT:
      return Code::kNotFound;
    case ENOMEM:
    case ENOSPC:
      return Code::kExhausted;
    case EOPNOTSUPP:  // Linux's ENOTSUP too
    case ENOSYS:
      return Code::kUnsupported;
    case EIO:
      return Code::kDevice;
    default:
      return Code::kSystem;
  }
}

}  // namespace nicmem
