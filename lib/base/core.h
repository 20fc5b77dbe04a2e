// SPDX-License-Identifier: BSD-3-Clause
// Who runs, and when: handed to code that must not ask the machine (DESIGN.md section 6), so that
// N virtual cores can run in one thread and a test can set the time.
#pragma once

#include <cstdint>

namespace nicmem {

/// Nanoseconds since an arbitrary start.
using Nanos = uint64_t;

struct Core {
  uint32_t index = 0;
  Nanos now = 0;
};

}  // namespace nicmem
