// SPDX-License-Identifier: BSD-3-Clause
// The whole router in one process: packets go in and come out through DPDK rings, so that buffers
// can be counted, split, and put into memory that must not be touched.
#include "engine.h"

#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>

#include "base/rng.h"
#include "dpdk/eal.h"
#include "dpdk/lpm.h"
#include "dpdk/mempool.h"
#include "report.h"
#include "support/alloc_guard.h"
#include "support/frames.h"
#include "support/seed.h"
#include "telemetry.h"
#include "unit/lib/nf/router_fixture.h"

namespace nicmem::l3fwd {
namespace {

using nf::DropReason;
using test::Frame;

/// An ethdev of two rings.
struct RingPort {
  explicit RingPort(unsigned tx_slots) {
    static unsigned serial = 0;
    const std::string name = "t" + std::to_string(serial++);
    rx = rte_ring_create((name + "rx").c_str(), 256, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    tx = rte_ring_create((name + "tx").c_str(), tx_slots, SOCKET_ID_ANY,
                         RING_F_SP_ENQ | RING_F_SC_DEQ);
    port = rte_eth_from_rings(name.c_str(), &rx, 1, &tx, 1, 0);
    NM_CHECK(port >= 0);
    char text[RTE_ETH_NAME_MAX_LEN];
    NM_CHECK(rte_eth_dev_get_name_by_port(static_cast<uint16_t>(port), text) == 0);
    ethdev = text;
  }
  ~RingPort() {
    rte_ring_free(rx);
    rte_ring_free(tx);
  }

  rte_ring* rx;
  rte_ring* tx;
  int port;
  std::string ethdev;
};

class EngineTest : public testing::Test {
 protected:
  static constexpr uint32_t kMbufs = 511;

  EngineTest() {
    auto made = dpdk::make_mempool({.name = "senders", .mbufs = kMbufs, .cache = 0});
    NM_CHECK(made.has_value());
    pool = std::move(*made);
    config.interfaces = {
        {.port = west.ethdev,
         .mac = test::kRouterMac,
         .addresses = {*parse_prefix("198.18.0.254/24"), *parse_prefix("2001:db8::fe/64")}},
        {.port = east.ethdev,
         .mac = nf::kEgressMac,
         .addresses = {*parse_prefix("198.18.2.1/24")},
         .mtu_bytes = 1500}};
    config.neighbours = {
        {.address = *parse_address("198.18.2.2"), .mac = nf::kNextMac, .interface = 1}};
    config.routes = {
        {.prefix = *parse_prefix("198.18.1.0/24"), .mac = nf::kNextMac, .interface = 1},
        {.prefix = *parse_prefix("2001:db8:1::/48"), .mac = nf::kNextMac, .interface = 1}};
  }

  void start() {
    auto made = Engine::create(config);
    ASSERT_TRUE(made) << made.error().what;
    engine = std::move(*made);
  }

  /// A packet of the frame, its first segment `first` bytes long, as if received by a device.
  rte_mbuf* packet_of(const Frame& frame, std::optional<size_t> first = std::nullopt) {
    rte_mbuf* head = rte_pktmbuf_alloc(pool.get());
    NM_CHECK(head != nullptr);
    const size_t head_bytes = first.value_or(frame.size());
    char* at = rte_pktmbuf_append(head, static_cast<uint16_t>(head_bytes));
    NM_CHECK(at != nullptr);
    std::memcpy(at, frame.data(), head_bytes);
    if (head_bytes < frame.size()) {
      rte_mbuf* tail = rte_pktmbuf_alloc(pool.get());
      at = rte_pktmbuf_append(tail, static_cast<uint16_t>(frame.size() - head_bytes));
      std::memcpy(at, frame.data() + head_bytes, frame.size() - head_bytes);
      NM_CHECK(rte_pktmbuf_chain(head, tail) == 0);
    }
    return head;
  }

  void send(rte_mbuf* packet) { NM_CHECK(rte_ring_enqueue(west.rx, packet) == 0); }

  /// The frame that left through the east port next, or nothing.
  std::optional<Frame> receive() {
    void* taken = nullptr;
    if (rte_ring_dequeue(east.tx, &taken) != 0) return std::nullopt;
    auto* packet = static_cast<rte_mbuf*>(taken);
    Frame frame(packet->pkt_len);
    const void* bytes = rte_pktmbuf_read(packet, 0, packet->pkt_len, frame.data());
    if (bytes != frame.data()) std::memcpy(frame.data(), bytes, frame.size());
    rte_pktmbuf_free(packet);
    return frame;
  }

