// SPDX-License-Identifier: BSD-3-Clause
// Send queues, control side.
#include <algorithm>
#include <bit>

#include "hw/ether.h"
#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

/// Blocks of the usual packet: the header inlined, or pointed at, and a payload pointer.
uint32_t usual_blocks(uint32_t inline_bytes) {
  return hw::send_wqe_blocks(hw::send_wqe_segments(inline_bytes, inline_bytes == 0 ? 2 : 1));
}

}  // namespace

TxQueueConfig::~TxQueueConfig() { destroy_tx_queue(*this); }

int tx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* conf) {
  tx_queue_release(dev, index);
  auto queue = std::make_unique<TxQueueConfig>();
  queue->descriptors = std::max<uint32_t>(descriptors, kMinDescriptors);
  queue->offloads = conf->offloads | dev->data->dev_conf.txmode.offloads;
  queue->socket = static_cast<int>(socket);
  queue->deferred = conf->tx_deferred_start != 0;
  warn_across_nodes(port_of(dev), "transmit queue", index, queue->socket);
  dev->data->tx_queues[index] = queue.release();
  return 0;
}

void tx_queue_release(rte_eth_dev* dev, uint16_t index) {
  TxQueueConfig* const queue = tx_queue(dev, index);
  if (queue == nullptr) return;
  destroy_tx_queue(*queue);
  add(port_of(dev).tx_retired, since(queue->data.counters, queue->counters_base));
  delete queue;
  dev->data->tx_queues[index] = nullptr;
}

Result<void> create_tx_queue(Port& port, TxQueueConfig& queue) {
  TxQueue& data = queue.data;
  const uint32_t wanted = queue.descriptors * usual_blocks(port.args.tx_inline_bytes);
  // room for one WQE of the largest kind at least, whatever the program asked for
  const uint32_t smallest = 4 * hw::send_wqe_blocks(kMaxTxSegments);
  const uint32_t depth = std::min(std::bit_ceil(std::max(wanted, smallest)),
                                  port.device->hca->capabilities().max_queue_depth);
  NM_TRY(queue.cq, port.hca->create_completion_queue({.depth = depth}));
  NM_TRY(queue.sq, port.hca->create_send_queue(port.device->domain, *queue.cq, depth));
  queue.sent.assign(queue.sq->depth, nullptr);
  queue.signals.assign(queue.cq->depth, {});
  const TxCounters counters = data.counters;
  data = TxQueue{};
  data.counters = counters;
  data.depth = queue.sq->depth;
  data.signal_packets = std::clamp(queue.descriptors / 4, 1u, kSignalPackets);
  data.inline_bytes = port.args.tx_inline_bytes;
  data.send_split = split_sender(data.inline_bytes);
  data.plain_blocks = hw::send_wqe_blocks(hw::send_wqe_segments(data.inline_bytes, 2));
  data.max_frame_bytes = max_frame_of(port.ethdev->data->mtu);
  data.max_plain_bytes = data.max_frame_bytes - static_cast<uint32_t>(sizeof(hw::EtherHeader));
  data.number_field = hw::ControlSegment::QueueNumber::set(0, queue.sq->number);
  data.wqes = queue.sq->ring.data();
  data.sq_producer = queue.sq->producer;
  data.doorbell = queue.sq->doorbell;
  data.sent = queue.sent.data();
  data.signals = queue.signals.data();
  data.cqes = queue.cq->ring.data();
  data.cq_depth = static_cast<uint32_t>(queue.cq->ring.size());
  data.cq_consumer = queue.cq->consumer;
  data.keys = KeyCache(port.device->map.get());
  data.card_range = port.device->map->device_memory();
  const hca::Capabilities& can = port.device->hca->capabilities();
  data.checksum = can.checksum;
  data.vlan = can.vlan;
  data.max_tso_bytes = can.max_tso_bytes;
  data.queue = queue.sq.get();
  data.is_foreign = is_device_memory;
  return queue.deferred ? queue.sq->stop() : Result<void>{};
}

void destroy_tx_queue(TxQueueConfig& queue) {
  if (queue.sq)
    reclaim(queue.data, 0);  // for error completions; the rest left when the port stopped
  queue.sq.reset();
  queue.cq.reset();
  if (queue.data.sent != nullptr) drain(queue.data);
  queue.data.sent = nullptr;
}

Result<void> start_tx_queue(TxQueueConfig& queue) {
  drain(queue.data);  // what a stopped queue was given
  NM_TRY_VOID(queue.sq->reset());
  rewind(queue.data);
  return {};
}

Result<void> stop_tx_queue(TxQueueConfig& queue) {
  reclaim(queue.data, 0);  // first: after an error it starts the queue anew
  NM_TRY_VOID(queue.sq->stop());
  drain(queue.data);
  return {};
}

}  // namespace nicmem::pmd
