// SPDX-License-Identifier: BSD-3-Clause
// Two ports of net_nicmem with a cable between them, single-stepped: what one sends, the other
// receives. After each test, frames and buffers must add up.
#pragma once

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>

#include <map>
#include <string>
#include <vector>

#include "drivers/net/nicmem/compat.h"
#include "drivers/net/nicmem/port.h"
#include "drivers/net/nicmem/rte_pmd_nicmem.h"

namespace nicmem::test {

using Bytes = std::vector<uint8_t>;

/// Bytes that differ at each place and by `seed`, behind an Ethernet header to `ff..`.
inline Bytes frame(uint32_t size, uint32_t seed = 1) {
  Bytes bytes(size);
  for (uint32_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(seed * 31 + i * 7 + i / 256);
  for (uint32_t i = 0; i < 6 && i < size; ++i) bytes[i] = 0xff;
  return bytes;
}

/// All bytes of a chain, those on the card by the counted copy.
inline Bytes bytes_of(const rte_mbuf* packet) {
  Bytes bytes(packet->pkt_len);
  EXPECT_EQ(rte_pmd_nicmem_slow_read(packet, 0, packet->pkt_len, bytes.data()), 0);
  return bytes;
}

struct PortSetUp {
  std::string arguments;  // beyond cpu, wire
  uint16_t ring = 64;
  uint16_t mtu = 1500;
  uint16_t room = 2048;  // of the program's buffers, beyond the headroom
  uint32_t mbufs = 1023;
  uint64_t rx_offloads = 0;
  std::vector<rte_eth_rxseg_split> segments = {};
};

/// A started port.
class TestPort {
 public:
  TestPort(const std::string& name, const std::string& wire, const PortSetUp& set_up)
      : name_(name) {
    const std::string arguments =
        "cpu=none,wire=" + wire + (set_up.arguments.empty() ? "" : "," + set_up.arguments);
    EXPECT_EQ(rte_vdev_init(name.c_str(), arguments.c_str()), 0) << arguments;
    EXPECT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &id_), 0);
    pool_ = rte_pktmbuf_pool_create(("pool_" + name).c_str(), set_up.mbufs, 0, 0,
                                    static_cast<uint16_t>(set_up.room + RTE_PKTMBUF_HEADROOM),
                                    SOCKET_ID_ANY);
    EXPECT_NE(pool_, nullptr);
    EXPECT_EQ(configure(set_up), 0);
    EXPECT_EQ(rte_eth_dev_start(id_), 0);
  }
  ~TestPort() {
    stop();
    EXPECT_EQ(rte_eth_dev_close(id_), 0);
    rte_vdev_uninit(name_.c_str());
    EXPECT_EQ(rte_mempool_in_use_count(pool_), 0u) << name_;
    rte_mempool_free(pool_);
  }

