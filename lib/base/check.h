// SPDX-License-Identifier: BSD-3-Clause
// Checks for our own bugs: a broken invariant stops the program with the place and the words.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace nicmem {

[[noreturn]] inline void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace nicmem

/// Always on. One predictable branch.
#define NM_CHECK(condition) \
  ((condition) ? void() : ::nicmem::check_failed(#condition, __FILE__, __LINE__))

/// On in debug builds only: for inner loops.
#ifdef NDEBUG
#define NM_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#else
#define NM_DCHECK(condition) NM_CHECK(condition)
#endif
