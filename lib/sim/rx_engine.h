// SPDX-License-Identifier: BSD-3-Clause
// Receive: takes frames from the wire, fetches a work request for each, scatters the bytes over its
// entries and writes the completion. A frame that has to wait (for a work request on a wire that
// loses nothing, for room in the completion ring) stays at the head of the batch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/prefetch.h"
#include "hw/wqe.h"
#include "sim/port_core.h"
#include "sim/rings.h"
#include "sim/steering.h"

namespace nicmem::sim {

template <Bus B>
class RxEngine {
 public:
  explicit RxEngine(PortCore<B>& port) : port_(port) {}

  Steering& steering() { return steering_; }

  /// Frames that have left the wire and not reached a queue.
  uint64_t held() const { return count_ - next_; }

  /// Works off at most `budget` frames; returns how many, dropped ones included.
  uint32_t run(Nanos now, uint32_t budget) {
    uint32_t done = 0;
    while (done < budget) {
      if (next_ == count_) {
        count_ = port_.wire->receive(batch_, now);
        next_ = 0;
        if (count_ == 0) break;
        for (size_t i = 0; i < std::min(kAhead, count_); ++i) prefetch_read(batch_[i].data());
      }
      if (next_ + kAhead < count_) prefetch_read(batch_[next_ + kAhead].data());
      if (!take(batch_[next_], now)) break;
      ++next_;
      ++done;
    }
    return done;
  }

 private:
  static constexpr size_t kAhead = 4;  // frames whose first bytes are on their way to the cache

  /// Delivers or drops one frame; false: it has to wait.
  bool take(Frame frame, Nanos now) {
    hca::PortCounters& counters = port_.counters;
    if (frame.size() < sizeof(hw::EtherHeader)) return drop(counters.rx_malformed);
    if (frame.size() > port_.max_frame_bytes) return drop(counters.rx_oversize);
    const Parsed parsed = parse(frame);
    const Verdict verdict = steering_.decide(frame, parsed);
    if (verdict.queue == nullptr) {
      return drop(verdict, frame,
                  verdict.rule ? counters.rx_dropped_by_rule : counters.rx_filtered);
    }
    ReceiveRing* const ready = ready_ring(*verdict.queue, now);
    if (ready == nullptr) {
      // A queue in error or stopped will not get better by waiting; others may be behind this
      // frame.
      if (port_.wire->lossless() && !verdict.queue->is_dead()) return false;
      return drop(verdict, frame, counters.rx_no_buffer);
    }
    ReceiveRing& queue = *ready;
    if (!queue.completions->has_room(port_.bus, now)) return false;
    note(verdict, frame);
    deliver(queue, frame, parsed, verdict, now);
    return true;
  }

  static bool drop(uint64_t& counter) {
    ++counter;
    return true;
  }
  static bool drop(const Verdict& verdict, Frame frame, uint64_t& counter) {
    note(verdict, frame);
    return drop(counter);
  }

  /// A rule counts what it takes, once a frame, whatever becomes of it then.
  static void note(const Verdict& verdict, Frame frame) {
    if (verdict.rule == nullptr) return;
    ++verdict.rule->count.packets;
    verdict.rule->count.bytes += frame.size();
  }

  /// Which ring takes a frame that is steered to `queue`: itself, or its secondary while nothing is
  /// posted here. Null: neither can.
  ReceiveRing* ready_ring(ReceiveRing& queue, Nanos now) {
    if (queue.secondary == nullptr || queue.is_dead())
      return has_posted(queue, now) ? &queue : nullptr;
    if (has_posted(queue, now)) return &queue;
    return has_posted(*queue.secondary, now) ? queue.secondary : nullptr;
  }

  /// Reads the record only when what was seen of it is used up.
  bool has_posted(ReceiveRing& queue, Nanos now) {
    if (queue.is_dead()) return false;
    if (queue.available() > 0) return true;
    const auto posted = static_cast<uint16_t>(queue.record->read());
    if (posted == queue.posted) return false;
    if (failed<B>(port_.bus.read(hw::PcieClass::kDoorbellRecord, Location::host(queue.record),
                                 kRecordBytes, now)))
      return false;
    if (static_cast<uint16_t>(posted - queue.head) > queue.depth) {
      // More than the ring has: what the entries hold is not known. Wait until an error entry fits.
      if (!queue.completions->has_room(port_.bus, now)) return false;
      fail(queue, hw::Syndrome::kLocalQpOperation, now);
      return false;
    }
    queue.posted = posted;
    return true;
  }

  void fail(ReceiveRing& queue, hw::Syndrome syndrome, Nanos now) {
    queue.in_error = syndrome != hw::Syndrome::kLocalLength;
    push_error(port_.bus, queue, hw::PcieClass::kRxCompletion, hw::CqeOpcode::kResponderError,
               syndrome, 0, queue.head, now);
  }

