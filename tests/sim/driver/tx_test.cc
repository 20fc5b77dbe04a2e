// SPDX-License-Identifier: BSD-3-Clause
// Transmit: what leaves is what the buffers hold, and every buffer is freed once, whatever happens.
extern "C" {
#include <rte_vect.h>
}

#include "port_fixture.h"
#include "support/alloc_guard.h"

namespace nicmem::test {
namespace {

/// The sender under test is `here`; `there` takes whole frames.
Cable sender(const std::string& arguments, uint16_t ring = 256) {
  return Cable({.arguments = "mode=host", .ring = 1024, .mtu = 9600, .room = 9728, .mbufs = 4095},
               {.arguments = arguments, .ring = ring, .mtu = 9600, .room = 9728, .mbufs = 4095});
}

/// Sends and wants the same bytes at the other end.
void expect_carried(const Cable& cable, rte_mbuf* packet, const Bytes& bytes) {
  ASSERT_EQ(cable.here.send(packet), 1);
  cable.settle();
  const auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(bytes_of(packets[0]), bytes);
  rte_pktmbuf_free(packets[0]);
}

TEST(DriverTx, DRV_13_14_ChainsOfAnyShapeLeaveWhole) {
  for (const char* arguments : {"mode=host", "mode=nicmem,header=64"}) {
    const Cable cable = sender(arguments);
    const std::vector<std::vector<uint32_t>> shapes = {
        {60},     {64},     {65},     {100, 0, 100}, {0, 100}, {100, 0},   {100, 100, 13}, {1, 59},
        {13, 46}, {17, 43}, {18, 42}, {14, 46},      {64, 1},  {64, 1400}, {30, 8000},     {9622}};
    for (const auto& shape : shapes) {
      uint32_t size = 0;
      for (const uint32_t part : shape) size += part;
      SCOPED_TRACE(std::string(arguments) + ", " + std::to_string(shape[0]) + "/" +
                   std::to_string(size));
      expect_carried(cable, cable.here.packet(frame(size, size), shape), frame(size, size));
    }
    cable.here.expect_conserved();
  }
}

/// What the program allows its libraries, for a scope. [rte_vect_set_max_simd_bitwidth]
class VectorLimit {
 public:
  explicit VectorLimit(uint16_t bits) { rte_vect_set_max_simd_bitwidth(bits); }
  ~VectorLimit() { rte_vect_set_max_simd_bitwidth(before_); }

 private:
  uint16_t before_ = rte_vect_get_max_simd_bitwidth();
};

TEST(DriverTx, SplitPacketsLeaveWholeWithVectorsOfEveryWidth) {
  for (const uint16_t bits : {RTE_VECT_SIMD_128, RTE_VECT_SIMD_256}) {
    const VectorLimit limit(bits);
    for (const uint32_t header : {64u, 128u, 100u}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, header of " + std::to_string(header));
      const Cable cable = sender("mode=nicmem,header=" + std::to_string(header));
      for (uint32_t lap = 0; lap < 64; ++lap) {
        std::vector<Bytes> sent;
        std::vector<rte_mbuf*> packets;
        for (uint32_t i = 0; i < 32; ++i) {
          const uint32_t payload = 1 + (lap * 32 + i) % 1500;
          sent.push_back(frame(header + payload, lap * 32 + i));
          packets.push_back(cable.here.packet(sent.back(), {header, payload}));
        }
        ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 32), 32);
        cable.settle();
        const auto received = cable.there.receive(32);
        ASSERT_EQ(received.size(), sent.size());
        for (size_t i = 0; i < received.size(); ++i) ASSERT_EQ(bytes_of(received[i]), sent[i]);
        for (rte_mbuf* const packet : received) rte_pktmbuf_free(packet);
      }
      cable.here.expect_conserved();
    }
  }
}

TEST(DriverTx, DRV_13_AnEmptyPacketIsDroppedAndTheQueueRunsOn) {
  const Cable cable = sender("mode=nicmem");
  EXPECT_EQ(cable.here.send(cable.here.packet({}, {0})), 1);
  EXPECT_EQ(cable.here.xstat("tx_empty"), 1u);
  for (uint32_t i = 0; i < 1000; ++i)
    expect_carried(cable, cable.here.packet(frame(80, i)), frame(80, i));
}

