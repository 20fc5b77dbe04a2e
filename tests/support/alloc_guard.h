// SPDX-License-Identifier: BSD-3-Clause
// Counts the heap allocations of a scope, to prove that a hot path makes none:
//   AllocGuard guard;
//   forward_one_burst();
//   EXPECT_EQ(guard.count(), 0);
// A test that uses it links alloc_guard.cc (meson: alloc_guard_dep).
#pragma once

#include <cstdint>

namespace nicmem::test {

/// Allocations (malloc and its kin, so operator new too) of the calling thread since it started,
/// in this program and in every shared library.
uint64_t thread_allocations();

class AllocGuard {
 public:
  AllocGuard() : start_(thread_allocations()) {}
  /// Allocations of this thread since construction.
  uint64_t count() const { return thread_allocations() - start_; }

 private:
  uint64_t start_;
};

}  // namespace nicmem::test
