// SPDX-License-Identifier: BSD-3-Clause
// The forwarding function, case by case. Suites named L3_nn are cases of the same number in the
// catalogue of public bug reports.
#include "nf/l3fwd.h"

#include <gtest/gtest.h>

#include "router_fixture.h"

namespace nicmem::nf {
namespace {

using test::Frame;
using test::make_ipv4;
using test::make_ipv6;
using test::v4;
using test::v6;

using L3_01 = Router;
using L3_05 = Router;
using L3_07 = Router;
using L3_08 = Router;
using L3_10 = Router;
using L3_13 = Router;
using L3_14 = Router;
using L3_16 = Router;
using L3_22 = Router;
using L3_23 = Router;
using L3_25 = Router;
using L3_26 = Router;

TEST_F(L3_01, TtlOfZeroAndOneAreDroppedAndTwoLeavesAsOne) {
  expect_drop(make_ipv4({.ttl = 0}), DropReason::kTtlExpired);
  expect_drop(make_ipv4({.ttl = 1}), DropReason::kTtlExpired);
  expect_forwarded(make_ipv4({.ttl = 2}));
  expect_forwarded(make_ipv4({.ttl = 255}));
}

TEST_F(L3_01, HopLimitOfZeroAndOneAreDroppedAndTwoLeavesAsOne) {
  expect_drop(make_ipv6({.hop_limit = 0}), DropReason::kTtlExpired);
  expect_drop(make_ipv6({.hop_limit = 1}), DropReason::kTtlExpired);
  expect_forwarded(make_ipv6({.hop_limit = 2}));
}

TEST_F(L3_05, BadChecksumIsDroppedWhateverBitIsWrong) {
  for (int bit = 0; bit < 16; ++bit) {
    Frame frame = make_ipv4();
    hw::Ipv4Header& ip = test::ipv4_of(frame);
    ip.checksum.set(static_cast<uint16_t>(ip.checksum.get() ^ 1u << bit));
    expect_drop(frame, DropReason::kBadChecksum);
  }
}

TEST_F(L3_05, TheDevicesWordOnTheChecksumIsTaken) {
  Frame bad = make_ipv4();
  test::ipv4_of(bad).checksum.set(0);
  EXPECT_EQ(run(bad, std::nullopt, ChecksumStatus::kGood).kind, Verdict::Kind::kForward);
  Frame good = make_ipv4();
  EXPECT_EQ(run(good, std::nullopt, ChecksumStatus::kBad), Verdict::drop(DropReason::kBadChecksum));
}

TEST_F(L3_07, TotalLengthBeyondTheFrameOrBelowTheHeaderIsDropped) {
  const auto with_length = [](uint16_t total) {
    Frame frame = make_ipv4();  // 60 bytes: 46 of IP
    test::ipv4_of(frame).total_length.set(total);
    test::seal(frame);
    return frame;
  };
  expect_drop(with_length(1500), DropReason::kTruncated);
  expect_drop(with_length(47), DropReason::kTruncated);
  expect_forwarded(with_length(46));
  expect_forwarded(with_length(20));
  expect_drop(with_length(19), DropReason::kMalformedHeader);
  expect_drop(with_length(0), DropReason::kMalformedHeader);
  expect_drop(with_length(65535), DropReason::kTruncated);
}

TEST_F(L3_08, PaddingOfAMinimumFrameStaysAndIsNotCounted) {
  const Frame frame = make_ipv4({.payload_bytes = 20, .padding_bytes = 6});
  ASSERT_EQ(frame.size(), 60u);
  expect_forwarded(frame);
  expect_forwarded(frame, 54);  // the padding is the whole second segment
}

TEST_F(L3_10, OptionsPassUnchanged) {
  expect_forwarded(make_ipv4({.options = {1, 1, 1, 1}}));
  std::vector<uint8_t> record_route(40, 0);
  record_route[0] = 7;
  record_route[1] = 39;
  record_route[2] = 4;
  const Frame longest = make_ipv4({.options = record_route});
  expect_forwarded(longest);
  expect_forwarded(longest, 74);
  expect_drop(longest, DropReason::kNeedsPayload, 73);
}

TEST_F(L3_13, FrameForAnotherStationIsDroppedUnlessAnyMacIsAccepted) {
  const Frame frame = make_ipv4({.destination_mac = {{0x02, 0, 0, 0, 0, 0xaa}}});
  expect_drop(frame, DropReason::kDmacMismatch);
  in.accept_any_mac = true;
  expect_forwarded(frame);
}

TEST_F(L3_14, BroadcastAndMulticastFramesAreNeverForwarded) {
  const Frame broadcast = make_ipv4({.destination_mac = {{255, 255, 255, 255, 255, 255}}});
  const Frame multicast = make_ipv4({.destination_mac = {{0x01, 0, 0x5e, 0, 0, 5}}});
  for (const bool any : {false, true}) {
    in.accept_any_mac = any;
    expect_drop(broadcast, DropReason::kMulticastMac);
    expect_drop(multicast, DropReason::kMulticastMac);
  }
}

TEST_F(L3_16, TaggedFramesAreDroppedAndCounted) {
  for (const std::vector<uint16_t>& tags : std::vector<std::vector<uint16_t>>{
           {0x8100}, {0x88a8, 0x8100}, {0x88a8, 0x88a8, 0x8100}, {0x9100, 0x8100}}) {
    Frame frame = make_ipv4();
    for (const uint16_t tag : tags) {
      const Frame bytes = {std::byte(tag >> 8), std::byte(tag & 0xff), std::byte{0},
                           std::byte{100}};
      frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
    }
    expect_drop(frame, DropReason::kVlanUnexpected);
    frame.resize(16);  // the first tag is cut
    expect_drop(frame, DropReason::kVlanUnexpected);
  }
}

TEST_F(L3_22, EveryPacketUpToTheMtuPassesAndNoneBeyond) {
  for (const uint32_t mtu : {576u, 1500u, 9000u}) {
    hops[kEast].mtu_bytes = mtu;
    for (uint32_t bytes = mtu - 4; bytes <= mtu + 1; ++bytes) {
      const Frame four = make_ipv4({.payload_bytes = bytes - 20});
      const Frame six = make_ipv6({.payload_bytes = bytes - 40});
      if (bytes <= mtu) {
        expect_forwarded(four);
        expect_forwarded(six);
      } else {
        expect_drop(four, DropReason::kMtuExceeded);
        expect_drop(six, DropReason::kMtuExceeded);
      }
    }
  }
}

TEST_F(L3_22, PaddingDoesNotCountAgainstTheMtu) {
  hops[kEast].mtu_bytes = 68;
  expect_forwarded(make_ipv4({.payload_bytes = 48, .padding_bytes = 100}));
}

TEST_F(L3_23, Ipv6PayloadLengthIsReadInNetworkOrder) {
  expect_forwarded(make_ipv6({.payload_bytes = 0x10, .padding_bytes = 6}));
  expect_forwarded(make_ipv6({.payload_bytes = 6}));
  const auto with_length = [](uint16_t payload) {
    Frame frame = make_ipv6({.payload_bytes = 6});
    EXPECT_EQ(frame.size(), 60u);
    test::ipv6_of(frame).payload_length.set(payload);
    return frame;
  };
  expect_drop(with_length(0xffff), DropReason::kTruncated);
  expect_drop(with_length(7), DropReason::kTruncated);
  expect_forwarded(with_length(6));
  expect_forwarded(with_length(0));
}

TEST_F(L3_25, FramesAroundTheSplitPointAreForwarded) {
  for (size_t bytes : {63u, 64u, 65u, 42u}) {
    const Frame frame = make_ipv4({.payload_bytes = bytes - 34});
    expect_forwarded(frame, std::min<size_t>(bytes, 64));
  }
}

TEST_F(L3_26, VerdictAndOutputDoNotDependOnTheSplitOnceHeadersAreWhole) {
  std::vector<uint8_t> options(40, 1);
  const Frame ihl15 = make_ipv4({.payload_bytes = 60, .options = options});
  const Frame six = make_ipv6({.payload_bytes = 80});
  for (size_t first = 0; first <= 134; ++first) {
    if (first >= 74) {
      expect_forwarded(ihl15, first);
    } else {
      expect_drop(ihl15, DropReason::kNeedsPayload, first);
    }
    if (first >= 54) {
      expect_forwarded(six, first);
    } else {
      expect_drop(six, DropReason::kNeedsPayload, first);
    }
  }
}

TEST_F(Router, FramesCutBeforeTheEndOfTheirHeadersAreTruncated) {
  const Frame whole4 = make_ipv4();
  for (size_t bytes = 0; bytes < 60; ++bytes)
    expect_drop(Frame(whole4.begin(), whole4.begin() + static_cast<std::ptrdiff_t>(bytes)),
                DropReason::kTruncated);
  const Frame whole6 = make_ipv6();
  for (size_t bytes = 0; bytes < 80; ++bytes)
    expect_drop(Frame(whole6.begin(), whole6.begin() + static_cast<std::ptrdiff_t>(bytes)),
                DropReason::kTruncated);
}

TEST_F(Router, VersionAndHeaderLengthMustBePossible) {
  for (const unsigned byte : {0x55u, 0x44u, 0x40u, 0x65u, 0x05u}) {
    Frame frame = make_ipv4();
    test::ipv4_of(frame).version_ihl = static_cast<uint8_t>(byte);
    test::seal(frame);
    expect_drop(frame, DropReason::kMalformedHeader);
  }
  Frame six = make_ipv6();
  test::ipv6_of(six).version_class_flow.set(0x40000000);
  expect_drop(six, DropReason::kMalformedHeader);
}

TEST_F(Router, OtherEtherTypesAreNotIp) {
  for (const unsigned type : {0x0806u, 0x0000u, 0x0040u, 0x8847u, 0xffffu}) {
    Frame frame = make_ipv4();
    test::ether_of(frame).type.set(static_cast<uint16_t>(type));
    expect_drop(frame, DropReason::kNotIp);
  }
}

TEST_F(Router, MartianAddressesOfIpv4AreDropped) {
  for (const uint32_t address :
       {v4(0, 0, 0, 0), v4(0, 255, 255, 255), v4(127, 0, 0, 1), v4(127, 255, 255, 255),
        v4(224, 0, 0, 1), v4(239, 255, 255, 255), v4(240, 0, 0, 0), v4(255, 255, 255, 255)}) {
    expect_drop(make_ipv4({.source = address}), DropReason::kMartianSource);
    expect_drop(make_ipv4({.destination = address}), DropReason::kMartianDestination);
  }
  for (const uint32_t address : {v4(1, 0, 0, 0), v4(126, 255, 255, 255), v4(128, 0, 0, 0),
                                 v4(223, 255, 255, 255), v4(10, 0, 0, 1)})
    expect_forwarded(make_ipv4({.source = address}));
}

TEST_F(Router, MartianAddressesOfIpv6AreDropped) {
  for (const hw::Ipv6Address& address :
       {v6({}), v6({0, 0, 0, 0, 0, 0, 0, 1}), v6({0xff02, 0, 0, 0, 0, 0, 0, 1}), v6({0xff0e}),
        v6({0xfe80, 0, 0, 0, 0, 0, 0, 5}), v6({0xfebf, 0xffff}),
        v6({0, 0, 0, 0, 0, 0xffff, 0xc612, 1})}) {
    expect_drop(make_ipv6({.source = address}), DropReason::kMartianSource);
    expect_drop(make_ipv6({.destination = address}), DropReason::kMartianDestination);
  }
  for (const hw::Ipv6Address& address :
       {v6({0, 0, 0, 0, 0, 0, 0, 2}), v6({0, 0, 0, 0, 0, 0, 1, 1}), v6({0xfec0}), v6({0xfe7f}),
        v6({0xfc00}), v6({0, 0, 0, 0, 0, 0xfffe})})
    expect_forwarded(make_ipv6({.source = address}));
}

TEST_F(Router, OwnAddressesAndDirectedBroadcasts) {
  expect_drop(make_ipv4({.source = v4(198, 18, 2, 1)}), DropReason::kMartianSource);
  expect_drop(make_ipv4({.source = v4(198, 18, 2, 255)}), DropReason::kMartianSource);
  expect_drop(make_ipv4({.destination = v4(198, 18, 2, 255)}), DropReason::kMartianDestination);
  // For the router itself, whatever its TTL: that is not forwarding.
  expect_drop(make_ipv4({.destination = v4(198, 18, 2, 1), .ttl = 1}),
              DropReason::kLocalDestination);
  const hw::Ipv6Address own = v6({0x2001, 0xdb8, 2, 0, 0, 0, 0, 1});
  expect_drop(make_ipv6({.source = own}), DropReason::kMartianSource);
  expect_drop(make_ipv6({.destination = own}), DropReason::kLocalDestination);
}

TEST_F(Router, WithoutRouteOrNeighbour) {
  expect_drop(make_ipv4({.destination = v4(198, 18, 3, 1)}), DropReason::kNoRoute);
  expect_drop(make_ipv4({.destination = v4(198, 18, 2, 7)}), DropReason::kNoNeighbour);
  expect_drop(make_ipv6({.destination = v6({0x2001, 0xdb8, 3})}), DropReason::kNoRoute);
}

TEST_F(Router, FragmentsAreForwardedLikeOthers) {
  expect_forwarded(make_ipv4({.fragment = 0x2000}));
  expect_forwarded(make_ipv4({.fragment = 0x20b9}));
  expect_forwarded(make_ipv4({.fragment = 185, .payload_bytes = 1}));
  expect_forwarded(make_ipv6({.next_header = 44}));
}

TEST(DropReasons, EachHasItsOwnName) {
  for (size_t i = 0; i < kDropReasons; ++i) {
    ASSERT_NE(kDropReasonNames[i], nullptr);
    for (size_t j = 0; j < i; ++j) EXPECT_STRNE(kDropReasonNames[i], kDropReasonNames[j]);
  }
  EXPECT_STREQ(name_of(DropReason::kTruncated), "truncated");
  EXPECT_STREQ(name_of(DropReason::kNotIp), "not_ip");
  EXPECT_STREQ(name_of(DropReason::kLocalDestination), "local_destination");
  EXPECT_STREQ(name_of(DropReason::kTtlExpired), "ttl_expired");
  EXPECT_STREQ(name_of(DropReason::kTxFull), "tx_full");
}

}  // namespace
}  // namespace nicmem::nf