  uint64_t drops(DropReason reason) { return engine->stats().ports[0].in.drops(reason); }

  void expect_conserved() {
    const nf::CountsSnapshot total = engine->stats().total();
    EXPECT_EQ(total.received, total.accounted());
  }

  RingPort west{256};
  RingPort east{256};
  dpdk::Mempool pool;
  Config config;
  std::unique_ptr<Engine> engine;
};

using L3_05 = EngineTest;
using L3_13 = EngineTest;
using L3_19 = EngineTest;
using L3_25 = EngineTest;
using L3_26 = EngineTest;

TEST_F(EngineTest, ForwardsBothFamiliesWithNewMacsAndTtl) {
  start();
  send(packet_of(test::make_ipv4()));
  send(packet_of(test::make_ipv6()));
  EXPECT_EQ(engine->poll_once(), 2u);
  for (int i = 0; i < 2; ++i) {
    auto frame = receive();
    ASSERT_TRUE(frame);
    EXPECT_EQ(test::ether_of(*frame).destination, nf::kNextMac);
    EXPECT_EQ(test::ether_of(*frame).source, nf::kEgressMac);
    if (i == 0) {
      EXPECT_EQ(test::ipv4_of(*frame).ttl, 63);
    } else {
      EXPECT_EQ(test::ipv6_of(*frame).hop_limit, 63);
    }
  }
  EXPECT_EQ(engine->poll_once(), 0u);
  const Stats stats = engine->stats();
  EXPECT_EQ(stats.ports[0].in.received, 2u);
  EXPECT_EQ(stats.ports[0].in.forwarded, 2u);
  EXPECT_EQ(stats.ports[1].transmitted, 2u);
  expect_conserved();
}

TEST_F(L3_05, NoBufferIsLostToAMillionBadPackets) {
  start();
  Frame bad = test::make_ipv4();
  test::ipv4_of(bad).checksum.set(test::ipv4_of(bad).checksum.get() ^ 1);
  constexpr uint64_t kPackets = 1'000'000;
  for (uint64_t sent = 0; sent < kPackets; sent += 20) {
    for (int i = 0; i < 20; ++i) send(packet_of(bad));
    ASSERT_EQ(engine->poll_once(), 20u);
  }
  EXPECT_EQ(drops(DropReason::kBadChecksum), kPackets);
  EXPECT_FALSE(receive());
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
  expect_conserved();
}

TEST_F(L3_05, ADeviceThatReportsABadChecksumIsBelieved) {
  start();
  rte_mbuf* packet = packet_of(test::make_ipv4());
  packet->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
  send(packet);
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kBadChecksum), 1u);
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
}

TEST_F(L3_13, FramesForOtherStationsPassOnlyWhereConfigured) {
  const Frame frame = test::make_ipv4({.destination_mac = {{2, 0, 0, 0, 0, 0xaa}}});
  start();
  send(packet_of(frame));
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kDmacMismatch), 1u);
  EXPECT_FALSE(receive());
}

TEST_F(L3_13, AcceptAnyMacForwardsThem) {
  const Frame frame = test::make_ipv4({.destination_mac = {{2, 0, 0, 0, 0, 0xaa}}});
  config.interfaces[0].accept_any_mac = true;
  start();
  send(packet_of(frame));
  engine->poll_once();
  EXPECT_TRUE(receive());
}

TEST_F(L3_19, MixedBurstsOfEverySizeLoseNothing) {
  start();
  uint64_t forwarded = 0;
  for (size_t size = 1; size <= 33; ++size) {
    for (size_t i = 0; i < size; ++i) {
      Frame frame = i % 2 ? test::make_ipv6() : test::make_ipv4();
      if (i % 4 == 2) test::ether_of(frame).type.set(hw::kEtherTypeArp);
      if (i % 4 == 3) test::ipv6_of(frame).destination = test::v6({0x2001, 0xdb8, 9});
      forwarded += i % 4 < 2;
      send(packet_of(frame));
    }
    size_t received = 0;
    while (received < size) {
      const size_t got = engine->poll_once();
      ASSERT_GT(got, 0u);
      received += got;
    }
    while (receive()) --forwarded;
    EXPECT_EQ(forwarded, 0u) << "burst of " << size;
  }
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
  expect_conserved();
}

