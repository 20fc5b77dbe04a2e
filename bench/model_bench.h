// SPDX-License-Identifier: BSD-3-Clause
// What the benchmarks of the model share: how a case is timed, and how it is named by the command
// line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "sim/nic.h"

namespace nicmem {

inline constexpr uint32_t kBurst = 32;  // frames a step

template <class T>
T take(Result<T> result) {
  NM_CHECK(result.has_value());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Not inlined, so that instructions can be counted from its start to its end.
[[gnu::noinline]] inline size_t step_model(sim::Nic& nic, Nanos now) {
  return nic.step(now, kBurst);
}

/// Times `Bench(c).burst()`, which returns the nanoseconds that the model took for kBurst frames.
/// The median over bursts: a burst that was interrupted does not count.
template <class Bench, class Case>
void measure(const Case& c, double seconds) {
  Bench bench(c);
  std::vector<uint64_t> bursts;
  uint64_t total = 0;
  while (static_cast<double>(total) < seconds * 1e9) {
    bursts.push_back(bench.burst());
    total += bursts.back();
  }
  const auto middle = bursts.begin() + static_cast<std::ptrdiff_t>(bursts.size() / 2);
  std::nth_element(bursts.begin(), middle, bursts.end());
  const double each = static_cast<double>(*middle) / kBurst;
  std::printf("%-38s %7.2f Mpps %7.1f ns\n", c.name, 1e3 / each, each);
}

/// main() of a benchmark: `[SECONDS]` times every case; `once CASE FRAMES` runs one, for callgrind.
template <class Bench, class Cases>
int run_benchmark(const Cases& cases, int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "once") {
    const size_t which = std::strtoul(argv[2], nullptr, 10);
    if (which >= std::size(cases)) return 2;
    Bench bench(cases[which]);
    for (uint64_t n = std::strtoull(argv[3], nullptr, 10) / kBurst; n > 0; --n) bench.burst();
    return 0;
  }
  const double seconds = argc == 2 ? std::strtod(argv[1], nullptr) : 0.5;
  for (const auto& c : cases) measure<Bench>(c, seconds);
  return 0;
}

}  // namespace nicmem
