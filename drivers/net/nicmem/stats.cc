// SPDX-License-Identifier: BSD-3-Clause
// Statistics. Basic ones are what ethdev defines; extended ones say where every frame, byte and
// buffer went, so that sums can be checked: see README.md of this folder for the equations.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

constexpr uint64_t RxCounters::*kRxCounters[] = {&RxCounters::packets,
                                                 &RxCounters::bytes,
                                                 &RxCounters::no_mbuf,
                                                 &RxCounters::errors,
                                                 &RxCounters::flushed,
                                                 &RxCounters::stopped,
                                                 &RxCounters::stuck,
                                                 &RxCounters::payload_bytes_nic,
                                                 &RxCounters::payload_bytes_host,
                                                 &RxCounters::primary,
                                                 &RxCounters::secondary};
static_assert(sizeof(RxCounters) == std::size(kRxCounters) * sizeof(uint64_t));
constexpr uint64_t TxCounters::*kTxCounters[] = {
    &TxCounters::packets,        &TxCounters::bytes,
    &TxCounters::errors,         &TxCounters::stopped,
    &TxCounters::stuck,          &TxCounters::foreign_memory,
    &TxCounters::unknown_memory, &TxCounters::too_many_segments,
    &TxCounters::empty,          &TxCounters::bad_length,
    &TxCounters::bad_offload,    &TxCounters::doorbells};
static_assert(sizeof(TxCounters) == std::size(kTxCounters) * sizeof(uint64_t));

template <class Visit>
void for_each_rx(const rte_eth_dev* dev, Visit&& visit) {
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i)
    if (const auto* queue = rx_queue(dev, i)) visit(i, *queue);
}

template <class Visit>
void for_each_tx(const rte_eth_dev* dev, Visit&& visit) {
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i)
    if (const auto* queue = tx_queue(dev, i)) visit(i, *queue);
}

RxCounters counted(const RxQueueConfig& queue) {
  return since(queue.data.counters, queue.counters_base);
}
TxCounters counted(const TxQueueConfig& queue) {
  return since(queue.data.counters, queue.counters_base);
}

/// A port whose device is gone has counted nothing.
hca::PortCounters device_counters(const Port& port) {
  return port.hca ? port.hca->counters() : port.counters_base;
}

/// A card counts for all who use it, and some time later.
bool counts_exactly(const Port& port) {
  return port.device && port.device->hca->capabilities().exact_counters;
}

RxCounters sum_rx(const rte_eth_dev* dev) {
  RxCounters sum = port_of(dev).rx_retired;
  for_each_rx(dev, [&sum](uint16_t, const RxQueueConfig& queue) { add(sum, counted(queue)); });
  return sum;
}

TxCounters sum_tx(const rte_eth_dev* dev) {
  TxCounters sum = port_of(dev).tx_retired;
  for_each_tx(dev, [&sum](uint16_t, const TxQueueConfig& queue) { add(sum, counted(queue)); });
  return sum;
}

uint64_t tx_dropped(const TxCounters& c) {
  return c.foreign_memory + c.unknown_memory + c.too_many_segments + c.empty + c.bad_length +
         c.bad_offload;
}

/// Buffers of `pool` that posted WQEs point at. Exact when nothing moves.
uint64_t posted_of(const rte_eth_dev* dev, const rte_mempool* pool) {
  uint64_t posted = 0;
  for_each_rx(dev, [&](uint16_t, const RxQueueConfig& queue) {
    if (queue.data.mbufs == nullptr) return;
    for (const rte_mbuf* mbuf : queue.mbufs) posted += mbuf != nullptr && mbuf->pool == pool;
  });
  return posted;
}

/// Hands every statistic, in one fixed order, to `emit(name, value)`.
class Writer {
 public:
  Writer(rte_eth_xstat* values, rte_eth_xstat_name* names, unsigned size)
      : values_(values), names_(names), size_(size) {}
  void operator()(const char* name, uint64_t value) {
    if (count_ < size_ && values_ != nullptr) values_[count_] = {.id = count_, .value = value};
    if (count_ < size_ && names_ != nullptr)
      std::snprintf(names_[count_].name, sizeof names_[count_].name, "%s", name);
    ++count_;
  }
  int count() const { return static_cast<int>(count_); }

 private:
  rte_eth_xstat* values_;
  rte_eth_xstat_name* names_;
  unsigned size_;
  unsigned count_ = 0;
};

