// SPDX-License-Identifier: BSD-3-Clause
// The table of ethdev operations, by topic; each lives in the file that port.h names.
#include "log.h"
#include "nicmem/errno.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

int tx_done_cleanup(void* queue, uint32_t limit) {
  return static_cast<int>(reclaim_idle(static_cast<TxQueueConfig*>(queue)->data, limit));
}

eth_dev_ops make_ops() {
  eth_dev_ops ops{};
  ops.dev_configure = configure;
  ops.dev_start = start_port;
  ops.dev_stop = stop_port;
  ops.dev_reset = reset_port;
  ops.dev_close = close_port;
  ops.mtu_set = mtu_set;

  ops.dev_infos_get = dev_info;
  ops.dev_supported_ptypes_get = supported_ptypes;
  ops.dev_ptypes_set = ptypes_set;
  ops.rxq_info_get = rxq_info;
  ops.txq_info_get = txq_info;
  ops.fw_version_get = fw_version;

  ops.link_update = link_update;
  ops.dev_set_link_up = set_link_up;
  ops.dev_set_link_down = set_link_down;
  ops.is_removed = is_removed;

  ops.promiscuous_enable = promiscuous_enable;
  ops.promiscuous_disable = promiscuous_disable;
  ops.allmulticast_enable = allmulticast_enable;
  ops.allmulticast_disable = allmulticast_disable;
  ops.mac_addr_set = mac_addr_set;
  ops.mac_addr_add = mac_addr_add;
  ops.mac_addr_remove = mac_addr_remove;
  ops.set_mc_addr_list = set_mc_addr_list;
  ops.vlan_filter_set = vlan_filter_set;
  ops.vlan_offload_set = vlan_offload_set;
  ops.vlan_strip_queue_set = vlan_strip_queue_set;

  ops.reta_update = reta_update;
  ops.reta_query = reta_query;
  ops.rss_hash_update = rss_hash_update;
  ops.rss_hash_conf_get = rss_hash_conf_get;

  ops.rx_queue_setup = rx_queue_setup;
  ops.rx_queue_release = rx_queue_release;
  ops.rx_queue_start = rx_queue_start;
  ops.rx_queue_stop = rx_queue_stop;
  ops.tx_queue_setup = tx_queue_setup;
  ops.tx_queue_release = tx_queue_release;
  ops.tx_queue_start = tx_queue_start;
  ops.tx_queue_stop = tx_queue_stop;
  ops.tx_done_cleanup = tx_done_cleanup;

  ops.flow_ops_get = flow_ops_get;

  ops.stats_get = stats_get;
  ops.stats_reset = stats_reset;
  ops.xstats_get = xstats_get;
  ops.xstats_get_names = xstats_get_names;
  ops.xstats_reset = stats_reset;
  return ops;
}

}  // namespace

const eth_dev_ops kOps = make_ops();

Port& port_of(const rte_eth_dev& dev) { return **static_cast<Port**>(dev.data->dev_private); }
Port& port_of(const rte_eth_dev* dev) { return port_of(*dev); }

int to_rte(const Port& port, const Result<void>& result) {
  if (result) return 0;
  NM_LOG(ERR, "%s: %s", port.name.c_str(), result.error().what.c_str());
  return -to_errno(result.error());
}

}  // namespace nicmem::pmd
