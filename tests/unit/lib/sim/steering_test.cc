// SPDX-License-Identifier: BSD-3-Clause
// The default rules: which addresses and VLANs a port takes; and the tag that a queue strips.
#include "hca/steering.h"

#include <gtest/gtest.h>

#include <array>

#include "support/frames.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

constexpr hw::MacAddress kOwn{{0x02, 0, 0, 0, 0, 0x01}};
constexpr hw::MacAddress kSecond{{0x02, 0, 0, 0, 0, 0x02}};
constexpr hw::MacAddress kForeign{{0x02, 0, 0, 0, 0, 0x03}};
constexpr hw::MacAddress kGroup{{0x01, 0, 0x5e, 0, 0, 0x01}};
constexpr hw::MacAddress kForeignGroup{{0x33, 0x33, 0, 0, 0, 0x01}};
constexpr hw::MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr hw::MacAddress kAllBut1{{0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}};

/// `tags` behind the addresses, the outermost first.
Frame tagged(Frame frame, std::initializer_list<std::pair<uint16_t, uint16_t>> tags) {
  std::vector<std::byte> bytes;
  for (const auto& [type, control] : tags) {
    for (const int byte : {type >> 8, type & 0xff, control >> 8, control & 0xff}) {
      bytes.push_back(static_cast<std::byte>(byte));
    }
  }
  frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
  return frame;
}

struct SteeringRig : Rig<> {
  /// The options take queues and nothing else from the rig.
  void steer(hca::SteeringOptions options) {
    options.rss.table = table;
    ok(port->steer(options));
  }
  /// Whether the port takes the frame. What it does not take it has counted.
  bool takes(const Frame& frame) {
    const hca::PortCounters before = port->counters();
    receiver.post({host.at(0, 2048)});
    --receiver.posted;  // the same request again, should the frame not need it
    wire->inbox.push_back(frame);
    settle();
    const hca::PortCounters after = port->counters();
    const bool taken = receiver.completions.poll().has_value();
    if (taken) ++receiver.posted;
    EXPECT_EQ(after.rx_frames - before.rx_frames, taken ? 1u : 0u);
    EXPECT_EQ(after.rx_filtered - before.rx_filtered, taken ? 0u : 1u);
    return taken;
  }
  bool takes(const hw::MacAddress& to) { return takes(make_ipv4({.destination_mac = to})); }

  Buffer host = Buffer::in_host(*nic, domain, 2048);
  Receiver receiver{*port, domain, 8};
  std::vector<hca::ReceiveQueue*> table{receiver.rq.get()};
};

TEST(SimSteering, BroadcastIsAlwaysTakenAndListsAreByTheGroupBit) {
  SteeringRig rig;
  const std::array unicast = {kSecond, kOwn};
  rig.steer({.unicast = unicast, .multicast = {&kGroup, 1}});
  EXPECT_TRUE(rig.takes(kOwn));
  EXPECT_TRUE(rig.takes(kSecond));
  EXPECT_FALSE(rig.takes(kForeign));
  EXPECT_TRUE(rig.takes(kGroup));
  EXPECT_FALSE(rig.takes(kForeignGroup));
  EXPECT_TRUE(rig.takes(kBroadcast));
  EXPECT_FALSE(rig.takes(kAllBut1));
  rig.steer({});
  EXPECT_FALSE(rig.takes(kOwn));
  EXPECT_FALSE(rig.takes(kGroup));
  EXPECT_TRUE(rig.takes(kBroadcast));
}

TEST(SimSteering, AnAddressOfTheOtherListIsNotTaken) {
  SteeringRig rig;
  rig.steer({.unicast = {&kGroup, 1}, .multicast = {&kOwn, 1}});
  EXPECT_FALSE(rig.takes(kOwn));
  EXPECT_FALSE(rig.takes(kGroup));
}

// Every byte of an address counts: neighbours that differ in one bit are other stations.
TEST(SimSteering, AllBitsOfAnAddressAreCompared) {
  SteeringRig rig;
  rig.steer({.unicast = {&kOwn, 1}, .multicast = {&kGroup, 1}});
  for (int bit = 0; bit < 48; ++bit) {
    for (hw::MacAddress address : {kOwn, kGroup}) {
      address.bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_FALSE(rig.takes(address)) << bit;
    }
  }
}

