// SPDX-License-Identifier: BSD-3-Clause
// Transmit: follows the doorbells, fetches work requests, gathers each frame into a packed scratch
// and hands batches of frames to the wire. A frame's buffers are free once its bytes are in the
// scratch, so completions are written at that point.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "hw/ether.h"
#include "hw/wqe.h"
#include "sim/port_core.h"
#include "sim/rings.h"
#include "sim/send_wqe.h"

namespace nicmem::sim {

template <Bus B>
class TxEngine {
 public:
  explicit TxEngine(PortCore<B>& port)
      : port_(port),
        scratch_(std::make_unique<std::array<std::byte, kScratchBytes>>()),
        newest_(std::make_unique<std::array<std::byte, kMaxFrameBytes>>()) {}

  void add(SendRing& queue) { queues_.push_back(&queue); }
  void remove(SendRing& queue) { std::erase(queues_, &queue); }

  /// Executes at most `budget` work requests; returns how many. Queues take turns at being first.
  uint32_t run(Nanos now, uint32_t budget) {
    uint32_t done = 0;
    for (size_t i = 0; i < queues_.size() && done < budget; ++i) {
      SendRing& queue = *queues_[(first_ + i) % queues_.size()];
      look(queue, now);
      if (queue.available() > 0) done += serve(queue, now, budget - done);
    }
    ++first_;
    return done;
  }

  /// The newest frame that the wire took; empty before the first.
  Frame last_sent() const { return Frame(newest_->data(), newest_bytes_); }

 private:
  static constexpr size_t kScratchBytes = size_t{4} * kMaxFrameBytes;

  /// Sees whether the queue's doorbell has rung, and how much was posted.
  void look(SendRing& queue, Nanos now) {
    const uint64_t doorbell = queue.doorbell->peek();
    if (doorbell != queue.seen_doorbell) {
      queue.seen_doorbell = doorbell;
      queue.record_due = true;
      port_.bus.read(hw::PcieClass::kDoorbellRecord, Location::host(queue.record), kRecordBytes,
                     now);
    }
    if (!queue.record_due) return;
    // The register orders nothing: it may be seen before the record that was published first.
    const auto posted = static_cast<uint16_t>(queue.record->read());
    if (posted == queue.posted) return;
    if (static_cast<uint16_t>(posted - queue.head) > queue.depth) return overrun(queue, now);
    queue.posted = posted;
    queue.record_due = false;
  }

  /// The record claims more than the ring has: nothing in the ring can be trusted.
  void overrun(SendRing& queue, Nanos now) {
    if (!queue.in_error) {
      if (!queue.completions->has_room(port_.bus, now)) return;  // look again later
      fail(queue, hw::Syndrome::kLocalQpOperation, 0, now);
    }
    queue.record_due = false;
  }

  void fail(SendRing& queue, hw::Syndrome syndrome, uint8_t opcode, Nanos now) {
    queue.in_error = true;
    push_error(port_.bus, queue, hw::PcieClass::kTxCompletion, hw::CqeOpcode::kRequesterError,
               syndrome, opcode, queue.head, now);
    ++port_.counters.tx_error;
  }

  uint32_t serve(SendRing& queue, Nanos now, uint32_t budget) {
    size_t room = port_.wire->room();
    uint32_t done = 0;
    while (done < budget && queue.available() > 0 && room > frames_count_ &&
           queue.completions->has_room(port_.bus, now)) {
      execute(queue, now);
      ++done;
      const bool full = frames_count_ == kBatch || used_ + kMaxFrameBytes > kScratchBytes;
      if (full) {
        flush(now);
        room = port_.wire->room();
      }
    }
    flush(now);
    return done;
  }

  /// Executes the work request at the queue's head: one frame, or one error completion.
  void execute(SendRing& queue, Nanos now) {
    wqe_.fetch(queue);
    port_.bus.read(hw::PcieClass::kTxDescriptor, Location::host(queue.slot(queue.head)),
                   wqe_.blocks * hw::kWqeBlockBytes, now);
    const size_t start = used_;
    hw::Syndrome syndrome = hw::Syndrome::kFlushed;
    if (!queue.in_error) {
      syndrome = wqe_.well_formed ? gather(queue, now) : hw::Syndrome::kLocalQpOperation;
    }
    if (syndrome != hw::Syndrome::kNone) {
      used_ = start;
      fail(queue, syndrome, wqe_.opcode, now);
    } else {
      if (used_ > start) frames_[frames_count_++] = Frame(scratch_->data() + start, used_ - start);
      if (wqe_.completion >= hw::ControlSegment::kCompleteAlways) complete(queue, now);
    }
    queue.head = static_cast<uint16_t>(queue.head + wqe_.blocks);
  }

