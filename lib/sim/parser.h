// SPDX-License-Identifier: BSD-3-Clause
// The device's view of a frame: which headers it has, whether their checksums hold. It reports what
// a completion's header_type says, and where the fields are that spread frames over queues.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/view.h"
#include "hw/checksum.h"
#include "hw/cqe.h"
#include "hw/ether.h"
#include "hw/ipv4.h"
#include "hw/ipv6.h"
#include "hw/tcp.h"
#include "hw/udp.h"
#include "sim/wire.h"

namespace nicmem::sim {

/// Offsets are from the frame's start. An offset is meaningful when its kind is not 'none'.
struct Parsed {
  uint32_t l3_offset = 0;
  uint32_t l4_offset = 0;
  uint32_t l3_end = 0;  // where the IP packet says that it ends; may lie beyond the frame
  uint16_t l3 = hw::HeaderType::kL3None;
  uint16_t l4 = hw::HeaderType::kL4None;
  uint8_t tags = 0;      // VLAN tags that were skipped; the outermost is behind the addresses
  uint8_t protocol = 0;  // of the IP payload
  bool l3_well_formed = false;
  bool fragment = false;
  bool ip_extension = false;  // IPv4 options, IPv6 extension headers

  friend bool operator==(const Parsed&, const Parsed&) = default;
};

namespace parser {

inline constexpr uint32_t kMaxVlanTags = 2;
inline constexpr uint32_t kMaxExtensions = 8;

template <WireStruct T>
const T* header_at(Frame frame, uint32_t offset) {
  return offset > frame.size() ? nullptr : view_as<T>(frame.subspan(offset));
}

/// Notes a TCP or UDP header that is there as a whole. `at` is where the IP payload starts.
inline void find_l4(Frame frame, uint8_t protocol, uint32_t at, Parsed& p) {
  p.l4_offset = at;
  p.protocol = protocol;
  if (p.fragment) return;
  const auto end = static_cast<uint32_t>(std::min<size_t>(p.l3_end, frame.size()));
  if (protocol == hw::kProtocolUdp && at + sizeof(hw::UdpHeader) <= end) {
    p.l4 = hw::HeaderType::kL4Udp;
  } else if (protocol == hw::kProtocolTcp && at + sizeof(hw::TcpHeader) <= end) {
    p.l4 = hw::HeaderType::kL4Tcp;
    const auto& tcp = *header_at<hw::TcpHeader>(frame, at);
    const uint16_t word = tcp.offset_flags.get();
    if ((hw::TcpHeader::Flags::get(word) & hw::TcpHeader::kAck) == 0) return;
    const uint32_t data = at + 4u * hw::TcpHeader::DataOffset::get(word);
    p.l4 = data < p.l3_end ? hw::HeaderType::kL4TcpAck : hw::HeaderType::kL4TcpEmptyAck;
  }
}

inline void find_ipv4(Frame frame, Parsed& p) {
  const auto* ip = header_at<hw::Ipv4Header>(frame, p.l3_offset);
  if (ip == nullptr) return;
  p.l3 = hw::HeaderType::kL3Ipv4;
  const uint32_t header = ip->header_bytes();
  p.l3_well_formed = hw::Ipv4Header::Version::get(ip->version_ihl) == 4 && header >= sizeof *ip &&
                     p.l3_offset + header <= frame.size() && ip->total_length.get() >= header;
  if (!p.l3_well_formed) return;
  p.ip_extension = header > sizeof *ip;
  const uint16_t fragment = ip->fragment.get();
  p.fragment = hw::Ipv4Header::MoreFragments::get(fragment) != 0 ||
               hw::Ipv4Header::FragmentOffset::get(fragment) != 0;
  p.l3_end = p.l3_offset + ip->total_length.get();
  find_l4(frame, ip->protocol, p.l3_offset + header, p);
}

/// [RFC 8200, 4: all extension headers start with next header and length, except as noted]
inline void find_ipv6(Frame frame, Parsed& p) {
  const auto* ip = header_at<hw::Ipv6Header>(frame, p.l3_offset);
  if (ip == nullptr) return;
  p.l3 = hw::HeaderType::kL3Ipv6;
  p.l3_well_formed = hw::Ipv6Header::Version::get(ip->version_class_flow.get()) == 6;
  if (!p.l3_well_formed) return;
  constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51;
  constexpr uint8_t kDestination = 60;
  struct Extension {
    uint8_t next, length;
    be16 fragment_offset;  // kFragment only: [15:3] offset, [0] more fragments
    uint8_t rest[4];
  };
  p.l3_end = p.l3_offset + static_cast<uint32_t>(sizeof *ip) + ip->payload_length.get();
  uint8_t next = ip->next_header;
  uint32_t at = p.l3_offset + static_cast<uint32_t>(sizeof *ip);
  for (uint32_t i = 0; i < kMaxExtensions; ++i) {
    const bool known = next == kHopByHop || next == kRouting || next == kFragment ||
                       next == kAuthentication || next == kDestination;
    if (!known) return find_l4(frame, next, at, p);
    const auto* extension = header_at<Extension>(frame, at);
    if (extension == nullptr) return;
    p.ip_extension = true;
    if (next == kFragment) {
      p.fragment = p.fragment || (extension->fragment_offset.get() & 0xfff9) != 0;
      at += 8;
    } else if (next == kAuthentication) {
      at += 4u * (extension->length + 2u);
    } else {
      at += 8u * (extension->length + 1u);
    }
    next = extension->next;
  }
}

/// Of frames of any kind. `p` is as new.
[[gnu::noinline]] inline void parse_any(Frame frame, Parsed& p) {
  const auto* ether = view_as<hw::EtherHeader>(frame);
  if (ether == nullptr) return;
  uint16_t type = ether->type.get();
  p.l3_offset = sizeof *ether;
  for (uint32_t i = 0; i < kMaxVlanTags && hw::is_vlan(type); ++i) {
    const auto* tag = header_at<hw::VlanTag>(frame, p.l3_offset);
    if (tag == nullptr) return;
    type = tag->type.get();
    p.l3_offset += static_cast<uint32_t>(sizeof *tag);
    ++p.tags;
  }
  if (type == hw::kEtherTypeIpv4) find_ipv4(frame, p);
  if (type == hw::kEtherTypeIpv6) find_ipv6(frame, p);
}

/// Whether the frame is of the commonest shape: a whole IPv4 header without options right behind an
/// untagged Ethernet header, and no fragment. All offsets are then known.
inline bool is_plain_ipv4(Frame frame) {
  const auto* ether = view_as<hw::EtherHeader>(frame);
  const auto* ip = header_at<hw::Ipv4Header>(frame, sizeof *ether);
  if (ip == nullptr) return false;
  using Ip = hw::Ipv4Header;
  constexpr uint16_t kFragment = Ip::MoreFragments::set(
      Ip::FragmentOffset::set(0, Ip::FragmentOffset::kMax), Ip::MoreFragments::kMax);
  return ether->type.get() == hw::kEtherTypeIpv4 && ip->version_ihl == 0x45 &&
         (ip->fragment.get() & kFragment) == 0 && ip->total_length.get() >= sizeof *ip;
}

}  // namespace parser

/// Finds the headers; reads no more than they are. Any bytes are allowed. One object from start to
/// end: a copy of fields just stored would stall the processor.
inline Parsed parse(Frame frame) {
  Parsed p;
  if (parser::is_plain_ipv4(frame)) {
    p.l3_offset = sizeof(hw::EtherHeader);
    const auto* ip = parser::header_at<hw::Ipv4Header>(frame, p.l3_offset);
    p.l3_end = p.l3_offset + ip->total_length.get();
    p.l3 = hw::HeaderType::kL3Ipv4;
    p.l3_well_formed = true;
    parser::find_l4(frame, ip->protocol, p.l3_offset + uint32_t{sizeof *ip}, p);
  } else {
    parser::parse_any(frame, p);
  }
  return p;
}

/// The outermost VLAN tag, or null.
inline const hw::VlanTag* outer_tag(Frame frame, const Parsed& p) {
  return p.tags == 0 ? nullptr : parser::header_at<hw::VlanTag>(frame, sizeof(hw::EtherHeader));
}

/// The IP addresses, source then destination: 8 or 32 bytes, or none.
inline std::span<const std::byte> addresses(Frame frame, const Parsed& p) {
  if (!p.l3_well_formed) return {};
  if (p.l3 == hw::HeaderType::kL3Ipv4) {
    return frame.subspan(p.l3_offset + offsetof(hw::Ipv4Header, source), 8);
  }
  return frame.subspan(p.l3_offset + offsetof(hw::Ipv6Header, source), 32);
}

/// Source and destination port: 4 bytes, or none.
inline std::span<const std::byte> ports(Frame frame, const Parsed& p) {
  if (p.l4 == hw::HeaderType::kL4None) return {};
  return frame.subspan(p.l4_offset, 4);
}

namespace parser {

/// Words in host order, added up without carries between them.
inline uint64_t sum_of_words(const std::byte* at, size_t words) {
  uint64_t sum = 0;
  for (size_t i = 0; i < words; ++i) {
    uint32_t word;
    std::memcpy(&word, at + i * sizeof word, sizeof word);
    sum += word;
  }
  return sum;
}

inline bool l3_holds(Frame frame, const Parsed& p) {
  if (!p.l3_well_formed) return false;
  if (p.l3 == hw::HeaderType::kL3Ipv6) return true;  // it has no checksum
  const std::byte* const ip = frame.data() + p.l3_offset;
  if (!p.ip_extension) {
    return hw::sum_holds(sum_of_words(ip, sizeof(hw::Ipv4Header) / sizeof(uint32_t)));
  }
  return hw::checksum_holds({ip, reinterpret_cast<const hw::Ipv4Header*>(ip)->header_bytes()});
}

/// hw::add_words() for payloads: 32-bit words have no carry to chain, so the compiler vectorises
/// it. `sum` has at most 48 bits.
[[gnu::noinline]] inline uint64_t add_many_words(uint64_t sum, std::span<const std::byte> bytes) {
  constexpr size_t kBlock = 32;
  const size_t whole = bytes.size() / kBlock * kBlock;
  return hw::add_words(sum + sum_of_words(bytes.data(), whole / sizeof(uint32_t)),
                       bytes.subspan(whole));
}

/// The same; of few bytes that is no gain.
[[gnu::always_inline]] inline uint64_t add_payload(uint64_t sum, std::span<const std::byte> bytes) {
  constexpr size_t kFew = 96;
  return bytes.size() <= kFew ? hw::add_words(sum, bytes) : add_many_words(sum, bytes);
}

/// The ones-complement sum of `bytes`, continuing from `start`: hw::sum_words() of payloads.
inline uint16_t sum_long(std::span<const std::byte> bytes, uint16_t start) {
  return __builtin_bswap16(hw::fold_sum(add_payload(__builtin_bswap16(start), bytes)));
}

/// The pseudo header that a TCP or UDP checksum covers, added up in host order.
inline uint64_t sum_of_pseudo(Frame frame, const Parsed& p, uint8_t protocol, uint32_t length) {
  const uint64_t sum = __builtin_bswap32(protocol + length);
  if (p.l3 == hw::HeaderType::kL3Ipv4) {
    return sum + sum_of_words(frame.data() + p.l3_offset + offsetof(hw::Ipv4Header, source), 2);
  }
  return sum + sum_of_words(frame.data() + p.l3_offset + offsetof(hw::Ipv6Header, source), 8);
}

/// The whole TCP or UDP checksum, pseudo header and payload included. [RFC 9293, 3.1; RFC 768]
inline bool l4_holds(Frame frame, const Parsed& p) {
  if (p.l4 == hw::HeaderType::kL4None || p.l3_end > frame.size()) return false;
  uint32_t length = p.l3_end - p.l4_offset;
  uint8_t protocol = hw::kProtocolTcp;
  if (p.l4 == hw::HeaderType::kL4Udp) {
    const auto* udp = reinterpret_cast<const hw::UdpHeader*>(frame.data() + p.l4_offset);
    if (udp->checksum.get() == 0) return p.l3 == hw::HeaderType::kL3Ipv4;  // none was computed
    const uint32_t udp_length = udp->length.get();
    if (udp_length < sizeof *udp || udp_length > length) return false;
    length = udp_length;
    protocol = hw::kProtocolUdp;
  }
  const uint64_t pseudo = sum_of_pseudo(frame, p, protocol, length);
  return hw::sum_holds(add_payload(pseudo, frame.subspan(p.l4_offset, length)));
}

}  // namespace parser

/// What Cqe::header_type says about the frame, its checksums included: reads all of it.
inline uint16_t header_type(Frame frame, const Parsed& p) {
  using T = hw::HeaderType;
  return static_cast<uint16_t>(
      T::L2Ok::set(0, 1) | T::L3::set(0, p.l3) | T::L4::set(0, p.l4) |
      T::IpExtension::set(0, p.ip_extension) | T::Fragment::set(0, p.fragment) |
      T::L3Ok::set(0, parser::l3_holds(frame, p)) | T::L4Ok::set(0, parser::l4_holds(frame, p)));
}

}  // namespace nicmem::sim
