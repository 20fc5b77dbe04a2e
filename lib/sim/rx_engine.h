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

  /// Of a queue in error: ends what is posted, as far as the completion ring has room.
  void flush(ReceiveRing& queue, Nanos now) {
    if (!queue.in_error || queue.stopped) return;
    const auto posted = static_cast<uint16_t>(queue.record->read());
    if (static_cast<uint16_t>(posted - queue.head) > queue.depth) return;  // it is what went wrong
    for (queue.posted = posted; queue.available() > 0; ++queue.head) {
      if (!queue.completions->has_room(port_.bus, now)) return;
      fail(queue, hw::Syndrome::kFlushed, now);
    }
  }

  /// Frames that have left the wire and not reached a queue.
  uint64_t held() const { return count_ - next_; }

  /// Works off at most `budget` frames; returns how many, dropped ones included.
  uint32_t run(Nanos now, uint32_t budget) {
    use_keys_of(keys_[0].domain());  // none that was looked up before: it may be gone
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
  static constexpr size_t kAhead = 4;      // frames whose first bytes are on their way to the cache
  static constexpr size_t kFarAhead = 16;  // work requests that are

  /// Delivers or drops one frame; false: it has to wait. All of it is in run()'s loop, so that what
  /// is known of the frame stays in registers.
  [[gnu::always_inline]] bool take(Frame frame, Nanos now) {
    hca::PortCounters& counters = port_.counters;
    if (frame.size() < sizeof(hw::EtherHeader)) return drop(counters.rx_malformed);
    if (frame.size() > port_.max_frame_bytes) return drop(counters.rx_oversize);
    const Parsed parsed = parse(frame);
    const Verdict verdict = steering_.decide(frame, parsed);
    if (verdict.queue == nullptr) {
      if (port_.traits.keep_unmatched && verdict.rule == nullptr && port_.wire->lossless())
        return false;
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

  [[gnu::always_inline]] void deliver(ReceiveRing& queue, Frame frame, const Parsed& parsed,
                                      const Verdict& verdict, Nanos now) {
    if (queue.domain != keys_[0].domain()) use_keys_of(queue.domain);
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

  void use_keys_of(hca::Domain domain) { keys_.fill(KeyCache(port_.regions, domain)); }

  /// Asks for a work request further on, and for the memory that one a little ahead points to.
  void prefetch_target(const ReceiveRing& queue) {
    if (queue.available() <= kAhead) return;  // not posted: the driver may be writing it
    if (queue.available() > kFarAhead)
      prefetch_read(queue.slot(static_cast<uint16_t>(queue.head + kFarAhead)));
    const Entry entry = entry_at(queue.slot(static_cast<uint16_t>(queue.head + kAhead)));
    prefetch_write(keys_[0].resolve(entry.key, entry.address, 1).memory);
  }

  /// A scatter entry in host order.
  struct Entry {
    uint32_t bytes;
    uint32_t key;
    uint64_t address;
  };
  /// A copy: the host may change its own while it is checked.
  static Entry entry_at(const std::byte* at) {
    be64 words[2];
    std::memcpy(static_cast<void*>(words), at, sizeof words);
    return {static_cast<uint32_t>(words[0].get() >> 32), static_cast<uint32_t>(words[0].get()),
            words[1].get()};
  }

  /// Fills the entries of the work request at the queue's head, in order.
  [[gnu::always_inline]] hw::Syndrome scatter(const ReceiveRing& queue, Frame frame, Nanos now) {
    const std::byte* wqe = queue.slot(queue.head);
    if (failed<B>(port_.bus.read(hw::PcieClass::kRxDescriptor, Location::host(wqe),
                                 queue.stride_bytes, now)))
      return hw::Syndrome::kLocalQpOperation;
    const std::byte* const end = wqe + queue.stride_bytes;
    const auto size = static_cast<uint32_t>(frame.size());
    uint32_t done = 0;
    for (uint32_t i = 0; wqe < end && done < size; ++i, wqe += sizeof(hw::DataSegment)) {
      const Entry entry = entry_at(wqe);
      if (entry.bytes == 0 && entry.key == hw::kInvalidKey) break;
      if (entry.bytes == 0) continue;
      if ((entry.bytes & hw::DataSegment::kInline) != 0) return hw::Syndrome::kLocalQpOperation;
      const uint32_t piece = std::min(entry.bytes, size - done);
      const Allowed to =
          keys_[i & 1].resolve(entry.key, entry.address, piece, hca::Access::kReadWrite);
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
  // Of even and of odd entries: header and payload have a key each.
  std::array<KeyCache, 2> keys_{KeyCache(port_.regions, {}), KeyCache(port_.regions, {})};
  std::unique_ptr<std::array<std::byte, kMaxFrameBytes>> untagged_ =
      std::make_unique<std::array<std::byte, kMaxFrameBytes>>();
  std::array<Frame, kBatch> batch_{};
  size_t count_ = 0;
  size_t next_ = 0;  // [next_, count_) are held
};

}  // namespace nicmem::sim