TEST(DriverTx, TooManySegmentsAreDroppedAndCounted) {
  const Cable cable = sender("mode=host");
  const std::vector<uint32_t> fits(58, 20), too_many(59, 20);
  expect_carried(cable, cable.here.packet(frame(58 * 20), fits), frame(58 * 20));
  EXPECT_EQ(cable.here.send(cable.here.packet(frame(59 * 20), too_many)), 1);
  EXPECT_EQ(cable.here.xstat("tx_too_many_segments"), 1u);
  cable.here.expect_conserved();
}

TEST(DriverTx, DRV_10_WhatDoesNotFitStaysTheCallers) {
  const Cable cable = sender("mode=nicmem", 64);
  std::vector<rte_mbuf*> packets;
  for (uint32_t i = 0; i < 1000; ++i) packets.push_back(cable.here.packet(frame(100, i)));
  const uint16_t sent = rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 1000);
  EXPECT_GT(sent, 0);
  ASSERT_LT(sent, 1000);
  EXPECT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets.data() + sent, 1), 0);
  for (size_t i = sent; i < packets.size(); ++i) {
    ASSERT_EQ(rte_mbuf_refcnt_read(packets[i]), 1);
    rte_pktmbuf_free(packets[i]);
  }
  cable.settle();
  auto received = cable.there.receive(1024);
  EXPECT_EQ(received.size(), sent);
  rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
  cable.here.expect_conserved();
}

TEST(DriverTx, DRV_11_CleanUpOnDemandFreesWhatIsDone) {
  const Cable cable = sender("mode=nicmem");
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(cable.here.send(cable.here.packet(frame(100, i))), 1);
  cable.settle();
  EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 0, 0), 64);
  EXPECT_EQ(cable.here.xstat("tx_in_flight"), 0u);
  auto received = cable.there.receive(1024);
  rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
}

/// A packet whose payload lies at `address`, which no one frees.
rte_mbuf* with_payload(const TestPort& port, void* address, uint32_t bytes) {
  static rte_mbuf_ext_shared_info shared;
  shared.free_cb = [](void*, void*) {};
  rte_mbuf_ext_refcnt_set(&shared, 1);
  rte_mbuf* const header = port.packet(frame(54));
  rte_mbuf* const payload = rte_pktmbuf_alloc(port.pool());
  rte_pktmbuf_attach_extbuf(payload, address, RTE_BAD_IOVA, 16384, &shared);
  rte_pktmbuf_append(payload, static_cast<uint16_t>(bytes));
  EXPECT_EQ(rte_pktmbuf_chain(header, payload), 0);
  return header;
}

TEST(DriverTx, DRV_17_PayloadOnTheCardLeavesWithItsInlinedHeader) {
  const Cable cable = sender("mode=nicmem,sram=256KiB,guard=1");
  nicmem_region region{};
  ASSERT_EQ(rte_pmd_nicmem_alloc(cable.here.id(), 8960, &region), 0);
  const Bytes payload = frame(8960, 5);
  ASSERT_EQ(nicmem_copy_to(&region, 0, payload.data(), payload.size()), 0);
  for (const uint32_t bytes : {1u, 3u, 64u, 8946u}) {
    Bytes wanted = frame(54);
    wanted.insert(wanted.end(), payload.begin(), payload.begin() + bytes);
    expect_carried(cable, with_payload(cable.here, nicmem_pointer(&region), bytes), wanted);
  }
  EXPECT_EQ(cable.here.xstat("nicmem_reads"), 0u);
  EXPECT_EQ(rte_pmd_nicmem_free(cable.here.id(), &region), 0);
  EXPECT_EQ(rte_pmd_nicmem_free(cable.here.id(), &region), -EINVAL);
}

