// SPDX-License-Identifier: BSD-3-Clause
// What a completion says about a frame's headers and checksums.
#include "sim/parser.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/frames.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

using T = hw::HeaderType;

uint16_t type_of(const Frame& frame) { return sim::header_type(frame, sim::parse(frame)); }

/// Fills in the UDP or TCP checksum by an obvious sum, two bytes at a time.
void seal_l4(Frame& frame, size_t l3, size_t l4, size_t checksum_at, uint8_t protocol) {
  const bool is_v4 = (static_cast<uint8_t>(frame[l3]) >> 4) == 4;
  uint32_t sum = protocol + static_cast<uint32_t>(frame.size() - l4);
  const auto add = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      const uint32_t byte = static_cast<uint8_t>(frame[i]);
      sum += (i - from) % 2 == 0 ? byte << 8 : byte;
    }
  };
  frame[checksum_at] = frame[checksum_at + 1] = std::byte{0};
  is_v4 ? add(l3 + 12, l3 + 20) : add(l3 + 8, l3 + 40);
  add(l4, frame.size());
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  const auto checksum = static_cast<uint16_t>(~sum);
  frame[checksum_at] = static_cast<std::byte>(checksum >> 8);
  frame[checksum_at + 1] = static_cast<std::byte>(checksum & 0xff);
}

Frame udp4(size_t payload, uint16_t fragment = 0) {
  Frame frame = make_ipv4({.fragment = fragment, .payload_bytes = 8 + payload});
  auto& udp = *view_as<hw::UdpHeader>(std::span(frame).subspan(34));
  udp.length.set(static_cast<uint16_t>(8 + payload));
  seal_l4(frame, 14, 34, 40, hw::kProtocolUdp);
  return frame;
}

Frame tcp4(size_t payload, uint16_t flags) {
  Frame frame = make_ipv4({.protocol = hw::kProtocolTcp, .payload_bytes = 20 + payload});
  auto& tcp = *view_as<hw::TcpHeader>(std::span(frame).subspan(34));
  tcp.offset_flags.set(static_cast<uint16_t>(0x5000 | flags));
  seal_l4(frame, 14, 34, 50, hw::kProtocolTcp);
  return frame;
}

TEST(SimParser, ReportsUdpOverIpv4WithBothChecksumsGood) {
  for (const size_t payload : {0u, 1u, 7u, 8u, 9u, 18u, 1471u, 1472u}) {
    const uint16_t type = type_of(udp4(payload));
    EXPECT_EQ(T::L3::get(type), T::kL3Ipv4);
    EXPECT_EQ(T::L4::get(type), T::kL4Udp);
    EXPECT_EQ(T::L2Ok::get(type), 1);
    EXPECT_EQ(T::L3Ok::get(type), 1);
    EXPECT_EQ(T::L4Ok::get(type), 1) << payload;
    EXPECT_EQ(T::Fragment::get(type), 0);
  }
}

TEST(SimParser, OneBitThatFlipsIsSeen) {
  const Frame good = udp4(101);
  for (size_t bit = 14 * 8; bit < good.size() * 8; ++bit) {
    Frame frame = good;
    frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const uint16_t type = type_of(frame);
    const bool both_good = T::L3Ok::get(type) == 1 && T::L4Ok::get(type) == 1;
    EXPECT_FALSE(both_good) << "bit " << bit;
  }
}

TEST(SimParser, AUdpChecksumOfZeroMeansNoneInIpv4Only) {
  Frame frame = udp4(50);
  frame[40] = frame[41] = std::byte{0};
  EXPECT_EQ(T::L4Ok::get(type_of(frame)), 1);
  Frame frame6 = make_ipv6({.payload_bytes = 30});
  view_as<hw::UdpHeader>(std::span(frame6).subspan(54))->length.set(30);
  frame6[60] = frame6[61] = std::byte{0};
  EXPECT_EQ(T::L4Ok::get(type_of(frame6)), 0);
  seal_l4(frame6, 14, 54, 60, hw::kProtocolUdp);
  const uint16_t type = type_of(frame6);
  EXPECT_EQ(T::L4Ok::get(type), 1);
  EXPECT_EQ(T::L3Ok::get(type), 1);
  EXPECT_EQ(T::L3::get(type), T::kL3Ipv6);
}