  /// Puts the frame of `wqe_` at the end of the scratch. A NOP has none.
  hw::Syndrome gather(const SendRing& queue, Nanos now) {
    if (wqe_.opcode == static_cast<uint8_t>(hw::SendOpcode::kNop)) return hw::Syndrome::kNone;
    const std::span<const std::byte> body = wqe_.body();
    const auto& eth = *view_as<hw::EthSegment>(body.subspan(sizeof(hw::ControlSegment)));
    if (eth.checksum_flags != 0 || eth.mss.get() != 0) return hw::Syndrome::kLocalQpOperation;
    const uint32_t inlined = eth.inline_bytes.get();
    size_t at = size_t{hw::send_wqe_segments(inlined, 0)} * hw::kWqeSegmentBytes;
    if (at > body.size()) return hw::Syndrome::kLocalQpOperation;
    const size_t start = used_;
    if (inlined > 0) {
      append(body.subspan(sizeof(hw::ControlSegment) + offsetof(hw::EthSegment, inline_start),
                          inlined));
    }
    while (at < body.size()) {
      const hw::Syndrome syndrome = gather_segment(queue, body, at, start, now);
      if (syndrome != hw::Syndrome::kNone) return syndrome;
    }
    const size_t length = used_ - start;
    return length < sizeof(hw::EtherHeader) || length > port_.max_frame_bytes
               ? hw::Syndrome::kLocalLength
               : hw::Syndrome::kNone;
  }

  /// Appends what the data segment at `at` of `body` names, and moves `at` behind it.
  hw::Syndrome gather_segment(const SendRing& queue, std::span<const std::byte> body, size_t& at,
                              size_t start, Nanos now) {
    const auto& segment = *view_as<hw::DataSegment>(body.subspan(at));
    const uint32_t field = segment.byte_count.get();
    const uint32_t length = field & ~hw::DataSegment::kInline;
    const auto before = static_cast<uint32_t>(used_ - start);
    // A pointer segment of length 0 would mean 2^31 bytes.
    if (length > port_.max_frame_bytes - std::min(before, port_.max_frame_bytes) || field == 0) {
      return hw::Syndrome::kLocalLength;
    }
    if (field != length) {
      const size_t data = at + sizeof segment.byte_count;
      if (length > body.size() - data) return hw::Syndrome::kLocalQpOperation;
      append(body.subspan(data, length));
      at = round_up<size_t>(data + length, hw::kWqeSegmentBytes);
      return hw::Syndrome::kNone;
    }
    const Allowed from = port_.regions.resolve(segment.key.get(), queue.domain,
                                               segment.address.get(), length, hca::Access::kRead);
    if (from.memory == nullptr) return hw::Syndrome::kLocalProtection;
    port_.bus.read(port_.class_of(before, length), from.at, length, now);
    append({from.memory, length});
    at += sizeof segment;
    return hw::Syndrome::kNone;
  }

  void append(std::span<const std::byte> bytes) {
    std::memcpy(scratch_->data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  void complete(SendRing& queue, Nanos now) {
    queue.completions->template push<hw::Cqe>(
        port_.bus, hw::PcieClass::kTxCompletion, hw::CqeOpcode::kRequester, now,
        [&](hw::Cqe& entry) {
          entry.timestamp.set(now);
          entry.sop_drop_qpn.set(uint32_t{wqe_.opcode} << 24 | queue.number);
          entry.wqe_counter.set(queue.head);
        });
  }

  /// Hands what has been gathered to the wire.
  void flush(Nanos now) {
    if (frames_count_ == 0) return;
    const std::span<const Frame> frames(frames_.data(), frames_count_);
    const size_t sent = port_.wire->send(frames, now);
    hca::PortCounters& counters = port_.counters;
    counters.tx_frames += sent;
    for (const Frame frame : frames.first(sent)) counters.tx_bytes += frame.size();
    counters.tx_wire_drops += frames.size() - sent;
    if (sent > 0) {
      newest_bytes_ = frames[sent - 1].size();
      std::memcpy(newest_->data(), frames[sent - 1].data(), newest_bytes_);
    }
    frames_count_ = 0;
    used_ = 0;
  }

  PortCore<B>& port_;
  std::vector<SendRing*> queues_;
  size_t first_ = 0;
  SendWqe wqe_;
  std::unique_ptr<std::array<std::byte, kScratchBytes>> scratch_;
  size_t used_ = 0;
  std::array<Frame, kBatch> frames_{};
  size_t frames_count_ = 0;
  std::unique_ptr<std::array<std::byte, kMaxFrameBytes>> newest_;
  size_t newest_bytes_ = 0;
};

}  // namespace nicmem::sim
