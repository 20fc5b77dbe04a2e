// SPDX-License-Identifier: BSD-3-Clause
// The ethdev operations: configure, start, stop, close, and what a port tells about itself.
#include <algorithm>
#include <bit>
#include <cstring>

#include "log.h"
#include "nicmem/errno.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

constexpr uint64_t kRxOffloads =
    RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
constexpr uint64_t kRssTypes = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

/// Toeplitz key that maps both directions of a flow to one queue. [Woo and Park, "Scalable TCP
/// session monitoring with symmetric receive-side scaling", 2012]
constexpr std::array<uint8_t, 40> kSymmetricKey = [] {
  std::array<uint8_t, 40> key{};
  for (size_t i = 0; i < key.size(); i += 2) key[i] = 0x6d, key[i + 1] = 0x5a;
  return key;
}();

int configure(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  const rte_eth_rss_conf& rss = dev->data->dev_conf.rx_adv_conf.rss_conf;
  port.rss_key = kSymmetricKey;
  if (rss.rss_key == nullptr) return 0;
  if (rss.rss_key_len != 0 && rss.rss_key_len != port.rss_key.size()) {
    NM_LOG(ERR, "%s: RSS key of %u bytes: accepted: 40", port.name.c_str(), rss.rss_key_len);
    return -EINVAL;
  }
  std::copy_n(rss.rss_key, port.rss_key.size(), port.rss_key.begin());
  return 0;
}

/// Tells the device which frames to take; again after every change of a filter.
Result<void> steer(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  std::vector<hca::ReceiveQueue*> queues;
  const bool spread = (data.dev_conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0;
  for (uint16_t i = 0; i < (spread ? data.nb_rx_queues : std::min<uint16_t>(1, data.nb_rx_queues));
       ++i)
    queues.push_back(rx_queue(port.ethdev, i)->rq.get());
  hca::SteeringOptions options{.promiscuous = data.promiscuous != 0,
                               .all_multicast = data.all_multicast != 0};
  hw::MacAddress mac;
  std::memcpy(mac.bytes, data.mac_addrs[0].addr_bytes, sizeof mac.bytes);
  options.unicast = {&mac, 1};
  // A card takes tables whose size is a power of two; other lists are repeated in a large one.
  if (const size_t listed = queues.size(); listed != 0 && !std::has_single_bit(listed)) {
    queues.resize(hca::kMaxRssTable);
    for (size_t i = listed; i < queues.size(); ++i) queues[i] = queues[i % listed];
  }
  options.rss.table = queues;
  options.rss.key = port.rss_key;
  return port.hca->steer(options);
}

void set_queue_states(rte_eth_dev_data& data, uint8_t state) {
  std::fill_n(data.rx_queue_state, data.nb_rx_queues, state);
  std::fill_n(data.tx_queue_state, data.nb_tx_queues, state);
}

Result<void> start_queues(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i) {
    if (rx_queue(port.ethdev, i) == nullptr)
      return fail(Code::kInvalidArgument, "receive queue " + std::to_string(i) + " was not set up");
    NM_TRY_VOID(start_rx_queue(port, *rx_queue(port.ethdev, i)));
  }
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i) {
    if (tx_queue(port.ethdev, i) == nullptr)
      return fail(Code::kInvalidArgument,
                  "transmit queue " + std::to_string(i) + " was not set up");
    NM_TRY_VOID(start_tx_queue(port, *tx_queue(port.ethdev, i)));
  }
  NM_TRY_VOID(port.hca->set_max_frame(max_frame_of(data.mtu)));
  NM_TRY_VOID(steer(port));
  return port.hca->start();
}

void stop_queues(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  port.hca->stop();
  static_cast<void>(port.hca->steer({}));  // the queues are about to go
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i)
    if (auto* queue = rx_queue(port.ethdev, i)) stop_rx_queue(*queue);
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i)
    if (auto* queue = tx_queue(port.ethdev, i)) stop_tx_queue(*queue);
  count_unsent(port.ethdev);
}

