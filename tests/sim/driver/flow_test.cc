// SPDX-License-Identifier: BSD-3-Clause
// rte_flow end to end: rules through ethdev into the device, frames over a cable into the queues
// that the rules name.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "conservation.h"
#include "flow_pieces.h"
#include "support/frames.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

constexpr uint16_t kQueues = 2;
constexpr uint64_t kFdir = RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;

class DriverFlow : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GT(port().device->hca->capabilities().rule_priorities, 0u);
    restart(kQueues);
  }
  void TearDown() override { check_conservation(cable); }

  pmd::Port& port() { return cable.there.port(); }
  uint16_t id() const { return cable.there.id(); }

  void restart(uint16_t queues, bool defer_last = false) {
    cable.there.stop();
    rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_configure(id(), queues, 1, &conf), 0);
    for (uint16_t q = 0; q < queues; ++q) {
      rte_eth_rxconf rx{};
      rx.rx_deferred_start = defer_last && q == queues - 1;
      ASSERT_EQ(rte_eth_rx_queue_setup(id(), q, 64, 0, &rx, cable.there.pool()), 0);
    }
    ASSERT_EQ(rte_eth_tx_queue_setup(id(), 0, 64, 0, nullptr), 0);
    ASSERT_EQ(rte_eth_dev_start(id()), 0);
  }

  rte_flow* create(const FlowPieces& pieces) {
    error = {};
    return rte_flow_create(id(), &pieces.attr, pieces.pattern(), pieces.actions(), &error);
  }

  /// A UDP packet over IPv4.
  static Bytes udp(uint32_t source, uint16_t destination_port) {
    Frame made = make_ipv4({.source = source});
    auto* header = view_as<hw::UdpHeader>(std::span(made).subspan(34));
    *header = {be16(1000), be16(destination_port), be16(26), be16(0)};
    Bytes bytes(made.size());
    std::memcpy(bytes.data(), made.data(), made.size());
    return bytes;
  }

  /// Lets a frame arrive; the queue it landed in, or -1.
  int queue_of(const Bytes& bytes) {
    cable.carry(bytes);
    int found = -1;
    for (uint16_t q = 0; q < cable.there.port().ethdev->data->nb_rx_queues; ++q) {
      rte_mbuf* packets[8];
      const uint16_t count = rte_eth_rx_burst(id(), q, packets, 8);
      for (uint16_t i = 0; i < count; ++i) {
        EXPECT_EQ(found, -1) << "twice";
        found = q;
        flags = packets[i]->ol_flags;
        reported = packets[i]->hash.fdir.hi;
        EXPECT_EQ(bytes_of(packets[i]), bytes);
        rte_pktmbuf_free(packets[i]);
      }
    }
    return found;
  }

  rte_flow_query_count count_of(rte_flow* flow, bool reset = false) {
    rte_flow_query_count count{};
    count.reset = reset;
    const rte_flow_action action{.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = nullptr};
    EXPECT_EQ(rte_flow_query(id(), flow, &action, &count, &error), 0) << error.message;
    return count;
  }

  Cable cable{{.arguments = "mode=nicmem,split=force,header=64,sram=256KiB"}};
  rte_flow_error error{};
  uint64_t flags = 0;     // of the packet that queue_of() saw last
  uint32_t reported = 0;  // its mark
};

rte_flow_item_udp port_spec(uint16_t port) {
  rte_flow_item_udp udp{};
  udp.hdr.dst_port = rte_cpu_to_be_16(port);
  return udp;
}

TEST_F(DriverFlow, DRV_46_MaskedPortsAndNetworksLandInTheirQueue) {
  const rte_flow_item_udp ports = port_spec(4096), port_mask = port_spec(0xfff0);
  FlowPieces by_port;
  by_port.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
  by_port.item(RTE_FLOW_ITEM_TYPE_UDP, &ports, &port_mask).queue(1);
  ASSERT_NE(create(by_port), nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(v4(10, 0, 0, 1), 4095)), 0);
  EXPECT_EQ(queue_of(udp(v4(10, 0, 0, 1), 4096)), 1);
  EXPECT_EQ(queue_of(udp(v4(10, 0, 0, 1), 4111)), 1);
  EXPECT_EQ(queue_of(udp(v4(10, 0, 0, 1), 4112)), 0);
  rte_flow_item_ipv4 net{}, net_mask{};
  net.hdr.src_addr = rte_cpu_to_be_32(v4(10, 1, 2, 99));
  net_mask.hdr.src_addr = rte_cpu_to_be_32(0xffffff00);
  FlowPieces by_net;
  by_net.item(RTE_FLOW_ITEM_TYPE_IPV4, &net, &net_mask).queue(1);
  ASSERT_NE(create(by_net), nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(v4(10, 1, 2, 0), 9)), 1);
  EXPECT_EQ(queue_of(udp(v4(10, 1, 2, 255), 9)), 1);
  EXPECT_EQ(queue_of(udp(v4(10, 1, 3, 0), 9)), 0);
}

