// SPDX-License-Identifier: BSD-3-Clause
// rte_flow without a device: what translation takes and refuses, with which cause; and the table of
// rules on a control path that records them and fails when told to.
#include <gtest/gtest.h>

#include <string>

#include "drivers/net/nicmem/flow.h"
#include "flow_pieces.h"

namespace nicmem::test {
namespace {

using pmd::Flow;
using pmd::FlowLimits;
using pmd::FlowTable;
using pmd::translate_flow;

constexpr FlowLimits kLimits{.priorities = 4, .queues = 3, .key = {1, 2, 3}};

pmd::FlowResult<Flow> translate(const FlowPieces& pieces, const FlowLimits& limits = kLimits) {
  return translate_flow(&pieces.attr, pieces.pattern(), pieces.actions(), limits);
}

void expect_refused(const FlowPieces& pieces, int error, rte_flow_error_type type,
                    const char* accepted, const void* cause = nullptr) {
  const auto flow = translate(pieces);
  ASSERT_FALSE(flow) << accepted;
  EXPECT_EQ(flow.error().error, error) << flow.error().message;
  EXPECT_EQ(flow.error().type, type) << flow.error().message;
  EXPECT_NE(std::string(flow.error().message).find(accepted), std::string::npos)
      << flow.error().message;
  if (cause != nullptr) {
    EXPECT_EQ(flow.error().cause, cause) << flow.error().message;
  }
}

TEST(FlowTranslate, DRV_46_EveryAttributeButIngressGroup0AndItsPrioritiesIsRefused) {
  FlowPieces good;
  good.queue(0);
  EXPECT_TRUE(translate(good));
  const auto refused = [&good](auto change, int error, rte_flow_error_type type) {
    FlowPieces pieces = good;
    change(pieces.attr);
    expect_refused(pieces, error, type, "accepted", &pieces.attr);
  };
  refused([](auto& a) { a.egress = 1; }, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS);
  refused([](auto& a) { a.transfer = 1; }, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER);
  refused([](auto& a) { a.ingress = 0; }, EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS);
  refused([](auto& a) { a.group = 1; }, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP);
  refused([](auto& a) { a.priority = 4; }, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY);
  good.attr.priority = 3;
  ASSERT_TRUE(translate(good));
  EXPECT_EQ(translate(good)->options.priority, 3u);
  EXPECT_FALSE(translate(good, {.priorities = 0, .queues = 3}));
  EXPECT_FALSE(translate_flow(nullptr, good.pattern(), good.actions(), kLimits));
  EXPECT_FALSE(translate_flow(&good.attr, nullptr, good.actions(), kLimits));
  EXPECT_FALSE(translate_flow(&good.attr, good.pattern(), nullptr, kLimits));
}

TEST(FlowTranslate, DRV_46_SpecMaskAndLastFollowTheirRules) {
  rte_flow_item_ipv4 spec{}, mask{}, last{};
  spec.hdr.src_addr = RTE_BE32(0x0a010203);
  spec.hdr.dst_addr = RTE_BE32(0x0a040506);
  {  // none: any; the header must be there
    FlowPieces pieces;
    pieces.item(RTE_FLOW_ITEM_TYPE_IPV4).queue(1);
    const auto flow = translate(pieces);
    ASSERT_TRUE(flow);
    ASSERT_TRUE(flow->options.match.ipv4);
    EXPECT_EQ(flow->options.match.ipv4->mask.source.get(), 0u);
    EXPECT_FALSE(flow->options.match.ether);
    EXPECT_EQ(flow->queues, std::vector<uint16_t>{1});
  }
  {  // no mask: the default one
    FlowPieces pieces;
    pieces.item(RTE_FLOW_ITEM_TYPE_IPV4, &spec).queue(0);
    const auto flow = translate(pieces);
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->options.match.ipv4->mask.source.get(), 0xffffffffu);
    EXPECT_EQ(flow->options.match.ipv4->value.destination.get(), 0x0a040506u);
    EXPECT_EQ(flow->options.match.ipv4->mask.protocol, 0);
  }
  {  // bits outside the mask do not count, neither of spec nor of last
    mask.hdr.src_addr = RTE_BE32(0xffffff00);
    last = spec;
    last.hdr.src_addr = RTE_BE32(0x0a0102ff);
    FlowPieces pieces;
    pieces.item(RTE_FLOW_ITEM_TYPE_IPV4, &spec, &mask, &last).queue(0);
    const auto flow = translate(pieces);
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->options.match.ipv4->value.source.get(), 0x0a010200u);
    EXPECT_EQ(flow->options.match.ipv4->mask.destination.get(), 0u);
    last.hdr.src_addr = RTE_BE32(0x0a0103ff);
    expect_refused(pieces, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, "equal to spec", &last);
  }
  FlowPieces no_spec;
  no_spec.item(RTE_FLOW_ITEM_TYPE_IPV4, nullptr, &mask).queue(0);
  expect_refused(no_spec, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, "spec", no_spec.pattern());
  mask.hdr.hdr_checksum = RTE_BE16(1);
  FlowPieces checksum;
  checksum.item(RTE_FLOW_ITEM_TYPE_IPV4, &spec, &mask).queue(0);
  expect_refused(checksum, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, "tos, ttl, proto", &mask);
}

