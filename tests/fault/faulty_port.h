// SPDX-License-Identifier: BSD-3-Clause
// A port of net_nicmem on a model that can fail, plugged into itself and single-stepped: what it
// sends comes back to it. Any operation may fail; what does not may only lose frames, and every
// loss has a counter.
#pragma once

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "drivers/hca/sim/sim_device.h"
#include "drivers/net/nicmem/compat.h"
#include "drivers/net/nicmem/port.h"
#include "drivers/net/nicmem/rte_pmd_nicmem.h"
#include "support/frames.h"

namespace nicmem::test {

/// How the port under test places frames.
struct Shape {
  const char* name;
  const char* arguments;
  uint16_t queues = 1;
  uint16_t room = 2048;  // of the program's buffers, beyond the headroom
  uint64_t rx_offloads = 0;
};

inline constexpr Shape kShapes[] = {
    {"nicmem-spill", "mode=nicmem,split=force,header=64,sram=64KiB", 2},
    {"nicmem-spill-hw", "mode=nicmem,split=force,header=64,sram=64KiB,spill=hw", 2},
    {"split", "mode=split,split=force,header=64,sram=64KiB", 1},
    {"host", "mode=host,sram=64KiB", 2},
    {"host-scattered", "mode=host,sram=64KiB", 1, 512, RTE_ETH_RX_OFFLOAD_SCATTER},
    {"nicmem-short", "mode=nicmem,split=force,header=64,sram=64KiB,min_posted=auto", 2},
};

/// A test's name for shape `index` of kShapes.
inline std::string name_of_shape(size_t index) {
  std::string name = kShapes[index].name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class FaultyPort {
 public:
  static constexpr uint16_t kRing = 64;
  static constexpr const char* kName = "net_nicmem0";

  explicit FaultyPort(const Shape& shape) : shape_(shape) {
    pool_ = rte_pktmbuf_pool_create("fault_pool", 1023, 0, 0,
                                    static_cast<uint16_t>(shape.room + RTE_PKTMBUF_HEADROOM),
                                    SOCKET_ID_ANY);
    EXPECT_NE(pool_, nullptr);
    // Frames are sent from buffers of their own, so that a hole in the receive pool stays there.
    send_pool_ = rte_pktmbuf_pool_create("fault_send", 511, 0, 0, 2048, SOCKET_ID_ANY);
    EXPECT_NE(send_pool_, nullptr);
  }
  ~FaultyPort() {
    close();
    for (rte_mempool* pool : {pool_, send_pool_}) {
      EXPECT_EQ(rte_mempool_in_use_count(pool), 0u) << pool->name;
      rte_mempool_free(pool);
    }
  }
  FaultyPort(const FaultyPort&) = delete;
  FaultyPort& operator=(const FaultyPort&) = delete;

  // Each returns what ethdev returned.
  int open(const std::string& fault = "none") {
    const std::string arguments =
        "cpu=none,wire=loop,promiscuous=1,mac=02:00:00:00:00:94,fault=" + fault + "," +
        shape_.arguments;
    if (const int error = rte_vdev_init(kName, arguments.c_str()); error != 0) return error;
    EXPECT_EQ(rte_eth_dev_get_port_by_name(kName, &id_), 0);
    open_ = true;
    plan = hca_sim::fault_plan(*port().device->hca);
    return 0;
  }
  int set_up(uint16_t queues, uint16_t mtu = 1500) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = mtu;
    conf.rxmode.offloads = shape_.rx_offloads;
    conf.intr_conf.lsc = conf.intr_conf.rmv = 1;
    if (queues > 1) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    if (queues > 1) conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP;
    if (const int error = rte_eth_dev_configure(id_, queues, queues, &conf); error != 0)
      return error;
    queues_ = queues;
    rte_eth_rxconf rx{};
    rx.offloads = shape_.rx_offloads;
    for (uint16_t q = 0; q < queues; ++q) {
      if (const int error = rte_eth_rx_queue_setup(id_, q, kRing, 0, &rx, pool_); error != 0)
        return error;
      if (const int error = rte_eth_tx_queue_setup(id_, q, kRing, 0, nullptr); error != 0)
        return error;
    }
    return 0;
  }
  int set_up() { return set_up(shape_.queues); }
  int start() { return rte_eth_dev_start(id_); }
  int stop() { return started() ? rte_eth_dev_stop(id_) : 0; }
  void close() {
    if (!open_) return;
    EXPECT_EQ(stop(), 0);
    EXPECT_EQ(rte_eth_dev_close(id_), 0);
    rte_vdev_uninit(kName);
    open_ = false;
  }

  bool is_open() const { return open_; }
  bool started() const { return open_ && rte_eth_devices[id_].data->dev_started != 0; }
  uint16_t id() const { return id_; }
  pmd::Port& port() const { return pmd::port_of(&rte_eth_devices[id_]); }
  pmd::RxQueue& rx(uint16_t queue = 0) const {
    return pmd::rx_queue(&rte_eth_devices[id_], queue)->data;
  }
  pmd::TxQueue& tx(uint16_t queue = 0) const {
    return pmd::tx_queue(&rte_eth_devices[id_], queue)->data;
  }
  rte_mempool* pool() const { return pool_; }
  const Shape& shape() const { return shape_; }
  void step(uint32_t times = 4) const {
    for (uint32_t i = 0; i < times; ++i) rte_pmd_nicmem_step(id_, 256);
  }

  /// Sends `count` new frames of `bytes` each, or of many sizes (0); returns how many were taken.
  uint32_t send(uint32_t count, uint32_t bytes = 0) {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count && started(); ++i) {
      rte_mbuf* packet = rte_pktmbuf_alloc(send_pool_);
      if (packet == nullptr) break;
      const Frame frame = frame_of(next_, bytes);
      std::memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
                  frame.size());
      const auto queue = static_cast<uint16_t>(next_ % queues_);
      if (rte_eth_tx_burst(id_, queue, &packet, 1) == 0) {
        rte_pktmbuf_free(packet);
        break;
      }
      ++next_;
      ++taken;
    }
    return taken;
  }
  /// Polls every queue once. What comes was sent, comes once, and has not changed.
  uint32_t receive() {
    uint32_t received = 0;
    for (uint16_t q = 0; q < queues_ && started(); ++q) {
      rte_mbuf* packets[32];
      const uint16_t count = rte_eth_rx_burst(id_, q, packets, 32);
      for (uint16_t i = 0; i < count; ++i) check(packets[i]);
      rte_pktmbuf_free_bulk(packets, count);
      received += count;
    }
    return received;
  }
  /// Sends `count` frames in bursts and takes what comes back; returns how many did.
  uint32_t exchange(uint32_t count, uint32_t bytes = 0) {
    uint32_t received = 0;
    for (uint32_t sent = 0; sent < count;) {
      const uint32_t taken = send(std::min(16u, count - sent), bytes);
      sent += taken;
      step();
      const uint32_t here = receive();
      received += here;
      if (taken == 0 && here == 0 && !unstick(received)) break;
    }
    unstick(received);
    return received;
  }

  /// Polls until the driver has looked for trouble. Whether anything has moved.
  bool unstick(uint32_t& received) {
    const bool trouble =
        hits(sim::FaultClass::kCompletion) != 0 || hits(sim::FaultClass::kAllocation) != 0;
    const uint32_t patience = trouble ? pmd::kRxIdleCheck + 8 : 4;
    const uint32_t before = received;
    bool room = false;
    for (uint32_t idle = 0; idle < patience && started(); ++idle) {
      step(1);
      for (uint16_t q = 0; q < queues_; ++q) room |= rte_eth_tx_done_cleanup(id_, q, 0) > 0;
      if (const uint32_t here = receive(); here != 0) idle = 0, received += here;
    }
    return room || received != before;
  }

  uint64_t xstat(const std::string& name) const {
    uint64_t stat = 0, value = 0;
    EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name.c_str(), &stat), 0) << name;
    EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &stat, &value, 1), 1) << name;
    return value;
  }
  uint64_t hits(sim::FaultClass c) const { return plan->hit(c); }

  /// Every frame is somewhere; `lost` completions at most were the last sign of one.
  void expect_conserved(uint64_t lost) const {
    const auto x = [this](const char* name) { return xstat(name); };
    const uint64_t seen = x("rx_good_packets") + x("rx_no_mbuf") + x("rx_stopped") + x("rx_stuck");
    EXPECT_LE(seen, x("rx_device_frames") + lost);
    EXPECT_LE(x("rx_device_frames"), seen + lost);
    EXPECT_EQ(x("tx_device_frames"), x("rx_device_frames") + x("rx_no_buffer") + x("rx_oversize") +
                                         x("rx_filtered") + x("rx_wqe_error") + x("rx_malformed") +
                                         x("wire_held"));
    EXPECT_EQ(next_ - next_at_open_, x("tx_good_packets") + x("tx_errors"));
    if (!started())
      EXPECT_EQ(x("tx_good_packets"), x("tx_device_frames") + x("tx_wire_drops"));
    else
      EXPECT_GE(x("tx_good_packets"), x("tx_device_frames") + x("tx_wire_drops"));
  }
  /// Nothing of the program's is left in the port. It has stopped, or failed to start.
  void expect_empty() const {
    for (const rte_mempool* pool : {pool_, send_pool_})
      EXPECT_EQ(rte_mempool_in_use_count(pool), 0u) << pool->name;
    for (const auto* payload : {port().card_payload.get(), port().host_payload.get()})
      EXPECT_EQ(payload == nullptr ? 0 : rte_mempool_in_use_count(payload->pool()), 0u);
  }
  /// Frames sent before the port was opened are no business of its counters.
  void forget_frames() { next_at_open_ = next_; }

  std::shared_ptr<sim::FaultPlan> plan;

 private:
  static constexpr size_t kIdAt = 42;  // behind Ethernet, IPv4 and UDP headers

  static Frame frame_of(uint32_t number, uint32_t bytes) {
    constexpr uint32_t kSizes[] = {60, 64, 65, 128, 700, 1400, 1514, 513};
    if (bytes == 0) bytes = kSizes[number % std::size(kSizes)];
    Frame frame =
        make_ipv4({.source = v4(198, 18, 0, 1) + number % 61,
                   .payload_bytes = bytes - sizeof(hw::EtherHeader) - sizeof(hw::Ipv4Header)});
    const uint32_t id[] = {number, bytes};
    std::memcpy(frame.data() + kIdAt, id, sizeof id);
    return frame;
  }

  void check(const rte_mbuf* packet) {
    Frame frame(packet->pkt_len);
    size_t at = 0;
    for (const rte_mbuf* segment = packet; segment != nullptr; segment = segment->next) {
      ASSERT_LE(at + segment->data_len, frame.size());
      std::memcpy(frame.data() + at, rte_pktmbuf_mtod(segment, const void*), segment->data_len);
      at += segment->data_len;
    }
    ASSERT_EQ(at, frame.size());
    ASSERT_GE(frame.size(), 60u);
    uint32_t id[2];
    std::memcpy(id, frame.data() + kIdAt, sizeof id);
    const uint32_t number = id[0];
    ASSERT_LT(number, next_);
    ASSERT_EQ(id[1], frame.size());
    EXPECT_TRUE(frame == frame_of(number, id[1])) << "frame " << number << " has changed";
    EXPECT_TRUE(seen_.insert(number).second) << "frame " << number << " came twice";
  }

  Shape shape_;
  uint16_t id_ = 0;
  bool open_ = false;
  uint16_t queues_ = 1;
  rte_mempool* pool_ = nullptr;
  rte_mempool* send_pool_ = nullptr;
  uint32_t next_ = 0, next_at_open_ = 0;
  std::set<uint32_t> seen_;
};

}  // namespace nicmem::test
