// SPDX-License-Identifier: BSD-3-Clause
// What a port tells about itself: capabilities, limits, queues.
#include <cstdio>

#include "dpdk/on_node.h"
#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

uint64_t rx_offloads(const Port& port) {
  uint64_t offloads =
      RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
  if (port.args.split != Split::kOff) offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  if (port.device->hca->capabilities().vlan)
    offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
  return offloads;
}

/// Never MBUF_FAST_FREE: a packet's segments come from different pools.
uint64_t tx_offloads(const Port& port) {
  const hca::Capabilities& can = port.device->hca->capabilities();
  uint64_t offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  if (can.checksum)
    offloads |=
        RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
  if (can.max_tso_bytes != 0) offloads |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
  if (can.vlan) offloads |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
  return offloads;
}

rte_eth_desc_lim descriptor_limits(uint16_t segments) {
  return {.nb_max = kMaxDescriptors,
          .nb_min = kMinDescriptors,
          .nb_align = 1,
          .nb_seg_max = segments,
          .nb_mtu_seg_max = segments};
}

}  // namespace

int dev_info(rte_eth_dev* dev, rte_eth_dev_info* out) {
  const Port& port = port_of(dev);
  if (!port.device) return -EIO;
  out->max_mac_addrs = RTE_ETH_NUM_RECEIVE_MAC_ADDR;
  out->min_rx_bufsize = kMinHeader;
  out->max_rx_pktlen = max_frame_of(kMaxMtu);
  out->min_mtu = kMinMtu;
  out->max_mtu = kMaxMtu;
  out->max_rx_queues = kMaxQueues;
  out->max_tx_queues = kMaxQueues;
  out->rx_offload_capa = out->rx_queue_offload_capa = rx_offloads(port);
  out->tx_offload_capa = out->tx_queue_offload_capa = tx_offloads(port);
  // filters are of the port
  out->rx_queue_offload_capa &= ~uint64_t{RTE_ETH_RX_OFFLOAD_VLAN_FILTER};
  out->flow_type_rss_offloads = kRssTypes;
  out->hash_key_size = static_cast<uint8_t>(port.rss.key.size());
  out->reta_size =
      port.rss.table.empty() ? kMinRetaSize : static_cast<uint16_t>(port.rss.table.size());
  out->rx_seg_capa.multi_pools = 1;
  out->rx_seg_capa.offset_allowed = 1;
  out->rx_seg_capa.offset_align_log2 = 0;
  out->rx_seg_capa.max_nseg = kMaxRxSegments;
  out->rx_desc_lim = descriptor_limits(kMaxRxSegments);
  out->tx_desc_lim = descriptor_limits(kMaxTxSegments - 2);
  // a packet that is cut up has its headers inlined: less room for pointers
  out->tx_desc_lim.nb_seg_max =
      static_cast<uint16_t>(kMaxTxSegments - hw::send_wqe_segments(kLongestTsoHeader, 0));
  out->dev_capa = RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
  out->err_handle_mode = RTE_ETH_ERROR_HANDLE_MODE_PASSIVE;  // RTE_ETH_EVENT_INTR_RESET
  out->default_rxportconf = {.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
  out->default_txportconf = {.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
  out->default_rxconf.rx_drop_en = 1;
  out->speed_capa = RTE_ETH_LINK_SPEED_100G;
  return 0;
}

const uint32_t* supported_ptypes(rte_eth_dev* /*dev*/) {
  static const uint32_t types[] = {RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4,     RTE_PTYPE_L3_IPV4_EXT,
                                   RTE_PTYPE_L3_IPV6,  RTE_PTYPE_L3_IPV6_EXT, RTE_PTYPE_L4_FRAG,
                                   RTE_PTYPE_L4_TCP,   RTE_PTYPE_L4_UDP,      RTE_PTYPE_UNKNOWN};
  return types;
}

/// Types cost nothing here: all are reported, whichever the program cares for.
int ptypes_set(rte_eth_dev* /*dev*/, uint32_t /*mask*/) { return 0; }

void rxq_info(rte_eth_dev* dev, uint16_t index, rte_eth_rxq_info* out) {
  const RxQueueConfig& queue = *rx_queue(dev, index);
  out->mp = queue.pool != nullptr ? queue.pool : queue.given.front().mp;
  out->conf.offloads = queue.offloads;
  out->conf.rx_deferred_start = queue.deferred ? 1 : 0;
  out->conf.rx_drop_en = 1;  // a full ring never holds up other queues
  out->nb_desc = static_cast<uint16_t>(queue.descriptors);
  out->scattered_rx = queue.data.num_segments > 1;
  out->rx_buf_size = rte_pktmbuf_data_room_size(out->mp) - RTE_PKTMBUF_HEADROOM;
}

void txq_info(rte_eth_dev* dev, uint16_t index, rte_eth_txq_info* out) {
  const TxQueueConfig& queue = *tx_queue(dev, index);
  out->nb_desc = static_cast<uint16_t>(queue.descriptors);
  out->conf.offloads = queue.offloads;
  out->conf.tx_deferred_start = queue.deferred ? 1 : 0;
}

int rx_burst_mode(rte_eth_dev* dev, uint16_t /*queue*/, rte_eth_burst_mode* out) {
  const char* text = "Scalar, any segments";
  if (dev->rx_pkt_burst == rx_burst_for(1)) text = "Scalar, one buffer a frame";
  if (dev->rx_pkt_burst == rx_burst_for(2)) text = "Scalar, header and payload";
  if (dev->rx_pkt_burst == rx_burst_spill) text = "Scalar, two rings";
  if (dev->rx_pkt_burst == rx_burst_short) text = "Scalar, short ring";
  std::snprintf(out->info, sizeof out->info, "%s", text);
  return 0;
}

int tx_burst_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* out) {
  std::snprintf(out->info, sizeof out->info, "Scalar, %u bytes inlined",
                tx_queue(dev, queue)->data.inline_bytes);
  return 0;
}

uint32_t rx_queue_count(void* queue) {
  if (queue == nullptr) return static_cast<uint32_t>(-EINVAL);
  uint32_t count = 0;
  while (rx_descriptor_status(queue, static_cast<uint16_t>(count)) == RTE_ETH_RX_DESC_DONE) ++count;
  return count;
}

int rx_descriptor_status(void* queue, uint16_t offset) {
  if (queue == nullptr) return -EINVAL;  // ethdev looks at nothing
  const RxQueue& q = static_cast<RxQueueConfig*>(queue)->data;
  if (offset >= q.depth) return -EINVAL;
  if (q.cqes == nullptr) return RTE_ETH_RX_DESC_UNAVAIL;
  const uint32_t index = q.head + offset;
  const hw::Cqe& cqe = q.cqes[index & (q.cq_depth - 1)];
  if (hw::software_owns(hw::load_op_own(cqe), index, q.cq_depth)) return RTE_ETH_RX_DESC_DONE;
  const bool held_back = q.short_ring != nullptr && offset >= q.short_ring->posted - q.head;
  return held_back ? RTE_ETH_RX_DESC_UNAVAIL : RTE_ETH_RX_DESC_AVAIL;
}

int tx_descriptor_status(void* queue, uint16_t offset) {
  if (queue == nullptr) return -EINVAL;
  const auto& config = *static_cast<TxQueueConfig*>(queue);
  if (offset >= config.descriptors) return -EINVAL;
  const TxQueue& q = config.data;
  if (q.sent == nullptr) return RTE_ETH_TX_DESC_UNAVAIL;
  const uint32_t used = q.sent_head - q.sent_done;
  return offset + used < config.descriptors ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
}

int fw_version(rte_eth_dev* dev, char* out, size_t size) {
  const Port& port = port_of(dev);
  if (!port.device) return -EIO;
  const int length = std::snprintf(out, size, "%s", port.device->hca->capabilities().name.c_str());
  return static_cast<size_t>(length) < size ? 0 : length + 1;  // ethdev: what it would take
}

void warn_across_nodes(const Port& port, const char* what, uint16_t index, int socket) {
  if (!port.device) return;
  const int node = port.device->hca->capabilities().numa_node;
  if (dpdk::crosses_nodes(node, socket))
    NM_LOG(WARNING, "%s: %s %u is on NUMA node %d, the device on node %d: slower",
           port.name.c_str(), what, index, socket, node);
}

Footprint footprint_of(const Port& port) {
  // RxQueue::buffers(0), and the same of the primary ring
  const auto starts_frames = [](const RxQueueConfig& queue, size_t at) {
    const size_t primary = size_t{queue.data.depth} * kMaxRxSegments;
    return at < queue.data.depth || (at >= primary && at - primary < queue.primary.depth);
  };
  Footprint sum;
  const rte_eth_dev_data& data = *port.ethdev->data;
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i) {
    const RxQueueConfig* const queue = rx_queue(port.ethdev, i);
    if (queue == nullptr || !queue->rq) continue;
    sum.rings += queue->rq->ring.size_bytes() + queue->cq->ring.size_bytes();
    if (queue->secondary_rq) sum.rings += queue->secondary_rq->ring.size_bytes();
    for (size_t at = 0; at < queue->mbufs.size(); ++at) {
      const rte_mbuf* const mbuf = queue->mbufs[at];
      if (mbuf == nullptr) continue;
      (starts_frames(*queue, at) ? sum.posted_first : sum.posted_other) +=
          sizeof *mbuf + rte_pktmbuf_priv_size(mbuf->pool) + mbuf->buf_len;
    }
  }
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i)
    if (const TxQueueConfig* const queue = tx_queue(port.ethdev, i); queue && queue->sq)
      sum.rings += queue->sq->ring.size_bytes() + queue->cq->ring.size_bytes();
  return sum;
}

