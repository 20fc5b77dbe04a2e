// SPDX-License-Identifier: BSD-3-Clause
// What the configuration accepts, and the exact words for what it refuses.
#include "config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/rng.h"
#include "fib.h"
#include "support/seed.h"

namespace nicmem::l3fwd {
namespace {

constexpr const char* kGood = R"(
routes:
  - {prefix: 0.0.0.0/0, via: 198.18.0.2}
  - {prefix: "2001:db8:1::/48", via: "fe80::2", interface: net_ring1}
  - {prefix: 203.0.113.0/24, interface: net_ring1, mac: 02:00:00:00:01:03}
interfaces:
  - port: net_ring0
    mac: 02:00:00:00:00:01
    addresses: [198.18.0.1/24]
  - port: net_ring1
    addresses: [198.18.1.1/31, "2001:db8::1/64", "fe80::1/64"]
    mtu: 9000
    accept_any_mac: true
neighbours:
  - {address: 198.18.0.2, mac: 02:00:00:00:01:02, interface: net_ring0}
  - {address: "fe80::2", mac: 02:00:00:00:01:04, interface: net_ring1}
)";

TEST(Config, ReadsEveryKeyInAnyOrderOfSections) {
  const auto config = parse_config(kGood, "good");
  ASSERT_TRUE(config) << config.error().what;
  ASSERT_EQ(config->interfaces.size(), 2u);
  EXPECT_EQ(format(*config->interfaces[0].mac), "02:00:00:00:00:01");
  EXPECT_EQ(config->interfaces[0].mtu_bytes, 1500u);
  EXPECT_FALSE(config->interfaces[0].accept_any_mac);
  EXPECT_FALSE(config->interfaces[1].mac);
  EXPECT_EQ(config->interfaces[1].mtu_bytes, 9000u);
  EXPECT_TRUE(config->interfaces[1].accept_any_mac);
  ASSERT_EQ(config->interfaces[1].addresses.size(), 3u);
  EXPECT_EQ(format(config->interfaces[1].addresses[1]), "2001:db8::1/64");
  ASSERT_EQ(config->routes.size(), 3u);
  EXPECT_EQ(config->routes[0].interface, 0u);
  EXPECT_EQ(format(config->routes[0].mac), "02:00:00:00:01:02");
  EXPECT_EQ(config->routes[1].interface, 1u);
  EXPECT_EQ(format(config->routes[1].mac), "02:00:00:00:01:04");
  EXPECT_EQ(format(config->routes[2].mac), "02:00:00:00:01:03");
  EXPECT_NE(summary(*config).find("route 0.0.0.0/0 to 02:00:00:00:01:02 on net_ring0\n"),
            std::string::npos);
}

struct BadConfig {
  const char* text;
  const char* error;  // after "f:"
};

class Refused : public testing::TestWithParam<BadConfig> {};

TEST_P(Refused, WithPlaceAndAcceptedValues) {
  const auto config = parse_config(GetParam().text, "f");
  ASSERT_FALSE(config) << GetParam().text;
  EXPECT_EQ(config.error().code, Code::kInvalidArgument);
  EXPECT_EQ(config.error().what, std::string("f:") + GetParam().error) << GetParam().text;
}

#define PORT "interfaces:\n- {port: a, addresses: [198.18.0.1/24]}\n"

INSTANTIATE_TEST_SUITE_P(
    Structure, Refused,
    testing::Values(
        BadConfig{"", "1: empty configuration; accepted: interfaces, neighbours, routes"},
        BadConfig{"~", "1: empty configuration; accepted: interfaces, neighbours, routes"},
        BadConfig{"5",
                  "1: configuration: not a map; accepted: a map with interfaces, neighbours, "
                  "routes"},
        BadConfig{"routes: []",
                  "1: configuration without 'interfaces'; accepted: 'interfaces' is "
                  "required"},
        BadConfig{"interfaces: []", "1: interfaces: empty list; accepted: at least one"},
        BadConfig{"interfaces: 7", "1: interfaces: not a list; accepted: a list"},
        BadConfig{"interfaces:",
                  "1: configuration key 'interfaces' has no value; accepted: a "
                  "value, or no such key"},
        BadConfig{PORT "routs: []",
                  "3: configuration key 'routs'; accepted: interfaces, "
                  "neighbours, routes"},
        BadConfig{PORT "routes: []\nroutes: []",
                  "4: configuration key 'routes' given twice; accepted: each key once"},
        BadConfig{PORT "---\nx: 1", "3: second document, or stray text; accepted: one document"},
        BadConfig{PORT "]", "3: not YAML: illegal flow end; accepted: a YAML map"},
        BadConfig{"interfaces: [}", "1: not YAML: illegal flow end; accepted: a YAML map"}));

INSTANTIATE_TEST_SUITE_P(
    Interfaces, Refused,
    testing::Values(
        BadConfig{"interfaces:\n- {mtu: 1500}",
                  "2: interface without 'port'; accepted: 'port' is required"},
        BadConfig{"interfaces:\n- {port: ''}", "2: port ''; accepted: the name of an ethdev"},
        BadConfig{"interfaces:\n- {port: [a]}", "2: port: not a single value; accepted: one value"},
        BadConfig{"interfaces:\n- {port: a}\n- {port: a}",
                  "3: port 'a' given twice; accepted: each port once"},
        BadConfig{"interfaces:\n- port: a\n  mtu: 67", "3: mtu '67'; accepted: 68..16384"},
        BadConfig{"interfaces:\n- port: a\n  mtu: 16385", "3: mtu '16385'; accepted: 68..16384"},
        BadConfig{"interfaces:\n- port: a\n  mtu: -1", "3: mtu '-1'; accepted: 68..16384"},
        BadConfig{"interfaces:\n- port: a\n  mtu: 1500x", "3: mtu '1500x'; accepted: 68..16384"},
        BadConfig{"interfaces:\n- port: a\n  mtu: 99999999999",
                  "3: mtu '99999999999'; accepted: 68..16384"},
        BadConfig{"interfaces:\n- port: a\n  accept_any_mac: yes",
                  "3: accept_any_mac 'yes'; accepted: true, false"},
        BadConfig{"interfaces:\n- port: a\n  mac: 01:00:00:00:00:01",
                  "3: mac '01:00:00:00:00:01'; accepted: a unicast MAC address such as "
                  "02:00:00:00:00:01"},
        BadConfig{"interfaces:\n- port: a\n  mac: 00:00:00:00:00:00",
                  "3: mac '00:00:00:00:00:00'; accepted: a unicast MAC address such as "
                  "02:00:00:00:00:01"},
        BadConfig{"interfaces:\n- port: a\n  mac: 02:00:00:00:00",
                  "3: mac '02:00:00:00:00'; accepted: a unicast MAC address such as "
                  "02:00:00:00:00:01"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [198.18.0.1]",
                  "3: address '198.18.0.1'; accepted: address/length such as 198.18.0.1/24"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [198.18.0.1/33]",
                  "3: address '198.18.0.1/33'; accepted: address/length such as 198.18.0.1/24"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [198.18.0.1/0]",
                  "3: address '198.18.0.1/0'; accepted: a length of at least 1"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [127.0.0.1/8]",
                  "3: address '127.0.0.1/8'; accepted: a unicast address that may be routed"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [198.18.0.255/24]",
                  "3: address '198.18.0.255/24'; accepted: neither the first nor the last of its "
                  "network"},
        BadConfig{"interfaces:\n- port: a\n  addresses: [null]",
                  "3: address: not a single value; accepted: one value"},
        BadConfig{"interfaces:\n- port: a\n  mtu: 1279\n  addresses: ['2001:db8::1/64']",
                  "4: IPv6 address '2001:db8::1/64' with mtu 1279; accepted: mtu of at least 1280 "
                  "with IPv6"},
        BadConfig{PORT "- {port: b, addresses: [198.18.0.1/24]}",
                  "3: own address 198.18.0.1/32: also own address of line 2; accepted: each once"},
        BadConfig{PORT "- {port: b, addresses: [198.18.0.2/24]}",
                  "3: connected network 198.18.0.0/24: also connected network of line 2; accepted: "
                  "each once"}));

INSTANTIATE_TEST_SUITE_P(
    NeighboursAndRoutes, Refused,
    testing::Values(
        BadConfig{PORT "neighbours:\n- {address: x, mac: 02:00:00:00:00:01, interface: a}",
                  "4: neighbour address 'x'; accepted: a unicast IPv4 or IPv6 address"},
        BadConfig{PORT "neighbours:\n- {address: 198.18.0.2, mac: 02:00:00:00:00:01, interface: z}",
                  "4: interface 'z'; accepted: a"},
        BadConfig{PORT "neighbours:\n- {address: 198.18.0.2, interface: a}",
                  "4: neighbour without 'mac'; accepted: 'mac' is required"},
        BadConfig{PORT "neighbours:\n- {address: 198.18.0.1, mac: 02:00:00:00:00:01, interface: a}",
                  "4: neighbour 198.18.0.1/32: also own address of line 2; accepted: each once"},
        BadConfig{PORT "neighbours:\n"
                       "- {address: 198.18.0.2, mac: 02:00:00:00:00:01, interface: a}\n"
                       "- {address: 198.18.0.2, mac: 02:00:00:00:00:02, interface: a}",
                  "5: neighbour '198.18.0.2' given twice; accepted: each neighbour once"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.1/8, interface: a, mac: 02:00:00:00:00:01}",
                  "4: prefix '10.0.0.1/8': bits set beyond its length; accepted: 10.0.0.0/8"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.0, interface: a, mac: 02:00:00:00:00:01}",
                  "4: prefix '10.0.0.0'; accepted: address/length such as 203.0.113.0/24"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.0/8}",
                  "4: route without a next hop; accepted: via, or interface and mac"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.0/8, mac: 02:00:00:00:00:01}",
                  "4: route without 'interface'; accepted: 'interface' is required"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.0/8, via: 198.18.0.9}",
                  "4: via '198.18.0.9': not among the neighbours; accepted: none is listed"},
        BadConfig{PORT "neighbours:\n"
                       "- {address: 198.18.0.2, mac: 02:00:00:00:00:01, interface: a}\n"
                       "routes:\n- {prefix: 10.0.0.0/8, via: 198.18.0.9}",
                  "6: via '198.18.0.9': not among the neighbours; accepted: 198.18.0.2"},
        BadConfig{PORT "routes:\n- {prefix: 10.0.0.0/8, via: 'fe80::1'}",
                  "4: via 'fe80::1'; accepted: an IPv4 neighbour"},
        BadConfig{PORT "routes:\n- {prefix: '::/0', via: 'fe80::1'}",
                  "4: via link-local 'fe80::1' alone; accepted: via with interface"},
        BadConfig{PORT "routes:\n- {prefix: 198.18.0.0/24, interface: a, mac: 02:00:00:00:00:01}",
                  "4: route 198.18.0.0/24: also connected network of line 2; accepted: each once"},
        BadConfig{PORT "routes:\n"
                       "- {prefix: 10.0.0.0/8, interface: a, mac: 02:00:00:00:00:01}\n"
                       "- {prefix: 10.0.0.0/8, interface: a, mac: 02:00:00:00:00:02}",
                  "5: route 10.0.0.0/8: also route of line 4; accepted: each once"}));

