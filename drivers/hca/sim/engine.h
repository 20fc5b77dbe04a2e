// SPDX-License-Identifier: BSD-3-Clause
// Threads that run models in real time: one for each `cpu` asked for, shared by the models on it.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/nic.h"

namespace nicmem::hca_sim {

class Engine {
 public:
  /// Runs `nic` on the thread of `cpu`: a number, or "any" (a CPU outside the lcore mask where
  /// there is one, else wherever the kernel likes). Fails when that CPU cannot be had.
  static Result<void> add(sim::Nic& nic, const std::string& cpu);

  /// After this, no thread steps `nic`. Harmless for one that was not added.
  static void remove(sim::Nic& nic);
};

}  // namespace nicmem::hca_sim