  void deliver(ReceiveRing& queue, Frame frame, const Parsed& parsed, const Verdict& verdict,
               Nanos now) {
    prefetch_target(queue);
    const hw::VlanTag* tag = queue.strip_vlan ? outer_tag(frame, parsed) : nullptr;
    const Frame bytes = tag != nullptr ? without_tag(frame) : frame;
    const hw::Syndrome syndrome = scatter(queue, bytes, now);
    if (syndrome == hw::Syndrome::kNone) {
      complete(queue, frame, parsed, verdict, tag, now);
      ++port_.counters.rx_frames;
      port_.counters.rx_bytes += bytes.size();
    } else {
      fail(queue, syndrome, now);
      ++port_.counters.rx_error;
    }
    ++queue.head;
  }

  /// A copy of `frame` without its outermost tag.
  Frame without_tag(Frame frame) {
    constexpr size_t kAt = offsetof(hw::EtherHeader, type);
    constexpr size_t kBehind = kAt + sizeof(hw::VlanTag);
    std::byte* const copy = untagged_->data();
    std::memcpy(copy, frame.data(), kAt);
    std::memcpy(copy + kAt, frame.data() + kBehind, frame.size() - kBehind);
    return {copy, frame.size() - sizeof(hw::VlanTag)};
  }

  /// Asks for the memory that a work request a little ahead points to.
  void prefetch_target(const ReceiveRing& queue) const {
    if (queue.available() <= kAhead) return;  // not posted: the driver may be writing it
    hw::DataSegment entry;
    std::memcpy(static_cast<void*>(&entry), queue.slot(static_cast<uint16_t>(queue.head + kAhead)),
                sizeof entry);
    const Allowed to = port_.regions.resolve(entry.key.get(), queue.domain, entry.address.get(), 1,
                                             hca::Access::kRead);
    prefetch_read(to.memory);
  }

  /// Fills the entries of the work request at the queue's head, in order.
  hw::Syndrome scatter(const ReceiveRing& queue, Frame frame, Nanos now) {
    const std::byte* const wqe = queue.slot(queue.head);
    if (failed<B>(port_.bus.read(hw::PcieClass::kRxDescriptor, Location::host(wqe),
                                 queue.stride_bytes, now)))
      return hw::Syndrome::kLocalQpOperation;
    const auto size = static_cast<uint32_t>(frame.size());
    uint32_t done = 0;
    for (uint32_t at = 0; at < queue.stride_bytes && done < size; at += sizeof(hw::DataSegment)) {
      hw::DataSegment entry;  // a copy: the host may change its own while it is checked
      std::memcpy(static_cast<void*>(&entry), wqe + at, sizeof entry);
      const uint32_t length = entry.byte_count.get();
      const uint32_t key = entry.key.get();
      if (length == 0 && key == hw::kInvalidKey) break;
      if (length == 0) continue;
      if ((length & hw::DataSegment::kInline) != 0) return hw::Syndrome::kLocalQpOperation;
      const uint32_t piece = std::min(length, size - done);
      const Allowed to = port_.regions.resolve(key, queue.domain, entry.address.get(), piece,
                                               hca::Access::kReadWrite);
      if (to.memory == nullptr) return hw::Syndrome::kLocalProtection;
      if (failed<B>(port_.bus.write(port_.class_of(done, piece), to.at, piece, now)))
        return hw::Syndrome::kLocalProtection;
      std::memcpy(to.memory, frame.data() + done, piece);
      done += piece;
    }
    return done == size ? hw::Syndrome::kNone : hw::Syndrome::kLocalLength;
  }

  /// `stripped`: the tag that the delivered frame lacks, or null.
  void complete(const ReceiveRing& queue, Frame frame, const Parsed& parsed, const Verdict& verdict,
                const hw::VlanTag* stripped, Nanos now) {
    using T = hw::HeaderType;
    const uint16_t type = T::VlanStripped::set(header_type(frame, parsed), stripped != nullptr);
    const size_t bytes = frame.size() - (stripped != nullptr ? sizeof *stripped : 0);
    queue.completions->template push<hw::Cqe>(port_.bus, hw::PcieClass::kRxCompletion,
                                              hw::CqeOpcode::kResponderSend, now,
                                              [&](hw::Cqe& entry) {
                                                entry.rx_hash_result.set(verdict.hash.value);
                                                entry.rx_hash_type = verdict.hash.type;
                                                entry.header_type.set(type);
                                                if (stripped != nullptr)
                                                  entry.vlan_info = stripped->control;
                                                entry.user_index.set(queue.user_index);
                                                entry.byte_count.set(static_cast<uint32_t>(bytes));
                                                entry.timestamp.set(now);
                                                if (verdict.rule != nullptr)
                                                  entry.sop_drop_qpn.set(verdict.rule->tag);
                                                entry.wqe_counter.set(queue.head);
                                              });
  }

  PortCore<B>& port_;
  Steering steering_;
  std::unique_ptr<std::array<std::byte, kMaxFrameBytes>> untagged_ =
      std::make_unique<std::array<std::byte, kMaxFrameBytes>>();
  std::array<Frame, kBatch> batch_{};
  size_t count_ = 0;
  size_t next_ = 0;  // [next_, count_) are held
};

}  // namespace nicmem::sim
