// SPDX-License-Identifier: BSD-3-Clause
// Receive-side scaling: the program's own table, key and types.
#include <numeric>

#include "spread.h"

namespace nicmem::test {
namespace {

TEST(DriverRss, TheRedirectionTableIsTheProgramsOwn) {
  Spread cable;
  const uint16_t id = cable.there.id();
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
  EXPECT_EQ(info.reta_size, 128);
  EXPECT_EQ(info.hash_key_size, 40);
  for (const uint16_t size : std::initializer_list<uint16_t>{128, 256, 512})
    for (uint16_t q = 0; q < kQueues; ++q) {
      Reta reta = all_to(q, size);
      ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), size), 0);
      Reta got = all_to(99, size);
      ASSERT_EQ(rte_eth_dev_rss_reta_query(id, got.data(), size), 0);
      EXPECT_EQ(got[size / 64 - 1].reta[63], q);
      for (uint16_t flow = 0; flow < 16; ++flow)
        EXPECT_EQ(cable.queue_of(udp(v4(198, 18, 0, 1), v4(198, 18, 0, 2), flow, 7)), q);
    }
  Reta reta = all_to(kQueues, 128);
  EXPECT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), -EINVAL) << "no such queue";
  for (const uint16_t size : std::initializer_list<uint16_t>{64, 127, 129, 192}) {
    Reta odd = all_to(0, 192);
    EXPECT_EQ(rte_eth_dev_rss_reta_update(id, odd.data(), size), -EINVAL) << size;
  }
  reta = all_to(0, 512);
  EXPECT_EQ(rte_eth_dev_rss_reta_query(id, reta.data(), 128), -EINVAL) << "it has 512 by now";
  check_conservation(cable);
}

TEST(DriverRss, OnlyEntriesInTheMaskChange) {
  Spread cable;
  const uint16_t id = cable.there.id();
  Reta reta = all_to(3, 128);
  reta[0].mask = 1;
  reta[1].mask = 0;
  ASSERT_EQ(rte_eth_dev_rss_reta_update(id, reta.data(), 128), 0);
  Reta got = all_to(99, 128);
  ASSERT_EQ(rte_eth_dev_rss_reta_query(id, got.data(), 128), 0);
  EXPECT_EQ(got[0].reta[0], 3);
  EXPECT_EQ(got[0].reta[1], 1);
  EXPECT_EQ(got[1].reta[0], 0);
}

TEST(DriverRss, TheKeyIsTheProgramsOwn) {
  uint8_t key[40];
  std::iota(std::begin(key), std::end(key), uint8_t{1});
  Spread cable({.key = key, .key_bytes = 40});
  const uint16_t id = cable.there.id();
  uint8_t got[40] = {};
  rte_eth_rss_conf conf{.rss_key = got, .rss_key_len = 40, .rss_hf = 0};
  ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
  EXPECT_EQ(std::memcmp(got, key, 40), 0);
  EXPECT_EQ(conf.rss_hf, RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  conf = {.rss_key = key, .rss_key_len = 39, .rss_hf = RTE_ETH_RSS_IP};
  EXPECT_EQ(rte_eth_dev_rss_hash_update(id, &conf), -EINVAL);
  key[0] = 77;
  conf.rss_key_len = 40;
  ASSERT_EQ(rte_eth_dev_rss_hash_update(id, &conf), 0);
  conf = {.rss_key = got, .rss_key_len = 40, .rss_hf = 0};
  ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
  EXPECT_EQ(got[0], 77);
  EXPECT_EQ(conf.rss_hf, RTE_ETH_RSS_IP);
  conf = {.rss_key = nullptr, .rss_key_len = 0, .rss_hf = RTE_ETH_RSS_ESP};
  EXPECT_EQ(rte_eth_dev_rss_hash_update(id, &conf), -EINVAL);
  cable.there.stop();
  EXPECT_EQ(configure(cable.there, {.key = key, .key_bytes = 52}), -EINVAL);
  EXPECT_EQ(configure(cable.there, {.types = RTE_ETH_RSS_L2_PAYLOAD}), -EINVAL);
  EXPECT_EQ(configure(cable.there, {}), 0);
}

/// A field that is hashed moves flows; one that is not, never does.
TEST(DriverRss, TypesDecideWhichFieldsAreHashed) {
  struct Case {
    uint64_t types;
    bool source, destination, from, to;
  };
  constexpr uint64_t kUdp = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  for (const Case& c :
       {Case{RTE_ETH_RSS_IP, true, true, false, false}, Case{kUdp, true, true, true, true},
        Case{kUdp | RTE_ETH_RSS_L3_SRC_ONLY, true, false, false, false},
        Case{kUdp | RTE_ETH_RSS_L3_DST_ONLY, false, true, false, false},
        Case{kUdp | RTE_ETH_RSS_L4_SRC_ONLY, false, false, true, false},
        Case{kUdp | RTE_ETH_RSS_L4_DST_ONLY, false, false, false, true},
        Case{kUdp | RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY, true, false, false, true},
        Case{RTE_ETH_RSS_NONFRAG_IPV6_UDP, false, false, false, false}}) {
    SCOPED_TRACE(c.types);
    Spread cable({.types = c.types});
    const auto moves = [&cable](auto&& frame_of) {
      std::set<int> seen;
      for (uint8_t i = 0; i < 32; ++i) seen.insert(cable.queue_of(frame_of(i)));
      EXPECT_EQ(seen.count(-1), 0u);
      return seen.size() > 1;
    };
    const uint32_t a = v4(10, 0, 0, 1), b = v4(10, 0, 0, 2);
    EXPECT_EQ(moves([&](uint8_t i) { return udp(v4(10, 0, 1, i), b, 1, 2); }), c.source);
    EXPECT_EQ(moves([&](uint8_t i) { return udp(a, v4(10, 0, 1, i), 1, 2); }), c.destination);
    EXPECT_EQ(moves([&](uint8_t i) { return udp(a, b, i, 2); }), c.from);
    EXPECT_EQ(moves([&](uint8_t i) { return udp(a, b, 1, i); }), c.to);
  }
}

TEST(DriverRss, UnsupportedTypesAreNamed) {
  EXPECT_TRUE(pmd::hash_fields(pmd::kRssTypes));
  const auto refused = pmd::hash_fields(RTE_ETH_RSS_ESP | RTE_ETH_RSS_IP);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_NE(refused.error().what.find("accepted: ip, tcp, udp"), std::string::npos);
}

}  // namespace
}  // namespace nicmem::test
