// SPDX-License-Identifier: BSD-3-Clause
// The table of ethdev operations, by topic; each lives in the file that port.h names.
#include "log.h"
#include "nicmem/errno.h"
#include "port.h"
#include "ports.h"

namespace nicmem::pmd {
namespace {

int tx_done_cleanup(void* queue, uint32_t limit) {
  if (queue == nullptr) return -EINVAL;  // ethdev looks at nothing
  TxQueue& q = static_cast<TxQueueConfig*>(queue)->data;
  const bool runs = q.sent != nullptr;  // else nothing is in flight
  return runs ? static_cast<int>(reclaim_idle(q, limit)) : 0;
}

eth_dev_ops make_ops() {
  eth_dev_ops ops{};
  ops.dev_configure = locked<configure>;
  ops.dev_start = locked<start_port>;
  ops.dev_stop = locked<stop_port>;
  ops.dev_reset = reset_port;
  ops.dev_close = close_port;
  ops.mtu_set = locked<mtu_set>;

  ops.dev_infos_get = locked<dev_info>;
  ops.dev_supported_ptypes_get = supported_ptypes;
  ops.dev_ptypes_set = ptypes_set;
  ops.rxq_info_get = locked<rxq_info>;
  ops.txq_info_get = locked<txq_info>;
  ops.rx_burst_mode_get = locked<rx_burst_mode>;
  ops.tx_burst_mode_get = locked<tx_burst_mode>;
  ops.fw_version_get = locked<fw_version>;
  ops.eth_dev_priv_dump = locked<priv_dump>;

  ops.link_update = link_update;
  ops.dev_set_link_up = locked<set_link_up>;
  ops.dev_set_link_down = locked<set_link_down>;
  ops.is_removed = is_removed;

  ops.promiscuous_enable = locked<promiscuous_enable>;
  ops.promiscuous_disable = locked<promiscuous_disable>;
  ops.allmulticast_enable = locked<allmulticast_enable>;
  ops.allmulticast_disable = locked<allmulticast_disable>;
  ops.mac_addr_set = locked<mac_addr_set>;
  ops.mac_addr_add = locked<mac_addr_add>;
  ops.mac_addr_remove = locked<mac_addr_remove>;
  ops.set_mc_addr_list = locked<set_mc_addr_list>;
  ops.vlan_filter_set = locked<vlan_filter_set>;
  ops.vlan_offload_set = locked<vlan_offload_set>;
  ops.vlan_strip_queue_set = locked<vlan_strip_queue_set>;

  ops.reta_update = locked<reta_update>;
  ops.reta_query = locked<reta_query>;
  ops.rss_hash_update = locked<rss_hash_update>;
  ops.rss_hash_conf_get = locked<rss_hash_conf_get>;

  ops.rx_queue_setup = locked<rx_queue_setup>;
  ops.rx_queue_release = locked<rx_queue_release>;
  ops.rx_queue_start = locked<rx_queue_start>;
  ops.rx_queue_stop = locked<rx_queue_stop>;
  ops.tx_queue_setup = locked<tx_queue_setup>;
  ops.tx_queue_release = locked<tx_queue_release>;
  ops.tx_queue_start = locked<tx_queue_start>;
  ops.tx_queue_stop = locked<tx_queue_stop>;
  ops.tx_done_cleanup = tx_done_cleanup;

  ops.flow_ops_get = flow_ops_get;

  ops.stats_get = locked<stats_get>;
  ops.stats_reset = locked<stats_reset>;
  ops.xstats_get = locked<xstats_get>;
  ops.xstats_get_names = locked<xstats_get_names>;
  ops.xstats_reset = locked<stats_reset>;
  return ops;
}

}  // namespace

const eth_dev_ops kOps = make_ops();

Port& port_of(const rte_eth_dev& dev) {
  return *static_cast<SharedPort*>(dev.data->dev_private)->port;
}
Port& port_of(const rte_eth_dev* dev) { return port_of(*dev); }

int to_rte(const Port& port, const Result<void>& result) {
  if (result) return 0;
  NM_LOG(ERR, "%s: %s", port.name.c_str(), result.error().what.c_str());
  return -to_errno(result.error());
}

}  // namespace nicmem::pmd