TEST(DriverTx, AnotherDevicesMemoryIsRefusedAndCounted) {
  const Cable cable = sender("mode=nicmem");
  nicmem_region region{};
  ASSERT_EQ(rte_pmd_nicmem_alloc(cable.there.id(), 4096, &region), 0);
  EXPECT_EQ(cable.here.send(with_payload(cable.here, nicmem_pointer(&region), 100)), 1);
  cable.settle();
  EXPECT_TRUE(cable.there.receive().empty());
  EXPECT_EQ(cable.here.xstat("tx_foreign_memory"), 1u);
  EXPECT_EQ(cable.here.xstat("tx_good_packets"), 0u);
  rte_eth_stats stats{};
  EXPECT_EQ(rte_eth_stats_get(cable.here.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors, 1u);
  EXPECT_EQ(rte_pmd_nicmem_free(cable.there.id(), &region), 0);
}

TEST(DriverTx, MemoryThatNoOneKnowsIsRefusedAndCounted) {
  const Cable cable = sender("mode=nicmem");
  Bytes unknown(16384);
  EXPECT_EQ(cable.here.send(with_payload(cable.here, unknown.data(), 100)), 1);
  EXPECT_EQ(cable.here.xstat("tx_unknown_memory"), 1u);
}

TEST(DriverTx, ABadKeyIsAnErrorThatTheQueueSurvives) {
  const Cable cable = sender("mode=host");
  expect_carried(cable, cable.here.packet(frame(100)), frame(100));
  std::vector<rte_mbuf*> packets;
  for (uint32_t i = 0; i < 8; ++i) packets.push_back(cable.here.packet(frame(100, i)));
  pmd::TxQueue& queue = cable.here.tx();
  const uint32_t third = queue.producer + 2;
  ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets.data(), 8), 8);
  auto* const wqe = reinterpret_cast<hw::DataSegment*>(
      queue.wqes + size_t{third & (queue.depth - 1)} * hw::kWqeBlockBytes);
  wqe[2].key = be32(0xdead00);  // behind the control and eth segments
  cable.settle();
  auto received = cable.there.receive();
  EXPECT_EQ(received.size(), 2u);
  rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
  rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
  EXPECT_EQ(cable.here.xstat("tx_wqe_error"), 6u);
  EXPECT_EQ(cable.here.xstat("tx_in_flight"), 0u);
  for (uint32_t i = 0; i < 300; ++i)
    expect_carried(cable, cable.here.packet(frame(90, i)), frame(90, i));
  cable.here.expect_conserved();
}

TEST(DriverTx, ClonesKeepTheirOriginalAlive) {
  const Cable cable = sender("mode=nicmem");
  rte_mbuf* const original = cable.here.packet(frame(700));
  rte_mbuf* const clone = rte_pktmbuf_clone(original, cable.here.pool());
  expect_carried(cable, clone, frame(700));
  expect_carried(cable, original, frame(700));
}

TEST(DriverTx, DRV_49_BurstsOfAnySizeAndNoAllocation) {
  const Cable cable = sender("mode=nicmem", 1024);
  expect_carried(cable, cable.here.packet(frame(100)), frame(100));  // registers the memory
  for (const uint16_t burst : std::initializer_list<uint16_t>{0, 1, 255, 256, 257, 1024}) {
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < burst; ++i) packets.push_back(cable.here.packet(frame(100, i)));
    AllocGuard guard;
    const uint16_t sent = rte_eth_tx_burst(cable.here.id(), 0, packets.data(), burst);
    EXPECT_EQ(guard.count(), 0u);
    EXPECT_EQ(sent, burst);
    cable.settle();
    auto received = cable.there.receive(1024);
    EXPECT_EQ(received.size(), burst);
    rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
    rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
  }
}

/// Which of these packets rte_eth_tx_prepare() stops at, and why.
void expect_stops(const Cable& cable, rte_mbuf* packet, int error) {
  rte_mbuf* packets[] = {cable.here.packet(frame(100)), packet, cable.here.packet(frame(100))};
  rte_errno = 0;
  EXPECT_EQ(rte_eth_tx_prepare(cable.here.id(), 0, packets, 3), error == 0 ? 3 : 1);
  EXPECT_EQ(rte_errno, error);
  rte_pktmbuf_free_bulk(packets, 3);
}

constexpr uint64_t kTso = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_SEG;

/// TCP over IPv4, without options.
Bytes tcp_frame(uint32_t bytes) {
  Bytes tcp = frame(bytes);
  tcp[12] = 0x08, tcp[13] = 0x00;  // IPv4
  std::fill_n(tcp.begin() + 14, 40, uint8_t{0});
  tcp[14] = 0x45;
  tcp[16] = static_cast<uint8_t>((bytes - 14) >> 8), tcp[17] = static_cast<uint8_t>(bytes - 14);
  tcp[22] = 64, tcp[23] = 6;  // TTL, TCP
  tcp[46] = 0x50;             // five words
  return tcp;
}

rte_mbuf* with_offload(const Cable& cable, uint32_t bytes, uint64_t flags) {
  rte_mbuf* const packet = cable.here.packet(tcp_frame(bytes));
  packet->ol_flags |= flags;
  packet->l2_len = 14;
  packet->l3_len = 20;
  packet->l4_len = 20;
  packet->tso_segsz = 500;
  return packet;
}

