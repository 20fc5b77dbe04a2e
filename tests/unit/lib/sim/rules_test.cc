// SPDX-License-Identifier: BSD-3-Clause
// Rules of the program's: what they match, their order, what they do, and how they end.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "sim/match.h"
#include "support/frames.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

constexpr uint32_t kServer = v4(198, 18, 1, 1);

/// A pattern with one member of the header set, all bits of it compared.
template <class Header, class Member>
hca::Pattern<Header> exactly(Member Header::*member, std::type_identity_t<Member> value) {
  hca::Pattern<Header> pattern;
  pattern.value.*member = value;
  std::memset(static_cast<void*>(&(pattern.mask.*member)), 0xff, sizeof(Member));
  return pattern;
}
hca::Match to_host(uint32_t address) {
  hca::Match match;
  match.ipv4 = exactly(&hw::Ipv4Header::destination, be32(address));
  return match;
}

/// Queue 0 is the default rules' one.
struct RulesRig : Rig<> {
  RulesRig() {
    receive_on({queue(0)});
    for (Receiver& receiver : receivers) {
      for (int i = 0; i < 32; ++i) receiver.post({host.at(0, 2048)});
    }
  }
  hca::ReceiveQueue* queue(size_t i) { return receivers[i].rq.get(); }

  /// A rule to queue `to`.
  std::unique_ptr<hca::Rule> rule(size_t to, const hca::RuleOptions& options) {
    hca::ReceiveQueue* const table = queue(to);
    hca::RuleOptions all = options;
    all.rss.table = {&table, 1};
    return ok(port->create_rule(all));
  }
  /// The queue that gets the frame; 9: none.
  size_t goes_to(const Frame& frame) {
    wire->inbox.push_back(frame);
    settle();
    size_t found = 9;
    for (size_t i = 0; i < receivers.size(); ++i) {
      while (const auto entry = receivers[i].completions.poll()) {
        EXPECT_EQ(found, 9u);
        found = i;
        last = *entry;
      }
    }
    return found;
  }

  Buffer host = Buffer::in_host(*nic, domain, 2048);
  std::array<Receiver, 3> receivers{Receiver(*port, domain, 32), Receiver(*port, domain, 32),
                                    Receiver(*port, domain, 32)};
  hw::Cqe last{};
};

TEST(SimRules, TakeFramesBeforeTheDefaultOnes) {
  RulesRig rig;
  const auto rule = rig.rule(1, {.match = to_host(kServer)});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  EXPECT_EQ(rig.goes_to(make_ipv4({.destination = kServer + 1})), 0u);
}

TEST(SimRules, TakeFramesThatNoDefaultRuleTakes) {
  RulesRig rig;
  const auto rule = rig.rule(1, {.match = to_host(kServer)});
  hca::ReceiveQueue* const table = rig.queue(0);
  ok(rig.port->steer({.promiscuous = true, .isolated = true, .rss = {.table = {&table, 1}}}));
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  EXPECT_EQ(rig.goes_to(make_ipv4({.destination = kServer + 1})), 9u);
  EXPECT_EQ(rig.port->counters().rx_filtered, 1u);
}

TEST(SimRules, TheLowerPriorityNumberIsFirstAndThenTheOlder) {
  RulesRig rig;
  const auto late = rig.rule(1, {.priority = 15});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  auto early = rig.rule(2, {.priority = 3});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 2u);
  const auto second = rig.rule(1, {.priority = 3});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 2u);
  early.reset();
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  early = rig.rule(2, {.priority = 3});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  const auto first = rig.rule(0, {.priority = 0});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 0u);
}

TEST(SimRules, ARuleEndsWithItsObject) {
  RulesRig rig;
  auto rule = rig.rule(1, {});
  EXPECT_EQ(rig.goes_to(make_ipv4()), 1u);
  rule.reset();
  EXPECT_EQ(rig.goes_to(make_ipv4()), 0u);
}

TEST(SimRules, DropIsCountedByThePort) {
  RulesRig rig;
  const auto drop = ok(rig.port->create_rule({.match = to_host(kServer), .drop = true}));
  const auto empty = ok(rig.port->create_rule({.match = to_host(kServer + 1)}));  // no queues
  EXPECT_EQ(rig.goes_to(make_ipv4()), 9u);
  EXPECT_EQ(rig.goes_to(make_ipv4({.destination = kServer + 1})), 9u);
  EXPECT_EQ(rig.goes_to(make_ipv4({.destination = kServer + 2})), 0u);
  EXPECT_EQ(rig.port->counters().rx_dropped_by_rule, 2u);
  EXPECT_EQ(rig.port->counters().rx_filtered, 0u);
}