TEST_F(L3_25, SplitFramesKeepTheirSegmentsAndBytes) {
  start();
  for (const size_t bytes : {42u, 63u, 64u, 65u, 66u, 1514u}) {
    const Frame frame = test::make_ipv4({.payload_bytes = bytes - 34});
    send(packet_of(frame, std::min<size_t>(bytes, 64)));
    engine->poll_once();
    auto got = receive();
    ASSERT_TRUE(got) << bytes;
    ASSERT_EQ(got->size(), frame.size());
    EXPECT_TRUE(std::equal(got->begin() + 34, got->end(), frame.begin() + 34)) << bytes;
  }
}

TEST_F(L3_26, HeadersAcrossTheSplitAreDeclinedAndCounted) {
  start();
  const Frame frame =
      test::make_ipv4({.payload_bytes = 60, .options = std::vector<uint8_t>(40, 1)});
  send(packet_of(frame, 42));
  send(packet_of(frame, 73));
  send(packet_of(frame, 74));
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kNeedsPayload), 2u);
  EXPECT_TRUE(receive());
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
}

TEST_F(EngineTest, PayloadInMemoryThatMustNotBeTouchedIsForwarded) {
  start();
  constexpr size_t kPage = 4096;
  void* forbidden = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  rte_mbuf_ext_shared_info shared{};
  shared.free_cb = [](void*, void*) {};
  rte_mbuf_ext_refcnt_set(&shared, 1);
  const Frame frame = test::make_ipv4({.payload_bytes = 1200});
  rte_mbuf* head = packet_of(Frame(frame.begin(), frame.begin() + 64));
  rte_mbuf* payload = rte_pktmbuf_alloc(pool.get());
  rte_pktmbuf_attach_extbuf(payload, forbidden, 0, kPage, &shared);
  payload->data_len = static_cast<uint16_t>(frame.size() - 64);
  payload->pkt_len = payload->data_len;
  ASSERT_EQ(rte_pktmbuf_chain(head, payload), 0);
  send(head);
  engine->poll_once();
  void* out = nullptr;
  ASSERT_EQ(rte_ring_dequeue(east.tx, &out), 0) << "not forwarded";
  rte_pktmbuf_free(static_cast<rte_mbuf*>(out));
  munmap(forbidden, kPage);
}

TEST_F(EngineTest, PacketsWhoseSegmentsDoNotAddUpNeverLeave) {
  start();
  const Frame frame = test::make_ipv4({.payload_bytes = 200});
  for (const std::optional<size_t> first : {std::optional<size_t>{}, std::optional<size_t>{64}}) {
    rte_mbuf* longer = packet_of(frame, first);
    ++longer->pkt_len;
    send(longer);
    rte_mbuf* shorter = packet_of(frame, first);
    shorter->pkt_len -= 65536;  // as a driver does that keeps 16 bits of it
    send(shorter);
  }
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kLengthMismatch), 4u);
  EXPECT_FALSE(receive());
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
}

TEST_F(EngineTest, AFullEgressPortCostsTheRestAndCountsIt) {
  for (unsigned sent = 0; sent < 255; sent += 17) {  // fill the ring to its 255 usable slots
    for (int i = 0; i < 17; ++i) ASSERT_EQ(rte_ring_enqueue(east.tx, packet_of(Frame(60))), 0);
  }
  void* one = nullptr;
  ASSERT_EQ(rte_ring_dequeue(east.tx, &one), 0);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(one));
  start();
  for (int i = 0; i < 3; ++i) send(packet_of(test::make_ipv4()));
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kTxFull), 2u);
  EXPECT_EQ(engine->stats().ports[0].in.forwarded, 1u);
  EXPECT_EQ(engine->stats().ports[1].transmitted, 1u);
  expect_conserved();
  while (receive()) {
  }
  EXPECT_EQ(rte_mempool_avail_count(pool.get()), kMbufs);
}

TEST_F(EngineTest, PollingDoesNotAllocate) {
  start();
  for (int i = 0; i < 100; ++i) send(packet_of(i % 2 ? test::make_ipv4() : test::make_ipv6()));
  const test::AllocGuard guard;
  for (int i = 0; i < 10; ++i) engine->poll_once();
  EXPECT_EQ(guard.count(), 0u);
  while (receive()) {
  }
}

TEST_F(EngineTest, AnUnknownPortIsNamedWithTheOnesThatExist) {
  config.interfaces[0].port = "net_absent0";
  const auto made = Engine::create(config);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_NE(made.error().what.find("'net_absent0'"), std::string::npos);
  EXPECT_NE(made.error().what.find(east.ethdev), std::string::npos) << made.error().what;
}

