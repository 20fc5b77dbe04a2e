// SPDX-License-Identifier: BSD-3-Clause
// Receive queues, control side: which buffers a WQE gets, and the queue's life on the device.
#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "base/bits.h"
#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

uint32_t data_room(const rte_mempool* pool) {
  return rte_pktmbuf_data_room_size(const_cast<rte_mempool*>(pool));
}

/// The program's own segments; the last pool is repeated until a whole frame fits, as DPDK's mlx5
/// does. Segment 0 keeps the usual headroom. [rte_eth_rxseg_split]
Result<void> use_given_segments(RxQueueConfig& queue, uint32_t max_frame) {
  uint32_t covered = 0, count = 0;
  for (; count < queue.given.size() || covered < max_frame; ++count) {
    if (count == kMaxRxSegments)
      return fail(Code::kInvalidArgument, "the receive segments hold " + std::to_string(covered) +
                                              " bytes, a frame may have " +
                                              std::to_string(max_frame) +
                                              ": accepted: segments that hold it, 8 at most");
    const bool extra = count >= queue.given.size();
    const rte_eth_rxseg_split& given = extra ? queue.given.back() : queue.given[count];
    RxSegment& segment = queue.data.segments[count];
    segment.pool = given.mp;
    segment.spill = nullptr;
    segment.headroom =
        static_cast<uint16_t>((extra ? 0 : given.offset) + (count == 0 ? RTE_PKTMBUF_HEADROOM : 0));
    const uint32_t room = data_room(given.mp);
    if (segment.headroom >= room)
      return fail(Code::kInvalidArgument, "receive segment " + std::to_string(count) +
                                              ": its pool's buffers have " + std::to_string(room) +
                                              " bytes, its offset takes them all");
    const uint32_t length = extra || given.length == 0 ? room - segment.headroom : given.length;
    segment.length = static_cast<uint16_t>(std::min(length, room - segment.headroom));
    covered += segment.length;
  }
  queue.data.num_segments = static_cast<uint8_t>(count);
  return {};
}

/// Whole frames: one buffer, or as many of the same pool as a frame needs.
Result<void> use_whole_frames(RxQueueConfig& queue, uint32_t max_frame) {
  const uint32_t room = data_room(queue.pool);
  if (room <= RTE_PKTMBUF_HEADROOM)
    return fail(Code::kInvalidArgument, "the pool's buffers have no room beyond the headroom");
  if (room - RTE_PKTMBUF_HEADROOM < max_frame && (queue.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) == 0)
    return fail(Code::kInvalidArgument,
                "buffers hold " + std::to_string(room - RTE_PKTMBUF_HEADROOM) +
                    " bytes, a frame may have " + std::to_string(max_frame) +
                    ": accepted: larger buffers, a smaller MTU, or the scatter offload");
  queue.given.assign(
      1, rte_eth_rxseg_split{.mp = queue.pool, .length = 0, .offset = 0, .proto_hdr = 0});
  auto result = use_given_segments(queue, max_frame);
  queue.given.clear();
  return result;
}

/// How much of the device's memory this port's payload may take: an equal share for each port that
/// the device has by now, and never the sixteenth (4 KiB at least) that is kept for the program's
/// own allocations.
size_t payload_share(const Device& device) {
  const size_t size = device.memory->size();
  const size_t reserve = std::max<size_t>(4096, size / 16);
  const size_t free = device.heap->free_bytes();
  if (size <= reserve || free <= reserve) return 0;
  return std::min((size - reserve) / std::max(1u, device.ports), free - reserve);
}

