// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

#include <chrono>
#include <ostream>

#include "report.h"

namespace nicmem::l3fwd {

void run(Engine& engine, const RunLimits& limits, const std::atomic<bool>& stop,
         std::ostream& out) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPollsPerLook = 256;  // reading the clock costs as much as an empty poll
  const std::chrono::milliseconds idle_limit(limits.idle_exit_ms);
  const std::chrono::seconds stats_period(limits.stats_seconds);
  uint64_t received = 0;
  Clock::time_point last_packet = Clock::now();
  Clock::time_point next_stats = last_packet + stats_period;

  while (!stop.load(std::memory_order_relaxed)) {
    size_t fresh = 0;
    for (int i = 0; i < kPollsPerLook; ++i) {
      fresh += engine.poll_once();
      if (limits.frames > 0 && received + fresh >= limits.frames) return;
    }
    received += fresh;
    const Clock::time_point now = Clock::now();
    if (fresh > 0) last_packet = now;
    if (limits.idle_exit_ms > 0 && now - last_packet >= idle_limit) return;
    if (limits.stats_seconds > 0 && now >= next_stats) {
      out << table(engine.stats()) << std::flush;
      next_stats = now + stats_period;
    }
  }
}

}  // namespace nicmem::l3fwd