/// Between two plain packets: what rte_eth_tx_prepare() accepts leaves (`frames` of it), what it
/// refuses is dropped and counted, and the two leave in any case.
void expect_agreement(const Cable& cable, rte_mbuf* packet, size_t frames) {
  rte_mbuf* packets[] = {cable.here.packet(frame(100)), packet, cable.here.packet(frame(100))};
  const bool accepted = rte_eth_tx_prepare(cable.here.id(), 0, packets, 3) == 3;
  EXPECT_EQ(accepted, frames != 0);
  ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets, 3), 3);
  cable.settle();
  auto received = cable.there.receive();
  EXPECT_EQ(received.size(), 2 + frames);
  rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
  EXPECT_EQ(cable.here.xstat("tx_wqe_error"), 0u);
}

TEST(DriverTx, DRV_38_WhatIsRefusedNeverLeaves) {
  constexpr uint64_t kCanDo = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_IP_CKSUM |
                              RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_VLAN;  // bit 53 alone: SCTP
  for (const char* arguments : {"mode=host", "mode=nicmem"}) {
    const Cable cable = sender(arguments);
    uint64_t dropped = 0;
    for (uint32_t bit = 41; bit < 61; ++bit) {
      const uint64_t flag = uint64_t{1} << bit;
      if ((flag & RTE_MBUF_F_TX_OFFLOAD_MASK) == 0 || flag == RTE_MBUF_F_TX_TCP_SEG) continue;
      SCOPED_TRACE(std::string(arguments) + ", bit " + std::to_string(bit));
      const bool can = (flag & ~kCanDo) == 0;
      expect_agreement(cable, with_offload(cable, 1000, flag), can ? 1 : 0);
      dropped += !can;
      EXPECT_EQ(cable.here.xstat("tx_bad_offload"), dropped);
    }
    cable.here.expect_conserved();
  }
}

/// What the device could not cut up would fail its work request and take others with it.
TEST(DriverTx, DRV_38_OnlyWhatTheDeviceCanCutUpIsGivenToIt) {
  const auto refused = [](const Cable& cable, auto&& spoil, uint64_t flags = 0) {
    rte_mbuf* const packet = with_offload(cable, 4000, kTso | flags);
    spoil(*packet, rte_pktmbuf_mtod(packet, uint8_t*));
    expect_agreement(cable, packet, 0);
  };
  for (const char* arguments : {"mode=host", "mode=nicmem"}) {
    SCOPED_TRACE(arguments);
    const Cable cable = sender(arguments);
    expect_agreement(cable, with_offload(cable, 4000, kTso), 8);
    expect_agreement(cable, with_offload(cable, 4000, kTso | RTE_MBUF_F_TX_VLAN), 8);
    refused(cable, [](rte_mbuf&, uint8_t* bytes) { bytes[23] = 17; });    // UDP
    refused(cable, [](rte_mbuf&, uint8_t* bytes) { bytes[12] = 0x12; });  // no IP
    refused(cable, [](rte_mbuf&, uint8_t* bytes) { bytes[14] = 0x46; });  // options not counted
    refused(cable, [](rte_mbuf&, uint8_t* bytes) { bytes[46] = 0x80; });
    refused(cable, [](rte_mbuf& packet, uint8_t*) { packet.l3_len = 24; });
    refused(cable, [](rte_mbuf& packet, uint8_t*) { packet.l4_len = 32; });
    refused(cable, [](rte_mbuf& packet, uint8_t*) { packet.l2_len = 0; });
    // 9,600 + 22 is the longest frame: a tag must fit too
    refused(
        cable, [](rte_mbuf& packet, uint8_t*) { packet.tso_segsz = 9622 - 54 - 3; },
        RTE_MBUF_F_TX_VLAN);
  }
}

TEST(DriverTx, ChainsOfTheAdvertisedLengthAreCutUp) {
  const Cable cable = sender("mode=nicmem");
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(cable.here.id(), &info), 0);
  const uint32_t most = info.tx_desc_lim.nb_seg_max;
  rte_mbuf* const packet = cable.here.packet(tcp_frame(most * 60), std::vector<uint32_t>(most, 60));
  packet->ol_flags |= kTso;
  packet->l2_len = 14, packet->l3_len = 20, packet->l4_len = 20, packet->tso_segsz = 500;
  expect_agreement(cable, packet, (most * 60 - 54 + 499) / 500);
}

