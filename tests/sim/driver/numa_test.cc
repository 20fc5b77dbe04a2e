// SPDX-License-Identifier: BSD-3-Clause
// Where a device is, and whether its memory is near. One node is enough: what is far is arithmetic.
#include "dpdk/on_node.h"
#include "port_fixture.h"

namespace nicmem::test {
namespace {

static_assert(dpdk::crosses_nodes(0, 1) && dpdk::crosses_nodes(1, 0));
static_assert(!dpdk::crosses_nodes(1, 1) && !dpdk::crosses_nodes(-1, 1) &&
              !dpdk::crosses_nodes(1, SOCKET_ID_ANY));

TEST(DriverNuma, TheNodeIsToldAndFramesPass) {
  const Cable cable({.arguments = "mode=nicmem,split=force,numa=0"});
  EXPECT_EQ(rte_eth_dev_socket_id(cable.there.id()), 0);
  cable.carry(frame(1000, 3));
  const auto packets = cable.there.receive();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(bytes_of(packets[0]), frame(1000, 3));
  rte_pktmbuf_free(packets[0]);
}

TEST(DriverNuma, ANodeThatIsNotThereIsRefused) {
  const std::string beyond = "numa=" + std::to_string(dpdk::max_node() + 1);
  EXPECT_NE(rte_vdev_init("net_nicmem7", beyond.c_str()), 0);
  EXPECT_NE(rte_vdev_init("net_nicmem7", "numa=-1"), 0);
  EXPECT_NE(rte_vdev_init("net_nicmem7", "numa=here"), 0);
}

/// A preference for a node that is not there changes nothing.
TEST(DriverNuma, APreferenceEnds) {
  for (const int node : {-1, 0, 63}) {
    const dpdk::OnNode here(node);
    const std::vector<int> touched(4096, node);
    EXPECT_EQ(touched.back(), node);
  }
}

}  // namespace
}  // namespace nicmem::test
