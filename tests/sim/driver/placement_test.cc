// SPDX-License-Identifier: BSD-3-Clause
// Where a received frame is placed, in every cell of the driver's table mode x split x rx_seg, and
// what its mbuf says of it: types, checksums, hash, flags.
#include "conservation.h"
#include "support/frames.h"

namespace nicmem::test {
namespace {

/// Carries one frame, checks its bytes and its chain's form, and hands it over.
rte_mbuf* carried(const Cable& cable, const Bytes& bytes) {
  cable.carry(bytes);
  const auto packets = cable.there.receive();
  EXPECT_EQ(packets.size(), 1u);
  if (packets.size() != 1) return nullptr;
  const char* why = nullptr;
  EXPECT_EQ(rte_mbuf_check(packets[0], 1, &why), 0) << why;
  for (const rte_mbuf* segment = packets[0]; segment != nullptr; segment = segment->next)
    EXPECT_GT(segment->data_len, 0);
  EXPECT_EQ(bytes_of(packets[0]), bytes);
  return packets[0];
}

/// Lengths of a packet's segments.
std::vector<uint32_t> shape(const rte_mbuf* packet) {
  std::vector<uint32_t> lengths;
  for (; packet != nullptr; packet = packet->next) lengths.push_back(packet->data_len);
  return lengths;
}

struct Cell {
  const char* mode;
  const char* split;
  bool given;  // rx_seg[]
};

class DriverPlacement : public testing::TestWithParam<Cell> {};

TEST_P(DriverPlacement, EveryCellOfTheTableCarriesEveryByte) {
  const Cell cell = GetParam();
  rte_mempool* const pools[] = {
      rte_pktmbuf_pool_create("cell0", 255, 0, 0, 100 + RTE_PKTMBUF_HEADROOM, 0),
      rte_pktmbuf_pool_create("cell1", 255, 0, 0, 2048, 0)};
  {
    PortSetUp set_up{.arguments = "header=64,sram=1MiB,mode=" + std::string(cell.mode) +
                                  ",split=" + cell.split};
    if (cell.given) {
      set_up.rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
      set_up.segments = {{.mp = pools[0], .length = 100}, {.mp = pools[1]}};
    }
    Cable cable(set_up);
    const bool own =
        !cell.given && std::string(cell.split) == "force" && std::string(cell.mode) != "host";
    const uint32_t edge = cell.given ? 100 : own ? 64 : 1522;
    const bool on_card = own && std::string(cell.mode).starts_with("nicmem");
    for (const uint32_t size : {60u, 63u, 64u, 65u, 99u, 100u, 101u, 590u, 1514u, 1522u}) {
      SCOPED_TRACE(size);
      rte_mbuf* const packet = carried(cable, frame(size, size));
      ASSERT_NE(packet, nullptr);
      EXPECT_EQ(shape(packet), size <= edge ? std::vector<uint32_t>{size}
                                            : (std::vector<uint32_t>{edge, size - edge}));
      nicmem_region region{};
      EXPECT_EQ(rte_pmd_nicmem_region_of(packet, &region), on_card && size > edge ? 0 : -ENOENT);
      rte_pktmbuf_free(packet);
    }
    EXPECT_EQ(cable.there.xstat("rx_payload_nicmem_bytes") > 0, on_card);
    check_conservation(cable, {}, {pools[0], pools[1]});
  }
  for (rte_mempool* pool : pools) rte_mempool_free(pool);
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const char* mode : {"host", "split", "nicmem-noinline", "nicmem"})
    for (const char* split : {"auto", "force", "off"})
      for (const bool given : {false, true})
        if (!given || std::string(split) != "off") all.push_back({mode, split, given});
  return all;
}

std::string name_of(const testing::TestParamInfo<Cell>& cell) {
  std::string name = std::string(cell.param.mode) + "_" + cell.param.split;
  std::erase(name, '-');
  return name + (cell.param.given ? "_rx_seg" : "");
}
INSTANTIATE_TEST_SUITE_P(Table, DriverPlacement, testing::ValuesIn(cells()), name_of);

TEST(DriverPlacementLimits, BufferSplitIsNotOfferedWithSplitOff) {
  Cable cable({.arguments = "split=off"});
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(cable.there.id(), &info), 0);
  EXPECT_EQ(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT, 0u);
  cable.there.stop();
  EXPECT_LT(cable.there.configure({.rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT,
                                   .segments = {{.mp = cable.there.pool(), .length = 64},
                                                {.mp = cable.there.pool()}}}),
            0);
  ASSERT_EQ(cable.there.configure({}), 0);
  ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
}

