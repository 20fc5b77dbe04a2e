// SPDX-License-Identifier: BSD-3-Clause
// Frames on their way to the wire, put together one behind the other: in memory that the wire
// lends, or else in a buffer here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bits.h"
#include "sim/port_core.h"
#include "sim/wire.h"

namespace nicmem::sim {

class FrameBatch {
 public:
  FrameBatch() : buffers_(std::make_unique<std::array<Buffer, 2>>()) {}

  /// Asks the wire how many frames it takes, and where. Empty batches only.
  void open(Wire& wire) {
    area_ = wire.lend();
    most_ = kBatch;
    if (area_.empty()) {
      area_ = (*buffers_)[buffer_];
      most_ = std::min<size_t>(wire.room(), kBatch);
    }
    used_ = kFrameGap;
  }

  /// Whether a frame of `bytes` fits.
  bool has_room(uint32_t bytes) const { return count_ < most_ && used_ + bytes <= area_.size(); }
  /// Where the next frame goes.
  std::byte* next() const { return area_.data() + used_; }
  /// Takes the frame of `bytes` > 0 at next().
  void add(size_t bytes) {
    frames_[count_++] = Frame(next(), bytes);
    used_ += round_up<size_t>(bytes, kFrameGap) + kFrameGap;
  }

  /// Its state in locals, for loops that copy between two frames.
  class Writer {
   public:
    explicit Writer(FrameBatch& batch)
        : batch_(batch),
          next_(batch.next()),
          end_(batch.area_.data() + batch.area_.size()),
          frames_(batch.frames_.data()),
          count_(batch.count_),
          most_(batch.most_) {}
    ~Writer() {
      batch_.count_ = count_;
      batch_.used_ = static_cast<size_t>(next_ - batch_.area_.data());
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    bool has_room(uint32_t bytes) const { return count_ < most_ && next_ + bytes <= end_; }
    std::byte* next() const { return next_; }
    void add(uint32_t bytes) {
      frames_[count_++] = Frame(next_, bytes);
      next_ += round_up<size_t>(bytes, kFrameGap) + kFrameGap;
    }

   private:
    FrameBatch& batch_;
    std::byte* next_;
    std::byte* end_;
    Frame* frames_;
    size_t count_;
    size_t most_;
  };

  bool empty() const { return count_ == 0; }
  std::span<const Frame> frames() const { return {frames_.data(), count_}; }

  /// Forgets the frames, of which the wire took the first `sent`.
  void close(size_t sent) {
    if (sent > 0) {
      newest_ = frames_[sent - 1];
      buffer_ ^= 1;  // so that it stays what it is
    }
    count_ = 0;
    most_ = 0;
  }

  /// The last frame that a wire took. Lent memory stays as it was until the wire takes more.
  Frame newest() const { return newest_; }

 private:
  // Small, to stay in the cache: a batch of large frames is a short one.
  using Buffer = std::array<std::byte, size_t{2} * kMaxFrameBytes>;

  std::unique_ptr<std::array<Buffer, 2>> buffers_;  // in turn: one holds the newest frame
  size_t buffer_ = 0;
  std::span<std::byte> area_;
  size_t used_ = 0;
  size_t most_ = 0;  // frames that the wire takes for sure
  size_t count_ = 0;
  std::array<Frame, kBatch> frames_{};
  Frame newest_;
};

}  // namespace nicmem::sim
