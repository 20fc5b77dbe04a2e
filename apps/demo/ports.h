// SPDX-License-Identifier: BSD-3-Clause
// Virtual ports that come and go with a scope, and their extended statistics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace nicmem::demo {

/// Plugged vdevs; unplugged in reverse order.
class Vdevs {
 public:
  Vdevs() = default;
  Vdevs(const Vdevs&) = delete;
  Vdevs& operator=(const Vdevs&) = delete;
  ~Vdevs();

  Result<void> plug(const std::string& name, const std::string& arguments);

 private:
  std::vector<std::string> names_;
};

using Xstats = std::map<std::string, uint64_t>;

/// Of the ethdev `name`; empty if there is none.
Xstats xstats_of(const std::string& name);

/// Every statistic of `after` less the same of `before`.
Xstats difference(const Xstats& after, const Xstats& before);

/// Runs the port's device for at most `budget` frames.
void step(const std::string& name, uint32_t budget);

}  // namespace nicmem::demo