/// The port's payload pools, made at the first start; made anew when frames have grown. `frames` is
/// how many payloads may be on the way at once.
Result<void> make_payload_pools(Port& port, uint32_t frames, uint16_t bytes,
                                const RxQueueConfig& queue) {
  static std::atomic<uint32_t> serial{0};  // a pool left behind keeps its name
  const std::string suffix =
      std::to_string(port.ethdev->data->port_id) + "_" + std::to_string(serial++);
  const int node = port.device->hca->capabilities().numa_node;
  PayloadPool::Options options{.name = "nm_host" + suffix,
                               .buffers = frames,
                               .buffer_bytes = bytes,
                               .private_bytes = rte_pktmbuf_priv_size(queue.pool),
                               .socket = node >= 0 ? node : queue.socket};
  if (!port.host_payload || port.host_payload->buffer_bytes() < bytes ||
      port.host_payload->buffers() < frames) {
    port.host_payload.reset();
    NM_TRY(port.host_payload, PayloadPool::in_host(options));
  }
  if (port.args.mode == Mode::kSplit || !port.device->memory) return {};
  if (port.card_payload && port.card_payload->buffer_bytes() >= bytes) return {};
  port.card_payload.reset();
  options.name = "nm_card" + suffix;
  auto made = PayloadPool::on_card(port.device, options, payload_share(*port.device));
  if (!made) {
    NM_LOG(WARNING, "%s: %s: payloads stay in host memory", port.name.c_str(),
           made.error().what.c_str());
    return {};
  }
  port.card_payload = std::move(*made);
  return {};
}

/// Payloads on the way at once: every posted WQE, and what the program and the transmit rings hold.
uint32_t payload_frames(const Port& port) {
  uint32_t frames = 4096;
  for (uint16_t i = 0; i < port.ethdev->data->nb_rx_queues; ++i)
    if (const auto* queue = rx_queue(port.ethdev, i)) frames += 2 * queue->descriptors;
  return frames;
}

/// Header from the program's pool, payload from ours.
Result<void> use_own_split(Port& port, RxQueueConfig& queue, uint32_t max_frame) {
  const uint32_t header = port.args.header_bytes;
  const uint32_t room = data_room(queue.pool);
  if (room < header + RTE_PKTMBUF_HEADROOM)
    return fail(Code::kInvalidArgument, "the pool's buffers hold " + std::to_string(room) +
                                            " bytes: header=" + std::to_string(header) +
                                            " and the headroom need " +
                                            std::to_string(header + RTE_PKTMBUF_HEADROOM));
  queue.data.segments[0] = {queue.pool, nullptr, static_cast<uint16_t>(header),
                            RTE_PKTMBUF_HEADROOM};
  queue.data.num_segments = 1;
  if (header >= max_frame) return {};
  const auto payload = static_cast<uint16_t>(max_frame - header);
  NM_TRY_VOID(make_payload_pools(port, payload_frames(port), payload, queue));
  RxSegment& segment = queue.data.segments[1];
  segment = {port.host_payload->pool(), nullptr, payload, 0};
  if (port.card_payload) {
    segment.pool = port.card_payload->pool();
    segment.spill = port.host_payload->pool();
  }
  if (port.card_payload && port.args.spill == Spill::kHardware) {
    queue.primary.payload = {port.card_payload->pool(), nullptr, payload, 0};
    segment.pool = std::exchange(segment.spill, nullptr);
  }
  queue.data.num_segments = 2;
  return {};
}

Result<void> choose_segments(Port& port, RxQueueConfig& queue, uint32_t max_frame) {
  if (!queue.given.empty()) return use_given_segments(queue, max_frame);
  if (port.args.mode == Mode::kHost || port.args.split == Split::kOff)
    return use_whole_frames(queue, max_frame);
  if (port.args.split == Split::kForce) return use_own_split(port, queue, max_frame);
  if (!port.warned_no_split)
    NM_LOG(WARNING,
           "%s: mode=%s without buffer split: whole frames in host memory. Programs that read only "
           "the "
           "first segment take chains with split=force",
           port.name.c_str(), name_of(port.args.mode));
  port.warned_no_split = true;
  return use_whole_frames(queue, max_frame);
}

