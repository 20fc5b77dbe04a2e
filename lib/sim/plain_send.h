// SPDX-License-Identifier: BSD-3-Clause
// The short way for send work requests as drivers mostly write them: SEND, no offload, an inlined
// header or none, up to two pointers, in one stretch of the ring. It takes only what SendRequest
// takes too; all else, and all errors, are for that.
//
// Requests are read where they lie, each word once, by an atomic load: what was checked is what is
// executed, whatever the host does meanwhile. An object of this class is meant to be a local: the
// bytes that are copied between two requests could be anything else's to the compiler.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/prefetch.h"
#include "hw/ether.h"
#include "hw/wqe.h"
#include "sim/mr_table.h"
#include "sim/rings.h"

namespace nicmem::sim {

class PlainSends {
 public:
  PlainSends(const SendRing& queue, const MrTable& regions, uint32_t max_frame_bytes)
      : ring_(queue.ring),
        mask_(queue.depth - 1),
        number_(queue.number),
        max_frame_bytes_(max_frame_bytes),
        head_(queue.head),
        posted_(queue.posted),
        keys_(regions, queue.domain) {
    const uint32_t available = static_cast<uint16_t>(posted_ - head_);
    for (uint32_t i = 0; i < std::min(kAheadBlocks, available); ++i) prefetch_read(slot(head_ + i));
  }

  uint16_t head() const { return head_; }

  /// Whether the request at head() is such a one, and good. What it asks for is below.
  bool read() {
    const uint32_t available = static_cast<uint16_t>(posted_ - head_);
    if (available == 0) return false;
    const std::byte* const wqe = slot(head_);
    const uint64_t start = load<uint64_t>(wqe);
    const uint32_t segments = hw::ControlSegment::Segments::get(static_cast<uint32_t>(start));
    blocks_ = hw::send_wqe_blocks(segments);
    const std::byte* const eth = wqe + sizeof(hw::ControlSegment);
    header_ = eth + offsetof(hw::EthSegment, inline_start);
    header_bytes_ = load<uint32_t>(eth + offsetof(hw::EthSegment, inline_bytes)) >> 16;
    first_pointer_ = hw::send_wqe_segments(header_bytes_, 0);
    pointers_ = segments - first_pointer_;  // wraps when the header is longer: then it is too large
    const bool plain = (start & kStartMask) == expected_start() &&
                       load<uint32_t>(eth + offsetof(hw::EthSegment, checksum_flags)) == 0 &&
                       pointers_ <= kMostPointers &&
                       blocks_ <= std::min(available, mask_ + 1 - (head_ & mask_));
    if (!plain) return false;
    prefetch_blocks_behind(available);
    completion_ = hw::ControlSegment::Completion::get(
        static_cast<uint8_t>(load<uint32_t>(wqe + offsetof(hw::ControlSegment, signature))));
    const std::byte* const pointer = wqe + size_t{first_pointer_} * hw::kWqeSegmentBytes;
    first_.bytes = second_.bytes = 0;
    if (pointers_ >= 1 && !read_pointer(pointer, first_)) return false;
    if (pointers_ == 2 && !read_pointer(pointer + hw::kWqeSegmentBytes, second_)) return false;
    const uint32_t bytes = header_bytes_ + first_.bytes + second_.bytes;
    return bytes >= sizeof(hw::EtherHeader) && bytes <= max_frame_bytes_;
  }

  struct Part {
    std::byte* memory;
    Location at;
    uint32_t bytes;
  };
  std::span<const std::byte> header() const { return {header_, header_bytes_}; }
  const Part& first() const { return first_; }    // there is none if it has no bytes
  const Part& second() const { return second_; }  // as first()
  uint32_t blocks() const { return blocks_; }
  const std::byte* start() const { return slot(head_); }
  bool always_completes() const { return completion_ >= hw::ControlSegment::kCompleteAlways; }

  /// Goes on to the next request.
  void advance() { head_ = static_cast<uint16_t>(head_ + blocks_); }

 private:
  static constexpr uint32_t kMostPointers = 2;
  static constexpr uint32_t kAheadBlocks = 16;  // that are on their way from the host's cache

  // First eight bytes of a control segment, but for the modifier and the length.
  static constexpr uint64_t kStartMask = 0x00ffffff'ffffff00;

  /// Asks for as many blocks as this request has, kAheadBlocks further on, if they are posted.
  void prefetch_blocks_behind(uint32_t available) const {
    if (available < kAheadBlocks + blocks_) return;
    for (uint32_t i = 0; i < blocks_; ++i) prefetch_read(slot(head_ + kAheadBlocks + i));
  }

  /// A big-endian word of the ring, aligned.
  template <class Word>
  static Word load(const std::byte* at) {
    auto& word = *reinterpret_cast<Word*>(const_cast<std::byte*>(at));
    const Word raw = std::atomic_ref(word).load(std::memory_order_relaxed);
    if constexpr (sizeof(Word) == 8) {
      return __builtin_bswap64(raw);
    } else {
      return __builtin_bswap32(raw);
    }
  }

  const std::byte* slot(uint32_t index) const {
    return ring_ + size_t{index & mask_} * hw::kWqeBlockBytes;
  }

  uint64_t expected_start() const {
    const uint32_t first =
        hw::ControlSegment::Index::set(static_cast<uint32_t>(hw::SendOpcode::kSend), head_);
    return uint64_t{first} << 32 | number_ << 8;
  }

  bool read_pointer(const std::byte* segment, Part& part) {
    const uint64_t count_key = load<uint64_t>(segment);
    part.bytes = static_cast<uint32_t>(count_key >> 32);
    if (part.bytes - 1 >= max_frame_bytes_) return false;  // none, inlined data, or too long
    const Allowed from =
        keys_.resolve(static_cast<uint32_t>(count_key),
                      load<uint64_t>(segment + offsetof(hw::DataSegment, address)), part.bytes);
    part.memory = from.memory;
    // field by field: a copy of what was just stored would wait for every store before it
    part.at.kind = from.at.kind;
    part.at.address = from.at.address;
    return from.memory != nullptr;
  }

  const std::byte* ring_;
  uint32_t mask_;
  uint32_t number_;
  uint32_t max_frame_bytes_;
  uint16_t head_;
  uint16_t posted_;
  KeyCache keys_;

  // Of the request at head().
  const std::byte* header_ = nullptr;
  uint32_t header_bytes_ = 0;
  uint32_t blocks_ = 0;
  uint32_t first_pointer_ = 0;  // index of its segment
  uint32_t pointers_ = 0;
  uint8_t completion_ = 0;
  Part first_{}, second_{};
};

}  // namespace nicmem::sim
