// SPDX-License-Identifier: BSD-3-Clause
// Receive-side scaling: the published vectors, and where frames go. The vectors are Microsoft's
// "Verifying the RSS Hash Calculation".
#include "sim/rss.h"

#include <gtest/gtest.h>

#include <map>

#include "support/frames.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

constexpr std::array<uint8_t, 40> kKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Vector4 {
  uint32_t destination, source;
  uint16_t destination_port, source_port;
  uint32_t addresses_only, with_ports;
};
const Vector4 kVectors4[] = {
    {v4(161, 142, 100, 80), v4(66, 9, 149, 187), 1766, 2794, 0x323e8fc2, 0x51ccc178},
    {v4(65, 69, 140, 83), v4(199, 92, 111, 2), 4739, 14230, 0xd718262a, 0xc626b0ea},
    {v4(12, 22, 207, 184), v4(24, 19, 198, 95), 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
    {v4(209, 142, 163, 6), v4(38, 27, 205, 30), 2217, 48228, 0x82989176, 0xafc7327f},
    {v4(202, 188, 127, 2), v4(153, 39, 163, 191), 1303, 44251, 0x5d1809c5, 0x10e828a2},
};

struct Vector6 {
  hw::Ipv6Address destination, source;
  uint16_t destination_port, source_port;
  uint32_t addresses_only, with_ports;
};
const Vector6 kVectors6[] = {
    {v6({0x3ffe, 0x2501, 0x200, 3, 0, 0, 0, 1}), v6({0x3ffe, 0x2501, 0x200, 0x1fff, 0, 0, 0, 7}),
     1766, 2794, 0x2cc18cd5, 0x40207d3d},
    {v6({0xff02, 0, 0, 0, 0, 0, 0, 1}), v6({0x3ffe, 0x501, 8, 0, 0x260, 0x97ff, 0xfe40, 0xefab}),
     4739, 14230, 0x0f0c461c, 0xdde51bbf},
    {v6({0xfe80, 0, 0, 0, 0x200, 0xf8ff, 0xfe21, 0x67cf}),
     v6({0x3ffe, 0x1900, 0x4545, 3, 0x200, 0xf8ff, 0xfe21, 0x67cf}), 38024, 44251, 0x4b61e985,
     0x02d1feef},
};

void set_ports(Frame& frame, size_t at, uint16_t source, uint16_t destination) {
  auto& udp = *view_as<hw::UdpHeader>(std::span(frame).subspan(at));
  udp.source_port.set(source);
  udp.destination_port.set(destination);
}

TEST(SimRss, AgreesWithThePublishedVectorsForIpv4) {
  const auto toeplitz = std::make_unique<sim::Toeplitz>(kKey);
  for (const Vector4& v : kVectors4) {
    Frame frame = make_ipv4({.source = v.source, .destination = v.destination});
    set_ports(frame, 34, v.source_port, v.destination_port);
    sim::RssHash hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.with_ports);
    EXPECT_EQ(hash.type, 0xa5);  // IPv4, UDP
    frame = make_ipv4({.source = v.source, .destination = v.destination, .protocol = 1});
    hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.addresses_only);
    EXPECT_EQ(hash.type, 0x05);
  }
}

TEST(SimRss, AgreesWithThePublishedVectorsForIpv6) {
  const auto toeplitz = std::make_unique<sim::Toeplitz>(kKey);
  for (const Vector6& v : kVectors6) {
    Frame frame = make_ipv6({.source = v.source, .destination = v.destination});
    set_ports(frame, 54, v.source_port, v.destination_port);
    sim::RssHash hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.with_ports);
    frame = make_ipv6({.source = v.source, .destination = v.destination, .next_header = 59});
    hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.addresses_only);
  }
}

// The vectors are of TCP; the ports of both protocols lie in the same place.
TEST(SimRss, AgreesWithThePublishedVectorsForTcp) {
  const auto toeplitz = std::make_unique<sim::Toeplitz>(kKey);
  for (const Vector4& v : kVectors4) {
    Frame frame =
        make_ipv4({.source = v.source, .destination = v.destination, .protocol = hw::kProtocolTcp});
    set_ports(frame, 34, v.source_port, v.destination_port);
    const sim::RssHash hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.with_ports);
    EXPECT_EQ(hash.type, 0x55);
  }
  for (const Vector6& v : kVectors6) {
    Frame frame = make_ipv6(
        {.source = v.source, .destination = v.destination, .next_header = hw::kProtocolTcp});
    set_ports(frame, 54, v.source_port, v.destination_port);
    const sim::RssHash hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame));
    EXPECT_EQ(hash.value, v.with_ports);
    EXPECT_EQ(hash.type, 0x5a);
  }
}

