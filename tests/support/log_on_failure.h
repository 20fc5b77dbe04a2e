// SPDX-License-Identifier: BSD-3-Clause
// Shows what a model did last when the test that holds this has failed.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "sim/event_log.h"

namespace nicmem::test {

class LogOnFailure {
 public:
  explicit LogOnFailure(const sim::EventLog& log) : log_(log) {}
  ~LogOnFailure() {
    if (!testing::Test::HasFailure() || shown) return;
    shown = true;  // the first failure is the one to look at
    std::printf("what the model did last:\n%s", log_.text().c_str());
  }
  LogOnFailure(const LogOnFailure&) = delete;
  LogOnFailure& operator=(const LogOnFailure&) = delete;

 private:
  static inline bool shown = false;
  const sim::EventLog& log_;
};

}  // namespace nicmem::test
