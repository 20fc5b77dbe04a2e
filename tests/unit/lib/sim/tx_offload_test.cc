// SPDX-License-Identifier: BSD-3-Clause
// What the device does to frames that it sends: checksums, VLAN tags, segmentation. Results are
// checked against arithmetic of the tests' own.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_packet.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::Syndrome;

constexpr uint8_t kL3 = 0x40, kL4 = 0x80;
constexpr size_t kMost = sim::kMaxTsoBytes;

struct OffloadRig : Rig<> {
  OffloadRig() { ok(port->set_max_frame(9600)); }

  /// The completion that the next settling gives.
  hw::Syndrome outcome() {
    settle();
    const auto entry = sender.completions.poll();
    EXPECT_TRUE(entry.has_value());
    EXPECT_FALSE(sender.completions.poll().has_value());
    return hw::is_error(entry->op_own) ? syndrome_of(*entry) : Syndrome::kNone;
  }
  hw::Syndrome send(const Bytes& wqe) {
    sender.put(wqe);
    sender.ring();
    return outcome();
  }
  /// Pointers to `bytes` of `buffer`, cut at random places.
  std::vector<hw::DataSegment> pieces(Rng& rng, size_t bytes) {
    std::vector<hw::DataSegment> list;
    size_t at = 0;
    while (at < bytes) {
      const size_t last = list.size() == 7 ? bytes - at : 1 + rng.below(bytes - at);
      list.push_back(buffer.at(at, static_cast<uint32_t>(last)));
      at += last;
    }
    return list;
  }
  void fill(const Bytes& bytes) { std::ranges::copy(bytes, buffer.bytes.begin()); }

  Buffer buffer = Buffer::in_host(*nic, domain, kMost + 1);
  Sender sender{*port, domain, 64};
};

Bytes part(const Bytes& bytes, size_t from, size_t to) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
          bytes.begin() + static_cast<std::ptrdiff_t>(to)};
}

// ---- Checksums

TEST(SimTxChecksum, AreFilledWhateverTheFieldsHold) {
  Rng rng(test_seed());
  OffloadRig rig;
  for (int round = 0; round < 3000; ++round) {
    const RandomPacket given = random_packet(rng, rng.below(1500), rng.below(2) == 0);
    const auto flags = static_cast<uint8_t>(rng.below(4) << 6);
    const size_t inlined = rng.below(3) == 0 ? 0 : 2 + rng.below(given.payload - 1);
    const size_t head = std::min<size_t>(inlined, given.payload);
    rig.fill(part(given.bytes, head, given.bytes.size()));
    Bytes wqe =
        rig.sender.build(part(given.bytes, 0, head), rig.pieces(rng, given.bytes.size() - head));
    Sender::eth_of(wqe).checksum_flags = flags;
    rig.wire->outbox.clear();
    ASSERT_EQ(rig.send(wqe), Syndrome::kNone) << "round " << round;

    RandomPacket got = given;
    got.bytes = rig.wire->outbox.at(0);
    if ((flags & kL3) != 0 && given.v4) {
      ASSERT_TRUE(l3_adds_up(got)) << "round " << round;
    }
    if ((flags & kL4) != 0) {
      ASSERT_TRUE(l4_adds_up(got)) << "round " << round;
    }
    if ((flags & kL3) != 0 && given.v4) {
      set_octets(got.bytes, got.l3_checksum_at(), 2, octets(given.bytes, got.l3_checksum_at(), 2));
    }
    if ((flags & kL4) != 0) {
      set_octets(got.bytes, got.l4_checksum_at(), 2, octets(given.bytes, got.l4_checksum_at(), 2));
    }
    ASSERT_EQ(got.bytes, given.bytes) << "nothing else changes; round " << round;
  }
}

// RFC 768: a sum of zero is sent as all ones, for zero says that there is none.
TEST(SimTxChecksum, UdpNeverGetsAZero) {
  Rng rng(test_seed());
  OffloadRig rig;
  for (const bool v4 : {true, false}) {
    RandomPacket p = random_packet(rng, 10, false);
    while (p.v4 != v4) p = random_packet(rng, 10, false);
    // The last word of the payload makes the sum of all others, the field being 0, all ones.
    set_octets(p.bytes, p.l4_checksum_at(), 2, 0);
    set_octets(p.bytes, p.payload + 8, 2, 0);
    for (uint32_t word = 0; word < 0x10000 && !l4_adds_up(p); ++word) {
      set_octets(p.bytes, p.payload + 8, 2, word);
    }
    ASSERT_TRUE(l4_adds_up(p));
    rig.fill(p.bytes);
    Bytes wqe = rig.sender.build({}, {rig.buffer.at(0, static_cast<uint32_t>(p.bytes.size()))});
    Sender::eth_of(wqe).checksum_flags = kL4;
    ASSERT_EQ(rig.send(wqe), Syndrome::kNone);
    EXPECT_EQ(octets(rig.wire->outbox.back(), p.l4_checksum_at(), 2), 0xffffu);
  }
}