TEST(FlowTranslate, DRV_46_PortsByPartialMask) {
  rte_flow_item_udp spec{}, mask{};
  spec.hdr.dst_port = RTE_BE16(4096 + 17);
  mask.hdr.dst_port = RTE_BE16(0xfff0);
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_UDP, &spec, &mask).queue(0);
  const auto flow = translate(pieces);
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->options.match.udp->value.destination_port.get(), 4096 + 16);
  EXPECT_EQ(flow->options.match.udp->mask.destination_port.get(), 0xfff0);
  EXPECT_EQ(flow->options.match.udp->mask.source_port.get(), 0);
}

TEST(FlowTranslate, DRV_46_HasVlan) {
  rte_flow_item_eth spec{}, mask{};
  mask.has_vlan = 1;
  FlowPieces pieces;
  pieces.item(RTE_FLOW_ITEM_TYPE_ETH, &spec, &mask).queue(0);
  {
    const auto flow = translate(pieces);
    ASSERT_TRUE(flow);
    EXPECT_TRUE(flow->options.match.untagged);
    FlowPieces ipv6 = pieces;
    ipv6.item(RTE_FLOW_ITEM_TYPE_IPV6);
    const auto of_ipv6 = translate(ipv6);
    ASSERT_TRUE(of_ipv6);
    EXPECT_TRUE(of_ipv6->options.match.untagged);
    FlowPieces both = pieces;
    both.item(RTE_FLOW_ITEM_TYPE_VLAN);
    expect_refused(both, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, "one of them");
  }
  spec.has_vlan = 1;
  const auto flow = translate(pieces);
  ASSERT_TRUE(flow);
  ASSERT_TRUE(flow->options.match.vlan);
  EXPECT_EQ(flow->options.match.vlan->mask.control.get(), 0);
  rte_flow_item_vlan tag{}, tag_mask{};
  tag_mask.has_more_vlan = 1;
  FlowPieces more;
  more.item(RTE_FLOW_ITEM_TYPE_VLAN, &tag, &tag_mask).queue(0);
  expect_refused(more, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, "tci", &tag_mask);
}

TEST(FlowTranslate, DRV_46_OneUnsupportedItemAmongFiveAndItemsOutOfOrder) {
  for (int bad = 0; bad < 5; ++bad) {
    FlowPieces pieces;
    const rte_flow_item_type types[] = {RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_VLAN,
                                        RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_VOID,
                                        RTE_FLOW_ITEM_TYPE_TCP};
    for (int i = 0; i < 5; ++i) pieces.item(i == bad ? RTE_FLOW_ITEM_TYPE_VXLAN : types[i]);
    pieces.queue(0);
    expect_refused(pieces, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, "accepted: eth, vlan",
                   pieces.pattern() + bad);
  }
  const auto refused = [](rte_flow_item_type first, rte_flow_item_type second, int error) {
    FlowPieces pieces;
    pieces.item(first).item(second).queue(0);
    expect_refused(pieces, error, RTE_FLOW_ERROR_TYPE_ITEM, "accepted", pieces.pattern() + 1);
  };
  refused(RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_ETH, EINVAL);
  refused(RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_IPV6, EINVAL);
  refused(RTE_FLOW_ITEM_TYPE_UDP, RTE_FLOW_ITEM_TYPE_TCP, EINVAL);
  refused(RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_ETH, EINVAL);
  refused(RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_VLAN, ENOTSUP);
  refused(RTE_FLOW_ITEM_TYPE_IPV6, RTE_FLOW_ITEM_TYPE_ICMP, ENOTSUP);
}

