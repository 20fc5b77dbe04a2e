// SPDX-License-Identifier: BSD-3-Clause
// A port's life: configure, start, stop, reset, close, and the same for one queue of it.
#include <algorithm>
#include <span>

#include "dpdk/on_node.h"
#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

Result<void> check_set_up(const Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i)
    if (rx_queue(port.ethdev, i) == nullptr)
      return fail(Code::kInvalidArgument, "receive queue " + std::to_string(i) + " was not set up");
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i)
    if (tx_queue(port.ethdev, i) == nullptr)
      return fail(Code::kInvalidArgument,
                  "transmit queue " + std::to_string(i) + " was not set up");
  return {};
}

Result<void> create_queues(Port& port) {
  const dpdk::OnNode here(port.device->hca->capabilities().numa_node);
  const rte_eth_dev_data& data = *port.ethdev->data;
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i)
    NM_TRY_VOID(create_rx_queue(port, *rx_queue(port.ethdev, i)));
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i)
    NM_TRY_VOID(create_tx_queue(port, *tx_queue(port.ethdev, i)));
  NM_TRY_VOID(port.hca->set_max_frame(max_frame_of(data.mtu)));
  NM_TRY_VOID(steer(port));
  std::vector<hca::ReceiveQueue*> queues;
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i)
    queues.push_back(rx_queue(port.ethdev, i)->rq.get());
  NM_TRY_VOID(port.flows.start(*port.hca, std::move(queues)));
  return port.hca->start();
}

void destroy_queues(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  if (!port.hca) return;
  port.hca->stop();
  port.flows.stop();
  static_cast<void>(port.hca->steer({}));  // the queues are about to go
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i)
    if (auto* queue = rx_queue(port.ethdev, i)) destroy_rx_queue(*queue);
  for (uint16_t i = 0; i < data.nb_tx_queues; ++i)
    if (auto* queue = tx_queue(port.ethdev, i)) destroy_tx_queue(*queue);
  count_unsent(port.ethdev);
  count_unseen(port.ethdev);
}

void release_queues(rte_eth_dev* dev) {
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) rx_queue_release(dev, i);
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) tx_queue_release(dev, i);
}

/// One receive function serves all queues of a port: the special one only if it fits them all.
eth_rx_burst_t choose_rx_burst(const rte_eth_dev* dev) {
  uint32_t segments = 0;
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
    if (rx_queue(dev, i)->data.primary != nullptr) return rx_burst_spill;
    if (rx_queue(dev, i)->data.short_ring != nullptr) return rx_burst_short;
    const uint32_t here = rx_queue(dev, i)->data.num_segments;
    if (i != 0 && here != segments) return rx_burst_for(0);
    segments = here;
  }
  return rx_burst_for(segments);
}

/// Tells ethdev how the queues are.
void set_queue_states(rte_eth_dev* dev, bool started) {
  const auto state = [started](bool deferred) -> uint8_t {
    return started && !deferred ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
  };
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i)
    if (auto* queue = rx_queue(dev, i)) dev->data->rx_queue_state[i] = state(queue->deferred);
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i)
    if (auto* queue = tx_queue(dev, i)) dev->data->tx_queue_state[i] = state(queue->deferred);
}

/// After a queue's own start or stop: `state` is its new one, if all went well.
int done(rte_eth_dev* dev, const Result<void>& result, uint8_t& place, uint8_t state) {
  if (result) place = state;
  return to_rte(port_of(dev), result);
}

/// A program that asks for what is not there would wait for it.
Result<void> check_modes(const rte_eth_conf& conf) {
  const struct {
    bool asked;
    const char* what;
  } absent[] = {
      {(conf.rxmode.mq_mode & ~RTE_ETH_MQ_RX_RSS_FLAG) != 0, "receive mode of queues DCB or VMDq"},
      {conf.txmode.mq_mode != RTE_ETH_MQ_TX_NONE, "transmit mode of queues DCB or VMDq"},
      {conf.lpbk_mode != 0, "loopback mode"},
      {conf.dcb_capability_en != 0, "DCB"},
      {conf.intr_conf.rxq != 0, "receive interrupts"},
      {conf.txmode.hw_vlan_insert_pvid != 0, "a tag for all packets"},
  };
  for (const auto& [asked, what] : absent)
    if (asked)
      return fail(Code::kUnsupported,
                  std::string(what) + ": not there: accepted: queues without, or with RSS");
  return {};
}

}  // namespace

