// SPDX-License-Identifier: BSD-3-Clause
// Errors at C boundaries: Code to errno, in this one place.
#pragma once

#include <cerrno>

#include "base/result.h"

namespace nicmem {

/// A positive errno value.
inline int to_errno(const Error& error) {
  switch (error.code) {
    case Code::kInvalidArgument:
      return EINVAL;
    case Code::kNotFound:
      return ENOENT;
    case Code::kExhausted:
      return ENOMEM;
    case Code::kUnsupported:
      return ENOTSUP;
    case Code::kDevice:
      return EIO;
    case Code::kSystem:
      return error.detail > 0 ? error.detail : EIO;
  }
  return EIO;
}

}  // namespace nicmem
