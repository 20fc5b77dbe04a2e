// SPDX-License-Identifier: BSD-3-Clause
// One ethdev: what the program configured, and, between start and stop, the queues on the device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "payload_pool.h"
#include "rx.h"
#include "tx.h"

namespace nicmem::pmd {

inline constexpr uint32_t kMaxQueues = 16;
inline constexpr uint32_t kMinDescriptors = 8;
inline constexpr uint32_t kMaxDescriptors = 1u << 14;
inline constexpr uint32_t kMinMtu = 68;  // RFC 791: every IPv4 link carries 68 bytes
inline constexpr uint32_t kMaxMtu = 9600;
/// Ethernet header and two VLAN tags; the FCS is never in a buffer.
inline constexpr uint32_t kFrameOverhead = 14 + 2 * 4;

/// A receive queue: configured by setup, on the device from start to stop.
struct RxQueueConfig {
  RxQueue data;  // what rx_burst() works on
  uint32_t descriptors = 0;
  uint64_t offloads = 0;
  int socket = 0;
  rte_mempool* pool = nullptr;             // null: `given` has the pools
  std::vector<rte_eth_rxseg_split> given;  // the program's own split
  std::vector<rte_mbuf*> mbufs;
  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::ReceiveQueue> rq;

  ~RxQueueConfig();
};

struct TxQueueConfig {
  TxQueue data;
  uint32_t descriptors = 0;  // packets
  std::vector<rte_mbuf*> sent;
  std::vector<Signal> signals;
  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::SendQueue> sq;

  ~TxQueueConfig();
};

struct Port {
  std::string name;
  Devargs args;
  std::shared_ptr<Device> device;
  std::unique_ptr<hca::Port> hca;
  rte_eth_dev* ethdev = nullptr;
  std::array<uint8_t, 40> rss_key{};
  std::unique_ptr<PayloadPool> card_payload;
  std::unique_ptr<PayloadPool> host_payload;
  hca::PortCounters counters_base{};  // at the last stats reset
  hw::PcieTally pcie_base{};
  RxCounters rx_retired{};  // of queues that a new configuration has replaced
  TxCounters tx_retired{};
  bool warned_no_split = false;

  /// Destroys pools before the device, and the device's port before both.
  ~Port();
};

Port& port_of(const rte_eth_dev& dev);
Port& port_of(const rte_eth_dev* dev);

/// Largest frame, without FCS, that a port with that MTU takes.
constexpr uint32_t max_frame_of(uint32_t mtu) { return mtu + kFrameOverhead; }

// rxq.cc
int rx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* conf, rte_mempool* pool);
void rx_queue_release(rte_eth_dev* dev, uint16_t index);
/// Makes the queue on the device and posts its buffers.
Result<void> start_rx_queue(Port& port, RxQueueConfig& queue);
void stop_rx_queue(RxQueueConfig& queue);

// txq.cc
int tx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* conf);
void tx_queue_release(rte_eth_dev* dev, uint16_t index);
Result<void> start_tx_queue(Port& port, TxQueueConfig& queue);
void stop_tx_queue(TxQueueConfig& queue);

// stats.cc
void add(RxCounters& sum, const RxCounters& more);
void add(TxCounters& sum, const TxCounters& more);
/// Counts what was given to the device and never left. The port has stopped, its queues are gone.
void count_unsent(rte_eth_dev* dev);
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats);
int stats_reset(rte_eth_dev* dev);
int xstats_get(rte_eth_dev* dev, rte_eth_xstat* out, unsigned size);
int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned size);

// ops.cc
extern const eth_dev_ops kOps;
int close_port(rte_eth_dev* dev);

/// Result<void> as ethdev wants it: 0 or -errno; the error goes to the log, after the port's name.
int to_rte(const Port& port, const Result<void>& result);

inline RxQueueConfig* rx_queue(const rte_eth_dev* dev, uint16_t index) {
  return static_cast<RxQueueConfig*>(dev->data->rx_queues[index]);
}
inline TxQueueConfig* tx_queue(const rte_eth_dev* dev, uint16_t index) {
  return static_cast<TxQueueConfig*>(dev->data->tx_queues[index]);
}

}  // namespace nicmem::pmd