/// One receive function serves all queues of a port: the special one only if it fits them all.
eth_rx_burst_t choose_rx_burst(const rte_eth_dev* dev) {
  uint32_t segments = 0;
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
    const uint32_t here = rx_queue(dev, i)->data.num_segments;
    if (i != 0 && here != segments) return rx_burst_for(0);
    segments = here;
  }
  return rx_burst_for(segments);
}

int start(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  const Result<void> started = start_queues(port);
  if (!started) {
    stop_queues(port);
    return to_rte(port, started);
  }
  dev->rx_pkt_burst = choose_rx_burst(dev);
  dev->tx_pkt_burst = tx_burst;
  dev->data->scattered_rx =
      std::any_of(dev->data->rx_queues, dev->data->rx_queues + dev->data->nb_rx_queues,
                  [](void* q) { return static_cast<RxQueueConfig*>(q)->data.num_segments > 1; });
  set_queue_states(*dev->data, RTE_ETH_QUEUE_STATE_STARTED);
  return 0;
}

int stop(rte_eth_dev* dev) {
  stop_queues(port_of(dev));
  set_queue_states(*dev->data, RTE_ETH_QUEUE_STATE_STOPPED);
  return 0;
}

int info(rte_eth_dev* dev, rte_eth_dev_info* out) {
  const Port& port = port_of(dev);
  out->max_mac_addrs = 1;
  out->min_rx_bufsize = kMinHeader;
  out->max_rx_pktlen = max_frame_of(kMaxMtu);
  out->min_mtu = kMinMtu;
  out->max_mtu = kMaxMtu;
  out->max_rx_queues = kMaxQueues;
  out->max_tx_queues = kMaxQueues;
  out->rx_offload_capa = kRxOffloads;
  if (port.args.split != Split::kOff) out->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  out->rx_queue_offload_capa = out->rx_offload_capa;
  // never MBUF_FAST_FREE: a packet's segments come from different pools
  out->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  out->tx_queue_offload_capa = out->tx_offload_capa;
  out->flow_type_rss_offloads = kRssTypes;
  out->hash_key_size = static_cast<uint8_t>(port.rss_key.size());
  out->rx_seg_capa.multi_pools = 1;
  out->rx_seg_capa.offset_allowed = 1;
  out->rx_seg_capa.offset_align_log2 = 0;
  out->rx_seg_capa.max_nseg = kMaxRxSegments;
  out->rx_desc_lim = {.nb_max = kMaxDescriptors,
                      .nb_min = kMinDescriptors,
                      .nb_align = 1,
                      .nb_seg_max = kMaxRxSegments,
                      .nb_mtu_seg_max = kMaxRxSegments};
  out->tx_desc_lim = {.nb_max = kMaxDescriptors,
                      .nb_min = kMinDescriptors,
                      .nb_align = 1,
                      .nb_seg_max = kMaxTxSegments - 2,
                      .nb_mtu_seg_max = kMaxTxSegments - 2};
  out->default_rxportconf = {.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
  out->default_txportconf = {.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
  out->speed_capa = RTE_ETH_LINK_SPEED_100G;
  return 0;
}

int link_update(rte_eth_dev* dev, int /*wait*/) {
  const hca::LinkState state = port_of(dev).hca->link();
  rte_eth_link link{};
  link.link_status = state.up && dev->data->dev_started ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
  link.link_speed = state.speed_mbps;
  link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  return rte_eth_linkstatus_set(dev, &link);
}

/// ethdev sets data->promiscuous, data->all_multicast after these return: set it for steer() here.
int set_filter(rte_eth_dev* dev, bool multicast, bool on) {
  if (multicast)
    dev->data->all_multicast = on ? 1 : 0;
  else
    dev->data->promiscuous = on ? 1 : 0;
  return dev->data->dev_started ? to_rte(port_of(dev), steer(port_of(dev))) : 0;
}
int promiscuous_enable(rte_eth_dev* dev) { return set_filter(dev, false, true); }
int promiscuous_disable(rte_eth_dev* dev) { return set_filter(dev, false, false); }
int allmulticast_enable(rte_eth_dev* dev) { return set_filter(dev, true, true); }
int allmulticast_disable(rte_eth_dev* dev) { return set_filter(dev, true, false); }

int mac_addr_set(rte_eth_dev* dev, rte_ether_addr* address) {
  rte_ether_addr_copy(address, &dev->data->mac_addrs[0]);
  return dev->data->dev_started ? to_rte(port_of(dev), steer(port_of(dev))) : 0;
}

int mtu_set(rte_eth_dev* dev, uint16_t mtu) {
  if (dev->data->dev_started && mtu != dev->data->mtu) {
    NM_LOG(ERR, "%s: mtu %u: stop the port first: its buffers are made for frames of mtu %u",
           port_of(dev).name.c_str(), mtu, dev->data->mtu);
    return -EBUSY;
  }
  return 0;
}

const uint32_t* supported_ptypes(rte_eth_dev* /*dev*/) {
  static const uint32_t types[] = {RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4,     RTE_PTYPE_L3_IPV4_EXT,
                                   RTE_PTYPE_L3_IPV6,  RTE_PTYPE_L3_IPV6_EXT, RTE_PTYPE_L4_FRAG,
                                   RTE_PTYPE_L4_TCP,   RTE_PTYPE_L4_UDP,      RTE_PTYPE_UNKNOWN};
  return types;
}

void rxq_info(rte_eth_dev* dev, uint16_t index, rte_eth_rxq_info* out) {
  const RxQueueConfig& queue = *rx_queue(dev, index);
  out->mp = queue.pool != nullptr ? queue.pool : queue.given.front().mp;
  out->conf.offloads = queue.offloads;
  out->nb_desc = static_cast<uint16_t>(queue.descriptors);
  out->scattered_rx = queue.data.num_segments > 1;
}

void txq_info(rte_eth_dev* dev, uint16_t index, rte_eth_txq_info* out) {
  out->nb_desc = static_cast<uint16_t>(tx_queue(dev, index)->descriptors);
  out->conf.offloads = dev->data->dev_conf.txmode.offloads;
}

int tx_done_cleanup(void* queue, uint32_t limit) {
  return static_cast<int>(reclaim(static_cast<TxQueueConfig*>(queue)->data, limit));
}

eth_dev_ops make_ops() {
  eth_dev_ops ops{};
  ops.dev_configure = configure;
  ops.dev_start = start;
  ops.dev_stop = stop;
  ops.dev_close = close_port;
  ops.dev_infos_get = info;
  ops.link_update = link_update;
  ops.promiscuous_enable = promiscuous_enable;
  ops.promiscuous_disable = promiscuous_disable;
  ops.allmulticast_enable = allmulticast_enable;
  ops.allmulticast_disable = allmulticast_disable;
  ops.mac_addr_set = mac_addr_set;
  ops.mtu_set = mtu_set;
  ops.dev_supported_ptypes_get = supported_ptypes;
  ops.rx_queue_setup = rx_queue_setup;
  ops.rx_queue_release = rx_queue_release;
  ops.tx_queue_setup = tx_queue_setup;
  ops.tx_queue_release = tx_queue_release;
  ops.rxq_info_get = rxq_info;
  ops.txq_info_get = txq_info;
  ops.tx_done_cleanup = tx_done_cleanup;
  ops.stats_get = stats_get;
  ops.stats_reset = stats_reset;
  ops.xstats_get = xstats_get;
  ops.xstats_get_names = xstats_get_names;
  ops.xstats_reset = stats_reset;
  return ops;
}

}  // namespace

const eth_dev_ops kOps = make_ops();

Port::~Port() {
  hca.reset();
  card_payload.reset();
  host_payload.reset();
  if (device) --device->ports;
}

Port& port_of(const rte_eth_dev& dev) { return **static_cast<Port**>(dev.data->dev_private); }
Port& port_of(const rte_eth_dev* dev) { return port_of(*dev); }

int to_rte(const Port& port, const Result<void>& result) {
  if (result) return 0;
  NM_LOG(ERR, "%s: %s", port.name.c_str(), result.error().what.c_str());
  return -to_errno(result.error());
}

int close_port(rte_eth_dev* dev) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) return 0;
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) rx_queue_release(dev, i);
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) tx_queue_release(dev, i);
  delete &port_of(dev);
  return 0;
}

}  // namespace nicmem::pmd
