// SPDX-License-Identifier: BSD-3-Clause
// A ring of frames of any length that owns their bytes: what is inside a cable. One thread pushes,
// one pops; frames can be put together in place, and are handed out in place.
//
//   | length, 8 bytes | frame | pad to 8 | length | frame | pad | ... | kSkip | unused end |
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/memory.h"
#include "sim/wire.h"

namespace nicmem::sim {

class FrameRing {
 public:
  static constexpr size_t kDefaultBytes = size_t{1} << 20;

  /// `bytes` is rounded up to a power of two of at least four of the largest frames.
  explicit FrameRing(size_t bytes = kDefaultBytes)
      : capacity_(std::bit_ceil(std::max<size_t>(bytes, 4 * size_t{kMaxFrameBytes}))),
        memory_(capacity_, kRingAlignment) {}

  /// Producer: how many of the largest frames fit, whatever lies at the ring's end.
  size_t room() const {
    const size_t free = capacity_ - (tail_ - head_.load(std::memory_order_acquire));
    return free < 2 * kLargest ? 0 : free / kLargest - 1;
  }

  /// Producer: free memory where frames can be put together for push(): the first kFrameGap bytes
  /// in, the next where kFrameGap allows it. Holds one of the largest frames, or is empty. At most
  /// half the ring, so that the newest frame pushed stays what it is.
  std::span<std::byte> lend() {
    size_t free = capacity_ - (tail_ - head_.load(std::memory_order_acquire));
    const size_t to_end = capacity_ - offset(tail_);
    if (to_end < kLargest) {
      if (free < to_end + kLargest) return {};
      put_length(kSkip);
      tail_ += to_end;
      free -= to_end;
    }
    if (free < kLargest) return {};
    const size_t lent = std::min({free, capacity_ - offset(tail_), capacity_ / 2});
    return {memory_.data() + offset(tail_), lent};
  }

  /// Producer: takes `frame` (1 to kMaxFrameBytes long), or nothing when it does not fit. It may
  /// lie where it would be copied to.
  bool push(Frame frame) {
    const size_t need = kHeader + round_up(frame.size(), kHeader);
    const size_t to_end = capacity_ - offset(tail_);
    const size_t skip = need > to_end ? to_end : 0;
    const size_t free = capacity_ - (tail_ - head_.load(std::memory_order_acquire));
    if (skip + need > free) return false;
    if (skip > 0) put_length(kSkip);
    tail_ += skip;
    put_length(frame.size());
    std::byte* const to = memory_.data() + offset(tail_) + kHeader;
    if (frame.data() != to) std::memcpy(to, frame.data(), frame.size());
    tail_ += need;
    ++pushed_local_;
    return true;
  }

  /// Producer: shows the consumer what has been pushed.
  void publish() {
    pushed_.store(pushed_local_, std::memory_order_relaxed);
    published_.store(tail_, std::memory_order_release);
  }

  /// Consumer: gives back the frames of the last pop(), and hands out the next ones.
  size_t pop(std::span<Frame> out) {
    head_.store(next_, std::memory_order_release);
    const uint64_t end = published_.load(std::memory_order_acquire);
    size_t count = 0;
    while (count < out.size() && next_ != end) {
      const std::byte* at = memory_.data() + offset(next_);
      uint64_t length;
      std::memcpy(&length, at, sizeof length);
      if (length == kSkip) {
        next_ += capacity_ - offset(next_);
        continue;
      }
      out[count++] = Frame(at + kHeader, length);
      next_ += kHeader + round_up<size_t>(length, kHeader);
    }
    popped_.store(popped_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    return count;
  }

  /// Frames published and not handed out yet. Exact when both ends are at rest.
  uint64_t waiting() const {
    const uint64_t popped = popped_.load(std::memory_order_relaxed);
    return pushed_.load(std::memory_order_relaxed) - popped;
  }

 private:
  static constexpr size_t kHeader = kFrameGap;
  static constexpr size_t kLargest = kHeader + kMaxFrameBytes;
  static constexpr uint64_t kSkip = ~uint64_t{0};

  size_t offset(uint64_t position) const { return position & (capacity_ - 1); }
  void put_length(uint64_t length) {
    std::memcpy(memory_.data() + offset(tail_), &length, sizeof length);
  }

  size_t capacity_;
  AlignedBytes memory_;
  // Producer's line, then the consumer's. Positions are free running.
  alignas(kLineBytes) uint64_t tail_ = 0;
  uint64_t pushed_local_ = 0;
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> pushed_{0};
  alignas(kLineBytes) uint64_t next_ = 0;
  std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> popped_{0};
};

}  // namespace nicmem::sim
