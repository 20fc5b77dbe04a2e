// SPDX-License-Identifier: BSD-3-Clause
// A bus on which chosen accesses fail: the next ones of a class.
#pragma once

#include <array>

#include "sim/bus.h"

namespace nicmem::test {

class FailingBus {
 public:
  static constexpr bool kCanFail = true;

  /// Of accesses of class `c` from now on, lets `pass` happen and fails the `fail` after them.
  static void plan(hw::PcieClass c, uint32_t pass, uint32_t fail) {
    plans()[index(c)] = {pass, fail};
  }
  static void forget_plans() { plans() = {}; }

  Nanos read(hw::PcieClass c, const sim::Location& at, uint32_t bytes, Nanos now) {
    return fails(c) ? sim::kFailed : counting_.read(c, at, bytes, now);
  }
  Nanos write(hw::PcieClass c, const sim::Location& at, uint32_t bytes, Nanos now) {
    return fails(c) ? sim::kFailed : counting_.write(c, at, bytes, now);
  }
  hw::PcieTally tally() const { return counting_.tally(); }

 private:
  struct Plan {
    uint32_t pass = 0;
    uint32_t fail = 0;
  };
  // One for all buses: a port makes its own bus.
  static std::array<Plan, hw::kPcieClasses>& plans() {
    static std::array<Plan, hw::kPcieClasses> plans;
    return plans;
  }
  static size_t index(hw::PcieClass c) { return static_cast<size_t>(c); }
  static bool fails(hw::PcieClass c) {
    Plan& plan = plans()[index(c)];
    uint32_t& left = plan.pass > 0 ? plan.pass : plan.fail;
    const bool failure = plan.pass == 0 && plan.fail > 0;
    if (left > 0) --left;
    return failure;
  }

  sim::CountingBus counting_;
};
static_assert(sim::Bus<FailingBus>);

}  // namespace nicmem::test
