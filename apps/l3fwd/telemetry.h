// SPDX-License-Identifier: BSD-3-Clause
// The telemetry command /nicmem/l3fwd/stats: live counts on DPDK's telemetry socket.
#pragma once

#include "base/result.h"
#include "engine.h"

namespace nicmem::l3fwd {

/// Answers for `engine` while it lives. DPDK cannot unregister a command; once this object is
/// gone the command answers with an error. At most one at a time.
class TelemetryCommand {
 public:
  static constexpr const char* kCommand = "/nicmem/l3fwd/stats";

  explicit TelemetryCommand(const Engine& engine);
  TelemetryCommand(const TelemetryCommand&) = delete;
  TelemetryCommand& operator=(const TelemetryCommand&) = delete;
  ~TelemetryCommand();
};

}  // namespace nicmem::l3fwd
