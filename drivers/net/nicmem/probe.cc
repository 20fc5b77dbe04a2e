// SPDX-License-Identifier: BSD-3-Clause
// The vdev driver `net_nicmem`: probe and remove.
#include <cstring>

#include "attach.h"
#include "log.h"
#include "nicmem/errno.h"
#include "port.h"

namespace nicmem::pmd {

int log_type = 0;

namespace {

rte_vdev_driver driver;

/// Opens the device and a port of it; everything or nothing.
Result<std::unique_ptr<Port>> open_port(const std::string& name, const char* text,
                                        rte_ether_addr& mac) {
  NM_TRY(Devargs args, parse_devargs(text == nullptr ? "" : text));
  auto port = std::make_unique<Port>();
  port->name = name;
  if (args.mac)
    std::memcpy(mac.addr_bytes, args.mac->data(), sizeof mac.addr_bytes);
  else
    rte_eth_random_addr(mac.addr_bytes);
  NM_TRY(port->device, attach(name, args));
  ++port->device->ports;
  hca::PortOptions options{.name = name, .header_bytes = args.header_bytes};
  std::memcpy(options.mac.data(), mac.addr_bytes, options.mac.size());
  NM_TRY(port->hca, port->device->hca->open_port(options));
  port->args = std::move(args);
  return port;
}

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    NM_LOG(ERR, "%s: a secondary process cannot use this port", name);
    return -ENOTSUP;
  }
  PayloadPool::reap();  // a device that waited for its last buffers must not be found again
  rte_ether_addr mac{};
  auto port = open_port(name, rte_vdev_device_args(vdev), mac);
  if (!port) {
    NM_LOG(ERR, "%s: %s", name, port.error().what.c_str());
    return -to_errno(port.error());
  }
  auto* const addresses = static_cast<rte_ether_addr*>(rte_zmalloc("nicmem_mac", sizeof mac, 0));
  rte_eth_dev* const dev =
      addresses == nullptr ? nullptr : rte_eth_vdev_allocate(vdev, sizeof(Port*));
  if (dev == nullptr) {
    rte_free(addresses);
    NM_LOG(ERR, "%s: no memory or no free port number for another ethdev", name);
    return -ENOMEM;
  }
  *addresses = mac;
  (*port)->ethdev = dev;
  *static_cast<Port**>(dev->data->dev_private) = port->release();
  dev->data->mac_addrs = addresses;
  dev->data->promiscuous = port_of(dev).args.promiscuous ? 1 : 0;
  dev->data->dev_link.link_speed = RTE_ETH_SPEED_NUM_100G;
  dev->data->dev_link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
  dev->dev_ops = &kOps;
  dev->rx_pkt_burst = rx_burst_for(0);
  dev->tx_pkt_burst = tx_burst;
  rte_eth_dev_probing_finish(dev);
  return 0;
}

int remove(rte_vdev_device* vdev) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == nullptr) return 0;
  const int result = close_port(dev);
  return result != 0 ? result : rte_eth_dev_release_port(dev);
}

}  // namespace
}  // namespace nicmem::pmd

// Runs when the library is loaded, before any C++ static initialiser can be relied on.
RTE_INIT(nicmem_register) {
  using namespace nicmem::pmd;
  log_type = rte_log_register_type_and_pick_level("pmd.net.nicmem", RTE_LOG_INFO);
  driver.probe = probe;
  driver.remove = remove;
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  driver.driver.name = "net_nicmem";
  rte_vdev_register(&driver);
}
RTE_PMD_EXPORT_NAME(net_nicmem, __COUNTER__);
RTE_PMD_REGISTER_PARAM_STRING(
    net_nicmem,
    "hca=sim mode=host|split|nicmem-noinline|nicmem header=<18-512> "
    "split=auto|force|off tx_inline=<0|18-512> spill=sw guard=0|1 promiscuous=0|1 device=<name> "
    "mac=<address> sram=<size> wire=gen|loop|pair:<name>|ethdev:<name> "
    "cpu=<n>|any|none");
