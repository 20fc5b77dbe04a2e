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

/// What the program gave the vdev, understood.
Result<std::unique_ptr<Port>> make_port(const std::string& name, const char* text) {
  auto port = std::make_unique<Port>();
  port->name = name;
  NM_TRY(port->args, parse_devargs(text == nullptr ? "" : text));
  if (port->args.mac)
    std::memcpy(port->mac.addr_bytes, port->args.mac->data(), sizeof port->mac.addr_bytes);
  else
    rte_eth_random_addr(port->mac.addr_bytes);
  NM_TRY_VOID(open_device(*port));
  const std::array<uint8_t, 6>& own = port->device->hca->capabilities().mac;
  if (!port->args.mac && own != std::array<uint8_t, 6>{})
    std::memcpy(port->mac.addr_bytes, own.data(), own.size());
  return port;
}

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) return attach_secondary(vdev);
  answer_secondaries();
  const std::lock_guard lock(control_mutex());
  PayloadPool::reap();  // a device that waited for its last buffers must not be found again
  auto port = make_port(name, rte_vdev_device_args(vdev));
  if (!port) {
    NM_LOG(ERR, "%s: %s", name, port.error().what.c_str());
    return -to_errno(port.error());
  }
  auto* const addresses = static_cast<rte_ether_addr*>(
      rte_calloc("nicmem_mac", RTE_ETH_NUM_RECEIVE_MAC_ADDR, sizeof(rte_ether_addr), 0));
  rte_eth_dev* const dev =
      addresses == nullptr ? nullptr : rte_eth_vdev_allocate(vdev, sizeof(SharedPort));
  if (dev == nullptr) {
    rte_free(addresses);
    NM_LOG(ERR, "%s: no memory or no free port number for another ethdev", name);
    return -ENOMEM;
  }
  *addresses = (*port)->mac;
  (*port)->ethdev = dev;
  (*port)->events->attach(dev);
  add_port(**port);
  static_cast<SharedPort*>(dev->data->dev_private)->port = port->release();
  dev->data->mac_addrs = addresses;
  dev->data->numa_node = dev->device->numa_node =
      port_of(dev).device->hca->capabilities().numa_node;
  dev->data->promiscuous = port_of(dev).args.promiscuous ? 1 : 0;
  dev->data->dev_link.link_speed = RTE_ETH_SPEED_NUM_100G;
  dev->data->dev_link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  dev->data->dev_flags |=
      RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV;
  dev->dev_ops = &kOps;
  dev->rx_pkt_burst = rx_burst_for(0);
  dev->tx_pkt_burst = tx_burst;
  dev->rx_queue_count = rx_queue_count;
  dev->rx_descriptor_status = rx_descriptor_status;
  dev->tx_descriptor_status = tx_descriptor_status;
  rte_eth_dev_probing_finish(dev);
  return 0;
}

int remove(rte_vdev_device* vdev) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == nullptr) return 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY && dev->data->dev_started)
    static_cast<void>(rte_eth_dev_stop(dev->data->port_id));  // bursts are harmless from here on
  const int result = close_port(dev);
  return result != 0 ? result : rte_eth_dev_release_port(dev);
}

/// What the bus expects of the two functions below.
int bus_result(int result) {
  if (result == 0) return 0;
  rte_errno = -result;
  return -1;
}

MemoryMap* map_of(rte_vdev_device* vdev) {
  const rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  return dev == nullptr || !port_of(dev).device ? nullptr : port_of(dev).device->map.get();
}

/// rte_dev_dma_map(): registers external memory before its first packet.
int dma_map(rte_vdev_device* vdev, void* start, uint64_t /*iova*/, size_t length) {
  MemoryMap* const map = map_of(vdev);
  if (map == nullptr) return bus_result(-ENODEV);
  const auto added = map->add_host_memory(start, length);
  if (added) return 0;
  NM_LOG(ERR, "%s: %s", rte_vdev_device_name(vdev), added.error().what.c_str());
  return bus_result(-to_errno(added.error()));
}

int dma_unmap(rte_vdev_device* vdev, void* start, uint64_t /*iova*/, size_t length) {
  MemoryMap* const map = map_of(vdev);
  if (map == nullptr) return bus_result(-ENODEV);
  if (map->forget(start, length)) return 0;
  NM_LOG(ERR, "%s: memory to unmap: %zu bytes at %p are not mapped", rte_vdev_device_name(vdev),
         length, start);
  return bus_result(-EINVAL);
}

}  // namespace

Result<void> check_spill(Spill spill, const hca::Capabilities& device) {
  if (spill == Spill::kSoftware || device.spill) return {};
  return fail(Code::kUnsupported,
              "spill=hw: device " + device.name + " cannot choose between two rings: accepted: sw");
}

Result<void> open_device(Port& port) {
  NM_TRY(auto device, attach(port.name, port.args));
  NM_TRY_VOID(check_spill(port.args.spill, device->hca->capabilities()));
  port.device = std::move(device);
  ++port.device->ports;
  hca::PortOptions options{.name = port.name, .header_bytes = port.args.header_bytes};
  std::memcpy(options.mac.data(), port.mac.addr_bytes, options.mac.size());
  options.on_event = [events = port.events](hca::PortEvent event) { events->notify(event); };
  NM_TRY(port.hca, port.device->hca->open_port(options));
  return {};
}

void close_device(Port& port) {
  port.hca.reset();
  port.card_payload.reset();
  port.host_payload.reset();
  if (port.device) --port.device->ports;
  port.device.reset();
  port.counters_base = {};
  port.pcie_base = {};
  port.rx_retired = {};
  port.tx_retired = {};
}

Port::~Port() { close_device(*this); }

}  // namespace nicmem::pmd

// Runs when the library is loaded, before any C++ static initialiser can be relied on.
RTE_INIT(nicmem_register) {
  using namespace nicmem::pmd;
  log_type = rte_log_register_type_and_pick_level("pmd.net.nicmem", RTE_LOG_INFO);
  driver.probe = probe;
  driver.remove = remove;
  driver.dma_map = dma_map;
  driver.dma_unmap = dma_unmap;
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  driver.driver.name = "net_nicmem";
  rte_vdev_register(&driver);
}
RTE_PMD_EXPORT_NAME(net_nicmem, __COUNTER__);
RTE_PMD_REGISTER_PARAM_STRING(
    net_nicmem,
    "hca=sim|verbs ibdev=<name or PCI address> mode=host|split|nicmem-noinline|nicmem "
    "header=<18-512> "
    "split=auto|force|off tx_inline=<0|18-512> spill=sw|hw min_posted=auto|<8-32768> guard=0|1 "
    "promiscuous=0|1 device=<name> mac=<address> sram=<size> numa=<node> "
    "wire=gen|loop|pair:<name>|ethdev:<name> cpu=<n>|any|none gen_size=<60-16384>|imix "
    "gen_flows=<n> gen_frames=<n> gen_dst=<prefix> gen_check=0|1 rate=<n> seed=<n> "
    "fault=none|<class>@<k>[+]");