TEST(DriverTx, DRV_19_PrepareCountsTheSegments) {
  const Cable cable = sender("mode=nicmem");
  for (const int lie : {-1, 1}) {
    rte_mbuf* const packet = cable.here.packet(frame(200), {100, 100});
    packet->nb_segs = static_cast<uint16_t>(2 + lie);
    rte_errno = 0;
    rte_mbuf* packets[] = {packet};
    EXPECT_EQ(rte_eth_tx_prepare(cable.here.id(), 0, packets, 1), 0);
    EXPECT_EQ(rte_errno, EINVAL);
    packet->nb_segs = 2;
    rte_pktmbuf_free(packet);
  }
}

TEST(DriverTx, DRV_47_CleanUpOfQueuesThatDoNotRun) {
  const Cable cable = sender("mode=nicmem");
  EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 5, 0), -EINVAL);  // of one queue
  ASSERT_EQ(cable.here.send(cable.here.packet(frame(100))), 1);
  ASSERT_EQ(rte_eth_dev_stop(cable.here.id()), 0);
  EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 0, 0), 0);
  ASSERT_EQ(rte_eth_dev_start(cable.here.id()), 0);
}

/// Errors of packets from before a reset of the statistics belong to no packet behind it.
TEST(DriverTx, DRV_31_AnErrorBehindAResetOfTheStatistics) {
  const Cable cable = sender("mode=nicmem");
  rte_mbuf* packets[20];
  for (rte_mbuf*& packet : packets) packet = cable.here.packet(frame(300));
  pmd::TxQueue& queue = cable.here.tx();
  const uint32_t first = queue.producer;
  ASSERT_EQ(rte_eth_tx_burst(cable.here.id(), 0, packets, 20), 20);
  auto* const block = queue.wqes + size_t{first & (queue.depth - 1)} * hw::kWqeBlockBytes;
  block[3] = std::byte{0x7f};  // no such opcode
  ASSERT_EQ(rte_eth_stats_reset(cable.here.id()), 0);
  cable.settle();
  rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(cable.here.id(), &stats), 0);
  EXPECT_EQ(stats.opackets, 0u);
  EXPECT_EQ(stats.q_opackets[0], 0u);
  EXPECT_EQ(cable.here.xstat("tx_good_packets"), 0u);
  ASSERT_EQ(rte_eth_dev_stop(cable.here.id()), 0);
  EXPECT_LT(cable.here.xstat("tx_stopped"), 100u);
}

TEST(DriverTx, DRV_13_PrepareStopsAtWhatBurstWouldDrop) {
  for (const char* arguments : {"mode=host", "mode=nicmem,header=64"}) {
    const Cable cable = sender(arguments);
    expect_stops(cable, cable.here.packet(frame(9622)), 0);
    expect_stops(cable, cable.here.packet(frame(9623)), EINVAL);
    expect_stops(cable, cable.here.packet(frame(14)), 0);
    expect_stops(cable, cable.here.packet(frame(13)), EINVAL);
    expect_stops(cable, cable.here.packet({}, {0}), EINVAL);
    expect_stops(cable, cable.here.packet(frame(58 * 20), std::vector<uint32_t>(58, 20)), 0);
    expect_stops(cable, cable.here.packet(frame(62 * 20), std::vector<uint32_t>(62, 20)), EINVAL);
    cable.here.expect_conserved();
  }
}

TEST(DriverTx, DRV_38_PrepareRefusesOffloadsThatTheDeviceHasNot) {
  const Cable cable = sender("mode=nicmem,header=64");
  const uint64_t tcp = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM;
  expect_stops(cable, with_offload(cable, 1000, tcp), 0);
  expect_stops(cable, with_offload(cable, 1000, RTE_MBUF_F_TX_VLAN), 0);
  expect_stops(cable, with_offload(cable, 1000, RTE_MBUF_F_TX_SCTP_CKSUM), ENOTSUP);
  expect_stops(cable, with_offload(cable, 1000, RTE_MBUF_F_TX_OUTER_IP_CKSUM), ENOTSUP);
  expect_stops(cable, with_offload(cable, 1000, RTE_MBUF_F_TX_QINQ), ENOTSUP);

  expect_stops(cable, with_offload(cable, 4000, tcp | RTE_MBUF_F_TX_TCP_SEG), 0);
  rte_mbuf* const no_size = with_offload(cable, 4000, tcp | RTE_MBUF_F_TX_TCP_SEG);
  no_size->tso_segsz = 0;
  expect_stops(cable, no_size, ENOTSUP);
  rte_mbuf* const headers_only = with_offload(cable, 54, tcp | RTE_MBUF_F_TX_TCP_SEG);
  expect_stops(cable, headers_only, ENOTSUP);
  cable.here.expect_conserved();
}

}  // namespace
}  // namespace nicmem::test