TEST(DriverPlacementLimits, L3_25_HeaderLengthsAtTheirLimits) {
  for (const uint32_t header : {18u, 19u, 127u, 128u, 511u, 512u}) {
    Cable cable(
        {.arguments = "mode=nicmem,split=force,sram=1MiB,header=" + std::to_string(header)});
    for (const uint32_t size : {header - 1, header, header + 1}) {
      SCOPED_TRACE(std::to_string(header) + ": " + std::to_string(size));
      rte_mbuf* const packet = carried(cable, frame(size, size));
      ASSERT_NE(packet, nullptr);
      EXPECT_EQ(packet->nb_segs, size > header ? 2 : 1);
      rte_pktmbuf_free(packet);
    }
    check_conservation(cable);
  }
}

TEST(DriverPlacementLimits, DRV_34_FramesAtTheLimitOfEachMtu) {
  for (const uint16_t mtu : std::initializer_list<uint16_t>{68, 1500, 9600}) {
    Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=1MiB", .mtu = mtu},
                {.arguments = "mode=host", .mtu = 9600, .room = 9728});
    const uint32_t limit = mtu + 22u;  // Ethernet header and two VLAN tags
    for (const uint32_t size : {limit - 1, limit}) {
      rte_mbuf* const packet = carried(cable, frame(size, size));
      ASSERT_NE(packet, nullptr);
      rte_pktmbuf_free(packet);
    }
    if (limit < 9622) {
      cable.carry(frame(limit + 1));
      EXPECT_TRUE(cable.there.receive().empty());
      EXPECT_EQ(cable.there.xstat("rx_oversize"), 1u);
    }
    check_conservation(cable);
  }
}

/// 9,000 with one pool of 2,048: refused when the port starts, unless it may scatter.
TEST(DriverPlacementLimits, DRV_34_JumboFramesNeedRoomOrScatter) {
  Cable cable({.arguments = "mode=host"});
  cable.there.stop();
  ASSERT_EQ(cable.there.configure({.mtu = 9000}), 0);
  EXPECT_LT(rte_eth_dev_start(cable.there.id()), 0);
  ASSERT_EQ(cable.there.configure({.mtu = 9000, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER}), 0);
  ASSERT_EQ(rte_eth_dev_start(cable.there.id()), 0);
  rte_mbuf* const packet = carried(cable, frame(9000));
  ASSERT_NE(packet, nullptr);
  EXPECT_EQ(shape(packet), (std::vector<uint32_t>{2048, 2176, 2176, 2176, 424}));
  rte_pktmbuf_free(packet);
  check_conservation(cable);
}

TEST(DriverMbuf, DRV_19_20_BuffersComeAndGoAsThePoolMadeThem) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64,sram=64KiB", .ring = 8});
  for (uint32_t i = 0; i < 200; ++i) {
    rte_mbuf* const packet = carried(cable, frame(1000, i));
    ASSERT_NE(packet, nullptr);
    rte_mbuf* const payload = packet->next;
    ASSERT_NE(payload, nullptr);
    const bool card = cable.there.port().device->memory->contains(payload->buf_addr);
    EXPECT_EQ((payload->ol_flags & RTE_MBUF_F_EXTERNAL) != 0, card);
    EXPECT_EQ(RTE_MBUF_HAS_PINNED_EXTBUF(payload), card);
    EXPECT_EQ(packet->ol_flags & RTE_MBUF_F_EXTERNAL, 0u);
    void* const address = payload->buf_addr;
    rte_mbuf* const clone = rte_pktmbuf_clone(packet, cable.here.pool());
    ASSERT_NE(clone, nullptr);
    rte_pktmbuf_free(packet);
    EXPECT_EQ(rte_pktmbuf_mtod(clone->next, char*), static_cast<char*>(address));
    EXPECT_EQ(payload->pool->size > rte_mempool_avail_count(payload->pool), true);
    rte_pktmbuf_free(clone);
    EXPECT_EQ(payload->buf_addr, address) << "a pinned buffer stays";
  }
  check_conservation(cable);
  rte_mempool* const card = cable.there.port().card_payload->pool();
  while (void* taken = [card]() -> void* {
    void* one = nullptr;
    return rte_mempool_get(card, &one) == 0 ? one : nullptr;
  }()) {
    auto* const mbuf = static_cast<rte_mbuf*>(taken);
    EXPECT_EQ(mbuf->nb_segs, 1);
    EXPECT_EQ(mbuf->next, nullptr);
    EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
    EXPECT_TRUE(RTE_MBUF_HAS_PINNED_EXTBUF(mbuf));
    rte_mempool_put(card, taken);
    break;
  }
}