/// WQEs of a ring with `queue.descriptors`: no pool is asked for more buffers than the program gave
/// the ring descriptors, so a pool that a WQE takes several buffers of makes the ring shorter.
/// DPDK's mlx5 counts descriptors so, too.
uint32_t ring_depth(const RxQueueConfig& queue) {
  uint32_t most = 1;
  for (uint32_t k = 0; k < queue.data.num_segments; ++k) {
    const auto* const end = queue.data.segments.data() + queue.data.num_segments;
    const auto same = std::count_if(queue.data.segments.data(), end, [&](const RxSegment& other) {
      return other.pool == queue.data.segments[k].pool;
    });
    most = std::max(most, static_cast<uint32_t>(same));
  }
  return std::max(std::bit_floor(queue.descriptors / most), kMinDescriptors);
}

/// The payload buffers on the card that a queue of the port may have posted with spill=hw.
uint32_t card_share(const Port& port) {
  return std::max(1u, port.card_payload->buffers() / port.ethdev->data->nb_rx_queues);
}

/// WQEs of the primary ring; 0: there is none.
uint32_t primary_depth(const Port& port, RxQueueConfig& queue, uint32_t depth) {
  if (queue.primary.payload.pool == nullptr || queue.data.num_segments != 2) return 0;
  queue.primary.most = std::min(card_share(port), depth);
  return std::max(std::bit_ceil(queue.primary.most), kMinDescriptors);
}

void set_up_primary(RxQueueConfig& queue) {
  PrimaryRing& ring = queue.primary;
  ring.depth = queue.rq->depth;
  ring.wqes = queue.rq->ring.data();
  ring.stride_bytes = queue.rq->stride_bytes;
  ring.producer = queue.rq->producer;
  ring.mbufs = queue.mbufs.data() + size_t{queue.secondary_rq->depth} * kMaxRxSegments;
  ring.queue = queue.rq.get();
  ring.secondary = queue.secondary_rq.get();
  queue.data.primary = &ring;
}

/// The list of each WQE ends after its segments.
void end_lists(hca::ReceiveQueue& queue) {
  const hw::DataSegment end{be32(0), be32(hw::kInvalidKey), be64(0)};
  auto* const entries = reinterpret_cast<hw::DataSegment*>(queue.ring.data());
  std::fill_n(entries, queue.ring.size() / sizeof end, end);
}

Result<void> stop_rings(RxQueueConfig& queue) {
  NM_TRY_VOID(queue.rq->stop());
  return queue.secondary_rq ? queue.secondary_rq->stop() : Result<void>{};
}

Result<void> post_all(RxQueue& data) {
  if (fill(data)) return {};
  return fail(Code::kExhausted,
              "receive ring of " + std::to_string(data.depth) +
                  ": its pools have fewer buffers, or memory that cannot be registered");
}

}  // namespace

RxQueueConfig::~RxQueueConfig() { destroy_rx_queue(*this); }

int rx_queue_setup(rte_eth_dev* dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* conf, rte_mempool* pool) {
  rx_queue_release(dev, index);
  auto queue = std::make_unique<RxQueueConfig>();
  queue->descriptors = std::bit_ceil<uint32_t>(std::max<uint32_t>(descriptors, kMinDescriptors));
  queue->offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
  queue->socket = static_cast<int>(socket);
  queue->deferred = conf->rx_deferred_start != 0;
  queue->pool = pool;
  if (pool == nullptr)
    for (uint16_t i = 0; i < conf->rx_nseg; ++i) queue->given.push_back(conf->rx_seg[i].split);
  queue->data.port_id = dev->data->port_id;
  warn_across_nodes(port_of(dev), "receive queue", index, queue->socket);
  if (pool != nullptr)
    warn_across_nodes(port_of(dev), "pool of receive queue", index, pool->socket_id);
  dev->data->rx_queues[index] = queue.release();
  return 0;
}

Result<void> strip_vlan(RxQueueConfig& queue, bool on) {
  if (queue.rq) NM_TRY_VOID(queue.rq->strip_vlan(on));
  if (queue.secondary_rq) NM_TRY_VOID(queue.secondary_rq->strip_vlan(on));
  return {};
}

