// SPDX-License-Identifier: BSD-3-Clause
// The device's side of the rings: what it has seen of the driver's records, where it stands, and
// how it writes completions. Everything here lives under the gate; what the driver shares (rings,
// records, registers) is memory that these point to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>

#include "base/prefetch.h"
#include "hca/hca.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "sim/bus.h"

namespace nicmem::sim {

inline constexpr uint32_t kRecordBytes = sizeof(hw::DoorbellRecord);

/// One completion ring; several queues may share it.
class CompletionRing {
 public:
  CompletionRing(std::span<hw::Cqe> ring, hw::DoorbellRecord& consumer)
      : ring_(ring), consumer_(&consumer), depth_(static_cast<uint32_t>(ring.size())) {
    reset();
  }

  /// As new: no entry is the driver's, both counters are zero.
  void reset() {
    for (hw::Cqe& entry : ring_) hw::store_op_own(entry, hw::CqeOpcode::kInvalid, false);
    consumer_->publish<std::memory_order_relaxed>(0);
    producer_ = 0;
    consumed_ = 0;
    late_.clear();
  }

  /// Whether push() may be called. A consumer that claims more than was produced leaves no room.
  template <Bus B>
  bool has_room(B& bus, Nanos now) {
    if (used() < depth_) return true;
    // Modulo twice the depth, for drivers keep 16 bits of this counter as well as 24.
    const uint32_t consumed = consumer_->read() & (2 * depth_ - 1);
    if (consumed == consumed_) return false;
    if (failed<B>(
            bus.read(hw::PcieClass::kDoorbellRecord, Location::host(consumer_), kRecordBytes, now)))
      return false;
    consumed_ = consumed;
    return used() < depth_;
  }

  /// Writes an entry and hands it over. `fill` gets it zeroed, as an `Entry` (Cqe or ErrorCqe), and
  /// leaves op_own alone: that byte is the driver's to look at until it is stored here, last. It is
  /// filled in place because a copy of fields just stored would stall the processor. An entry whose
  /// write fails is lost: its slot keeps what it held, the next entry goes into the next slot.
  template <class Entry, Bus B, class Fill>
  void push(B& bus, hw::PcieClass c, hw::CqeOpcode opcode, Nanos now, Fill&& fill) {
    static_assert(sizeof(Entry) == sizeof(hw::Cqe));
    hw::Cqe& slot = ring_[producer_ & (depth_ - 1)];
    prefetch_write(&ring_[(producer_ + 4) & (depth_ - 1)]);
    const Nanos done = bus.write(c, Location::host(&slot), sizeof slot, now);
    if (!failed<B>(done)) {
      std::memset(static_cast<void*>(&slot), 0, offsetof(hw::Cqe, op_own));
      fill(reinterpret_cast<Entry&>(slot));
      if constexpr (requires { bus.completed(slot, opcode, now); })
        bus.completed(slot, opcode, now);
      if constexpr (B::kCanFail) {
        late_.push_back(
            {producer_, opcode, late_.empty() ? done : std::max(done, late_.back().at)});
      } else {
        hand_over(producer_, opcode);
      }
    }
    ++producer_;
    if constexpr (B::kCanFail) hand_over_late(now);
  }

  /// Hands over the late entries that are written by `now`, in their order. A bus whose accesses
  /// take time needs it at every step.
  void hand_over_late(Nanos now) {
    for (; !late_.empty() && late_.front().at <= now; late_.pop_front())
      hand_over(late_.front().index, late_.front().opcode);
  }

  /// Whether this is the device's side of `queue`.
  bool serves(const hca::CompletionQueue& queue) const { return ring_.data() == queue.ring.data(); }

  uint32_t queues = 0;  // that complete here

 private:
  /// An entry that is in the ring but for its owner byte.
  struct Late {
    uint32_t index;  // free running
    hw::CqeOpcode opcode;
    Nanos at;
  };

  uint32_t used() const { return (producer_ - consumed_) & (2 * depth_ - 1); }
  void hand_over(uint32_t index, hw::CqeOpcode opcode) {
    hw::store_op_own(ring_[index & (depth_ - 1)], opcode, (index & depth_) != 0);
  }

  std::span<hw::Cqe> ring_;
  hw::DoorbellRecord* consumer_;
  uint32_t depth_;
  uint32_t producer_ = 0;
  uint32_t consumed_ = 0;  // as last read
  std::deque<Late> late_;  // in the order of their indices
};

/// What a receive ring and a send ring have in common: a ring in host memory whose 16-bit producer
/// counter is in a record.
struct WorkRing {
  std::byte* ring = nullptr;
  hw::DoorbellRecord* record = nullptr;
  CompletionRing* completions = nullptr;
  uint32_t depth = 0;
  uint32_t stride_bytes = 0;
  uint32_t number = 0;
  hca::Domain domain{};
  uint16_t head = 0;    // next to be executed
  uint16_t posted = 0;  // as last read
  bool in_error = false;

  uint16_t available() const { return static_cast<uint16_t>(posted - head); }
  const std::byte* slot(uint16_t index) const {
    return ring + size_t{index & (depth - 1)} * stride_bytes;
  }
  void reset() {
    record->publish<std::memory_order_relaxed>(0);
    head = 0;
    posted = 0;
    in_error = false;
  }
};

struct ReceiveRing : WorkRing {
  uint32_t user_index = 0;
  bool stopped = false;
  bool strip_vlan = false;
  ReceiveRing* primary = nullptr;    // for which this one stands in; at most one of the two
  ReceiveRing* secondary = nullptr;  // takes frames while nothing is posted here

  /// Takes no frames, and waiting does not help. A ring that has lost its secondary to a stop or an
  /// error takes none either: the two are started anew together.
  bool is_dead() const {
    return stopped || in_error ||
           (secondary != nullptr && (secondary->stopped || secondary->in_error));
  }
  void reset() {
    WorkRing::reset();
    stopped = false;
  }
};

struct SendRing : WorkRing {
  hw::DoorbellRegister* doorbell = nullptr;
  uint64_t seen_doorbell = 0;
  bool record_due = false;  // the doorbell has rung, the record has not shown it yet
  bool stopped = false;     // executes nothing until it is reset
  uint32_t segmented = 0;  // of the request at `head`: payload bytes that have left in segments, or
                           // frames that have left, if it has many

  /// The register is cleared too: the first work request after a reset may have the very control
  /// segment that rang last before it.
  void reset() {
    WorkRing::reset();
    const uint64_t silent = 0;  // no control segment starts so: queue numbers start at 1
    doorbell->ring(&silent);
    seen_doorbell = silent;
    record_due = false;
    stopped = false;
    segmented = 0;
  }
};

/// Ends the life of WQE `index` with an error.
template <Bus B>
void push_error(B& bus, WorkRing& queue, hw::PcieClass c, hw::CqeOpcode opcode,
                hw::Syndrome syndrome, uint8_t wqe_opcode, uint16_t index, Nanos now) {
  queue.completions->push<hw::ErrorCqe>(bus, c, opcode, now, [&](hw::ErrorCqe& entry) {
    entry.syndrome = static_cast<uint8_t>(syndrome);
    entry.opcode_qpn.set(uint32_t{wqe_opcode} << 24 | queue.number);
    entry.wqe_counter.set(index);
  });
}

}  // namespace nicmem::sim
