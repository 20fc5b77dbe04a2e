// SPDX-License-Identifier: BSD-3-Clause
#include "link.h"

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

/// Tells the program once per change, if it asked to be told.
void link_changed(rte_eth_dev* dev) {
  if (link_update(dev, 0) != 0) return;  // as it was
  if (dev->data->dev_conf.intr_conf.lsc != 0)
    rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, nullptr);
}

int set_link(rte_eth_dev* dev, bool up) {
  Port& port = port_of(dev);
  if (!port.hca) return -EIO;
  const int result = to_rte(port, port.hca->set_link(up));
  if (result == 0) link_changed(dev);
  return result;
}

}  // namespace

void PortEvents::attach(rte_eth_dev* dev) {
  const std::lock_guard lock(mutex_);
  dev_ = dev;
}

void PortEvents::notify(hca::PortEvent event) {
  const std::lock_guard lock(mutex_);
  if (dev_ == nullptr) return;
  switch (event) {
    case hca::PortEvent::kLinkChanged:
      link_changed(dev_);
      return;
    case hca::PortEvent::kDeviceReset:
      NM_LOG(ERR, "%s: the device was reset: reset or close the port", dev_->data->name);
      rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_INTR_RESET, nullptr);
      return;
    case hca::PortEvent::kRemoved:
      NM_LOG(ERR, "%s: the device was removed", dev_->data->name);
      removed_ = true;
      if (dev_->data->dev_conf.intr_conf.rmv != 0)
        rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_INTR_RMV, nullptr);
      return;
  }
}

void PortEvents::detach() {
  const std::lock_guard lock(mutex_);
  dev_ = nullptr;
}

int show_link(rte_eth_dev* dev, bool started) {
  const Port& port = port_of(dev);
  const hca::LinkState state = port.hca ? port.hca->link() : hca::LinkState{};
  rte_eth_link link{};
  link.link_status = state.up && started ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
  link.link_speed = state.speed_mbps;
  link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  return rte_eth_linkstatus_set(dev, &link);
}

int link_update(rte_eth_dev* dev, int /*wait*/) {
  return show_link(dev, dev->data->dev_started != 0);
}

int set_link_up(rte_eth_dev* dev) { return set_link(dev, true); }
int set_link_down(rte_eth_dev* dev) { return set_link(dev, false); }

int is_removed(rte_eth_dev* dev) { return port_of(dev).events->removed() ? 1 : 0; }

}  // namespace nicmem::pmd
