// SPDX-License-Identifier: BSD-3-Clause
// Transmit: follows the doorbells, fetches work requests, puts each frame together and hands
// batches of frames to the wire. A frame's buffers are free once its bytes are in the batch, so
// completions are written at that point.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hw/wqe.h"
#include "sim/frame_batch.h"
#include "sim/offload.h"
#include "sim/plain_send.h"
#include "sim/port_core.h"
#include "sim/rings.h"
#include "sim/segmenter.h"
#include "sim/send_request.h"
#include "sim/send_wqe.h"

namespace nicmem::sim {

template <Bus B>
class TxEngine {
 public:
  explicit TxEngine(PortCore<B>& port) : port_(port) {}

  void add(SendRing& queue) { queues_.push_back(&queue); }
  void remove(SendRing& queue) { std::erase(queues_, &queue); }

  /// Executes work requests of at most `budget` frames (one without a frame counts as one); returns
  /// how many. Queues take turns at being first.
  uint32_t run(Nanos now, uint32_t budget) {
    uint32_t done = 0;
    for (size_t i = 0; i < queues_.size() && done < budget; ++i) {
      SendRing& queue = *queues_[(first_ + i) % queues_.size()];
      if (queue.stopped) continue;
      look(queue, now);
      if (queue.available() > 0) done += serve(queue, now, budget - done);
    }
    ++first_;
    return done;
  }

  /// The newest frame that the wire took; empty before the first.
  Frame last_sent() const { return batch_.newest(); }

 private:
  /// Sees whether the queue's doorbell has rung, and how much was posted.
  void look(SendRing& queue, Nanos now) {
    const uint64_t doorbell = queue.doorbell->peek();
    if (doorbell != queue.seen_doorbell) {
      const Nanos read = port_.bus.read(hw::PcieClass::kDoorbellRecord,
                                        Location::host(queue.record), kRecordBytes, now);
      if (failed<B>(read)) return;  // the next look tries again
      queue.seen_doorbell = doorbell;
      queue.record_due = true;
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
      fail(queue, hw::Syndrome::kLocalQpOperation, {}, now);
    }
    queue.record_due = false;
  }

  void fail(SendRing& queue, hw::Syndrome syndrome, hw::SendOpcode opcode, Nanos now) {
    queue.in_error = true;
    push_error(port_.bus, queue, hw::PcieClass::kTxCompletion, hw::CqeOpcode::kRequesterError,
               syndrome, static_cast<uint8_t>(opcode), queue.head, now);
    ++port_.counters.tx_error;
  }

  uint32_t serve(SendRing& queue, Nanos now, uint32_t budget) {
    batch_.open(*port_.wire);
    uint32_t done = 0;
    while (done < budget && queue.available() > 0 && has_room(now) &&
           queue.completions->has_room(port_.bus, now)) {
      const uint32_t plain = send_plain(queue, now, budget - done);
      done += plain > 0 ? plain : execute(queue, now, budget - done);
    }
    flush(now);
    return done;
  }

  /// Whether the largest frame can be sent now.
  bool has_room(Nanos now) {
    if (batch_.has_room(port_.max_frame_bytes)) return true;
    flush(now);
    batch_.open(*port_.wire);
    return batch_.has_room(port_.max_frame_bytes);
  }

  /// Executes requests from the queue's head on for as long as they are fit for the short way;
  /// returns how many. A bus that can fail takes the long one.
  uint32_t send_plain(SendRing& queue, Nanos now, uint32_t budget) {
    if (B::kCanFail || queue.in_error || queue.segmented > 0) return 0;
    PlainSends requests(queue, port_.regions, port_.max_frame_bytes);
    FrameBatch::Writer batch(batch_);
    uint32_t done = 0;
    while (done < budget && batch.has_room(port_.max_frame_bytes) && requests.read()) {
      const bool completes = requests.always_completes();
      if (completes && !queue.completions->has_room(port_.bus, now)) break;
      batch.add(put_together(requests, batch.next(), now));
      if (completes) complete(queue, requests.head(), hw::SendOpcode::kSend, now);
      requests.advance();
      ++done;
    }
    queue.head = requests.head();
    return done;
  }