TEST(FlowTranslate, DRV_46_OneFateAndNoActionTwice) {
  FlowPieces none;
  none.action(RTE_FLOW_ACTION_TYPE_COUNT);
  expect_refused(none, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, "no fate", none.actions() + 1);
  const rte_flow_action_mark mark{.id = 7};
  const auto twice = [&mark](rte_flow_action_type one, rte_flow_action_type other) {
    FlowPieces pieces;
    pieces.action(one, one == RTE_FLOW_ACTION_TYPE_MARK ? &mark : nullptr)
        .action(other, other == RTE_FLOW_ACTION_TYPE_MARK ? &mark : nullptr)
        .queue(0);
    expect_refused(pieces, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, "one of queue, rss and drop");
  };
  twice(RTE_FLOW_ACTION_TYPE_COUNT, RTE_FLOW_ACTION_TYPE_COUNT);
  twice(RTE_FLOW_ACTION_TYPE_MARK, RTE_FLOW_ACTION_TYPE_MARK);
  twice(RTE_FLOW_ACTION_TYPE_MARK, RTE_FLOW_ACTION_TYPE_FLAG);
  twice(RTE_FLOW_ACTION_TYPE_VOID, RTE_FLOW_ACTION_TYPE_DROP);
  FlowPieces jump;
  jump.action(RTE_FLOW_ACTION_TYPE_JUMP).queue(0);
  expect_refused(jump, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, "accepted: queue", jump.actions());
}

TEST(FlowTranslate, DRV_46_QueueAndMarkLimits) {
  for (const uint16_t queue : {uint16_t{2}, uint16_t{3}, uint16_t{65535}}) {
    FlowPieces pieces;
    pieces.queue(queue);
    if (queue < 3) {
      EXPECT_TRUE(translate(pieces)) << queue;
    } else {
      expect_refused(pieces, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, "below the port's number");
    }
  }
  for (const uint32_t id : {0u, pmd::kMaxMark - 1, pmd::kMaxMark, pmd::kMaxMark + 1, ~0u}) {
    const rte_flow_action_mark mark{.id = id};
    FlowPieces pieces;
    pieces.action(RTE_FLOW_ACTION_TYPE_MARK, &mark).queue(0);
    if (id <= pmd::kMaxMark) {
      ASSERT_TRUE(translate(pieces)) << id;
      EXPECT_EQ(translate(pieces)->options.tag, id + 1);
    } else {
      expect_refused(pieces, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, "0 to 0xfffffd", &mark);
    }
  }
  FlowPieces flag;
  flag.action(RTE_FLOW_ACTION_TYPE_FLAG).action(RTE_FLOW_ACTION_TYPE_DROP);
  ASSERT_TRUE(translate(flag));
  EXPECT_EQ(translate(flag)->options.tag, 0xffffffu);
  EXPECT_TRUE(translate(flag)->options.drop);
}

TEST(FlowTranslate, DRV_46_Rss) {
  const uint16_t queues[] = {2, 0, 1};
  const rte_flow_action_rss good{.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
                                 .level = 0,
                                 .types = RTE_ETH_RSS_IPV4,
                                 .key_len = 0,
                                 .queue_num = 3,
                                 .key = nullptr,
                                 .queue = queues};
  const auto with = [&good](auto change) {
    rte_flow_action_rss rss = good;
    change(rss);
    FlowPieces pieces;
    pieces.action(RTE_FLOW_ACTION_TYPE_RSS, &rss);
    return translate(pieces);
  };
  const auto flow = with([](auto&) {});
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->queues, (std::vector<uint16_t>{2, 0, 1}));
  EXPECT_EQ(flow->options.rss.key, kLimits.key);
  EXPECT_EQ(flow->options.rss.fields[static_cast<size_t>(hca::PacketKind::kIpv6)], 0);
  EXPECT_EQ(with([](auto& r) { r.types = 0; })->options.rss.fields, hca::kHashAll);
  EXPECT_TRUE(with([](auto& r) { r.level = 1; }));
  EXPECT_FALSE(with([](auto& r) { r.level = 2; }));
  EXPECT_TRUE(with([](auto& r) { r.func = RTE_ETH_HASH_FUNCTION_TOEPLITZ; }));
  EXPECT_FALSE(with([](auto& r) { r.func = RTE_ETH_HASH_FUNCTION_SIMPLE_XOR; }));
  EXPECT_FALSE(with([](auto& r) { r.types = RTE_ETH_RSS_VXLAN; }));
  EXPECT_FALSE(with([](auto& r) { r.queue_num = 0; }));
  const std::vector<uint16_t> many(hca::kMaxRssTable + 1, 0);
  EXPECT_TRUE(with([&](auto& r) { r.queue = many.data(), r.queue_num = hca::kMaxRssTable; }));
  EXPECT_FALSE(with([&](auto& r) { r.queue = many.data(), r.queue_num = hca::kMaxRssTable + 1; }));
  const uint8_t key[41] = {9};
  EXPECT_EQ(with([&](auto& r) { r.key = key, r.key_len = 40; })->options.rss.key[0], 9);
  EXPECT_FALSE(with([&](auto& r) { r.key = key, r.key_len = 39; }));
  EXPECT_FALSE(with([&](auto& r) { r.key = key, r.key_len = 41; }));
  const uint16_t beyond[] = {0, 3};
  EXPECT_FALSE(with([&](auto& r) { r.queue = beyond, r.queue_num = 2; }));
}