/// A frame in bytes of the fixture's kind.
Bytes plain(const Frame& frame_bytes) {
  Bytes bytes(frame_bytes.size());
  std::memcpy(bytes.data(), frame_bytes.data(), bytes.size());
  return bytes;
}

struct Described {
  const char* what;
  Frame bytes;
  uint32_t type;
  uint64_t flags;
};

/// An IPv4 or IPv6 frame whose UDP checksum is right.
Frame with_udp(Frame bytes, size_t l3_bytes) {
  const size_t at = sizeof(hw::EtherHeader) + l3_bytes, length = bytes.size() - at;
  auto& udp = *view_as<hw::UdpHeader>(std::span(bytes).subspan(at));
  udp.length.set(static_cast<uint16_t>(length));
  udp.checksum.set(0);
  const size_t addresses = l3_bytes == 20 ? 8 : 32;
  const uint16_t pseudo = hw::sum_words(std::span(bytes).subspan(at - addresses, addresses),
                                        hw::fold_sum(hw::kProtocolUdp + length));
  udp.checksum.set(hw::checksum_of(std::span(bytes).subspan(at), pseudo));
  return bytes;
}

std::vector<Described> described() {
  constexpr uint64_t kIpGood = RTE_MBUF_F_RX_IP_CKSUM_GOOD, kIpBad = RTE_MBUF_F_RX_IP_CKSUM_BAD;
  constexpr uint64_t kL4Good = RTE_MBUF_F_RX_L4_CKSUM_GOOD, kL4Bad = RTE_MBUF_F_RX_L4_CKSUM_BAD;
  constexpr uint32_t kV4 = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4;
  const Frame good = with_udp(make_ipv4(), 20), good6 = with_udp(make_ipv6(), 40);
  Frame bad_ip = good, bad_l4 = good, bad_l46 = good6, arp = make_ipv4();
  bad_ip[24] ^= std::byte{1};
  bad_l4.back() ^= std::byte{1};
  bad_l46.back() ^= std::byte{1};
  ether_of(arp).type.set(0x0806);
  return {
      {"UDP", good, kV4 | RTE_PTYPE_L4_UDP, kIpGood | kL4Good},
      {"UDP, header wrong", bad_ip, kV4 | RTE_PTYPE_L4_UDP, kIpBad | kL4Good},
      {"UDP, payload wrong", bad_l4, kV4 | RTE_PTYPE_L4_UDP, kIpGood | kL4Bad},
      {"UDP over IPv6", good6, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_UDP, kL4Good},
      {"the same, wrong", bad_l46, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_UDP,
       kL4Bad},
      {"fragment", make_ipv4({.fragment = 0x2000}), kV4 | RTE_PTYPE_L4_FRAG, kIpGood},
      {"ICMP", make_ipv4({.protocol = 1}), kV4, kIpGood},
      {"IPv4 options", make_ipv4({.protocol = 1, .options = {1, 1, 1, 0}}),
       RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT, kIpGood},
      {"ARP", arp, RTE_PTYPE_L2_ETHER, 0},
  };
}

TEST(DriverMbuf, TypesAndChecksumsAreThoseOfTheFrame) {
  constexpr uint64_t kChecks = RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK;
  for (const uint64_t offload : {uint64_t{0}, uint64_t{RTE_ETH_RX_OFFLOAD_CHECKSUM}}) {
    Cable cable({.arguments = "mode=nicmem,split=force,header=18", .rx_offloads = offload});
    for (const Described& frame_like : described()) {
      SCOPED_TRACE(frame_like.what);
      rte_mbuf* const packet = carried(cable, plain(frame_like.bytes));
      ASSERT_NE(packet, nullptr);
      EXPECT_EQ(packet->packet_type, frame_like.type);
      EXPECT_EQ(packet->ol_flags & kChecks, offload == 0 ? 0 : frame_like.flags);
      EXPECT_EQ(packet->port, cable.there.id());
      rte_pktmbuf_free(packet);
    }
  }
}

/// Two queues, set up on a port that the fixture has given one.
void use_two_queues(const TestPort& port) {
  rte_eth_conf conf{};
  conf.rxmode.mtu = 1500;
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH;
  conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
  ASSERT_EQ(rte_eth_dev_configure(port.id(), 2, 2, &conf), 0);
  rte_eth_rxconf rx{};
  rx.offloads = conf.rxmode.offloads;
  for (const uint16_t queue : std::initializer_list<uint16_t>{0, 1}) {
    ASSERT_EQ(rte_eth_rx_queue_setup(port.id(), queue, 64, 0, &rx, port.pool()), 0);
    ASSERT_EQ(rte_eth_tx_queue_setup(port.id(), queue, 64, 0, nullptr), 0);
  }
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
}