TEST(SimSteering, ManyAddresses) {
  SteeringRig rig;
  std::vector<hw::MacAddress> unicast;
  for (int i = 0; i < 128; ++i) {
    unicast.push_back({{0x02, 0, 0, 0, static_cast<uint8_t>(i * 37), static_cast<uint8_t>(i)}});
  }
  rig.steer({.unicast = unicast});
  for (const hw::MacAddress& address : unicast) EXPECT_TRUE(rig.takes(address));
  unicast[0].bytes[1] = 1;
  EXPECT_FALSE(rig.takes(unicast[0]));
}

TEST(SimSteering, AllMulticastTakesGroupsOnly) {
  SteeringRig rig;
  rig.steer({.all_multicast = true, .unicast = {&kOwn, 1}});
  EXPECT_TRUE(rig.takes(kForeignGroup));
  EXPECT_TRUE(rig.takes(kAllBut1));
  EXPECT_TRUE(rig.takes(kBroadcast));
  EXPECT_TRUE(rig.takes(kOwn));
  EXPECT_FALSE(rig.takes(kForeign));
}

TEST(SimSteering, PromiscuousTakesEverything) {
  SteeringRig rig;
  rig.steer({.promiscuous = true});
  for (const hw::MacAddress& to : {kOwn, kForeign, kForeignGroup, kBroadcast, kAllBut1}) {
    EXPECT_TRUE(rig.takes(to));
  }
}

TEST(SimSteering, IsolatedTakesNothingByDefault) {
  SteeringRig rig;
  rig.steer({.promiscuous = true, .isolated = true, .unicast = {&kOwn, 1}});
  for (const hw::MacAddress& to : {kOwn, kForeignGroup, kBroadcast}) EXPECT_FALSE(rig.takes(to));
}

TEST(SimSteering, WithoutQueuesNothingIsTaken) {
  SteeringRig rig;
  ok(rig.port->steer({.promiscuous = true}));
  EXPECT_FALSE(rig.takes(kOwn));
}

TEST(SimSteering, TheVlanListIsForTaggedFramesOfWantedAddresses) {
  SteeringRig rig;
  std::bitset<4096> vlans;
  vlans.set(0).set(100).set(4095);
  rig.steer({.unicast = {&kOwn, 1}, .vlans = &vlans});
  vlans.reset();  // it was copied
  const Frame own = make_ipv4({.destination_mac = kOwn});
  EXPECT_TRUE(rig.takes(own));
  for (const uint16_t vlan : std::to_array<uint16_t>({0, 100, 4095}))
    EXPECT_TRUE(rig.takes(tagged(own, {{0x8100, vlan}})));
  for (const uint16_t vlan : std::to_array<uint16_t>({1, 99, 101, 4094})) {
    EXPECT_FALSE(rig.takes(tagged(own, {{0x8100, vlan}}))) << vlan;
  }
  EXPECT_TRUE(rig.takes(tagged(own, {{0x8100, 0xf064}})));  // priority and drop bit do not count
  EXPECT_TRUE(rig.takes(tagged(own, {{0x88a8, 100}, {0x8100, 5}})));  // the outer one does
  EXPECT_FALSE(rig.takes(tagged(own, {{0x88a8, 5}, {0x8100, 100}})));
  EXPECT_FALSE(rig.takes(tagged(make_ipv4({.destination_mac = kForeign}), {{0x8100, 100}})));
  rig.steer({.unicast = {&kOwn, 1}});
  EXPECT_TRUE(rig.takes(tagged(own, {{0x8100, 99}})));  // without a list: any
}

TEST(SimSteering, TheVlanListHoldsInPromiscuousModeToo) {
  SteeringRig rig;
  const std::bitset<4096> none;
  rig.steer({.promiscuous = true, .vlans = &none});
  EXPECT_TRUE(rig.takes(make_ipv4()));
  EXPECT_FALSE(rig.takes(tagged(make_ipv4(), {{0x8100, 1}})));
}

