// SPDX-License-Identifier: BSD-3-Clause
// One ethdev: what the program configured, and, between start and stop, the queues on the device.
#pragma once

#include <bitset>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "flow.h"
#include "link.h"
#include "payload_pool.h"
#include "ports.h"
#include "rss.h"
#include "rx.h"
#include "rx_short.h"
#include "rx_spill.h"
#include "secondary.h"
#include "tx.h"

namespace nicmem::pmd {

inline constexpr uint32_t kMaxQueues = 16;
inline constexpr uint32_t kMinDescriptors = 8;
inline constexpr uint32_t kMaxDescriptors = 1u << 14;
inline constexpr uint32_t kMaxMulticast = 128;  // of set_mc_addr_list()
inline constexpr uint32_t kMinMtu = 68;         // RFC 791: every IPv4 link carries 68 bytes
inline constexpr uint32_t kMaxMtu = 9600;
/// Ethernet header and two VLAN tags; the FCS is never in a buffer.
inline constexpr uint32_t kFrameOverhead = 14 + 2 * 4;

/// A receive queue: configured by setup, on the device from the port's start to its stop; while
/// only the queue is stopped, it is there but takes no frames.
struct RxQueueConfig {
  RxQueue data;                // what rx_burst() works on
  RxCounters counters_base{};  // at the last stats reset
  uint32_t descriptors = 0;
  uint64_t offloads = 0;
  int socket = 0;
  bool deferred = false;                   // the port's start leaves it stopped
  rte_mempool* pool = nullptr;             // null: `given` has the pools
  std::vector<rte_eth_rxseg_split> given;  // the program's own split
  std::vector<rte_mbuf*> mbufs;
  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::ReceiveQueue> rq;            // that frames are steered to
  std::unique_ptr<hca::ReceiveQueue> secondary_rq;  // spill=hw: what `data` then describes
  PrimaryRing primary;                              // spill=hw: what `rq` then is
  ShortRing short_ring;                             // min_posted

  ~RxQueueConfig();
};

struct TxQueueConfig {
  TxQueue data;
  TxCounters counters_base{};
  uint32_t descriptors = 0;  // packets
  uint64_t offloads = 0;
  int socket = 0;
  bool deferred = false;
  std::vector<rte_mbuf*> sent;
  std::vector<Signal> signals;
  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::SendQueue> sq;

  ~TxQueueConfig();
};

struct Port {
  std::string name;
  Devargs args;
  rte_ether_addr mac{};            // that it was born with
  std::shared_ptr<Device> device;  // these two are null after a reset that failed
  std::unique_ptr<hca::Port> hca;
  rte_eth_dev* ethdev = nullptr;
  std::shared_ptr<PortEvents> events = std::make_shared<PortEvents>();
  Rss rss;
  std::vector<hw::MacAddress> multicast;  // what set_mc_addr_list() gave
  std::bitset<4096> vlans;                // taken while the VLAN filter is on
  std::unique_ptr<PayloadPool> card_payload;
  std::unique_ptr<PayloadPool> host_payload;
  hca::PortCounters counters_base{};  // at the last stats reset
  hw::PcieTally pcie_base{};
  RxCounters rx_retired{};  // of queues that a new configuration has replaced
  TxCounters tx_retired{};
  FlowTable flows;
  std::string flow_error;  // the last one that rte_flow reported
  bool warned_no_split = false;

  ~Port();
};

Port& port_of(const rte_eth_dev& dev);
Port& port_of(const rte_eth_dev* dev);

/// Largest frame, without FCS, that a port with that MTU takes.
constexpr uint32_t max_frame_of(uint32_t mtu) { return mtu + kFrameOverhead; }

// filters.cc
/// Tells the device which frames to take; again after every change of a filter.
Result<void> steer(Port& port);
int promiscuous_enable(rte_eth_dev* dev);
int promiscuous_disable(rte_eth_dev* dev);
int allmulticast_enable(rte_eth_dev* dev);
int allmulticast_disable(rte_eth_dev* dev);
int mac_addr_set(rte_eth_dev* dev, rte_ether_addr* address);
int mac_addr_add(rte_eth_dev* dev, rte_ether_addr* address, uint32_t index, uint32_t pool);
void mac_addr_remove(rte_eth_dev* dev, uint32_t index);
int set_mc_addr_list(rte_eth_dev* dev, rte_ether_addr* list, uint32_t count);
int vlan_filter_set(rte_eth_dev* dev, uint16_t vlan, int on);
int vlan_offload_set(rte_eth_dev* dev, int mask);
void vlan_strip_queue_set(rte_eth_dev* dev, uint16_t queue, int on);

// info.cc
int dev_info(rte_eth_dev* dev, rte_eth_dev_info* out);
const uint32_t* supported_ptypes(rte_eth_dev* dev);
int ptypes_set(rte_eth_dev* dev, uint32_t mask);
void rxq_info(rte_eth_dev* dev, uint16_t index, rte_eth_rxq_info* out);
void txq_info(rte_eth_dev* dev, uint16_t index, rte_eth_txq_info* out);
int rx_burst_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* out);
int tx_burst_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* out);
/// Completions that wait to be polled. [rte_eth_rx_queue_count]
uint32_t rx_queue_count(void* queue);
/// Of the `offset`-th WQE to be polled: -EINVAL beyond the ring. [rte_eth_rx_descriptor_status]
int rx_descriptor_status(void* queue, uint16_t offset);
/// Of the place of the `offset`-th next packet, as far as completions have been polled: -EINVAL
/// beyond the ring. [rte_eth_tx_descriptor_status]
int tx_descriptor_status(void* queue, uint16_t offset);
int fw_version(rte_eth_dev* dev, char* out, size_t size);
int priv_dump(rte_eth_dev* dev, FILE* file);

