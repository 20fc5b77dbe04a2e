// SPDX-License-Identifier: BSD-3-Clause
// Threads that run models in real time: one for each `cpu` asked for, shared by the models on it.
#pragma once

#include <sched.h>

#include <string>

#include "base/result.h"
#include "hca/hca.h"

namespace nicmem::hca_sim {

class Engine {
 public:
  /// Runs `nic`, whose step() knows the time, on the thread of `cpu`: a number, or "any" of `any`.
  /// Fails when that CPU cannot be had.
  static Result<void> add(hca::Hca& nic, const std::string& cpu, const cpu_set_t& any);

  /// After this, no thread steps `nic`. Harmless for one that was not added.
  static void remove(hca::Hca& nic);
};

}  // namespace nicmem::hca_sim
