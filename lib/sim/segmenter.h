// SPDX-License-Identifier: BSD-3-Clause
// TCP segmentation: the headers of each piece of a large packet. What a card does with its one
// header template: lengths by segment, sequence numbers go on, IPv4 identifications count up, FIN
// and PSH are for the last segment, CWR for the first. [RFC 9293, 3.1; RFC 3168, 6.1.2]
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/view.h"
#include "hw/tcp.h"
#include "hw/wqe.h"
#include "sim/parser.h"

namespace nicmem::sim {

class Segmenter {
 public:
  /// `header` is all that goes before the payload: Ethernet to TCP, options included, at most
  /// kMaxHeaderBytes. False when it is anything else.
  bool start(std::span<const std::byte> header) {
    if (header.size() > header_.size()) return false;
    size_ = static_cast<uint32_t>(header.size());
    std::memcpy(header_.data(), header.data(), size_);
    const std::span<std::byte> own(header_.data(), size_);
    // The length of a large packet may not fit its field, so what it holds means nothing.
    set_length(own, parse(own));
    parsed_ = parse(own);
    const bool tcp = parsed_.l4 != hw::HeaderType::kL4None && parsed_.l4 != hw::HeaderType::kL4Udp;
    if (!tcp) return false;
    const auto& l4 = *view_as<hw::TcpHeader>(own.subspan(parsed_.l4_offset));
    const uint32_t length = 4u * hw::TcpHeader::DataOffset::get(l4.offset_flags.get());
    return length >= sizeof l4 && parsed_.l4_offset + length == size_;
  }

  struct Place {
    uint32_t index;   // of the segment
    uint32_t offset;  // of its payload in the packet's
    bool last;
  };

  /// Writes the headers of `frame`, which is as long as the segment will be; no checksums. What the
  /// frame's parser will find.
  Parsed write(std::span<std::byte> frame, const Place& place) const {
    std::memcpy(frame.data(), header_.data(), size_);
    set_length(frame, parsed_);
    if (parsed_.l3 == hw::HeaderType::kL3Ipv4) {
      auto& ip = *view_as<hw::Ipv4Header>(frame.subspan(parsed_.l3_offset));
      ip.id.set(static_cast<uint16_t>(ip.id.get() + place.index));
    }
    auto& tcp = *view_as<hw::TcpHeader>(frame.subspan(parsed_.l4_offset));
    tcp.sequence.set(tcp.sequence.get() + place.offset);
    uint16_t word = tcp.offset_flags.get();
    if (!place.last) word &= static_cast<uint16_t>(~(hw::TcpHeader::kFin | hw::TcpHeader::kPsh));
    if (place.index > 0) word &= static_cast<uint16_t>(~hw::TcpHeader::kCwr);
    tcp.offset_flags.set(word);
    Parsed parsed = parsed_;
    parsed.l3_end = static_cast<uint32_t>(frame.size());
    return parsed;
  }

 private:
  static constexpr size_t kMaxHeaderBytes = size_t{hw::kMaxWqeSegments} * hw::kWqeSegmentBytes;

  /// The IP packet ends where the frame ends.
  static void set_length(std::span<std::byte> frame, const Parsed& p) {
    const std::span<std::byte> packet = frame.subspan(std::min<size_t>(p.l3_offset, frame.size()));
    if (p.l3 == hw::HeaderType::kL3Ipv4) {
      auto& ip = *view_as<hw::Ipv4Header>(packet);
      ip.total_length.set(static_cast<uint16_t>(packet.size()));
    } else if (p.l3 == hw::HeaderType::kL3Ipv6) {
      auto& ip = *view_as<hw::Ipv6Header>(packet);
      ip.payload_length.set(static_cast<uint16_t>(packet.size() - sizeof ip));
    }
  }

  std::array<std::byte, kMaxHeaderBytes> header_;  // [0, size_) are filled
  uint32_t size_ = 0;
  Parsed parsed_;
};

}  // namespace nicmem::sim
