// SPDX-License-Identifier: BSD-3-Clause
// What a send work request asks for, every field and every address of it checked: the step between
// its bytes (send_wqe.h) and its execution (tx_engine.h). Nothing is read through a pointer here.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/view.h"
#include "hw/cqe.h"
#include "hw/ether.h"
#include "hw/wqe.h"
#include "sim/mr_table.h"
#include "sim/send_wqe.h"

namespace nicmem::sim {

/// The largest payload of a packet that the device cuts up, without its headers. [as mlx5: 1 << 18]
inline constexpr uint32_t kMaxTsoBytes = 1u << 18;

/// Part of a frame: memory that a key allows, or bytes of the work request itself.
struct Piece {
  const std::byte* memory;
  Location at;
  uint32_t bytes;
  bool inlined;
};

class SendRequest {
 public:
  /// Checks a well-formed SEND, TSO or multi-packet request. kNone, or why it fails; then nothing
  /// else here means anything. What it names stays valid while `wqe` holds it and the gate is held.
  hw::Syndrome read(const SendWqe& wqe, const MrTable& regions, hca::Domain domain,
                    uint32_t max_frame_bytes) {
    const std::span<const std::byte> body = wqe.body();
    const auto& eth = *view_as<hw::EthSegment>(body.subspan(sizeof(hw::ControlSegment)));
    const hw::Syndrome fields = read_eth(eth, wqe.opcode == hw::SendOpcode::kTso);
    if (fields != hw::Syndrome::kNone) return fields;
    many_frames_ = wqe.opcode == hw::SendOpcode::kEnhancedMultiPacket;
    if (many_frames_) return read_frames(body, regions, domain, max_frame_bytes);
    const auto inlined = static_cast<uint32_t>(header_bytes_);
    size_t at = size_t{hw::send_wqe_segments(inlined, 0)} * hw::kWqeSegmentBytes;
    if (at > body.size()) return hw::Syndrome::kLocalQpOperation;
    header_ = body.data() + sizeof(hw::ControlSegment) + offsetof(hw::EthSegment, inline_start);
    const uint32_t whole = inlined + tag_bytes();
    const uint32_t limit =
        segmented() ? kMaxTsoBytes : max_frame_bytes - std::min(whole, max_frame_bytes);
    count_ = 0;
    bytes_ = 0;
    while (at < body.size()) {
      const hw::Syndrome syndrome = read_segment(body, at, limit, regions, domain);
      if (syndrome != hw::Syndrome::kNone) return syndrome;
    }
    if (segmented()) return hw::Syndrome::kNone;
    return inlined + bytes_ < sizeof(hw::EtherHeader) || whole + bytes_ > max_frame_bytes
               ? hw::Syndrome::kLocalLength
               : hw::Syndrome::kNone;
  }

  /// Inlined bytes: they come before the pieces.
  std::span<const std::byte> header() const { return {header_, header_bytes_}; }
  std::span<const Piece> pieces() const { return {pieces_.data(), count_}; }
  uint32_t piece_bytes() const { return bytes_; }

  uint32_t segment_bytes() const { return mss_; }
  bool segmented() const { return mss_ != 0; }
  /// Each piece is a frame of its own.
  bool many_frames() const { return many_frames_; }
  bool fill_l3() const { return hw::EthSegment::FillL3::get(checksum_flags_) != 0; }
  bool fill_l4() const { return hw::EthSegment::FillL4::get(checksum_flags_) != 0; }
  bool fills_checksums() const { return checksum_flags_ != 0; }
  uint32_t tag_bytes() const { return tagged_ ? sizeof(hw::VlanTag) : 0; }
  uint16_t tag_control() const { return tag_control_; }

 private:
  /// Each segment names a frame; nothing is inlined before them.
  hw::Syndrome read_frames(std::span<const std::byte> body, const MrTable& regions,
                           hca::Domain domain, uint32_t max_frame_bytes) {
    if (header_bytes_ != 0 || tagged_) return hw::Syndrome::kLocalQpOperation;
    count_ = 0;
    bytes_ = 0;
    for (size_t at = size_t{hw::send_wqe_segments(0, 0)} * hw::kWqeSegmentBytes;
         at < body.size();) {
      const hw::Syndrome syndrome =
          read_segment(body, at, bytes_ + max_frame_bytes, regions, domain);
      if (syndrome != hw::Syndrome::kNone) return syndrome;
      if (pieces_[count_ - 1].bytes < sizeof(hw::EtherHeader)) return hw::Syndrome::kLocalLength;
    }
    return count_ > 0 ? hw::Syndrome::kNone : hw::Syndrome::kLocalQpOperation;
  }

  hw::Syndrome read_eth(const hw::EthSegment& eth, bool tso) {
    checksum_flags_ = eth.checksum_flags;
    mss_ = eth.mss.get();
    const uint16_t word = eth.inline_bytes.get();
    tagged_ = hw::EthSegment::InsertVlan::get(word) != 0;
    header_bytes_ = word;
    if (tagged_) {
      tag_control_ = static_cast<uint16_t>(eth.inline_start[0] << 8 | eth.inline_start[1]);
      header_bytes_ = 0;
    }
    const bool known =
        (checksum_flags_ & ~(hw::EthSegment::FillL3::kMask | hw::EthSegment::FillL4::kMask)) == 0;
    const bool tag_alone = !tagged_ || (word == hw::EthSegment::InsertVlan::kMask && !tso);
    return known && tag_alone && tso == segmented() ? hw::Syndrome::kNone
                                                    : hw::Syndrome::kLocalQpOperation;
  }

  /// Adds what the data segment at `at` of `body` names, and moves `at` behind it.
  hw::Syndrome read_segment(std::span<const std::byte> body, size_t& at, uint32_t limit,
                            const MrTable& regions, hca::Domain domain) {
    const auto& segment = *view_as<hw::DataSegment>(body.subspan(at));
    const uint32_t field = segment.byte_count.get();
    const uint32_t length = field & ~hw::DataSegment::kInline;
    // A pointer segment of length 0 would mean 2^31 bytes.
    if (length > limit - bytes_ || field == 0) return hw::Syndrome::kLocalLength;
    if (field != length) {
      const size_t data = at + sizeof segment.byte_count;
      if (length > body.size() - data) return hw::Syndrome::kLocalQpOperation;
      pieces_[count_++] = {body.data() + data, {}, length, true};
      at = round_up<size_t>(data + length, hw::kWqeSegmentBytes);
    } else {
      const Allowed from = regions.resolve(segment.key.get(), domain, segment.address.get(), length,
                                           hca::Access::kRead);
      if (from.memory == nullptr) return hw::Syndrome::kLocalProtection;
      pieces_[count_++] = {from.memory, from.at, length, false};
      at += sizeof segment;
    }
    bytes_ += length;
    return hw::Syndrome::kNone;
  }

  const std::byte* header_;
  size_t header_bytes_;
  uint32_t count_;
  uint32_t bytes_;
  uint16_t mss_;
  uint16_t tag_control_;
  uint8_t checksum_flags_;
  bool tagged_;
  bool many_frames_;
  std::array<Piece, hw::kMaxWqeSegments> pieces_;  // [0, count_) are filled
};

}  // namespace nicmem::sim
