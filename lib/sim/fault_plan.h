// SPDX-License-Identifier: BSD-3-Clause
// What shall go wrong in a model: the k-th point of a class fails or is late, and what happens to
// the device by itself at which step. A constructor argument of the Nic, shared with whoever plans.
// It also counts the points that the model has come by, so that a test can try every one of them,
// and keeps the model's log.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/core.h"
#include "hca/hca.h"
#include "sim/event_log.h"

namespace nicmem::sim {

enum class FaultClass : uint8_t {
  kAllocation,  // a control call that needs something of the device: objects, regions, queue resets
  kDma,         // an access to a descriptor or to a frame's bytes
  kCompletion,  // the write of a completion
  kDoorbell,    // a look at a record
};
inline constexpr size_t kFaultClasses = 4;
inline constexpr std::array<const char*, kFaultClasses> kFaultClassNames = {
    "allocation", "dma", "completion", "doorbell"};

struct Fault {
  FaultClass at = FaultClass::kAllocation;
  uint64_t point = 1;  // the k-th of its class since restart(), from 1
  bool and_later = false;
  Nanos delay = 0;  // 0: it fails; else it is done that much later. An allocation is never late.
};

/// What becomes of one point.
struct Fate {
  bool fails = false;
  Nanos delay = 0;
};

/// What happens to the device before step number `step` from now.
struct PlannedEvent {
  uint64_t step = 0;
  hca::PortEvent what = hca::PortEvent::kLinkChanged;
  bool link_up = false;  // kLinkChanged
};

inline const char* to_text(const PlannedEvent& event) {
  switch (event.what) {
    case hca::PortEvent::kLinkChanged:
      return event.link_up ? "link up" : "link down";
    case hca::PortEvent::kDeviceReset:
      return "device reset";
    case hca::PortEvent::kRemoved:
      return "device removed";
  }
  return "";
}

/// Used by the model under its gate, and by the planner while nothing steps or calls the model.
class FaultPlan {
 public:
  void arm(const Fault& fault) { faults_.push_back(fault); }
  /// From now on nothing goes wrong.
  void disarm() {
    faults_.clear();
    events_.clear();
  }
  /// Counts anew.
  void restart() { seen_ = hit_ = {}; }

  /// Before the n-th step after this call, n from 1.
  void at_step(uint64_t n, hca::PortEvent what, bool link_up = false) {
    events_.push_back({steps_ + n, what, link_up});
  }

  /// The model has come to a point.
  Fate pass(FaultClass c) {
    const uint64_t point = ++seen_[static_cast<size_t>(c)];
    Fate fate;
    for (const Fault& fault : faults_) {
      if (fault.at != c || !(fault.point == point || (fault.and_later && fault.point < point)))
        continue;
      fate.fails |= fault.delay == 0;
      fate.delay = std::max(fate.delay, fault.delay);
    }
    if (fate.fails || fate.delay != 0) ++hit_[static_cast<size_t>(c)];
    return fate;
  }

  /// Counts a step. What is due before it, one by one.
  void step() { ++steps_; }
  std::optional<PlannedEvent> due() {
    const auto at = std::ranges::find_if(
        events_, [this](const PlannedEvent& event) { return event.step <= steps_; });
    if (at == events_.end()) return std::nullopt;
    const PlannedEvent event = *at;
    events_.erase(at);
    return event;
  }

  /// Points come by, and of these the ones that failed or were late, since restart().
  uint64_t seen(FaultClass c) const { return seen_[static_cast<size_t>(c)]; }
  uint64_t hit(FaultClass c) const { return hit_[static_cast<size_t>(c)]; }

  EventLog log;

 private:
  std::vector<Fault> faults_;
  std::vector<PlannedEvent> events_;
  std::array<uint64_t, kFaultClasses> seen_{}, hit_{};
  uint64_t steps_ = 0;
};

}  // namespace nicmem::sim