  /// The frame of a plain request, at `to`; returns its length.
  uint32_t put_together(const PlainSends& request, std::byte* to, Nanos now) {
    port_.bus.read(hw::PcieClass::kTxDescriptor, Location::host(request.start()),
                   request.blocks() * hw::kWqeBlockBytes, now);
    const std::span<const std::byte> header = request.header();
    std::memcpy(to, header.data(), header.size());
    auto bytes = static_cast<uint32_t>(header.size());
    for (const PlainSends::Part* part : {&request.first(), &request.second()}) {
      if (part->bytes == 0) break;
      take(*part, bytes, to, now);
      bytes += part->bytes;
    }
    return bytes;
  }

  void take(const PlainSends::Part& part, uint32_t before, std::byte* frame, Nanos now) {
    port_.bus.read(port_.class_of(before, part.bytes), part.at, part.bytes, now);
    std::memcpy(frame + before, part.memory, part.bytes);
  }

  /// Executes the work request at the queue's head: a frame, none, an error completion, or as many
  /// segments as the wire and `budget` have room for. Returns how many frames, at least one.
  uint32_t execute(SendRing& queue, Nanos now, uint32_t budget) {
    wqe_.fetch(queue);
    const bool fetched = queue.segmented > 0 || read_descriptor(queue, now);
    hw::Syndrome syndrome = hw::Syndrome::kFlushed;
    uint32_t frames = 1;
    if (!queue.in_error) {
      syndrome = fetched && wqe_.well_formed ? perform(queue, now, budget, frames)
                                             : hw::Syndrome::kLocalQpOperation;
      if (queue.segmented > 0 && syndrome == hw::Syndrome::kNone) return frames;  // goes on later
    }
    if (syndrome == hw::Syndrome::kNone) {
      if (wqe_.always_completes()) complete(queue, queue.head, wqe_.opcode, now);
    } else if (syndrome == hw::Syndrome::kFlushed &&
               wqe_.completion == hw::ControlSegment::kCompleteOnFirstError) {
      ++port_.counters.tx_error;
    } else {
      fail(queue, syndrome, wqe_.opcode, now);
    }
    queue.segmented = 0;
    queue.head = static_cast<uint16_t>(queue.head + wqe_.blocks);
    return frames;
  }

  bool read_descriptor(const SendRing& queue, Nanos now) {
    return !failed<B>(port_.bus.read(hw::PcieClass::kTxDescriptor,
                                     Location::host(queue.slot(queue.head)),
                                     wqe_.blocks * hw::kWqeBlockBytes, now));
  }

  /// Executes the well-formed request. `frames` gets how many were made, if not one.
  hw::Syndrome perform(SendRing& queue, Nanos now, uint32_t budget, uint32_t& frames) {
    if (wqe_.opcode == hw::SendOpcode::kNop) return hw::Syndrome::kNone;
    const hw::Syndrome syndrome =
        request_.read(wqe_, port_.regions, queue.domain, port_.max_frame_bytes);
    if (syndrome != hw::Syndrome::kNone) return syndrome;
    if (request_.many_frames()) return send_each(queue, now, budget, frames);
    return request_.segmented() ? segment(queue, now, budget, frames) : send(now);
  }

  /// Adds the frames of a multi-packet request to the batch, from where the queue stands in it: to
  /// the end, then queue.segmented is 0, or as far as there is room. The first always has room.
  hw::Syndrome send_each(SendRing& queue, Nanos now, uint32_t budget, uint32_t& frames) {
    frames = 0;
    for (uint32_t i = queue.segmented; i < request_.pieces().size(); ++i, ++frames) {
      if (frames == budget || !has_room(now)) {
        queue.segmented = i;
        return hw::Syndrome::kNone;
      }
      const Piece& piece = request_.pieces()[i];
      std::byte* const to = batch_.next();
      if (!gather(piece, 0, piece.bytes, 0, to, now)) return hw::Syndrome::kLocalProtection;
      const std::span<std::byte> frame(to, piece.bytes);
      if (request_.fills_checksums()) fill_checksums(frame, parse(frame));
      batch_.add(frame.size());
    }
    queue.segmented = 0;
    return hw::Syndrome::kNone;
  }

  /// Adds the frame of `request_` to the batch.
  hw::Syndrome send(Nanos now) {
    std::byte* const start = batch_.next();
    std::byte* to = start + request_.tag_bytes();
    const std::span<const std::byte> header = request_.header();
    std::memcpy(to, header.data(), header.size());
    to += header.size();
    auto before = static_cast<uint32_t>(header.size());
    for (const Piece& piece : request_.pieces()) {
      if (!gather(piece, 0, piece.bytes, before, to, now)) return hw::Syndrome::kLocalProtection;
      before += piece.bytes;
      to += piece.bytes;
    }
    const std::span<std::byte> frame(start, to);
    if (request_.tag_bytes() > 0) insert_vlan(frame, request_.tag_control());
    if (request_.fills_checksums()) fill_checksums(frame, parse(frame));
    batch_.add(frame.size());
    return hw::Syndrome::kNone;
  }

