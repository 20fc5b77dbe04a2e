// SPDX-License-Identifier: BSD-3-Clause
// The device rule: who may keep payload on the card.
#include "placement.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>

namespace nicmem::l3fwd {
namespace {

int switched_port = -1;
/// Ports 0 and 1 share a device, 2 is another.
int same_device(uint16_t a, uint16_t b) { return (a < 2) == (b < 2) ? 1 : 0; }
int set_mode(uint16_t port) {
  switched_port = port;
  return 0;
}
int refuse_mode(uint16_t) { return -16; }

class Placement : public testing::Test {
 protected:
  Placement() { switched_port = -1; }

  NicmemApi api{.same_device = same_device, .set_mode_host_payload = set_mode};
  std::array<uint16_t, 2> one_device{0, 1};
  std::array<uint16_t, 3> two_devices{0, 1, 2};
  std::array<uint16_t, 1> itself{0};
};

TEST_F(Placement, PayloadStaysWhenAllEgressIsOnTheDevice) {
  const auto placed = place_port(api, 0, "net_nicmem0", "net_nicmem", one_device);
  ASSERT_TRUE(placed);
  EXPECT_EQ(describe(*placed),
            "port 0 (net_nicmem0): all egress on its own device: payload stays on the card if its "
            "mode puts it there (split=force)");
  EXPECT_EQ(switched_port, -1);
}

TEST_F(Placement, OneForeignEgressPortPutsPayloadInHostMemory) {
  const auto placed = place_port(api, 1, "net_nicmem1", "net_nicmem", two_devices);
  ASSERT_TRUE(placed);
  EXPECT_EQ(describe(*placed),
            "port 1 (net_nicmem1): egress crosses devices: payload in host memory (split)");
  EXPECT_EQ(switched_port, 1);
}

TEST_F(Placement, OtherDriversAreLeftAlone) {
  const auto placed = place_port(api, 5, "net_pcap0", "net_pcap", two_devices);
  ASSERT_TRUE(placed);
  EXPECT_EQ(describe(*placed), "port 5 (net_pcap0): not a nicmem device");
  EXPECT_EQ(switched_port, -1);
}

TEST_F(Placement, WithoutTheDriversFunctionsOnlyItsOwnPortIsSafe) {
  EXPECT_TRUE(place_port({}, 0, "n", "net_nicmem", itself));
  const auto crossing = place_port({}, 0, "n", "net_nicmem", one_device);
  ASSERT_FALSE(crossing);
  EXPECT_EQ(crossing.error().code, Code::kUnsupported);
  api.same_device = nullptr;
  ASSERT_TRUE(place_port(api, 0, "n", "net_nicmem", one_device));
  EXPECT_EQ(switched_port, 0) << "not known to be its own device is foreign";
}

TEST_F(Placement, ADriverThatCannotSwitchIsAnError) {
  api.set_mode_host_payload = refuse_mode;
  const auto placed = place_port(api, 0, "n", "net_nicmem", two_devices);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, Code::kUnsupported);
  EXPECT_EQ(placed.error().detail, -16);
}

TEST(NicmemApi, IsAbsentThenFoundInAPluginOfLocalScope) {
  EXPECT_EQ(find_nicmem_api().same_device, nullptr);
  void* plugin = dlopen(NM_FAKE_PLUGIN, RTLD_NOW);  // as the EAL opens what -d names
  ASSERT_NE(plugin, nullptr) << dlerror();
  const NicmemApi found = find_nicmem_api();
  ASSERT_NE(found.same_device, nullptr);
  ASSERT_NE(found.set_mode_host_payload, nullptr);
  EXPECT_EQ(found.same_device(3, 3), 1);
  EXPECT_EQ(found.same_device(3, 4), 0);
  dlclose(plugin);
}

}  // namespace
}  // namespace nicmem::l3fwd