TEST(SimParser, EthernetPaddingIsNotPartOfTheSegment) {
  Frame frame = udp4(2);
  frame.resize(60, std::byte{0xaa});
  EXPECT_EQ(T::L4Ok::get(type_of(frame)), 1);
}

TEST(SimParser, TellsTcpSegmentsApart) {
  EXPECT_EQ(T::L4::get(type_of(tcp4(10, hw::TcpHeader::kSyn))), T::kL4Tcp);
  EXPECT_EQ(T::L4::get(type_of(tcp4(0, hw::TcpHeader::kAck))), T::kL4TcpEmptyAck);
  EXPECT_EQ(T::L4::get(type_of(tcp4(1, hw::TcpHeader::kAck))), T::kL4TcpAck);
  EXPECT_EQ(T::L4Ok::get(type_of(tcp4(1, hw::TcpHeader::kAck))), 1);
}

TEST(SimParser, AFragmentHasNoL4) {
  for (const uint16_t fragment : std::initializer_list<uint16_t>{0x2000, 0x0001, 0x3fff}) {
    const uint16_t type = type_of(udp4(20, fragment));
    EXPECT_EQ(T::Fragment::get(type), 1);
    EXPECT_EQ(T::L4::get(type), T::kL4None);
    EXPECT_EQ(T::L4Ok::get(type), 0);
    EXPECT_EQ(T::L3Ok::get(type), 1);
  }
}

TEST(SimParser, LooksThroughVlanTagsAndExtensionHeaders) {
  Frame frame = udp4(20);
  const std::byte tag[] = {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}};
  frame.insert(frame.begin() + 12, tag, tag + 4);
  EXPECT_EQ(T::L4Ok::get(type_of(frame)), 1);
  frame.insert(frame.begin() + 12, tag, tag + 4);
  EXPECT_EQ(T::L4Ok::get(type_of(frame)), 1);

  Frame extended = make_ipv6({.next_header = 0, .payload_bytes = 8 + 16 + 20});
  extended[54] = std::byte{60};  // hop by hop, 8 bytes; then destination options, 16 bytes
  extended[55] = std::byte{0};
  extended[62] = std::byte{hw::kProtocolUdp};
  extended[63] = std::byte{1};
  view_as<hw::UdpHeader>(std::span(extended).subspan(78))->length.set(20);
  seal_l4(extended, 14, 78, 84, hw::kProtocolUdp);
  const uint16_t type = type_of(extended);
  EXPECT_EQ(T::IpExtension::get(type), 1);
  EXPECT_EQ(T::L4::get(type), T::kL4Udp);
  EXPECT_EQ(T::L4Ok::get(type), 1);
}

TEST(SimParser, NotIpIsL2Only) {
  Frame arp(60);
  ether_of(arp).type.set(hw::kEtherTypeArp);
  EXPECT_EQ(type_of(arp), T::L2Ok::kMask);
}

TEST(SimParser, AnyBytesCutAnywhereAreRead) {
  Rng rng(test_seed());
  const Frame seeds[] = {udp4(60), tcp4(60, hw::TcpHeader::kAck), make_ipv6({}),
                         make_ipv6({.next_header = 44}), make_ipv6({.next_header = 51})};
  for (int i = 0; i < 200'000; ++i) {
    const Frame& seed = seeds[rng.below(std::size(seeds))];
    // Exactly as large as the frame, so that a sanitizer sees a byte too many.
    Frame frame(seed.begin(),
                seed.begin() + static_cast<std::ptrdiff_t>(rng.below(seed.size() + 1)));
    frame.shrink_to_fit();
    for (uint64_t n = rng.below(6); n > 0 && !frame.empty(); --n) {
      frame[rng.below(frame.size())] = static_cast<std::byte>(rng.next());
    }
    const sim::Parsed p = sim::parse(frame);
    sim::header_type(frame, p);
    sim::addresses(frame, p);
    sim::ports(frame, p);
  }
}

}  // namespace
}  // namespace nicmem::test