// A card cannot fill what is not there, and takes no frame for an error.
TEST(SimTxChecksum, WhatIsNoSuchPacketLeavesAsItIs) {
  Rng rng(test_seed());
  OffloadRig rig;
  RandomPacket p = random_packet(rng, 100, true);
  while (!p.v4) p = random_packet(rng, 100, true);
  RandomPacket fragment = p, cut = p, arp = p;
  set_octets(fragment.bytes, fragment.l3 + 6, 2, 0x2000);
  set_octets(cut.bytes, cut.l3 + 2, 2, static_cast<uint32_t>(cut.bytes.size() - cut.l3 + 1));
  set_octets(arp.bytes, arp.l3 - 2, 2, 0x0806);
  for (const RandomPacket& given : {fragment, cut, arp}) {
    rig.fill(given.bytes);
    Bytes wqe = rig.sender.build({}, {rig.buffer.at(0, static_cast<uint32_t>(given.bytes.size()))});
    Sender::eth_of(wqe).checksum_flags = kL4;
    ASSERT_EQ(rig.send(wqe), Syndrome::kNone);
    EXPECT_EQ(rig.wire->outbox.back(), given.bytes);
  }
  Bytes runt = rig.sender.build(pattern(14), {});
  Sender::eth_of(runt).checksum_flags = kL3 | kL4;
  EXPECT_EQ(rig.send(runt), Syndrome::kNone);
}

// ---- VLAN

void insert_tag(Bytes& wqe, uint16_t control) {
  hw::EthSegment& eth = Sender::eth_of(wqe);
  eth.inline_bytes.set(hw::EthSegment::InsertVlan::set(0, 1));
  eth.inline_start[0] = static_cast<uint8_t>(control >> 8);
  eth.inline_start[1] = static_cast<uint8_t>(control);
}

TEST(SimTxVlan, ATagIsPutBehindTheAddresses) {
  Rng rng(test_seed());
  OffloadRig rig;
  for (int round = 0; round < 500; ++round) {
    RandomPacket given = random_packet(rng, rng.below(1400), rng.below(2) == 0);
    while (octets(given.bytes, 12, 4) >> 16 == 0x8100) given = random_packet(rng, 64, true);
    rig.fill(given.bytes);
    const auto control = static_cast<uint16_t>(rng.next());
    Bytes wqe = rig.sender.build({}, rig.pieces(rng, given.bytes.size()));
    insert_tag(wqe, control);
    const bool checksums = rng.below(2) == 0;
    if (checksums) Sender::eth_of(wqe).checksum_flags = kL4;
    ASSERT_EQ(rig.send(wqe), Syndrome::kNone);
    RandomPacket got = given;
    got.bytes = rig.wire->outbox.back();
    ASSERT_EQ(got.bytes.size(), given.bytes.size() + 4);
    ASSERT_EQ(octets(got.bytes, 12, 4), 0x81000000u | control);
    got.bytes.erase(got.bytes.begin() + 12, got.bytes.begin() + 16);
    if (checksums) {
      ASSERT_TRUE(l4_adds_up(got));
      set_octets(got.bytes, got.l4_checksum_at(), 2, octets(given.bytes, got.l4_checksum_at(), 2));
    }
    ASSERT_EQ(got.bytes, given.bytes);
  }
}

TEST(SimTxVlan, TheTagCountsInTheLength) {
  for (const uint32_t size : {1495u, 1496u, 1497u}) {
    OffloadRig rig;
    ok(rig.port->set_max_frame(1500));
    Bytes wqe = rig.sender.build({}, {rig.buffer.at(0, size)});
    insert_tag(wqe, 7);
    EXPECT_EQ(rig.send(wqe), size > 1496 ? Syndrome::kLocalLength : Syndrome::kNone) << size;
  }
}

// ---- Segmentation

/// The segments that `given`, cut into payloads of `mss`, must become; checksum fields apart.
std::vector<Bytes> cut(const RandomPacket& given, size_t mss) {
  std::vector<Bytes> segments;
  const size_t total = given.bytes.size() - given.payload;
  for (size_t at = 0; at < total; at += mss) {
    const size_t size = std::min(mss, total - at);
    Bytes s = part(given.bytes, 0, given.payload);
    const auto body = part(given.bytes, given.payload + at, given.payload + at + size);
    s.insert(s.end(), body.begin(), body.end());
    const auto l3_bytes = static_cast<uint32_t>(s.size() - given.l3);
    if (given.v4) {
      set_octets(s, given.l3 + 2, 2, l3_bytes);
      const uint32_t id = octets(s, given.l3 + 4, 2) + static_cast<uint32_t>(segments.size());
      set_octets(s, given.l3 + 4, 2, id & 0xffff);
    } else {
      set_octets(s, given.l3 + 4, 2, l3_bytes - 40);
    }
    const uint32_t sequence = octets(s, given.l4 + 4, 4);
    set_octets(s, given.l4 + 4, 4, sequence + static_cast<uint32_t>(at));
    if (at + size < total) s[given.l4 + 13] &= ~std::byte{0x09};  // FIN, PSH
    if (at > 0) s[given.l4 + 13] &= ~std::byte{0x80};             // CWR
    segments.push_back(s);
  }
  return segments;
}