// ---- the table

std::vector<hca::ReceiveQueue*> three(std::array<RecordedQueue, 3>& queues) {
  return {&queues[0], &queues[1], &queues[2]};
}

Flow to_queues(std::vector<uint16_t> queues, uint32_t tag = 1) {
  Flow flow;
  flow.options.tag = tag;
  flow.options.count = true;
  flow.queues = std::move(queues);
  return flow;
}

TEST(FlowTable, DRV_46_RulesOutliveAStopWithTheirCounts) {
  std::array<RecordedQueue, 3> queues, again;
  RecordingPort port;
  FlowTable table;
  rte_flow* const flow = *table.create(to_queues({1}));
  ASSERT_TRUE(table.create(to_queues({0, 1, 2}, 2)));
  EXPECT_EQ(port.rules.size(), 0u) << "stopped";
  ASSERT_TRUE(table.start(port, three(queues)));
  ASSERT_EQ(port.rules.size(), 2u);
  EXPECT_EQ(port.rules.front()->queues, (std::vector<hca::ReceiveQueue*>{&queues[1]}));
  EXPECT_EQ(port.rules.back()->queues.size(), hca::kMaxRssTable) << "a power of two";
  EXPECT_EQ(port.rules.back()->queues[5], &queues[2]);
  port.rules.front()->seen = {5, 300};
  EXPECT_EQ(table.count(flow, false)->packets, 5u);
  table.stop();
  EXPECT_EQ(port.rules.size(), 0u);
  EXPECT_EQ(table.count(flow, false)->bytes, 300u) << "counted before the stop";
  ASSERT_TRUE(table.start(port, three(again)));
  ASSERT_EQ(port.rules.size(), 2u);
  EXPECT_EQ(port.rules.front()->queues[0], &again[1]) << "the new queue";
  EXPECT_EQ(port.rules.front()->tag, 1u) << "the oldest first";
  port.rules.front()->seen = {2, 100};
  EXPECT_EQ(table.count(flow, true)->packets, 7u);
  EXPECT_EQ(table.count(flow, false)->packets, 0u) << "reset";
  port.rules.front()->seen = {3, 150};
  EXPECT_EQ(table.count(flow, false)->bytes, 50u);
  table.stop();
  EXPECT_EQ(table.count(flow, false)->packets, 1u);
}

TEST(FlowTable, DRV_46_TheKthFailureLeavesEverythingAsBefore) {
  std::array<RecordedQueue, 3> queues;
  RecordingPort port;
  FlowTable table;
  ASSERT_TRUE(table.start(port, three(queues)));
  ASSERT_TRUE(table.create(to_queues({0})));
  port.fail_call = port.calls;
  const auto failed = table.create(to_queues({1}));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kExhausted);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(port.rules.size(), 1u);
  ASSERT_TRUE(table.create(to_queues({1})));
  ASSERT_TRUE(table.create(to_queues({2})));
  table.stop();
  for (int k = 0; k < 3; ++k) {  // a start puts all in force or none
    port.fail_call = port.calls + k;
    EXPECT_FALSE(table.start(port, three(queues)));
    EXPECT_EQ(port.rules.size(), 0u);
    EXPECT_EQ(table.size(), 3u);
  }
  ASSERT_TRUE(table.start(port, three(queues)));
  EXPECT_EQ(port.rules.size(), 3u);
  table.flush();
  EXPECT_EQ(port.rules.size(), 0u);
}

TEST(FlowTable, DRV_46_HandlesThatAreNoneAndQueuesThatAreGone) {
  std::array<RecordedQueue, 3> queues;
  RecordingPort port;
  FlowTable table;
  rte_flow* const flow = *table.create(to_queues({2}));
  rte_flow stranger{};
  for (const rte_flow* none :
       {static_cast<const rte_flow*>(nullptr), static_cast<const rte_flow*>(&stranger)}) {
    EXPECT_EQ(table.destroy(none).error().code, Code::kNotFound);
    EXPECT_EQ(table.count(none, false).error().code, Code::kNotFound);
  }
  const auto fewer = table.start(port, {&queues[0], &queues[1]});
  ASSERT_FALSE(fewer);
  EXPECT_NE(fewer.error().what.find("queue 2: accepted: below 2"), std::string::npos);
  ASSERT_TRUE(table.destroy(flow));
  EXPECT_EQ(table.destroy(flow).error().code, Code::kNotFound) << "twice";
  EXPECT_TRUE(table.start(port, {&queues[0], &queues[1]}));
  Flow silent;
  silent.options.drop = true;
  EXPECT_EQ(table.count(*table.create(silent), false).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace nicmem::test
