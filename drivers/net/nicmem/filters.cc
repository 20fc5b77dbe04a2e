// SPDX-License-Identifier: BSD-3-Clause
// Which frames a port takes: addresses, VLANs, promiscuous modes. ethdev keeps most of this state
// in rte_eth_dev_data, and changes it only after an operation has succeeded; the operations change
// it first, so that steer() sees what is asked for, and put it back when the device refuses.
#include <algorithm>
#include <cstring>
#include <span>

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

hw::MacAddress to_hw(const rte_ether_addr& address) {
  hw::MacAddress mac;
  std::memcpy(mac.bytes, address.addr_bytes, sizeof mac.bytes);
  return mac;
}

/// The queues that hash values stand for. One queue and nobody who reads the hash: a table of one
/// entry, for which the device computes none.
std::vector<hca::ReceiveQueue*> spread(const Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  std::vector<hca::ReceiveQueue*> queues;
  if (data.nb_rx_queues == 0) return queues;
  if ((data.dev_conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0)
    for (const uint16_t queue : port.rss.table)
      queues.push_back(rx_queue(port.ethdev, queue)->rq.get());
  const bool hash = std::any_of(data.rx_queues, data.rx_queues + data.nb_rx_queues, [](void* q) {
    return (static_cast<RxQueueConfig*>(q)->offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0;
  });
  if (queues.empty() || (data.nb_rx_queues == 1 && !hash))
    queues.assign(1, rx_queue(port.ethdev, 0)->rq.get());
  return queues;
}

/// For a port that runs; else its start does it.
int steer_if_started(rte_eth_dev* dev) {
  Port& port = port_of(dev);
  return dev->data->dev_started ? to_rte(port, steer(port)) : 0;
}

/// Sets `place` and steers anew; on failure it is as before.
template <class T>
int change(rte_eth_dev* dev, T& place, T value) {
  std::swap(place, value);
  const int result = steer_if_started(dev);
  if (result != 0) std::swap(place, value);
  return result;
}

Result<void> set_strip(RxQueueConfig& queue, bool on) {
  NM_TRY_VOID(strip_vlan(queue, on));
  if (on) look_for_extras(queue.data);
  queue.offloads &= ~uint64_t{RTE_ETH_RX_OFFLOAD_VLAN_STRIP};
  if (on) queue.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
  return {};
}

}  // namespace

Result<void> steer(Port& port) {
  const rte_eth_dev_data& data = *port.ethdev->data;
  const std::vector<hca::ReceiveQueue*> queues = spread(port);
  std::vector<hw::MacAddress> unicast, multicast = port.multicast;
  for (const rte_ether_addr& address : std::span(data.mac_addrs, RTE_ETH_NUM_RECEIVE_MAC_ADDR)) {
    if (rte_is_zero_ether_addr(&address)) continue;
    const hw::MacAddress mac = to_hw(address);
    (mac.is_group() ? multicast : unicast).push_back(mac);
  }
  hca::SteeringOptions options{.promiscuous = data.promiscuous != 0,
                               .all_multicast = data.all_multicast != 0,
                               .isolated = port.flows.isolated};
  options.unicast = unicast;
  options.multicast = multicast;
  if ((data.dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0)
    options.vlans = &port.vlans;
  options.rss.table = queues;
  options.rss.key = port.rss.key;
  NM_TRY(options.rss.fields, hash_fields(port.rss.types));
  return port.hca->steer(options);
}

// Of these two ethdev itself sets what holds, also after a failure.
int promiscuous_enable(rte_eth_dev* dev) {
  dev->data->promiscuous = 1;
  return steer_if_started(dev);
}
int promiscuous_disable(rte_eth_dev* dev) {
  dev->data->promiscuous = 0;
  return steer_if_started(dev);
}
int allmulticast_enable(rte_eth_dev* dev) {
  dev->data->all_multicast = 1;
  return steer_if_started(dev);
}
int allmulticast_disable(rte_eth_dev* dev) {
  dev->data->all_multicast = 0;
  return steer_if_started(dev);
}

int mac_addr_set(rte_eth_dev* dev, rte_ether_addr* address) {
  return mac_addr_add(dev, address, 0, 0);
}

int mac_addr_add(rte_eth_dev* dev, rte_ether_addr* address, uint32_t index, uint32_t /*pool*/) {
  rte_ether_addr& place = dev->data->mac_addrs[index];
  if (rte_is_same_ether_addr(&place, address)) return 0;  // ethdev says it again at each start
  return change(dev, place, *address);
}

void mac_addr_remove(rte_eth_dev* dev, uint32_t index) {
  static_cast<void>(change(dev, dev->data->mac_addrs[index], rte_ether_addr{}));
}

int set_mc_addr_list(rte_eth_dev* dev, rte_ether_addr* list, uint32_t count) {
  Port& port = port_of(dev);
  if (count > kMaxMulticast) {
    NM_LOG(ERR, "%s: %u multicast addresses: accepted: at most %u", port.name.c_str(), count,
           kMaxMulticast);
    return -ENOSPC;
  }
  std::vector<hw::MacAddress> wanted;
  for (const rte_ether_addr& address : std::span(list, count)) {
    if (!rte_is_multicast_ether_addr(&address)) {
      char text[RTE_ETHER_ADDR_FMT_SIZE];
      rte_ether_format_addr(text, sizeof text, &address);
      NM_LOG(ERR, "%s: %s in a multicast list: accepted: multicast addresses", port.name.c_str(),
             text);
      return -EINVAL;
    }
    wanted.push_back(to_hw(address));
  }
  return change(dev, port.multicast, std::move(wanted));
}

int vlan_filter_set(rte_eth_dev* dev, uint16_t vlan, int on) {
  std::bitset<4096>& vlans = port_of(dev).vlans;
  std::bitset<4096> wanted = vlans;
  wanted.set(vlan, on != 0);
  return change(dev, vlans, wanted);
}

/// ethdev has put the new offloads into dev_conf, and puts the old ones back on failure.
int vlan_offload_set(rte_eth_dev* dev, int mask) {
  Port& port = port_of(dev);
  const uint64_t offloads = dev->data->dev_conf.rxmode.offloads;
  if ((mask & RTE_ETH_VLAN_STRIP_MASK) != 0)
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
      RxQueueConfig* const queue = rx_queue(dev, i);
      if (queue == nullptr) continue;
      const bool on = (offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0;
      if (const int error = to_rte(port, set_strip(*queue, on)); error != 0) return error;
    }
  return (mask & RTE_ETH_VLAN_FILTER_MASK) != 0 ? steer_if_started(dev) : 0;
}

void vlan_strip_queue_set(rte_eth_dev* dev, uint16_t index, int on) {
  if (RxQueueConfig* const queue = rx_queue(dev, index))
    static_cast<void>(to_rte(port_of(dev), set_strip(*queue, on != 0)));
}

}  // namespace nicmem::pmd