/// The hash bit by bit, as it is defined: for each bit of the input that is set, the 32 bits of the
/// key that start there.
uint32_t toeplitz_by_bits(std::span<const std::byte> input) {
  const auto bit_of = [](auto bytes, size_t bit) {
    return static_cast<uint8_t>(bytes[bit / 8]) >> (7 - bit % 8) & 1u;
  };
  uint32_t sum = 0;
  for (size_t bit = 0; bit < 8 * input.size(); ++bit) {
    if (bit_of(input, bit) == 0) continue;
    uint32_t window = 0;
    for (size_t i = 0; i < 32; ++i) window = window << 1 | bit_of(kKey, bit + i);
    sum ^= window;
  }
  return sum;
}

// Every choice of fields, of every kind of packet.
TEST(SimRss, HashesTheFieldsThatAreWantedOfEachKind) {
  using F = hca::HashFields;
  const auto toeplitz = std::make_unique<sim::Toeplitz>(kKey);
  for (size_t kind = 0; kind < hca::kPacketKinds; ++kind) {
    const bool six = kind >= 3;
    const size_t l4 = kind % 3;  // 0 none, 1 TCP, 2 UDP
    const auto protocol = std::array<uint8_t, 3>{59, hw::kProtocolTcp, hw::kProtocolUdp}[l4];
    const Frame frame =
        six ? make_ipv6({.next_header = protocol}) : make_ipv4({.protocol = protocol});
    const size_t l3_bytes = six ? 16 : 4, addresses = six ? 22 : 26, ports = six ? 54 : 34;
    for (uint8_t wanted = 0; wanted < (l4 == 0 ? 4 : 16); ++wanted) {
      std::vector<std::byte> input;
      uint8_t type = 0;
      const auto take = [&](uint8_t field, size_t at, size_t bytes, size_t bits) {
        if ((wanted & field) == 0) return;
        input.insert(input.end(), frame.begin() + static_cast<std::ptrdiff_t>(at),
                     frame.begin() + static_cast<std::ptrdiff_t>(at + bytes));
        type |= static_cast<uint8_t>(bits);
      };
      take(F::kSourceAddress, addresses, l3_bytes, six ? 0x02 : 0x01);
      take(F::kDestinationAddress, addresses + l3_bytes, l3_bytes, six ? 0x08 : 0x04);
      take(F::kSourcePort, ports, 2, l4 << 4);
      take(F::kDestinationPort, ports + 2, 2, l4 << 6);
      std::array<uint8_t, hca::kPacketKinds> fields{};  // nothing of the other kinds
      fields[kind] = wanted;
      const sim::RssHash hash = sim::rss_hash(*toeplitz, frame, sim::parse(frame), fields);
      EXPECT_EQ(hash.type, type) << kind << ' ' << int{wanted};
      EXPECT_EQ(hash.value, toeplitz_by_bits(input)) << kind << ' ' << int{wanted};
    }
  }
}

TEST(SimRss, TablesArePowersOfTwoUpTo512) {
  Rig<> rig;
  Receiver receiver(*rig.port, rig.domain, 8);
  for (const size_t entries : {0u, 1u, 2u, 3u, 4u, 256u, 511u, 512u, 513u, 1024u}) {
    const std::vector<hca::ReceiveQueue*> table(entries, receiver.rq.get());
    const Result<void> result = rig.port->steer({.rss = {.table = table}});
    const bool good = entries <= 512 && (entries == 0 || std::has_single_bit(entries));
    ASSERT_EQ(result.has_value(), good) << entries;
    if (good) continue;
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_EQ(result.error().what, "RSS table: " + std::to_string(entries) +
                                       " entries, accepted: none, or a power of two up to 512");
  }
}