void emit_frames(Writer& emit, const Port& port, const RxCounters& rx, const TxCounters& tx) {
  const hca::PortCounters now = device_counters(port);
  const hca::PortCounters& base = port.counters_base;
  emit("rx_device_frames", now.rx_frames - base.rx_frames);
  emit("rx_no_buffer", now.rx_no_buffer - base.rx_no_buffer);
  emit("rx_oversize", now.rx_oversize - base.rx_oversize);
  emit("rx_filtered", now.rx_filtered - base.rx_filtered);
  emit("rx_dropped_by_rule", now.rx_dropped_by_rule - base.rx_dropped_by_rule);
  emit("rx_wqe_error", now.rx_error - base.rx_error);
  emit("rx_malformed", now.rx_malformed - base.rx_malformed);
  emit("rx_short_ring", port.args.min_posted ? now.rx_no_buffer - base.rx_no_buffer : 0);
  emit("rx_no_mbuf", rx.no_mbuf);
  emit("rx_stopped", rx.stopped);
  emit("rx_stuck", rx.stuck);
  emit("tx_device_frames", now.tx_frames - base.tx_frames);
  emit("tx_device_error", now.tx_error - base.tx_error);
  emit("tx_wire_drops", now.tx_wire_drops - base.tx_wire_drops);
  emit("tx_wqe_error", tx.errors);
  emit("tx_foreign_memory", tx.foreign_memory);
  emit("tx_unknown_memory", tx.unknown_memory);
  emit("tx_too_many_segments", tx.too_many_segments);
  emit("tx_empty", tx.empty);
  emit("tx_bad_length", tx.bad_length);
  emit("tx_bad_offload", tx.bad_offload);
  emit("tx_stopped", tx.stopped);
  emit("tx_stuck", tx.stuck);
  emit("wire_generated", now.generated - base.generated);
  emit("wire_held", now.wire_held);
}

void emit_payload(Writer& emit, const Port& port, const rte_eth_dev* dev, const RxCounters& rx) {
  const uint64_t payload = rx.payload_bytes_nic + rx.payload_bytes_host;
  emit("rx_payload_nicmem_bytes", rx.payload_bytes_nic);
  emit("rx_payload_host_bytes", rx.payload_bytes_host);
  emit("rx_payload_nicmem_permille", payload == 0 ? 0 : rx.payload_bytes_nic * 1000 / payload);
  emit("rx_primary_frames", rx.primary);
  emit("rx_secondary_frames", rx.secondary);
  const struct {
    const char* name;
    const PayloadPool* pool;
  } pools[] = {{"nicmem", port.card_payload.get()}, {"host", port.host_payload.get()}};
  for (const auto& [name, pool] : pools) {
    char label[64];
    std::snprintf(label, sizeof label, "payload_%s_buffers", name);
    emit(label, pool == nullptr ? 0 : pool->buffers());
    std::snprintf(label, sizeof label, "payload_%s_free", name);
    emit(label, pool == nullptr ? 0 : rte_mempool_avail_count(pool->pool()));
    std::snprintf(label, sizeof label, "payload_%s_posted", name);
    emit(label, pool == nullptr ? 0 : posted_of(dev, pool->pool()));
  }
  uint64_t in_flight = 0;
  for_each_tx(dev, [&in_flight](uint16_t, const TxQueueConfig& queue) {
    in_flight += queue.data.sent_head - queue.data.sent_tail;
  });
  emit("tx_in_flight", in_flight);
  const Memory* const memory = port.device ? port.device->memory.get() : nullptr;
  const MemoryStats stats = memory != nullptr ? memory->stats() : MemoryStats{};
  emit("nicmem_bytes", memory != nullptr ? memory->size() : 0);
  emit("nicmem_reads", stats.reads);
  emit("slow_reads", stats.slow_reads);
  emit("slow_reads_refused", stats.slow_reads_refused);
}

void emit_pcie(Writer& emit, const hw::PcieTally& tally, uint64_t doorbells) {
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    const hw::PcieTransfer& moved = tally.by_class[i];
    const struct {
      const char* name;
      uint64_t value;
    } rows[] = {{"out_bytes", moved.out.bytes},
                {"out_tlps", moved.out.tlps},
                {"in_bytes", moved.in.bytes},
                {"in_tlps", moved.in.tlps}};
    for (const auto& row : rows) {
      char label[64];
      std::snprintf(label, sizeof label, "pcie_%s_%s", hw::kPcieClassNames[i], row.name);
      emit(label, row.value);
    }
  }
  emit("tx_doorbells", doorbells);
}

/// Telemetry asks from its own thread, also for a port that has just gone.
int emit_all(rte_eth_dev* dev, Writer emit) {
  if (live_port(dev) == nullptr) return -ENODEV;
  const Port& port = port_of(dev);
  const RxCounters rx = sum_rx(dev);
  const TxCounters tx = sum_tx(dev);
  emit_frames(emit, port, rx, tx);
  emit_payload(emit, port, dev, rx);
  emit_pcie(emit, pcie_since_reset(port), tx.doorbells);
  return emit.count();
}

}  // namespace

void add(RxCounters& sum, const RxCounters& more) {
  for (uint64_t RxCounters::*const counter : kRxCounters) sum.*counter += more.*counter;
}

void add(TxCounters& sum, const TxCounters& more) {
  for (uint64_t TxCounters::*const counter : kTxCounters) sum.*counter += more.*counter;
}

