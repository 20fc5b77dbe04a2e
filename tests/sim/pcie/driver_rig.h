// SPDX-License-Identifier: BSD-3-Clause
// The real driver on a model with any bus: queues made by the driver's own control code, frames
// forwarded by its rx_burst and tx_burst, device and host taking turns in one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "drivers/net/nicmem/compat.h"
#include "drivers/net/nicmem/port.h"
#include "drivers/net/nicmem/rx.h"
#include "drivers/net/nicmem/tx.h"
#include "sim/generator.h"
#include "sim/nic.h"

namespace nicmem::test {

struct RigOptions {
  pmd::Mode mode = pmd::Mode::kSplit;
  uint32_t header_bytes = 64;
  uint32_t inline_bytes = 0;
  uint16_t ring = 1024;
  uint16_t burst = 32;
  uint32_t frame_bytes = 1500;
  size_t sram_bytes = 8_MiB;
};

template <class Nic>
class DriverRig {
 public:
  explicit DriverRig(const RigOptions& options) : options_(options) {
    make_device();
    make_ethdev();
    ok(pmd::create_rx_queue(*port_, *rx_));
    ok(pmd::create_tx_queue(*port_, *tx_));
    hca::ReceiveQueue* queues[] = {rx_->rq.get()};
    hca::SteeringOptions steering{.promiscuous = true};
    steering.rss.table = queues;
    ok(port_->hca->steer(steering));
    ok(port_->hca->start());
    receive_ = pmd::rx_burst_for(rx_->data.num_segments);
  }
  ~DriverRig() {
    port_->hca->stop();
    ok(port_->hca->steer({}));
    tx_.reset();
    rx_.reset();
    port_.reset();
    device_.reset();
    rte_mempool_free(pool_);
  }

  /// The device moves a burst, then the host forwards it. Returns how many frames.
  uint32_t turn() {
    device_->hca->step(options_.burst);
    rte_mbuf* packets[256];
    const uint16_t received = receive_(&rx_->data, packets, options_.burst);
    if (received == 0) return 0;
    const uint64_t before = tx_->data.doorbell->peek();
    const uint16_t sent = pmd::tx_burst(&tx_->data, packets, received);
    EXPECT_EQ(sent, received);
    if (tx_->data.doorbell->peek() != before) ++doorbells_seen_;
    return received;
  }

  void forward(uint32_t frames) {
    for (uint32_t moved = 0; moved < frames;) {
      const uint32_t here = turn();
      ASSERT_GT(here, 0u) << "after " << moved << " frames";
      moved += here;
    }
  }

  typename Nic::Port& model() { return static_cast<typename Nic::Port&>(*port_->hca); }
  /// What the driver caused, its own MMIO writes included.
  hw::PcieTally tally() const {
    hw::PcieTally sum = port_->hca->pcie();
    sum[hw::PcieClass::kDoorbell] = hw::times(tx_->data.counters.doorbells, hw::mmio_write(8));
    return sum;
  }
  /// Doorbell registers that were seen to change.
  uint64_t doorbells_seen() const { return doorbells_seen_; }
  pmd::RxQueueConfig& rx() { return *rx_; }
  pmd::TxQueueConfig& tx() { return *tx_; }

 private:
  static void ok(const Result<void>& result) {
    ASSERT_TRUE(result.has_value()) << result.error().what;
  }

  void make_device() {
    sim::GeneratorOptions generator;
    generator.frame_bytes = {options_.frame_bytes};
    sim::NicOptions nic{.name = "rig", .sram_bytes = options_.sram_bytes};
    nic.wire = [generator](const hca::PortOptions&) -> Result<std::unique_ptr<sim::Wire>> {
      NM_TRY(auto wire, sim::Generator::create(generator));
      return wire;
    };
    auto made = Nic::create(nic);
    ASSERT_TRUE(made.has_value()) << made.error().what;
    device_ = std::make_shared<pmd::Device>();
    device_->name = "rig";
    device_->hca = std::move(*made);
    device_->ports = 1;
    ok(pmd::set_up(*device_, options_.sram_bytes));
    port_ = std::make_unique<pmd::Port>();
    port_->name = "rig";
    port_->device = device_;
    port_->args.mode = options_.mode;
    port_->args.split = pmd::Split::kForce;
    port_->args.header_bytes = options_.header_bytes;
    port_->args.tx_inline_bytes = options_.inline_bytes;
    auto opened = device_->hca->open_port({.name = "rig", .header_bytes = options_.header_bytes});
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    port_->hca = std::move(*opened);
  }

  void make_ethdev() {
    pool_ = rte_pktmbuf_pool_create("rig", 8191, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    ASSERT_NE(pool_, nullptr);
    data_.mtu = 1500;
    data_.rx_queues = rx_queues_;
    data_.tx_queues = tx_queues_;
    data_.nb_rx_queues = data_.nb_tx_queues = 1;
    ethdev_.data = &data_;
    port_->ethdev = &ethdev_;
    rx_ = std::make_unique<pmd::RxQueueConfig>();
    rx_->descriptors = options_.ring;
    rx_->pool = pool_;
    tx_ = std::make_unique<pmd::TxQueueConfig>();
    tx_->descriptors = 2048;
    rx_queues_[0] = rx_.get();
    tx_queues_[0] = tx_.get();
    ok(port_->hca->set_max_frame(pmd::max_frame_of(data_.mtu)));
  }

  RigOptions options_;
  std::shared_ptr<pmd::Device> device_;
  std::unique_ptr<pmd::Port> port_;
  std::unique_ptr<pmd::RxQueueConfig> rx_;
  std::unique_ptr<pmd::TxQueueConfig> tx_;
  rte_eth_dev ethdev_{};
  rte_eth_dev_data data_{};
  void* rx_queues_[1] = {};
  void* tx_queues_[1] = {};
  rte_mempool* pool_ = nullptr;
  eth_rx_burst_t receive_ = nullptr;
  uint64_t doorbells_seen_ = 0;
};

}  // namespace nicmem::test