TEST(SimRules, TheTagIsInTheCompletionOfItsFramesOnly) {
  RulesRig rig;
  const auto rule = rig.rule(1, {.match = to_host(kServer), .tag = hca::kMaxFlowTag});
  ASSERT_EQ(rig.goes_to(make_ipv4()), 1u);
  EXPECT_EQ(rig.last.sop_drop_qpn.get(), 0xffffffu);
  ASSERT_EQ(rig.goes_to(make_ipv4({.destination = kServer + 1})), 0u);
  EXPECT_EQ(rig.last.sop_drop_qpn.get(), 0u);
}

TEST(SimRules, CountWhatTheyTakeOnceAFrame) {
  RulesRig rig;
  const auto rule = rig.rule(1, {.match = to_host(kServer), .count = true});
  const auto drop =
      ok(rig.port->create_rule({.match = to_host(kServer + 1), .drop = true, .count = true}));
  EXPECT_EQ(ok(rule->count()).packets, 0u);
  for (int i = 0; i < 33; ++i) rig.wire->inbox.push_back(make_ipv4());
  rig.wire->inbox.push_back(make_ipv4({.destination = kServer + 1}));
  for (int i = 0; i < 3; ++i) rig.settle();  // the 33rd waits for a work request, and is looked at
  EXPECT_EQ(ok(rule->count()).packets, 32u);
  EXPECT_EQ(ok(rule->count()).bytes, 32u * 60);
  rig.receivers[1].completions.poll();
  rig.receivers[1].post({rig.host.at(0, 2048)});
  rig.settle();
  EXPECT_EQ(ok(rule->count()).packets, 33u);
  EXPECT_EQ(ok(drop->count()).packets, 1u);
  EXPECT_EQ(ok(drop->count()).bytes, 60u);
}

TEST(SimRules, ARuleSpreadsByItsOwnTable) {
  RulesRig rig;
  const std::vector<hca::ReceiveQueue*> table{rig.queue(1), rig.queue(2)};
  hca::RssOptions rss{.table = table};
  rss.key.fill(0x6d);
  const auto rule = ok(rig.port->create_rule({.match = to_host(kServer), .rss = rss}));
  const sim::Toeplitz toeplitz(rss.key);
  std::array<int, 2> taken{};
  for (uint32_t i = 0; i < 16; ++i) {
    const Frame frame = make_ipv4({.source = v4(198, 18, 0, 1) + i});
    const uint32_t hash = sim::rss_hash(toeplitz, frame, sim::parse(frame)).value;
    EXPECT_EQ(rig.goes_to(frame), 1 + (hash & 1));
    EXPECT_EQ(rig.last.rx_hash_result.get(), hash);
    ++taken[hash & 1];
  }
  EXPECT_GT(taken[0], 0);
  EXPECT_GT(taken[1], 0);
  Frame arp = make_ipv4();
  ether_of(arp).type.set(hw::kEtherTypeArp);
  EXPECT_EQ(rig.goes_to(arp), 0u);
}

/// Whether each single bit of the header at `at` that `frame` has is compared, and none other.
template <class Header>
void expect_each_bit_counts(const Frame& frame, size_t at,
                            std::optional<hca::Pattern<Header>> hca::Match::*member) {
  for (size_t bit = 0; bit < 8 * sizeof(Header); ++bit) {
    hca::Match match;
    hca::Pattern<Header>& pattern = (match.*member).emplace();
    auto* mask = reinterpret_cast<uint8_t*>(&pattern.mask);
    auto* value = reinterpret_cast<uint8_t*>(&pattern.value);
    mask[bit / 8] = static_cast<uint8_t>(1 << bit % 8);
    std::memcpy(value, frame.data() + at, sizeof(Header));
    EXPECT_TRUE(sim::matches(match, frame, sim::parse(frame))) << bit;
    for (size_t i = 0; i < sizeof(Header); ++i) value[i] ^= static_cast<uint8_t>(~mask[i]);
    EXPECT_TRUE(sim::matches(match, frame, sim::parse(frame))) << bit;
    value[bit / 8] ^= mask[bit / 8];
    EXPECT_FALSE(sim::matches(match, frame, sim::parse(frame))) << bit;
  }
}

TEST(SimRules, EachBitOfEachHeaderCanBeMatched) {
  Frame frame = make_ipv4();
  expect_each_bit_counts(frame, 0, &hca::Match::ether);
  expect_each_bit_counts(frame, 14, &hca::Match::ipv4);
  expect_each_bit_counts(frame, 34, &hca::Match::udp);
  expect_each_bit_counts(make_ipv4({.protocol = hw::kProtocolTcp}), 34, &hca::Match::tcp);
  expect_each_bit_counts(make_ipv4({.protocol = hw::kProtocolIcmp}), 34, &hca::Match::icmp);
  expect_each_bit_counts(make_ipv6(), 14, &hca::Match::ipv6);
  expect_each_bit_counts(make_ipv6(), 54, &hca::Match::udp);
  expect_each_bit_counts(make_ipv6({.next_header = hw::kProtocolTcp}), 54, &hca::Match::tcp);
  const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0}, std::byte{0xe1}, std::byte{5}};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  expect_each_bit_counts(frame, 14, &hca::Match::vlan);
  expect_each_bit_counts(frame, 18, &hca::Match::ipv4);
}