TEST(Config, AFileThatCannotBeReadIsASystemError) {
  const auto absent = load_config("/nonexistent/x.yaml");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kSystem);
  const auto folder = load_config("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::kSystem);
}

TEST(ConfigProperty, DamagedTextIsReadOrRefusedNeverWorse) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  const std::string good = kGood;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (uint64_t damage = 1 + rng.below(4); damage > 0; --damage) {
      const size_t at = rng.below(text.size());
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.next());
          break;
        case 1:
          text.erase(at, rng.below(20));
          break;
        case 2:
          text.insert(at, good.substr(rng.below(good.size()), rng.below(20)));
          break;
        case 3:
          text[at] = "[]{}:-,&*#|\n\" "[rng.below(14)];
          break;
      }
    }
    const auto config = parse_config(text, "f");
    if (config) {
      build_fib(*config);
    } else {
      ASSERT_EQ(config.error().what.rfind("f:", 0), 0u) << config.error().what;
      ASSERT_NE(config.error().what.find("; accepted: "), std::string::npos) << config.error().what;
    }
  }
}

TEST(Config, MtuLimitsAreInclusive) {
  for (const char* mtu : {"68", "16384"})
    EXPECT_TRUE(parse_config(std::string("interfaces: [{port: a, mtu: ") + mtu + "}]", "f"));
}

