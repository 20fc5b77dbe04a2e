// SPDX-License-Identifier: BSD-3-Clause
// The control path's rule object: it keeps an entry of the port's steering table.
#pragma once

#include <cstdint>
#include <utility>

#include "hca/steering.h"
#include "sim/gate.h"
#include "sim/steering.h"

namespace nicmem::sim {

class SimRule final : public hca::Rule {
 public:
  /// Under the gate. `steering` outlives the rule.
  SimRule(Gate& gate, Steering& steering, RuleEntry entry, bool counts)
      : gate_(gate), steering_(steering), entry_(std::move(entry)), counts_(counts) {
    steering_.add(entry_);
  }
  ~SimRule() override {
    const Gate::Control control(gate_);
    steering_.remove(entry_);
  }

  Result<hca::RuleCount> count() const override {
    if (!counts_) return fail(Code::kUnsupported, "rule: it was made without a counter");
    const Gate::Control control(gate_);
    return entry_.count;
  }

 private:
  Gate& gate_;
  Steering& steering_;
  RuleEntry entry_;
  bool counts_;
};

}  // namespace nicmem::sim