/// `got` is `want` but for checksums, which add up where they were asked for.
void expect_segment(RandomPacket shape, Bytes got, Bytes want, uint8_t flags) {
  shape.bytes = got;
  if ((flags & kL4) != 0) {
    ASSERT_TRUE(l4_adds_up(shape));
    set_octets(want, shape.l4_checksum_at(), 2, octets(got, shape.l4_checksum_at(), 2));
  }
  if ((flags & kL3) != 0 && shape.v4) {
    ASSERT_TRUE(l3_adds_up(shape));
    set_octets(want, shape.l3_checksum_at(), 2, octets(got, shape.l3_checksum_at(), 2));
  }
  ASSERT_EQ(got, want);
}

TEST(SimTxSegmentation, EverySegmentIsWhatTheOracleCuts) {
  Rng rng(test_seed());
  OffloadRig rig;
  for (int round = 0; round < 400; ++round) {
    const size_t most = rng.below(8) == 0 ? 20000 : 4000;
    const RandomPacket given = random_packet(rng, 1 + rng.below(most), true);
    const auto mss = static_cast<uint16_t>(1 + rng.below(1460) + rng.below(20));
    const auto flags = static_cast<uint8_t>(rng.below(4) << 6);
    rig.fill(part(given.bytes, given.payload, given.bytes.size()));
    rig.wire->outbox.clear();
    rig.wire->room_frames = 1 + rng.below(70);  // segments may have to wait for room
    ASSERT_EQ(rig.send(rig.sender.build_tso(part(given.bytes, 0, given.payload),
                                            rig.pieces(rng, given.bytes.size() - given.payload),
                                            mss, flags)),
              Syndrome::kNone);
    const std::vector<Bytes> want = cut(given, mss);
    ASSERT_EQ(rig.wire->outbox.size(), want.size()) << "round " << round;
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", segment " << i);
      expect_segment(given, rig.wire->outbox[i], want[i], flags);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// A TCP packet over IPv4 without tags.
RandomPacket plain_tcp(size_t payload) {
  Rng rng(5);
  RandomPacket p = random_packet(rng, payload, true);
  while (!p.v4 || p.l3 != 14) p = random_packet(rng, payload, true);
  return p;
}

TEST(SimTxSegmentation, TheLargestPayloadIs256KiB) {
  for (const size_t size : {kMost - 1, kMost, kMost + 1}) {
    OffloadRig rig;
    const RandomPacket given = plain_tcp(0);
    const auto syndrome = rig.send(rig.sender.build_tso(
        given.bytes, {rig.buffer.at(0, static_cast<uint32_t>(size))}, 9000, kL3 | kL4));
    EXPECT_EQ(syndrome, size > kMost ? Syndrome::kLocalLength : Syndrome::kNone) << size;
    EXPECT_EQ(rig.wire->outbox.size(), size > kMost ? 0u : 30u) << size;
  }
}

TEST(SimTxSegmentation, ASegmentMustFitThePort) {
  const RandomPacket given = plain_tcp(0);
  const auto header = static_cast<uint32_t>(given.bytes.size());
  for (const uint32_t over : {0u, 1u}) {
    OffloadRig rig;
    ok(rig.port->set_max_frame(header + 1000));
    const auto mss = static_cast<uint16_t>(1000 + over);
    EXPECT_EQ(rig.send(rig.sender.build_tso(given.bytes, {rig.buffer.at(0, 3000)}, mss)),
              over > 0 ? Syndrome::kLocalLength : Syndrome::kNone);
  }
  OffloadRig rig;  // shorter than a segment: only its own length counts
  ok(rig.port->set_max_frame(header + 1000));
  EXPECT_EQ(rig.send(rig.sender.build_tso(given.bytes, {rig.buffer.at(0, 1000)}, 1400)),
            Syndrome::kNone);
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimTxSegmentation, GoesOnWhereItHadToWaitAndReadsItsRequestOnce) {
  OffloadRig rig;
  const RandomPacket given = plain_tcp(10000);
  rig.fill(part(given.bytes, given.payload, given.bytes.size()));
  rig.wire->room_frames = 0;
  rig.sender.put(
      rig.sender.build_tso(part(given.bytes, 0, given.payload), {rig.buffer.at(0, 10000)}, 1000));
  rig.sender.ring();
  rig.settle();
  EXPECT_TRUE(rig.wire->outbox.empty());
  rig.wire->room_frames = 100;
  for (size_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(rig.nic->step(++rig.now, 2), 2u);
    EXPECT_EQ(rig.wire->outbox.size(), 2 * i);
    EXPECT_EQ(rig.sender.completions.poll().has_value(), i == 5);
  }
  EXPECT_EQ(rig.nic->step(++rig.now, 2), 0u);
  EXPECT_EQ(rig.wire->outbox, cut(given, 1000));
  const hw::PcieTally tally = rig.port->pcie();
  const uint32_t blocks =
      hw::send_wqe_blocks(hw::send_wqe_segments(static_cast<uint32_t>(given.payload), 1));
  EXPECT_EQ(tally[hw::PcieClass::kTxDescriptor], hw::dma_read(blocks * 64));
  EXPECT_EQ(tally[hw::PcieClass::kPayload], hw::times(10, hw::dma_read(1000)));
}

TEST(SimTxSegmentation, AResetForgetsAHalfSentPacket) {
  OffloadRig rig;
  const RandomPacket given = plain_tcp(0);
  rig.sender.put(rig.sender.build_tso(given.bytes, {rig.buffer.at(0, 3000)}, 1000));
  rig.sender.ring();
  rig.nic->step(++rig.now, 1);
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
  rig.sender.reset();
  ASSERT_EQ(rig.send(rig.sender.build_tso(given.bytes, {rig.buffer.at(0, 3000)}, 1000)),
            Syndrome::kNone);
  EXPECT_EQ(rig.wire->outbox.size(), 4u);
}

TEST(SimTxSegmentation, MemoryThatGoesAwayBetweenSegmentsIsNotRead) {
  OffloadRig rig;
  const RandomPacket given = plain_tcp(0);
  Buffer gone = Buffer::in_host(*rig.nic, rig.domain, 3000);
  rig.sender.put(rig.sender.build_tso(given.bytes, {gone.at(0, 3000)}, 1000));
  rig.sender.ring();
  rig.nic->step(++rig.now, 1);
  gone = Buffer();
  EXPECT_EQ(rig.outcome(), Syndrome::kLocalProtection);
  EXPECT_EQ(rig.wire->outbox.size(), 1u);
}

TEST(SimTxSegmentation, RefusesHeadersThatItCannotCopy) {
  Rng rng(1);
  const RandomPacket tcp = plain_tcp(0);
  RandomPacket udp = random_packet(rng, 0, false);
  RandomPacket arp = tcp, fragment = tcp, no_offset = tcp, version = tcp;
  set_octets(arp.bytes, arp.l3 - 2, 2, 0x0806);
  set_octets(fragment.bytes, fragment.l3 + 6, 2, 0x2000);
  no_offset.bytes[no_offset.l4 + 12] = std::byte{0x40};
  version.bytes[version.l3] ^= std::byte{0x10};
  const std::vector<Bytes> headers = {udp.bytes,
                                      arp.bytes,
                                      fragment.bytes,
                                      no_offset.bytes,
                                      version.bytes,
                                      part(tcp.bytes, 0, tcp.bytes.size() - 1),
                                      part(tcp.bytes, 0, tcp.l4),
                                      part(tcp.bytes, 0, 14),
                                      {}};
  for (const Bytes& header : headers) {
    OffloadRig rig;
    EXPECT_EQ(rig.send(rig.sender.build_tso(header, {rig.buffer.at(0, 3000)}, 1000)),
              Syndrome::kLocalQpOperation)
        << header.size();
    EXPECT_TRUE(rig.wire->outbox.empty());
  }
  Bytes longer = tcp.bytes;
  longer.resize(longer.size() + 1);
  OffloadRig rig;
  EXPECT_EQ(rig.send(rig.sender.build_tso(longer, {rig.buffer.at(0, 3000)}, 1000)),
            Syndrome::kLocalQpOperation);
  rig.sender.reset();
  Bytes tagged = rig.sender.build_tso({}, {rig.buffer.at(0, 3000)}, 1000);
  insert_tag(tagged, 1);
  EXPECT_EQ(rig.send(tagged), Syndrome::kLocalQpOperation);
}

TEST(SimTxSegmentation, ACapabilityNamesTheLimit) {
  OffloadRig rig;
  EXPECT_EQ(rig.nic->capabilities().max_tso_bytes, kMost);
  EXPECT_TRUE(rig.nic->capabilities().checksum);
}

}  // namespace
}  // namespace nicmem::test