TEST_F(DriverFlow, DRV_46_DroppedAndCountedOverAStop) {
  const rte_flow_item_udp spec = port_spec(7);
  const rte_flow_item_udp mask = port_spec(0xffff);
  FlowPieces drop;
  drop.item(RTE_FLOW_ITEM_TYPE_UDP, &spec, &mask).action(RTE_FLOW_ACTION_TYPE_COUNT);
  drop.action(RTE_FLOW_ACTION_TYPE_DROP);
  rte_flow* const flow = create(drop);
  ASSERT_NE(flow, nullptr) << error.message;
  const Bytes packet = udp(v4(10, 0, 0, 1), 7);
  EXPECT_EQ(queue_of(packet), -1);
  EXPECT_EQ(queue_of(udp(v4(10, 0, 0, 1), 8)), 0);
  EXPECT_EQ(cable.there.xstat("rx_dropped_by_rule"), 1u);
  EXPECT_EQ(count_of(flow).hits, 1u);
  EXPECT_EQ(count_of(flow).bytes, packet.size());
  cable.there.stop();
  EXPECT_EQ(count_of(flow).hits, 1u);
  ASSERT_EQ(rte_eth_dev_start(id()), 0);
  EXPECT_EQ(queue_of(packet), -1) << "the rule is there again";
  EXPECT_EQ(count_of(flow, true).hits, 2u);
  EXPECT_EQ(count_of(flow).hits, 0u);
  ASSERT_EQ(rte_flow_destroy(id(), flow, &error), 0);
  EXPECT_EQ(queue_of(packet), 0);
  EXPECT_NE(rte_flow_destroy(id(), flow, &error), 0);
  EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_HANDLE);
}

TEST_F(DriverFlow, DRV_46_PrioritiesThenAge) {
  FlowPieces low, high;
  low.item(RTE_FLOW_ITEM_TYPE_ETH).queue(0);
  low.attr.priority = 1;
  high.item(RTE_FLOW_ITEM_TYPE_ETH).queue(1);
  ASSERT_NE(create(low), nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(1, 1)), 0);
  rte_flow* const first = create(high);
  ASSERT_NE(first, nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(1, 1)), 1);
  FlowPieces younger;
  younger.item(RTE_FLOW_ITEM_TYPE_ETH).action(RTE_FLOW_ACTION_TYPE_DROP);
  ASSERT_NE(create(younger), nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(1, 1)), 1);
  cable.there.stop();
  ASSERT_EQ(rte_eth_dev_start(id()), 0);
  EXPECT_EQ(queue_of(udp(1, 1)), 1) << "the order outlives a stop";
  ASSERT_EQ(rte_flow_flush(id(), &error), 0);
  EXPECT_EQ(queue_of(udp(1, 1)), 0);
}

TEST_F(DriverFlow, DRV_46_RssOfARuleSpreadsBySourceOnly) {
  const uint16_t queues[] = {0, 1};
  const rte_flow_action_rss rss{.func = RTE_ETH_HASH_FUNCTION_TOEPLITZ,
                                .level = 1,
                                .types = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_L3_SRC_ONLY,
                                .key_len = 0,
                                .queue_num = 2,
                                .key = nullptr,
                                .queue = queues};
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).action(RTE_FLOW_ACTION_TYPE_RSS, &rss);
  ASSERT_NE(create(pieces), nullptr) << error.message;
  int seen[kQueues] = {};
  for (uint8_t i = 0; i < 64; ++i) {
    const int queue = queue_of(udp(v4(10, 0, 0, i), 1));
    ASSERT_GE(queue, 0);
    ++seen[queue];
    EXPECT_EQ(queue_of(udp(v4(10, 0, 0, i), static_cast<uint16_t>(5000 + i))), queue);
  }
  EXPECT_GT(seen[0], 8);
  EXPECT_GT(seen[1], 8);
}