/// Bytes of host and device memory that the started queues hold now.
struct Footprint {
  size_t rings = 0;
  size_t posted_first = 0;  // buffers that start a frame, with their mbufs
  size_t posted_other = 0;  // of further segments
};
Footprint footprint_of(const Port& port);

// info.cc
/// Warns when memory of `socket` is far from the device.
void warn_across_nodes(const Port& port, const char* what, uint16_t index, int socket);

// rxq.cc
int rx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* conf, rte_mempool* pool);
void rx_queue_release(rte_eth_dev* dev, uint16_t index);
/// Makes the queue on the device; posts its buffers, unless its start is deferred.
Result<void> create_rx_queue(Port& port, RxQueueConfig& queue);
/// Takes it off the device and frees its buffers.
void destroy_rx_queue(RxQueueConfig& queue);
/// Whether the queue, if it is on the device, takes tags off.
Result<void> strip_vlan(RxQueueConfig& queue, bool on);
/// Lets a stopped queue take frames again: an empty completion queue, a full ring.
Result<void> start_rx_queue(RxQueueConfig& queue);
/// The queue takes no more frames; all its buffers are freed, what was not polled is counted.
Result<void> stop_rx_queue(RxQueueConfig& queue);

// txq.cc
int tx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* conf);
void tx_queue_release(rte_eth_dev* dev, uint16_t index);
Result<void> create_tx_queue(Port& port, TxQueueConfig& queue);
void destroy_tx_queue(TxQueueConfig& queue);
Result<void> start_tx_queue(TxQueueConfig& queue);
/// The queue sends nothing more; every packet in it is freed.
Result<void> stop_tx_queue(TxQueueConfig& queue);

// stats.cc
void add(RxCounters& sum, const RxCounters& more);
void add(TxCounters& sum, const TxCounters& more);
/// What was counted since `base`.
RxCounters since(const RxCounters& now, const RxCounters& base);
TxCounters since(const TxCounters& now, const TxCounters& base);
/// Counts what was given to the device and never left. The port has stopped, its queues are gone.
void count_unsent(rte_eth_dev* dev);
void count_unseen(rte_eth_dev* dev);
/// Doorbells included.
hw::PcieTally pcie_since_reset(const Port& port);
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats);
int stats_reset(rte_eth_dev* dev);
int xstats_get(rte_eth_dev* dev, rte_eth_xstat* out, unsigned size);
int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned size);

// lifecycle.cc
int configure(rte_eth_dev* dev);
int start_port(rte_eth_dev* dev);
int stop_port(rte_eth_dev* dev);
int reset_port(rte_eth_dev* dev);
int close_port(rte_eth_dev* dev);
int mtu_set(rte_eth_dev* dev, uint16_t mtu);
int rx_queue_start(rte_eth_dev* dev, uint16_t index);
int rx_queue_stop(rte_eth_dev* dev, uint16_t index);
int tx_queue_start(rte_eth_dev* dev, uint16_t index);
int tx_queue_stop(rte_eth_dev* dev, uint16_t index);

// probe.cc
/// Whether the device can do what `spill` asks for; else kUnsupported.
Result<void> check_spill(Spill spill, const hca::Capabilities& device);
/// Opens the device that `port.args` names, and the port on it.
Result<void> open_device(Port& port);
/// Pools go before the device, and the device's port before both. Counters start anew.
void close_device(Port& port);

// ops.cc
extern const eth_dev_ops kOps;

/// Result<void> as ethdev wants it: 0 or -errno; the error goes to the log, after the port's name.
int to_rte(const Port& port, const Result<void>& result);

inline RxQueueConfig* rx_queue(const rte_eth_dev* dev, uint16_t index) {
  return static_cast<RxQueueConfig*>(dev->data->rx_queues[index]);
}
inline TxQueueConfig* tx_queue(const rte_eth_dev* dev, uint16_t index) {
  return static_cast<TxQueueConfig*>(dev->data->tx_queues[index]);
}

}  // namespace nicmem::pmd