TEST(Fib, KnowsOwnAddressesBroadcastsNeighboursAndNetworks) {
  const auto config = parse_config(kGood, "good");
  ASSERT_TRUE(config) << config.error().what;
  const Fib fib = build_fib(*config);
  const auto kind = [&fib](const char* prefix) -> int {
    for (const Fib::Entry& entry : fib.entries)
      if (entry.prefix == *parse_prefix(prefix)) return static_cast<int>(fib.hops[entry.hop].kind);
    return -1;
  };
  using Kind = nf::NextHop::Kind;
  EXPECT_EQ(kind("198.18.0.1/32"), static_cast<int>(Kind::kLocal));
  EXPECT_EQ(kind("198.18.0.0/32"), static_cast<int>(Kind::kBroadcast));
  EXPECT_EQ(kind("198.18.0.255/32"), static_cast<int>(Kind::kBroadcast));
  EXPECT_EQ(kind("198.18.0.2/32"), static_cast<int>(Kind::kForward));
  EXPECT_EQ(kind("198.18.0.0/24"), static_cast<int>(Kind::kUnresolved));
  EXPECT_EQ(kind("198.18.1.0/31"), static_cast<int>(Kind::kUnresolved));
  EXPECT_EQ(kind("198.18.1.0/32"), -1) << "a /31 has no broadcast";
  EXPECT_EQ(kind("0.0.0.0/0"), static_cast<int>(Kind::kForward));
  EXPECT_EQ(kind("2001:db8::1/128"), static_cast<int>(Kind::kLocal));
  EXPECT_EQ(kind("fe80::2/128"), -1) << "link-local addresses are not routed";
  EXPECT_EQ(fib.egress_interfaces(), (std::vector<uint16_t>{0, 1}));
  EXPECT_EQ(refused_sources(*config).v4.size(), 3u);
}

TEST(Fib, RoutesToOneNextHopShareIt) {
  Config config{.interfaces = {{.port = "a"}}};
  for (uint32_t i = 0; i < 1000; ++i) {
    config.routes.push_back({.prefix = {.address = {.v4 = 0x0a000000 + (i << 8)}, .length = 24},
                             .mac = {{2, 0, 0, 0, 0, static_cast<uint8_t>(i % 3)}}});
  }
  const Fib fib = build_fib(config);
  EXPECT_EQ(fib.entries.size(), 1000u);
  EXPECT_EQ(fib.hops.size(), 2u + 3u);
}

}  // namespace
}  // namespace nicmem::l3fwd