  void fill_checksums(std::span<std::byte> frame, const Parsed& parsed) {
    if (request_.fill_l3()) fill_l3_checksum(frame, parsed);
    if (request_.fill_l4()) fill_l4_checksum(frame, parsed);
  }

  /// Copies `bytes` of a piece, from its byte `from` on. They lie `before` bytes into the frame.
  bool gather(const Piece& piece, uint32_t from, uint32_t bytes, uint32_t before, std::byte* to,
              Nanos now) {
    if (!piece.inlined) {
      const Location at{piece.at.kind, piece.at.address + from};
      if (failed<B>(port_.bus.read(port_.class_of(before, bytes), at, bytes, now))) return false;
    }
    std::memcpy(to, piece.memory + from, bytes);
    return true;
  }

  /// Adds segments of `request_` to the batch, from where the queue stands in it: to the end, then
  /// queue.segmented is 0, or as far as there is room.
  hw::Syndrome segment(SendRing& queue, Nanos now, uint32_t budget, uint32_t& frames) {
    const auto header = static_cast<uint32_t>(request_.header().size());
    const uint32_t total = request_.piece_bytes();
    const uint32_t most = request_.segment_bytes();
    if (!segmenter_.start(request_.header())) return hw::Syndrome::kLocalQpOperation;
    if (header + std::min(most, total) > port_.max_frame_bytes) return hw::Syndrome::kLocalLength;
    uint32_t offset = queue.segmented;
    frames = 0;
    do {
      if (frames == budget || !has_room(now)) {
        queue.segmented = offset;
        return hw::Syndrome::kNone;
      }
      const uint32_t bytes = std::min(most, total - offset);
      const std::span<std::byte> frame(batch_.next(), header + bytes);
      if (!gather_range(offset, bytes, frame.data() + header, now)) {
        return hw::Syndrome::kLocalProtection;
      }
      const bool last = offset + bytes == total;
      const Parsed parsed = segmenter_.write(frame, {offset / most, offset, last});
      fill_checksums(frame, parsed);
      batch_.add(frame.size());
      ++frames;
      offset += bytes;
    } while (offset < total);
    queue.segmented = 0;
    return hw::Syndrome::kNone;
  }

  /// Copies bytes [from, from + bytes) of what the pieces make up.
  bool gather_range(uint32_t from, uint32_t bytes, std::byte* to, Nanos now) {
    const auto header = static_cast<uint32_t>(request_.header().size());
    for (const Piece& piece : request_.pieces()) {
      if (bytes == 0) break;
      if (from < piece.bytes) {
        const uint32_t here = std::min(bytes, piece.bytes - from);
        if (!gather(piece, from, here, header, to, now)) return false;
        to += here;
        bytes -= here;
        from = 0;
      } else {
        from -= piece.bytes;
      }
    }
    return true;
  }

  void complete(const SendRing& queue, uint16_t index, hw::SendOpcode opcode, Nanos now) {
    queue.completions->template push<hw::Cqe>(
        port_.bus, hw::PcieClass::kTxCompletion, hw::CqeOpcode::kRequester, now,
        [&](hw::Cqe& entry) {
          entry.timestamp.set(now);
          entry.sop_drop_qpn.set(static_cast<uint32_t>(opcode) << 24 | queue.number);
          entry.wqe_counter.set(index);
        });
  }

  /// Hands what has been put together to the wire.
  void flush(Nanos now) {
    if (batch_.empty()) return;
    const std::span<const Frame> frames = batch_.frames();
    const size_t sent = port_.wire->send(frames, now);
    hca::PortCounters& counters = port_.counters;
    counters.tx_frames += sent;
    for (const Frame frame : frames.first(sent)) counters.tx_bytes += frame.size();
    counters.tx_wire_drops += frames.size() - sent;
    batch_.close(sent);
  }

  PortCore<B>& port_;
  std::vector<SendRing*> queues_;
  size_t first_ = 0;
  SendWqe wqe_;
  SendRequest request_;
  Segmenter segmenter_;
  FrameBatch batch_;
};

}  // namespace nicmem::sim