struct StripRig : SteeringRig {
  StripRig() {
    steer({.promiscuous = true});
    ok(receiver.rq->strip_vlan(true));
  }
  hw::Cqe deliver(const Frame& frame) {
    std::ranges::fill(host.bytes, std::byte{0xee});
    receiver.post({host.at(0, 64), host.at(64, 1984)});
    wire->inbox.push_back(frame);
    settle();
    const auto entry = receiver.completions.poll();
    EXPECT_TRUE(entry.has_value());
    return entry.value_or(hw::Cqe{});
  }
  /// What lies in memory, with the byte behind it.
  void expect_bytes(const Frame& frame) {
    EXPECT_EQ(host.copy(0, frame.size()), frame);
    EXPECT_EQ(host.bytes[frame.size()], std::byte{0xee});
  }
};

TEST(SimVlanStrip, TheTagIsInTheCompletionInsteadOfTheFrame) {
  using T = hw::HeaderType;
  StripRig rig;
  for (const size_t payload : {26u, 40u, 1000u}) {
    const Frame plain = make_ipv4({.payload_bytes = payload});
    const uint64_t before = rig.port->counters().rx_bytes;
    const hw::Cqe entry = rig.deliver(tagged(plain, {{0x8100, 0xb123}}));
    rig.expect_bytes(plain);
    EXPECT_EQ(entry.byte_count.get(), plain.size());
    EXPECT_EQ(entry.vlan_info.get(), 0xb123);
    const uint16_t type = entry.header_type.get();
    EXPECT_EQ(T::VlanStripped::get(type), 1);
    EXPECT_EQ(T::L3::get(type), T::kL3Ipv4);
    EXPECT_EQ(T::L3Ok::get(type), 1);
    EXPECT_EQ(rig.port->counters().rx_bytes - before, plain.size());
  }
}

TEST(SimVlanStrip, OnlyTheOutermostTagGoes) {
  StripRig rig;
  const hw::Cqe entry = rig.deliver(tagged(make_ipv4(), {{0x88a8, 7}, {0x8100, 8}}));
  const Frame rest = tagged(make_ipv4(), {{0x8100, 8}});
  rig.expect_bytes(rest);
  EXPECT_EQ(entry.byte_count.get(), rest.size());
  EXPECT_EQ(entry.vlan_info.get(), 7);
}

TEST(SimVlanStrip, UntaggedFramesAndOtherQueuesAreAsTheyWere) {
  StripRig rig;
  const Frame plain = make_ipv4();
  hw::Cqe entry = rig.deliver(plain);
  rig.expect_bytes(plain);
  EXPECT_EQ(hw::HeaderType::VlanStripped::get(entry.header_type.get()), 0);
  EXPECT_EQ(entry.vlan_info.get(), 0);
  ok(rig.receiver.rq->strip_vlan(false));
  const Frame frame = tagged(plain, {{0x8100, 9}});
  entry = rig.deliver(frame);
  rig.expect_bytes(frame);
  EXPECT_EQ(hw::HeaderType::VlanStripped::get(entry.header_type.get()), 0);
  EXPECT_EQ(entry.vlan_info.get(), 0);
  EXPECT_EQ(entry.byte_count.get(), frame.size());
}

TEST(SimVlanStrip, ATagThatIsCutOffIsNone) {
  StripRig rig;
  Frame frame = tagged(make_ipv4(), {{0x8100, 9}});
  for (const size_t size : {14u, 17u}) {
    frame.resize(size);
    const hw::Cqe entry = rig.deliver(frame);
    rig.expect_bytes(frame);
    EXPECT_EQ(hw::HeaderType::VlanStripped::get(entry.header_type.get()), 0);
    frame = tagged(make_ipv4(), {{0x8100, 9}});
  }
  frame.resize(18);
  const hw::Cqe entry = rig.deliver(frame);
  EXPECT_EQ(entry.byte_count.get(), 14u);
  EXPECT_EQ(entry.vlan_info.get(), 9);
}

}  // namespace
}  // namespace nicmem::test