TEST(DriverMbuf, RssSpreadsFlowsAndKeepsBothDirectionsTogether) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64"});
  cable.there.stop();
  use_two_queues(cable.there);
  uint32_t of_queue[2] = {};
  for (uint32_t flow = 0; flow < 64; ++flow) {
    const uint32_t here = v4(198, 18, 0, static_cast<uint8_t>(flow)), there = v4(198, 18, 1, 7);
    uint32_t hash[2] = {}, queue_of[2] = {};
    for (const uint32_t back : {0u, 1u}) {
      const Frame packet = make_ipv4({.source = back == 0 ? here : there,
                                      .destination = back == 0 ? there : here,
                                      .protocol = 1,
                                      .payload_bytes = 200});
      cable.carry(plain(packet));
      for (const uint16_t queue : std::initializer_list<uint16_t>{0, 1}) {
        rte_mbuf* one = nullptr;
        if (rte_eth_rx_burst(cable.there.id(), queue, &one, 1) == 0) continue;
        EXPECT_NE(one->ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0u);
        hash[back] = one->hash.rss;
        queue_of[back] = queue;
        ++of_queue[queue];
        EXPECT_EQ(bytes_of(one), plain(packet));
        rte_pktmbuf_free(one);
      }
    }
    EXPECT_EQ(hash[0], hash[1]) << flow;
    EXPECT_EQ(queue_of[0], queue_of[1]) << flow;
  }
  EXPECT_EQ(of_queue[0] + of_queue[1], 128u);
  EXPECT_GT(of_queue[0], 16u);
  EXPECT_GT(of_queue[1], 16u);
  check_conservation(cable);
}

/// One receive function serves all queues of a port, also when their WQEs differ.
TEST(DriverMbuf, QueuesOfOnePortMayDifferInTheirSegments) {
  Cable cable({.arguments = "mode=nicmem"});
  const uint16_t id = cable.there.id();
  cable.there.stop();
  rte_eth_conf conf{};
  conf.rxmode.mtu = 1500;
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP;
  ASSERT_EQ(rte_eth_dev_configure(id, 2, 1, &conf), 0);
  rte_eth_rxseg segments[2] = {};
  segments[0].split = {.mp = cable.there.pool(), .length = 64};
  segments[1].split = {.mp = cable.there.pool()};
  rte_eth_rxconf split{};
  split.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
  split.rx_seg = segments;
  split.rx_nseg = 2;
  ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, 64, 0, nullptr, cable.there.pool()), 0);
  ASSERT_EQ(rte_eth_rx_queue_setup(id, 1, 64, 0, &split, nullptr), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, 64, 0, nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  uint32_t of_queue[2] = {};
  for (uint32_t flow = 0; flow < 64; ++flow) {
    const Bytes bytes = plain(make_ipv4({.source = v4(198, 18, 0, static_cast<uint8_t>(flow)),
                                         .protocol = 1,
                                         .payload_bytes = 400}));
    cable.carry(bytes);
    for (const uint16_t queue : std::initializer_list<uint16_t>{0, 1}) {
      rte_mbuf* one = nullptr;
      if (rte_eth_rx_burst(id, queue, &one, 1) == 0) continue;
      ++of_queue[queue];
      EXPECT_EQ(one->nb_segs, queue + 1);
      EXPECT_EQ(bytes_of(one), bytes);
      rte_pktmbuf_free(one);
    }
  }
  EXPECT_EQ(of_queue[0] + of_queue[1], 64u);
  EXPECT_TRUE(of_queue[0] > 0 && of_queue[1] > 0);
  check_conservation(cable);
}

TEST(DriverInfo, DRV_47_QueueInfoAndLinkSayWhatIs) {
  Cable cable({.arguments = "mode=nicmem,split=force,header=64", .ring = 100});
  const uint16_t id = cable.there.id();
  rte_eth_rxq_info rx{};
  rte_eth_txq_info tx{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id, 0, &rx), 0);
  ASSERT_EQ(rte_eth_tx_queue_info_get(id, 0, &tx), 0);
  EXPECT_EQ(rx.mp, cable.there.pool());
  EXPECT_EQ(rx.nb_desc, 128);
  EXPECT_EQ(rx.scattered_rx, 1);
  EXPECT_EQ(tx.nb_desc, 100);
  EXPECT_EQ(rte_eth_rx_queue_info_get(id, 99, &rx), -EINVAL);
  EXPECT_EQ(rte_eth_tx_queue_info_get(id, 99, &tx), -EINVAL);
  rte_eth_link link{};
  ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
  EXPECT_EQ(link.link_speed, RTE_ETH_SPEED_NUM_100G);
  cable.there.stop();
  ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
}

}  // namespace
}  // namespace nicmem::test
