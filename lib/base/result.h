// SPDX-License-Identifier: BSD-3-Clause
// Errors of the control path. The data path counts drops instead.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace nicmem {

/// What the caller can do about it, which is what distinguishes errors to a program.
enum class Code : unsigned char {
  kInvalidArgument,  // fix the argument
  kNotFound,         // the named thing does not exist
  kExhausted,        // a fixed-size resource is full; later may succeed
  kUnsupported,      // this device or build lacks the feature; retrying will not help
  kDevice,           // the device reported an error; `detail` is its syndrome
  kSystem,           // a system call failed; `detail` is errno
};

/// `what` names the thing, the value and what is accepted.
struct Error {
  Code code;
  std::string what;
  int detail = 0;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Code code, std::string what, int detail = 0) {
  return tl::unexpected<Error>(Error{code, std::move(what), detail});
}

}  // namespace nicmem

#define NM_CONCAT_(a, b) a##b
#define NM_CONCAT(a, b) NM_CONCAT_(a, b)
#define NM_TRY_(tmp, decl, expr)                                            \
  auto tmp = (expr);                                                        \
  if (!tmp) return tl::unexpected<::nicmem::Error>(std::move(tmp.error())); \
  decl = std::move(*tmp)
/// NM_TRY(auto x, f()): binds f()'s value, or returns its error from the enclosing function.
#define NM_TRY(decl, expr) NM_TRY_(NM_CONCAT(nm_try_, __LINE__), decl, expr)
/// NM_TRY_VOID(f()): the same for Result<void>.
#define NM_TRY_VOID(expr)                  \
  if (auto nm_result = (expr); !nm_result) \
  return tl::unexpected<::nicmem::Error>(std::move(nm_result.error()))