void rx_queue_release(rte_eth_dev* dev, uint16_t index) {
  RxQueueConfig* const queue = rx_queue(dev, index);
  if (queue == nullptr) return;
  destroy_rx_queue(*queue);
  add(port_of(dev).rx_retired, since(queue->data.counters, queue->counters_base));
  delete queue;
  dev->data->rx_queues[index] = nullptr;
}

Result<void> create_rx_queue(Port& port, RxQueueConfig& queue) {
  RxQueue& data = queue.data;
  queue.primary = {};
  NM_TRY_VOID(choose_segments(port, queue, max_frame_of(port.ethdev->data->mtu)));
  const uint32_t depth = ring_depth(queue);
  const uint32_t primary = primary_depth(port, queue, depth);
  NM_TRY(queue.cq, port.hca->create_completion_queue({.depth = std::bit_ceil(depth + primary)}));
  hca::ReceiveOptions options{.depth = depth, .scatter_entries = data.num_segments};
  if (primary != 0) {
    NM_TRY(queue.rq, port.hca->create_receive_queue(port.device->domain, *queue.cq,
                                                    {.depth = primary,
                                                     .scatter_entries = data.num_segments,
                                                     .user_index = kPrimaryIndex}));
    options.primary = queue.rq.get();
  }
  auto& own = primary != 0 ? queue.secondary_rq : queue.rq;
  NM_TRY(own, port.hca->create_receive_queue(port.device->domain, *queue.cq, options));
  if ((queue.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0) NM_TRY_VOID(strip_vlan(queue, true));
  queue.mbufs.assign(size_t{own->depth} * kMaxRxSegments + size_t{2} * primary, nullptr);
  data.head = 0;
  data.broken = false;
  data.depth = own->depth;
  data.cq_depth = static_cast<uint32_t>(queue.cq->ring.size());
  data.cqes = queue.cq->ring.data();
  data.cq_consumer = queue.cq->consumer;
  data.wqes = own->ring.data();
  data.stride_bytes = own->stride_bytes;
  data.rq_producer = own->producer;
  data.mbufs = queue.mbufs.data();
  data.queue = own.get();
  data.primary = nullptr;
  if (primary != 0) set_up_primary(queue);
  data.short_ring = nullptr;
  if (port.args.min_posted && data.num_segments == 2 && data.segments[1].spill != nullptr) {
    queue.short_ring = {.least = *port.args.min_posted};
    data.short_ring = &queue.short_ring;
  }
  data.keys = KeyCache(port.device->map.get());
  data.checksum_flags = (queue.offloads & RTE_ETH_RX_OFFLOAD_CHECKSUM) != 0;
  data.hash = (queue.offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0;
  data.extras = data.hash || data.checksum_flags ||
                (queue.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0 || port.flows.marks();
  end_lists(*queue.rq);
  if (queue.secondary_rq) end_lists(*queue.secondary_rq);
  return queue.deferred ? stop_rings(queue) : post_all(data);
}

void destroy_rx_queue(RxQueueConfig& queue) {
  queue.secondary_rq.reset();
  queue.rq.reset();
  if (queue.data.mbufs != nullptr) drain(queue.data);
  queue.cq.reset();
  queue.data.mbufs = nullptr;
  queue.data.cqes = nullptr;
  queue.data.primary = nullptr;
}

Result<void> start_rx_queue(RxQueueConfig& queue) {
  NM_TRY_VOID(queue.rq->reset());
  if (queue.secondary_rq) NM_TRY_VOID(queue.secondary_rq->reset());
  Result<void> posted = post_all(queue.data);
  if (posted) return posted;
  static_cast<void>(stop_rx_queue(queue));  // the first error is the one that is told
  return posted;
}

Result<void> stop_rx_queue(RxQueueConfig& queue) {
  NM_TRY_VOID(stop_rings(queue));
  drain(queue.data);
  return {};
}

}  // namespace nicmem::pmd