TEST_F(DriverFlow, DRV_46_IsolatedBeforeAndAfterStart) {
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).queue(1);
  ASSERT_NE(create(pieces), nullptr) << error.message;
  const Bytes other = frame(100);
  EXPECT_EQ(queue_of(other), 0);
  ASSERT_EQ(rte_flow_isolate(id(), 1, &error), 0);
  EXPECT_EQ(queue_of(other), -1);
  EXPECT_EQ(queue_of(udp(1, 1)), 1);
  cable.there.stop();
  ASSERT_EQ(rte_eth_dev_start(id()), 0);
  EXPECT_EQ(queue_of(other), -1);
  cable.there.stop();
  ASSERT_EQ(rte_flow_isolate(id(), 0, &error), 0);
  ASSERT_EQ(rte_eth_dev_start(id()), 0);
  EXPECT_EQ(queue_of(other), 0);
  EXPECT_EQ(cable.there.xstat("rx_filtered"), 2u);
}

TEST_F(DriverFlow, DRV_46_QueuesThatAreStoppedDeferredOrGone) {
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).queue(1);
  restart(kQueues, true);
  rte_flow* const flow = create(pieces);
  ASSERT_NE(flow, nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(1, 1)), -1) << "deferred";
  ASSERT_EQ(rte_eth_dev_rx_queue_start(id(), 1), 0);
  EXPECT_EQ(queue_of(udp(1, 1)), 1);
  cable.there.stop();
  rte_eth_conf conf{};
  ASSERT_EQ(rte_eth_dev_configure(id(), 1, 1, &conf), 0);
  EXPECT_NE(rte_eth_dev_start(id()), 0) << "a rule goes to queue 1";
  EXPECT_EQ(create(pieces), nullptr);
  EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_ACTION_CONF);
  ASSERT_EQ(rte_flow_destroy(id(), flow, &error), 0);
  restart(1);
}

TEST_F(DriverFlow, DRV_46_AsManyRulesAsAPortTakesAndOneMore) {
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_IPV6).queue(1);
  for (size_t i = 0; i < pmd::kMaxFlows; ++i) ASSERT_NE(create(pieces), nullptr) << i;
  EXPECT_EQ(create(pieces), nullptr);
  EXPECT_EQ(rte_errno, ENOSPC);
  EXPECT_NE(std::string(error.message).find(std::to_string(pmd::kMaxFlows)), std::string::npos);
  EXPECT_EQ(rte_flow_validate(id(), &pieces.attr, pieces.pattern(), pieces.actions(), &error),
            -ENOSPC);
  EXPECT_EQ(queue_of(udp(1, 1)), 0);
}

TEST_F(DriverFlow, DRV_46_MarksAndFlagsAreReported) {
  for (const uint32_t number : {0u, 1u, pmd::kMaxMark}) {
    const rte_flow_action_mark mark{.id = number};
    FlowPieces pieces;
    pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).action(RTE_FLOW_ACTION_TYPE_MARK, &mark).queue(1);
    rte_flow* const flow = create(pieces);
    ASSERT_NE(flow, nullptr) << error.message;
    EXPECT_EQ(queue_of(udp(1, 1)), 1);
    EXPECT_EQ(flags & kFdir, kFdir);
    EXPECT_EQ(reported, number);
    ASSERT_EQ(rte_flow_destroy(id(), flow, &error), 0);
  }
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).action(RTE_FLOW_ACTION_TYPE_FLAG).queue(1);
  ASSERT_NE(create(pieces), nullptr) << error.message;
  EXPECT_EQ(queue_of(udp(1, 1)), 1);
  EXPECT_EQ(flags & kFdir, RTE_MBUF_F_RX_FDIR) << "flagged, without a number";
  EXPECT_EQ(queue_of(frame(100)), 0);
  EXPECT_EQ(flags & kFdir, 0u);
}

/// Anything: mostly what is accepted, so that whole rules are, too.
class RandomRule {
 public:
  explicit RandomRule(Rng& rng) : rng_(rng) {
    for (auto* bytes : {&spec_, &mask_, &last_})
      for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(rng_.below(256));
    if (!one_in(3)) mask_ = {};
    if (!one_in(3)) last_ = spec_;
    pieces.attr.priority = static_cast<uint32_t>(rng_.below(6));
    if (one_in(20)) pieces.attr.egress = 1;
    if (one_in(20)) pieces.attr.group = 1;
    add_items();
    add_actions();
  }
  FlowPieces pieces;