RxCounters since(const RxCounters& now, const RxCounters& base) {
  RxCounters difference = now;
  for (uint64_t RxCounters::*const counter : kRxCounters) difference.*counter -= base.*counter;
  return difference;
}

TxCounters since(const TxCounters& now, const TxCounters& base) {
  TxCounters difference = now;
  for (uint64_t TxCounters::*const counter : kTxCounters) difference.*counter -= base.*counter;
  return difference;
}

/// Packets that the device took. (After a reset of the statistics with packets on the way, errors
/// may be of packets from before it.)
uint64_t good(const TxCounters& tx) {
  return tx.packets - std::min(tx.packets, tx.errors + tx.stopped);
}

/// Frames that the device delivered and that no one has seen when its queues are gone: their
/// completions never came.
void count_unseen(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  if (!counts_exactly(port)) return;
  const RxCounters rx = sum_rx(dev);
  const uint64_t seen = rx.packets + rx.no_mbuf + rx.stopped + rx.stuck;
  const uint64_t delivered = device_counters(port).rx_frames - port.counters_base.rx_frames;
  if (delivered <= seen) return;
  port.rx_retired.stuck += delivered - seen;
  NM_LOG(WARNING, "%s: %" PRIu64 " receive completions never came (rx_stuck)", port.name.c_str(),
         delivered - seen);
}

/// The device knows how far it came: what the driver gave it and it did not take is lost.
void count_unsent(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  if (!counts_exactly(port)) return;
  const hca::PortCounters now = device_counters(port);
  const TxCounters tx = sum_tx(dev);
  const uint64_t given = good(tx);
  const uint64_t taken = now.tx_frames - port.counters_base.tx_frames + now.tx_wire_drops -
                         port.counters_base.tx_wire_drops;
  if (given > taken) port.tx_retired.stopped += given - taken;
}

hw::PcieTally pcie_since_reset(const Port& port) {
  hw::PcieTally tally = port.hca ? port.hca->pcie() : port.pcie_base;
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    hw::PcieTransfer& moved = tally.by_class[i];
    const hw::PcieTransfer& base = port.pcie_base.by_class[i];
    moved.out.bytes -= base.out.bytes;
    moved.out.tlps -= base.out.tlps;
    moved.in.bytes -= base.in.bytes;
    moved.in.tlps -= base.in.tlps;
  }
  tally[hw::PcieClass::kDoorbell] = hw::times(sum_tx(port.ethdev).doorbells, hw::mmio_write(8));
  return tally;
}

int stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
  if (live_port(dev) == nullptr) return -ENODEV;
  const Port& port = port_of(dev);
  const hca::PortCounters now = device_counters(port);
  const hca::PortCounters& base = port.counters_base;
  const RxCounters rx = sum_rx(dev);
  const TxCounters tx = sum_tx(dev);
  stats->ipackets = rx.packets;
  stats->ibytes = rx.bytes;
  stats->imissed = now.rx_no_buffer - base.rx_no_buffer;
  stats->ierrors = now.rx_error - base.rx_error + now.rx_oversize - base.rx_oversize +
                   now.rx_malformed - base.rx_malformed;
  stats->rx_nombuf = rx.no_mbuf;
  stats->opackets = good(tx);
  stats->obytes = tx.bytes;
  stats->oerrors = tx.errors + tx.stopped + tx_dropped(tx);
  for_each_rx(dev, [stats](uint16_t i, const RxQueueConfig& queue) {
    if (i >= RTE_ETHDEV_QUEUE_STAT_CNTRS) return;
    const RxCounters mine = counted(queue);
    stats->q_ipackets[i] = mine.packets;
    stats->q_ibytes[i] = mine.bytes;
    stats->q_errors[i] = mine.errors + mine.no_mbuf;
  });
  for_each_tx(dev, [stats](uint16_t i, const TxQueueConfig& queue) {
    if (i >= RTE_ETHDEV_QUEUE_STAT_CNTRS) return;
    const TxCounters mine = counted(queue);
    stats->q_opackets[i] = good(mine);
    stats->q_obytes[i] = mine.bytes;
  });
  return 0;
}

int stats_reset(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  if (port.hca) {
    port.counters_base = port.hca->counters();
    port.pcie_base = port.hca->pcie();
  }
  port.rx_retired = {};
  port.tx_retired = {};
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i)
    if (auto* queue = rx_queue(dev, i)) queue->counters_base = queue->data.counters;
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i)
    if (auto* queue = tx_queue(dev, i)) queue->counters_base = queue->data.counters;
  return 0;
}

int xstats_get(rte_eth_dev* dev, rte_eth_xstat* out, unsigned size) {
  return emit_all(dev, Writer(out, nullptr, size));
}

int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned size) {
  return emit_all(dev, Writer(nullptr, names, size));
}

}  // namespace nicmem::pmd
