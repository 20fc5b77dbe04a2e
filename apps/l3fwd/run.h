// SPDX-License-Identifier: BSD-3-Clause
// Turns the engine until told to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>

#include "engine.h"

namespace nicmem::l3fwd {

struct RunLimits {
  uint64_t frames = 0;         // stop once that many packets were received; 0: no limit
  uint64_t idle_exit_ms = 0;   // stop when nothing was received for that long; 0: no limit
  uint64_t stats_seconds = 0;  // print the table that often; 0: never
};

/// Returns when `stop` is set or a limit is reached.
void run(Engine& engine, const RunLimits& limits, const std::atomic<bool>& stop, std::ostream& out);

}  // namespace nicmem::l3fwd