int configure(rte_eth_dev* dev) {
  if (const Result<void> known = check_modes(dev->data->dev_conf); !known)
    return to_rte(port_of(dev), known);
  return to_rte(port_of(dev), configure_rss(port_of(dev)));
}

int start_port(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  if (!port.hca)
    return to_rte(port, fail(Code::kDevice, "the device is gone: reset or close the port"));
  if (const Result<void> complete = check_set_up(port); !complete) return to_rte(port, complete);
  const Result<void> started = create_queues(port);
  if (!started) {
    destroy_queues(port);
    return to_rte(port, started);
  }
  dev->rx_pkt_burst = choose_rx_burst(dev);
  dev->tx_pkt_burst = tx_burst;
  dev->tx_pkt_prepare = tx_prepare;
  dev->data->scattered_rx =
      std::any_of(dev->data->rx_queues, dev->data->rx_queues + dev->data->nb_rx_queues,
                  [](void* q) { return static_cast<RxQueueConfig*>(q)->data.num_segments > 1; });
  set_queue_states(dev, true);
  show_link(dev, true);
  return 0;
}

int stop_port(rte_eth_dev* dev) {
  destroy_queues(port_of(dev));
  set_queue_states(dev, false);
  show_link(dev, false);
  return 0;
}

/// ethdev has stopped the port. It comes back as a new one that keeps its addresses.
int reset_port(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  port.events->detach();
  {
    const std::lock_guard lock(control_mutex());
    port.flows.flush();
    port.flows.isolated = false;
    port.vlans.reset();
    release_queues(dev);
    close_device(port);
    if (const auto opened = open_device(port); !opened) return to_rte(port, opened);
  }
  port.events->attach(dev);
  return 0;
}

int close_port(rte_eth_dev* dev) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) return 0;
  Port* const port = &port_of(dev);
  port->events->detach();
  const std::lock_guard lock(control_mutex());
  port->flows.flush();
  release_queues(dev);
  remove_port(*port);
  delete port;
  return 0;
}

int mtu_set(rte_eth_dev* dev, uint16_t mtu) {
  if (dev->data->dev_started && mtu != dev->data->mtu) {
    NM_LOG(ERR, "%s: mtu %u: stop the port first: its buffers are made for frames of mtu %u",
           port_of(dev).name.c_str(), mtu, dev->data->mtu);
    return -EBUSY;
  }
  return 0;
}

int rx_queue_start(rte_eth_dev* dev, uint16_t index) {
  return done(dev, start_rx_queue(*rx_queue(dev, index)), dev->data->rx_queue_state[index],
              RTE_ETH_QUEUE_STATE_STARTED);
}

int rx_queue_stop(rte_eth_dev* dev, uint16_t index) {
  return done(dev, stop_rx_queue(*rx_queue(dev, index)), dev->data->rx_queue_state[index],
              RTE_ETH_QUEUE_STATE_STOPPED);
}

int tx_queue_start(rte_eth_dev* dev, uint16_t index) {
  return done(dev, start_tx_queue(*tx_queue(dev, index)), dev->data->tx_queue_state[index],
              RTE_ETH_QUEUE_STATE_STARTED);
}

int tx_queue_stop(rte_eth_dev* dev, uint16_t index) {
  return done(dev, stop_tx_queue(*tx_queue(dev, index)), dev->data->tx_queue_state[index],
              RTE_ETH_QUEUE_STATE_STOPPED);
}

}  // namespace nicmem::pmd