TEST(SimRss, PlainIpHasNoPortsToHash) {
  Rig<> rig;
  for (size_t kind = 0; kind < hca::kPacketKinds; ++kind) {
    const uint8_t most = kind % 3 == 0 ? 3 : 15;
    hca::SteeringOptions options;
    options.rss.fields[kind] = most;
    EXPECT_TRUE(rig.port->steer(options).has_value());
    options.rss.fields[kind] = static_cast<uint8_t>(most + 1);
    const Result<void> result = rig.port->steer(options);
    ASSERT_FALSE(result.has_value());
    const char* const names[] = {"IPv4", "IPv4 TCP", "IPv4 UDP", "IPv6", "IPv6 TCP", "IPv6 UDP"};
    EXPECT_EQ(result.error().what, std::string("RSS hash of ") + names[kind] + ": fields " +
                                       std::to_string(most + 1) + ", accepted: 0 to " +
                                       std::to_string(most));
  }
}

TEST(SimRss, AKindWithoutFieldsGoesToTheFirstEntryWithoutAHash) {
  Rig<> rig;
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 2048);
  std::array<Receiver, 2> receivers{Receiver(*rig.port, rig.domain, 32),
                                    Receiver(*rig.port, rig.domain, 32)};
  for (Receiver& receiver : receivers) {
    for (int i = 0; i < 32; ++i) receiver.post({host.at(0, 2048)});
  }
  const std::vector<hca::ReceiveQueue*> table{receivers[1].rq.get(), receivers[0].rq.get()};
  hca::RssOptions rss{.table = table, .key = kKey};
  rss.fields[static_cast<size_t>(hca::PacketKind::kIpv4Udp)] = 0;
  ok(rig.port->steer({.promiscuous = true, .rss = rss}));
  for (uint32_t i = 0; i < 16; ++i) {
    rig.wire->inbox.push_back(make_ipv4({.source = v4(198, 18, 0, 1) + i}));
  }
  rig.settle();
  for (int i = 0; i < 16; ++i) {
    const auto entry = receivers[1].completions.poll();
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->rx_hash_type, 0);
    EXPECT_EQ(entry->rx_hash_result.get(), 0u);
  }
}

TEST(SimRss, FragmentsHashByAddressesOnly) {
  const auto toeplitz = std::make_unique<sim::Toeplitz>(kKey);
  const Vector4& v = kVectors4[0];
  for (const uint16_t fragment : std::initializer_list<uint16_t>{0x2000, 0x0001}) {
    const Frame frame =
        make_ipv4({.source = v.source, .destination = v.destination, .fragment = fragment});
    EXPECT_EQ(sim::rss_hash(*toeplitz, frame, sim::parse(frame)).value, v.addresses_only);
  }
}

TEST(SimRss, SpreadsFlowsByTheIndirectionListAndReportsTheHash) {
  for (const size_t queues : {2u, 4u}) {
    Rig<> rig;
    Buffer host = Buffer::in_host(*rig.nic, rig.domain, 2048);
    std::vector<std::unique_ptr<Receiver>> receivers;
    std::vector<hca::ReceiveQueue*> list;
    for (size_t i = 0; i < queues; ++i) {
      receivers.push_back(std::make_unique<Receiver>(*rig.port, rig.domain, 64));
      for (int n = 0; n < 64; ++n) receivers.back()->post({host.at(0, 2048)});
      list.push_back(receivers.back()->rq.get());
    }
    ok(rig.port->steer({.promiscuous = true, .rss = {.table = list, .key = kKey}}));
    for (const Vector4& v : kVectors4) {
      Frame frame = make_ipv4({.source = v.source, .destination = v.destination});
      set_ports(frame, 34, v.source_port, v.destination_port);
      rig.wire->inbox.push_back(frame);
      rig.settle();
      const auto entry = receivers[v.with_ports % queues]->completions.poll();
      ASSERT_TRUE(entry.has_value());
      EXPECT_EQ(entry->rx_hash_result.get(), v.with_ports);
      EXPECT_EQ(entry->rx_hash_type, 0xa5);
    }
    rig.wire->inbox.push_back(pattern(60));  // not IP: the first queue, no hash
    rig.settle();
    const auto entry = receivers[0]->completions.poll();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->rx_hash_type, 0);
    EXPECT_EQ(entry->rx_hash_result.get(), 0u);
  }
}

}  // namespace
}  // namespace nicmem::test