TEST(SimRules, AnEmptyPatternAsksForTheHeader) {
  const auto match = [](const hca::Match& rule, const Frame& frame) {
    return sim::matches(rule, frame, sim::parse(frame));
  };
  hca::Match udp, tcp, icmp, ipv6, vlan;
  udp.udp.emplace();
  tcp.tcp.emplace();
  icmp.icmp.emplace();
  ipv6.ipv6.emplace();
  vlan.vlan.emplace();
  EXPECT_TRUE(match({}, pattern(14)));
  EXPECT_TRUE(match(udp, make_ipv4()));
  EXPECT_TRUE(match(udp, make_ipv6()));
  EXPECT_FALSE(match(tcp, make_ipv4()));
  EXPECT_FALSE(match(icmp, make_ipv4()));
  EXPECT_FALSE(match(ipv6, make_ipv4()));
  EXPECT_FALSE(match(vlan, make_ipv4()));
  EXPECT_FALSE(match(udp, make_ipv4({.fragment = 1})));
  EXPECT_FALSE(match(udp, make_ipv4({.fragment = 0x2000})));
  EXPECT_FALSE(match(icmp, make_ipv4({.protocol = hw::kProtocolIcmp, .fragment = 0x2000})));
  for (const size_t payload : {7u, 8u, 9u}) {
    EXPECT_EQ(match(icmp, make_ipv4({.protocol = hw::kProtocolIcmp, .payload_bytes = payload})),
              payload >= 8);
  }
  EXPECT_FALSE(match(icmp, make_ipv6({.next_header = hw::kProtocolIcmp})));
}

template <class T>
void expect_error(const Result<T>& result, Code code, const std::string& what) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, code);
  EXPECT_EQ(result.error().what, what);
}

TEST(SimRules, SayWhatIsAccepted) {
  RulesRig rig;
  const auto make = [&](const hca::RuleOptions& options) { return rig.port->create_rule(options); };
  EXPECT_TRUE(make({.priority = 15, .drop = true}).has_value());
  expect_error(make({.priority = 16, .drop = true}), Code::kInvalidArgument,
               "rule: priority 16, accepted: 0 to 15");
  expect_error(make({.drop = true, .tag = 0x1000000}), Code::kInvalidArgument,
               "rule: tag 16777216, accepted: 0 to 16777215");
  hca::Match match;
  match.ipv4.emplace();
  match.ipv6.emplace();
  expect_error(make({.match = match, .drop = true}), Code::kInvalidArgument,
               "rule: IPv4 and IPv6, accepted: one of them");
  match = {};
  match.udp.emplace();
  match.tcp.emplace();
  expect_error(make({.match = match, .drop = true}), Code::kInvalidArgument,
               "rule: more than one of UDP, TCP and ICMP, accepted: one of them");
  match = {};
  match.ipv6.emplace();
  match.icmp.emplace();
  expect_error(make({.match = match, .drop = true}), Code::kInvalidArgument,
               "rule: ICMP over IPv6, accepted: the ICMP of IPv4");
}

TEST(SimRules, WithoutACounterThereIsNoCount) {
  RulesRig rig;
  const auto rule = rig.rule(1, {});
  expect_error(rule->count(), Code::kUnsupported, "rule: it was made without a counter");
}

TEST(SimRules, ARuleThatIsRefusedIsNotInForce) {
  RulesRig rig;
  RulesRig other;
  hca::ReceiveQueue* const foreign = other.queue(0);
  expect_error(rig.port->create_rule({.rss = {.table = {&foreign, 1}}}), Code::kInvalidArgument,
               "RSS table: entry 0 is no receive queue of this port");
  EXPECT_EQ(rig.goes_to(make_ipv4()), 0u);
}

TEST(SimRulesDeathTest, AQueueMustOutliveItsRules) {
  RulesRig rig;
  auto receiver = std::make_unique<Receiver>(*rig.port, rig.domain, 8);
  hca::ReceiveQueue* const table = receiver->rq.get();
  const auto rule = ok(rig.port->create_rule({.rss = {.table = {&table, 1}}}));
  EXPECT_DEATH(receiver.reset(), "uses");
}

}  // namespace
}  // namespace nicmem::test
