// SPDX-License-Identifier: BSD-3-Clause
// The bus of a model that can fail: counts as CountingBus does, asks the plan about every access
// and logs it.
//
// Lateness keeps to what PCIe allows. A late access to a descriptor or to bytes of a frame holds
// back the completions behind it, for posted writes stay in order: payload is there before its
// completion. Completions hold back those of their own queue (CompletionRing), never another's. A
// record that is late shows what it showed before, although its doorbell may have been seen.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "hw/cqe.h"
#include "sim/bus.h"
#include "sim/fault_plan.h"

namespace nicmem::sim {

class FaultBus {
 public:
  static constexpr bool kCanFail = true;

  /// Without a plan it only counts.
  void follow(std::shared_ptr<FaultPlan> plan) { plan_ = std::move(plan); }
  void watch(const WatchedRing& ring) {
    if (plan_ != nullptr) plan_->log.watch(ring);
  }
  /// What a completion that has been written says; its opcode is not in it yet.
  void completed(const hw::Cqe& entry, hw::CqeOpcode opcode, Nanos now) {
    if (plan_ == nullptr) return;
    const auto code = static_cast<uint8_t>(opcode);
    const bool error = hw::is_error(hw::Cqe::Opcode::set(0, code));
    plan_->log.add(
        {.now = now,
         .kind = EventKind::kCompletion,
         .opcode = code,
         .syndrome = error ? reinterpret_cast<const hw::ErrorCqe&>(entry).syndrome : uint8_t{0},
         .index = entry.wqe_counter.get()});
  }

  Nanos read(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    return access(EventKind::kRead, c, at, bytes, now);
  }
  Nanos write(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    return access(EventKind::kWrite, c, at, bytes, now);
  }
  hw::PcieTally tally() const { return counting_.tally(); }

 private:
  static FaultClass class_of(hw::PcieClass c) {
    switch (c) {
      case hw::PcieClass::kRxCompletion:
      case hw::PcieClass::kTxCompletion:
        return FaultClass::kCompletion;
      case hw::PcieClass::kDoorbell:
      case hw::PcieClass::kDoorbellRecord:
        return FaultClass::kDoorbell;
      default:
        return FaultClass::kDma;
    }
  }

  Nanos access(EventKind kind, hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    if (plan_ == nullptr) return count(kind, c, at, bytes, now);
    const FaultClass fault_class = class_of(c);
    if (fault_class == FaultClass::kDoorbell && now < records_from_) return kFailed;
    const Fate fate = plan_->pass(fault_class);
    Event event{.now = now, .kind = kind, .c = c, .bytes = bytes, .at = at};
    if (fate.fails) {
      event.fate = EventFate::kFailure;
    } else if (fate.delay != 0) {
      event.fate = EventFate::kLate;
    }
    plan_->log.add(event);
    if (fate.fails) return kFailed;
    if (fate.delay != 0 && fault_class == FaultClass::kDoorbell) {
      records_from_ = now + fate.delay;
      return kFailed;
    }
    count(kind, c, at, bytes, now);
    if (fault_class == FaultClass::kDoorbell) return now;
    if (fault_class == FaultClass::kCompletion) return std::max(now, data_until_) + fate.delay;
    data_until_ = std::max(data_until_, now + fate.delay);
    return now + fate.delay;
  }

  Nanos count(EventKind kind, hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    return kind == EventKind::kRead ? counting_.read(c, at, bytes, now)
                                    : counting_.write(c, at, bytes, now);
  }

  std::shared_ptr<FaultPlan> plan_;
  CountingBus counting_;
  Nanos data_until_ = 0;    // when the last late access to descriptors or bytes is done
  Nanos records_from_ = 0;  // until then a late record keeps all looks from showing anything
};
static_assert(Bus<FaultBus>);

}  // namespace nicmem::sim
