// SPDX-License-Identifier: BSD-3-Clause
// The guard that proves hot paths free of allocations must itself see each kind of allocation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "support/alloc_guard.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

// Keeps the optimizer from removing an allocation that nobody looks at.
void* volatile sink;

TEST(AllocGuard, CountsNothingWhereNothingIsAllocated) {
  AllocGuard guard;
  volatile int x = 1;
  x = x + 1;
  EXPECT_EQ(guard.count(), 0u);
}

TEST(AllocGuard, CountsEachKindOfAllocation) {
  AllocGuard guard;
  sink = std::malloc(16);
  EXPECT_EQ(guard.count(), 1u) << "malloc";
  sink = std::realloc(sink, 1 << 20);
  EXPECT_EQ(guard.count(), 2u) << "realloc";
  std::free(sink);
  sink = std::calloc(4, 4);
  EXPECT_EQ(guard.count(), 3u) << "calloc";
  std::free(sink);
  sink = std::aligned_alloc(64, 64);
  EXPECT_EQ(guard.count(), 4u) << "aligned_alloc";
  std::free(sink);
  auto number = std::make_unique<int>(1);
  sink = number.get();
  EXPECT_EQ(guard.count(), 5u) << "operator new";
}

TEST(AllocGuard, SeesAllocationsInsideLibraries) {
  AllocGuard guard;
  const std::string text(100, 'x');  // libstdc++.so calls operator new
  sink = const_cast<char*>(text.data());
  EXPECT_EQ(guard.count(), 1u);
}

TEST(AllocGuard, CountsTheCallingThreadOnly) {
  uint64_t other = 0;
  uint64_t own = 0;
  std::thread thread([&] {
    AllocGuard guard;
    sink = std::malloc(8);
    std::free(sink);
    other = guard.count();
  });
  {
    AllocGuard guard;
    thread.join();
    own = guard.count();
  }
  EXPECT_EQ(other, 1u);
  EXPECT_EQ(own, 0u);
}

TEST(TestSeed, IsTheSameThroughARun) { EXPECT_EQ(test_seed(), test_seed()); }

}  // namespace
}  // namespace nicmem::test