 private:
  bool one_in(uint64_t n) { return rng_.below(n) == 0; }

  void add_items() {
    constexpr rte_flow_item_type kTypes[] = {
        RTE_FLOW_ITEM_TYPE_ETH,  RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_IPV4,
        RTE_FLOW_ITEM_TYPE_IPV6, RTE_FLOW_ITEM_TYPE_UDP,  RTE_FLOW_ITEM_TYPE_TCP,
        RTE_FLOW_ITEM_TYPE_ICMP, RTE_FLOW_ITEM_TYPE_VOID, RTE_FLOW_ITEM_TYPE_VXLAN};
    for (const rte_flow_item_type type : kTypes) {
      if (!one_in(type == RTE_FLOW_ITEM_TYPE_VXLAN ? 20 : 3)) continue;
      const bool spec = one_in(2);
      pieces.item(type, spec ? spec_.data() : nullptr,
                  (spec && one_in(2)) || one_in(30) ? mask_.data() : nullptr,
                  (spec && one_in(4)) || one_in(30) ? last_.data() : nullptr);
    }
  }

  void add_actions() {
    mark_.id = static_cast<uint32_t>(rng_.below(4) == 0 ? rng_.below(1ull << 25) : rng_.below(99));
    if (one_in(3)) pieces.action(RTE_FLOW_ACTION_TYPE_MARK, one_in(20) ? nullptr : &mark_);
    if (one_in(6)) pieces.action(RTE_FLOW_ACTION_TYPE_FLAG);
    if (one_in(3)) pieces.action(RTE_FLOW_ACTION_TYPE_COUNT);
    if (one_in(20)) pieces.action(RTE_FLOW_ACTION_TYPE_JUMP);
    rss_.types = one_in(2) ? 0 : RTE_ETH_RSS_IPV4 << rng_.below(20);
    rss_.level = static_cast<uint32_t>(rng_.below(3));
    rss_.queue_num = static_cast<uint32_t>(rng_.below(4));
    rss_.queue = queues_;
    if (one_in(3)) pieces.action(RTE_FLOW_ACTION_TYPE_DROP);
    if (one_in(3)) pieces.action(RTE_FLOW_ACTION_TYPE_RSS, &rss_);
    if (one_in(2)) pieces.queue(static_cast<uint16_t>(rng_.below(3)));
  }

  Rng& rng_;
  std::array<uint8_t, 64> spec_{}, mask_{}, last_{};
  rte_flow_action_mark mark_{};
  rte_flow_action_rss rss_{};
  uint16_t queues_[3] = {0, 1, 0};
};

TEST_F(DriverFlow, DRV_46_ValidateAndCreateAgreeAndRefusedRulesChangeNothing) {
  Rng rng(test_seed());
  uint32_t made = 0, refused = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    if (i % 500 == 250) cable.there.stop();
    if (i % 500 == 350) {
      ASSERT_EQ(rte_eth_dev_start(id()), 0);
    }
    const RandomRule rule(rng);
    const FlowPieces& p = rule.pieces;
    rte_flow_error said{};
    const int valid = rte_flow_validate(id(), &p.attr, p.pattern(), p.actions(), &said);
    const size_t before = port().flows.size();
    rte_flow* const flow = create(p);
    ASSERT_EQ(valid == 0, flow != nullptr) << i << ": " << (valid == 0 ? error : said).message;
    if (flow != nullptr) {
      ++made;
      if (port().flows.size() > 32) {
        ASSERT_EQ(rte_flow_flush(id(), &error), 0);
      }
      continue;
    }
    ++refused;
    EXPECT_EQ(port().flows.size(), before);
    EXPECT_EQ(rte_errno, -valid);
    EXPECT_EQ(said.type, error.type);
    EXPECT_EQ(said.cause, error.cause);
    EXPECT_STREQ(said.message, error.message);
    EXPECT_NE(said.type, RTE_FLOW_ERROR_TYPE_NONE);
  }
  EXPECT_GT(made, 100u);
  EXPECT_GT(refused, 100u);
  ASSERT_EQ(rte_flow_flush(id(), &error), 0);
  EXPECT_EQ(queue_of(udp(1, 1)), 0);
}

}  // namespace
}  // namespace nicmem::test