int priv_dump(rte_eth_dev* dev, FILE* file) {
  const Port& port = port_of(dev);
  const Footprint footprint = footprint_of(port);
  std::fprintf(file, "net_nicmem port %s: mode %s, header %u, tx_inline %u, device %s\n",
               port.name.c_str(), name_of(port.args.mode), port.args.header_bytes,
               port.args.tx_inline_bytes, port.device ? port.device->name.c_str() : "gone");
  std::fprintf(file, "  rings %zu bytes, posted %zu bytes of first and %zu of further segments\n",
               footprint.rings, footprint.posted_first, footprint.posted_other);
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
    const RxQueueConfig* const queue = rx_queue(dev, i);
    if (queue == nullptr) continue;
    std::fprintf(file, "  rx queue %u: %u WQEs, segments of", i, queue->data.depth);
    for (uint32_t k = 0; k < queue->data.num_segments; ++k)
      std::fprintf(file, " %u", queue->data.segments[k].length);
    std::fprintf(file, " bytes, %u consumed\n", queue->data.head);
  }
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i)
    if (const TxQueueConfig* const queue = tx_queue(dev, i))
      std::fprintf(file, "  tx queue %u: %u blocks, %u packets in flight\n", i, queue->data.depth,
                   queue->data.sent_head - queue->data.sent_tail);
  return 0;
}

}  // namespace nicmem::pmd
