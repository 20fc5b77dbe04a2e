// SPDX-License-Identifier: BSD-3-Clause
// Memory that comes and goes under the driver: external memory, maps made by hand, keys forgotten.
#include <rte_dev.h>
#include <rte_memory.h>
#include <sys/mman.h>

#include "conservation.h"

namespace nicmem::test {
namespace {

/// Memory that EAL does not own: pages of our own, registered or not.
class ExternalMemory {
 public:
  static constexpr size_t kBytes = 64 * 1024;
  ExternalMemory()
      : start_(static_cast<char*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~ExternalMemory() { munmap(start_, kBytes); }
  void add() { ASSERT_EQ(rte_extmem_register(start_, kBytes, nullptr, 0, 4096), 0) << rte_errno; }
  void remove() { EXPECT_EQ(rte_extmem_unregister(start_, kBytes), 0); }
  char* at(size_t offset) { return start_ + offset; }

 private:
  char* start_;
};

rte_device* device_of(const TestPort& port) { return rte_eth_devices[port.id()].device; }

/// A packet whose bytes lie at `data`: an mbuf of the port's pool, attached.
rte_mbuf* attached(const TestPort& port, char* data, const Bytes& bytes) {
  static rte_mbuf_ext_shared_info info{};
  info.free_cb = [](void*, void*) {};
  rte_mbuf_ext_refcnt_set(&info, 1);
  std::copy(bytes.begin(), bytes.end(), data);
  rte_mbuf* const packet = rte_pktmbuf_alloc(port.pool());
  rte_pktmbuf_attach_extbuf(packet, data, RTE_BAD_IOVA, 2048, &info);
  packet->data_off = 0;
  packet->data_len = static_cast<uint16_t>(bytes.size());
  packet->pkt_len = packet->data_len;
  return packet;
}

bool arrives(const Cable& cable, const Bytes& bytes) {
  auto packets = cable.there.receive();
  const bool same = packets.size() == 1 && bytes_of(packets[0]) == bytes;
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  return same;
}

TEST(DriverMemory, ExternalMemoryIsSentFromOnceItIsRegistered) {
  Cable cable({.arguments = "mode=host"});
  ExternalMemory memory;
  const Bytes bytes = frame(700, 3);
  EXPECT_EQ(cable.here.send(attached(cable.here, memory.at(4096), bytes)), 1);
  cable.settle();
  EXPECT_EQ(cable.here.xstat("tx_unknown_memory"), 1u);
  memory.add();
  EXPECT_EQ(cable.here.send(attached(cable.here, memory.at(4096), bytes)), 1);
  cable.settle();
  EXPECT_TRUE(arrives(cable, bytes));
  rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);
  EXPECT_EQ(rte_dev_dma_unmap(device_of(cable.here), memory.at(0), 0, ExternalMemory::kBytes), 0);
  memory.remove();
  check_conservation(cable);
}

/// A pool of buffers in memory of the program's own, as testpmd's --mp-alloc=anon makes it.
rte_mempool* pool_in_anonymous_memory() {
  constexpr unsigned kBuffers = 511, kRoom = 2048 + RTE_PKTMBUF_HEADROOM;
  rte_mempool* const pool =
      rte_mempool_create_empty("anonymous", kBuffers, sizeof(rte_mbuf) + kRoom, 0,
                               sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
  rte_pktmbuf_pool_init(pool, nullptr);
  if (rte_mempool_populate_anon(pool) != static_cast<int>(kBuffers)) return nullptr;
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

TEST(DriverMemory, APoolInMemoryThatOnlyItKnowsIsSentFromUntilItEnds) {
  Cable cable({.arguments = "mode=host"});
  const pmd::MemoryMap& map = *cable.here.port().device->map;
  const Bytes bytes = frame(700, 5);
  for (int life = 0; life < 3; ++life) {
    const pmd::MemoryMap::Total before = map.registered();
    rte_mempool* const pool = pool_in_anonymous_memory();
    ASSERT_NE(pool, nullptr);
    rte_mbuf* const packet = rte_pktmbuf_alloc(pool);
    std::copy(bytes.begin(), bytes.end(), rte_pktmbuf_append(packet, 700));
    EXPECT_EQ(cable.here.send(packet), 1);
    cable.settle();
    EXPECT_TRUE(arrives(cable, bytes));
    EXPECT_GT(map.registered().bytes, before.bytes);
    rte_eth_tx_done_cleanup(cable.here.id(), 0, 0);  // asks for a completion
    cable.settle();
    EXPECT_EQ(rte_eth_tx_done_cleanup(cable.here.id(), 0, 0), 1);
    ASSERT_EQ(rte_mempool_avail_count(pool), pool->size);
    rte_mempool_free(pool);
    EXPECT_EQ(map.registered().bytes, before.bytes) << "its memory is not forgotten";
    EXPECT_EQ(map.registered().ranges, before.ranges);
  }
  EXPECT_EQ(cable.here.xstat("tx_unknown_memory"), 0u);
  check_conservation(cable);
}

/// After the map is gone the key is gone: a queue that had it in its cache asks again.
TEST(DriverMemory, UnmappedMemoryIsForgottenByEveryQueue) {
  Cable cable({.arguments = "mode=host"});
  ExternalMemory memory;
  memory.add();
  pmd::MemoryMap& map = *cable.here.port().device->map;
  const size_t before = map.registered().bytes;
  rte_device* const device = device_of(cable.here);
  ASSERT_EQ(rte_dev_dma_map(device, memory.at(0), 0, ExternalMemory::kBytes), 0);
  EXPECT_EQ(map.registered().bytes, before + ExternalMemory::kBytes);
  EXPECT_EQ(rte_dev_dma_map(device, memory.at(0), 0, ExternalMemory::kBytes), 0) << "again";
  EXPECT_EQ(map.registered().bytes, before + ExternalMemory::kBytes);
  const Bytes bytes = frame(700, 4);
  EXPECT_EQ(cable.here.send(attached(cable.here, memory.at(0), bytes)), 1);
  cable.settle();
  EXPECT_TRUE(arrives(cable, bytes));
  EXPECT_EQ(rte_dev_dma_unmap(device, memory.at(0), 0, ExternalMemory::kBytes), 0);
  EXPECT_EQ(map.registered().bytes, before);
  memory.remove();
  EXPECT_EQ(cable.here.send(attached(cable.here, memory.at(0), bytes)), 1);
  cable.settle();
  EXPECT_EQ(cable.here.xstat("tx_unknown_memory"), 1u);
  EXPECT_EQ(cable.here.xstat("tx_wqe_error"), 0u) << "a stale key was used";
  EXPECT_EQ(rte_dev_dma_unmap(device, memory.at(0), 0, ExternalMemory::kBytes), -1);
  EXPECT_EQ(rte_errno, EINVAL);
  check_conservation(cable);
}

/// A piece of a region goes: the rest keeps its key, for posted buffers name it.
TEST(DriverMemory, WhatIsLeftOfARegionKeepsItsKey) {
  Cable cable({.arguments = "mode=host"});
  ExternalMemory memory;
  memory.add();
  pmd::MemoryMap& map = *cable.here.port().device->map;
  pmd::KeyRange first, left, right;
  ASSERT_TRUE(map.find(memory.at(0), first));
  ASSERT_TRUE(map.forget(memory.at(16384), 4096));
  ASSERT_TRUE(map.find(memory.at(16383), left));
  ASSERT_TRUE(map.find(memory.at(20480), right));
  EXPECT_EQ(left.key, first.key);
  EXPECT_EQ(right.key, first.key);
  EXPECT_FALSE(left.contains(memory.at(16384)));
  EXPECT_FALSE(right.contains(memory.at(20479)));
  memory.remove();
  pmd::KeyRange gone;
  EXPECT_FALSE(map.find(memory.at(16384), gone));
  ASSERT_TRUE(map.forget(memory.at(0), ExternalMemory::kBytes));
  EXPECT_FALSE(map.find(memory.at(0), gone));
}

/// The kernel once warned when such regions went; here keys must not run out, nor leak.
TEST(DriverMemory, DRV_23_ARegionRegisteredAndReleasedAThousandTimes) {
  Cable cable({.arguments = "mode=host"});
  ExternalMemory memory;
  memory.add();
  pmd::MemoryMap& map = *cable.here.port().device->map;
  const auto before = map.registered();
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(map.add_host_memory(memory.at(0), ExternalMemory::kBytes)) << i;
    ASSERT_TRUE(map.forget(memory.at(0), ExternalMemory::kBytes)) << i;
  }
  EXPECT_EQ(map.registered().ranges, before.ranges);
  EXPECT_EQ(map.registered().bytes, before.bytes);
  memory.remove();
  nicmem_region region{};
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(rte_pmd_nicmem_alloc(cable.there.id(), 4096, &region), 0) << i;
    ASSERT_EQ(rte_pmd_nicmem_free(cable.there.id(), &region), 0) << i;
  }
}

TEST(DriverMemory, DRV_22_DeviceMemoryAtItsLimits) {
  Cable cable({.arguments = "mode=host,sram=64KiB"});
  const uint16_t id = cable.there.id();
  rte_pmd_nicmem_caps caps{};
  ASSERT_EQ(rte_pmd_nicmem_caps_get(id, &caps), 0);
  EXPECT_EQ(caps.memory_bytes, 65536u);
  nicmem_region all{}, more{};
  EXPECT_EQ(rte_pmd_nicmem_alloc(id, 0, &all), -EINVAL);
  EXPECT_EQ(rte_pmd_nicmem_alloc(id, caps.largest_free_bytes + 1, &all), -ENOMEM);
  ASSERT_EQ(rte_pmd_nicmem_alloc(id, caps.largest_free_bytes, &all), 0);
  EXPECT_EQ(rte_pmd_nicmem_alloc(id, 64, &more), -ENOMEM);
  EXPECT_EQ(rte_pmd_nicmem_free(id, &all), 0);
  EXPECT_EQ(rte_pmd_nicmem_free(id, &all), -EINVAL);
}

TEST(DriverMemory, DRV_50_APoolWithACacheGivesItsLastBuffers) {
  rte_mempool* const pool = rte_pktmbuf_pool_create("drv50", 64, 32, 0, 2176, SOCKET_ID_ANY);
  ASSERT_NE(pool, nullptr);
  std::vector<rte_mbuf*> packets(64);
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, packets.data(), 50), 0);
  EXPECT_EQ(rte_pktmbuf_alloc_bulk(pool, packets.data() + 50, 14), 0);
  rte_pktmbuf_free_bulk(packets.data(), 64);
  rte_mempool_free(pool);
}

}  // namespace
}  // namespace nicmem::test
