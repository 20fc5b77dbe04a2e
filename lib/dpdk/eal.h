// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment (EAL) for the life of a program: started once, cleaned up at the end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace nicmem::dpdk {

/// A command line in the way that DPDK programs have it: `program EAL... -- OWN...`. Without a
/// `--`, all arguments are the program's own.
struct SplitArguments {
  std::vector<std::string> eal;  // starts with the program's name
  std::vector<std::string> own;  // starts with the program's name
};
SplitArguments split_arguments(int argc, char** argv);

/// Owns the EAL. At most one at a time in a process, and DPDK cannot be started a second time.
class Eal {
 public:
  /// Starts the EAL. `arguments` starts with the program's name. kInvalidArgument and others as
  /// rte_eal_init has them; DPDK itself has printed the details.
  static Result<Eal> start(std::vector<std::string> arguments);

  Eal(Eal&& other) noexcept : started_(std::exchange(other.started_, false)) {}
  Eal& operator=(Eal&&) = delete;
  ~Eal();

 private:
  Eal() = default;
  bool started_ = true;
};

}  // namespace nicmem::dpdk