  int configure(const PortSetUp& set_up) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = set_up.mtu;
    conf.rxmode.offloads = set_up.rx_offloads;
    if (const int error = rte_eth_dev_configure(id_, 1, 1, &conf); error != 0) return error;
    rte_eth_rxconf rx{};
    rx.offloads = set_up.rx_offloads;
    std::vector<rte_eth_rxseg> segments(set_up.segments.size());
    for (size_t i = 0; i < segments.size(); ++i) segments[i].split = set_up.segments[i];
    rx.rx_seg = segments.empty() ? nullptr : segments.data();
    rx.rx_nseg = static_cast<uint16_t>(segments.size());
    rte_mempool* const pool = segments.empty() ? pool_ : nullptr;
    if (const int error = rte_eth_rx_queue_setup(id_, 0, set_up.ring, 0, &rx, pool); error != 0)
      return error;
    return rte_eth_tx_queue_setup(id_, 0, set_up.ring, 0, nullptr);
  }
  void stop() {
    if (!rte_eth_devices[id_].data->dev_started) return;
    EXPECT_EQ(rte_eth_dev_stop(id_), 0);
  }

  uint16_t id() const { return id_; }
  rte_mempool* pool() const { return pool_; }
  pmd::Port& port() const { return pmd::port_of(&rte_eth_devices[id_]); }
  pmd::RxQueue& rx() const { return pmd::rx_queue(&rte_eth_devices[id_], 0)->data; }
  pmd::TxQueue& tx() const { return pmd::tx_queue(&rte_eth_devices[id_], 0)->data; }
  void step(uint32_t budget = 256) const { rte_pmd_nicmem_step(id_, budget); }

  /// A packet in as many segments as there are sizes, from this port's pool.
  rte_mbuf* packet(const Bytes& bytes, const std::vector<uint32_t>& sizes = {}) const {
    rte_mbuf* first = nullptr;
    size_t at = 0;
    for (const uint32_t size :
         sizes.empty() ? std::vector<uint32_t>{static_cast<uint32_t>(bytes.size())} : sizes) {
      rte_mbuf* const segment = rte_pktmbuf_alloc(pool_);
      EXPECT_NE(segment, nullptr);
      if (size != 0)
        std::memcpy(rte_pktmbuf_append(segment, static_cast<uint16_t>(size)), bytes.data() + at,
                    size);
      at += size;
      if (first == nullptr)
        first = segment;
      else
        EXPECT_EQ(rte_pktmbuf_chain(first, segment), 0);
    }
    return first;
  }
  uint16_t send(rte_mbuf* one) const { return rte_eth_tx_burst(id_, 0, &one, 1); }

  std::vector<rte_mbuf*> receive(uint16_t most = 256) const {
    std::vector<rte_mbuf*> packets(most);
    packets.resize(rte_eth_rx_burst(id_, 0, packets.data(), most));
    return packets;
  }

  uint64_t xstat(const std::string& name) const {
    uint64_t id = 0, value = 0;
    EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id), 0) << name;
    EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1) << name;
    return value;
  }

  /// Frames and buffers, when nothing moves. `held`: payload buffers that the test holds.
  void expect_conserved(uint64_t held = 0) const {
    EXPECT_EQ(xstat("rx_device_frames"), xstat("rx_good_packets") + xstat("rx_no_mbuf"));
    EXPECT_EQ(xstat("tx_good_packets"), xstat("tx_device_frames") + xstat("tx_wire_drops"));
    for (const std::string pool : {"nicmem", "host"}) {
      const uint64_t out = xstat("payload_" + pool + "_buffers") -
                           xstat("payload_" + pool + "_free") -
                           xstat("payload_" + pool + "_posted");
      EXPECT_LE(out, held + xstat("tx_in_flight")) << pool;
    }
  }

 private:
  std::string name_;
  uint16_t id_ = 0;
  rte_mempool* pool_ = nullptr;
};

/// `here` sends plain host frames to `there`, which is set up as the test wants.
class Cable {
 public:
  explicit Cable(const PortSetUp& there_set_up,
                 const PortSetUp& here_set_up = {.arguments = "mode=host",
                                                 .mtu = 9600,
                                                 .room = 9728})
      : here("net_nicmem0", wire(), here_set_up), there("net_nicmem1", wire(), there_set_up) {
    EXPECT_EQ(rte_eth_promiscuous_enable(here.id()), 0);
    EXPECT_EQ(rte_eth_promiscuous_enable(there.id()), 0);
  }

  void settle() const {
    for (int i = 0; i < 32; ++i) {
      here.step();
      there.step();
    }
  }
  /// Puts one frame on the cable and lets it arrive.
  void carry(const Bytes& bytes) const {
    EXPECT_EQ(here.send(here.packet(bytes)), 1);
    settle();
  }

  TestPort here, there;

 private:
  static std::string wire() {
    static int cables = 0;  // both ends of one cable ask for the same name, one after the other
    return "pair:cable" + std::to_string(cables++ / 2);
  }
};

}  // namespace nicmem::test