TEST_F(EngineTest, TablesOfOneFamilyOnlyAreEnough) {
  config.interfaces[0].addresses.pop_back();
  config.routes.pop_back();
  start();
  send(packet_of(test::make_ipv6()));
  engine->poll_once();
  EXPECT_EQ(drops(DropReason::kNoRoute), 1u);
}

TEST_F(EngineTest, ReportsNameThePortsAndTheReasons) {
  start();
  send(packet_of(test::make_ipv4({.ttl = 1})));
  engine->poll_once();
  const TelemetryCommand telemetry(*engine);
  const std::string text = table(engine->stats());
  EXPECT_NE(text.find("drop ttl_expired"), std::string::npos) << text;
  EXPECT_NE(text.find("received = forwarded + dropped + punted: 1 = 0 + 1 + 0: ok"),
            std::string::npos)
      << text;
  const std::string json = to_json(engine->stats());
  EXPECT_NE(json.find("\"ttl_expired\": 1"), std::string::npos) << json;
  EXPECT_NE(json.find("\"conserved\": true"), std::string::npos) << json;
}

TEST(RouteTableProperty, AgreesWithTheLinearModel) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  auto table = dpdk::RouteTable::create({.name = "property", .max_v4 = 600, .max_v6 = 600});
  ASSERT_TRUE(table) << table.error().what;
  nf::LinearRoutes model;
  // Few distinct bits, so that prefixes nest and lookups hit.
  const auto v4 = [&rng] { return 0xc6120000u | static_cast<uint32_t>(rng.next() & 0x0103); };
  const auto v6 = [&rng] {
    hw::Ipv6Address address = test::v6({0x2001, 0xdb8});
    for (const size_t i : {4u, 7u, 15u}) address.bytes[i] = static_cast<uint8_t>(rng.next() & 3);
    return address;
  };
  for (uint32_t hop = 0; hop < 500; ++hop) {
    const auto length4 = static_cast<unsigned>(rng.below(33));
    const auto length6 = static_cast<unsigned>(rng.below(129));
    const uint32_t address4 = network_of({.address = {.v4 = v4()}, .length = length4}).v4;
    const hw::Ipv6Address address6 =
        network_of({.address = {.is_v6 = true, .v6 = v6()}, .length = length6}).v6;
    ASSERT_TRUE(table->add(address4, length4, hop));
    ASSERT_TRUE(table->add(address6, length6, hop));
    model.add(address4, length4, hop);
    model.add(address6, length6, hop);
    for (int i = 0; i < 20; ++i) {
      const uint32_t a = rng.below(8) ? v4() : static_cast<uint32_t>(rng.next());
      ASSERT_EQ(table->lookup(a), model.lookup(a)) << hop;
      const hw::Ipv6Address b = v6();
      ASSERT_EQ(table->lookup(b), model.lookup(b)) << hop;
    }
  }
}

TEST(RouteTable, RefusesWhatItCannotHold) {
  auto table = dpdk::RouteTable::create({.name = "limits", .max_v4 = 4, .max_v6 = 0});
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_EQ(table->add(0, 33, 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(table->add(0, 8, dpdk::RouteTable::kMaxNextHop + 1).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(table->add(hw::Ipv6Address{}, 129, 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(table->add(hw::Ipv6Address{}, 64, 1).error().code, Code::kExhausted);
  EXPECT_TRUE(table->add(hw::Ipv6Address{}, 0, 1)) << "a default route takes no room";
  EXPECT_EQ(table->lookup(hw::Ipv6Address{}), 1u);
}

TEST(SplitArguments, SeparatesTheEalsFromTheProgrammes) {
  std::string words[] = {"prog", "-l", "0", "--", "--config", "x"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const auto both = dpdk::split_arguments(6, argv.data());
  EXPECT_EQ(both.eal, (std::vector<std::string>{"prog", "-l", "0"}));
  EXPECT_EQ(both.own, (std::vector<std::string>{"prog", "--config", "x"}));
  const auto own = dpdk::split_arguments(3, argv.data());
  EXPECT_EQ(own.eal, (std::vector<std::string>{"prog"}));
  EXPECT_EQ(own.own, (std::vector<std::string>{"prog", "-l", "0"}));
}

}  // namespace
}  // namespace nicmem::l3fwd

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto eal = nicmem::dpdk::Eal::start({argv[0], "-l", "0", "--no-huge", "-m", "512", "--no-pci",
                                       "--no-shconf", "--no-telemetry", "--file-prefix",
                                       "nicmem_engine_test", "--log-level", "lib.eal:error"});
  if (!eal) {
    std::fprintf(stderr, "error: %s\n", eal.error().what.c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
