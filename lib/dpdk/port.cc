// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/port.h"

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "dpdk/error.h"

namespace nicmem::dpdk {
namespace {

// What a frame has besides the IP packet: Ethernet header, two VLAN tags, FCS.
constexpr uint32_t kFrameOverhead = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN;
constexpr uint32_t kUsualRoom = 2048;

uint32_t frame_bytes(const PortOptions& options) { return options.mtu_bytes + kFrameOverhead; }

/// Scattering is asked for only where it saves memory, and where chains can leave again.
bool wants_scatter(const PortOptions& options, const rte_eth_dev_info& device) {
  return frame_bytes(options) > kUsualRoom &&
         (device.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0 &&
         (device.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
}

Result<rte_eth_dev_info> device_info(const PortOptions& options, uint16_t id) {
  rte_eth_dev_info device{};
  if (const int rc = rte_eth_dev_info_get(id, &device); rc != 0)
    return fail_rte("port " + options.name + ": device information", rc);
  if (options.mtu_bytes < device.min_mtu || options.mtu_bytes > device.max_mtu) {
    return fail(Code::kInvalidArgument, "port " + options.name + ": mtu " +
                                            std::to_string(options.mtu_bytes) +
                                            "; accepted: " + std::to_string(device.min_mtu) + ".." +
                                            std::to_string(device.max_mtu));
  }
  if (options.rx_queues > device.max_rx_queues || options.tx_queues > device.max_tx_queues) {
    return fail(Code::kInvalidArgument,
                "port " + options.name + ": " + std::to_string(options.rx_queues) +
                    " receive and " + std::to_string(options.tx_queues) +
                    " transmit queues; accepted: up to " + std::to_string(device.max_rx_queues) +
                    " and " + std::to_string(device.max_tx_queues));
  }
  return device;
}

/// Buffers that hold a whole frame, unless the device scatters long ones over several.
Result<Mempool> make_receive_pool(const PortOptions& options, uint16_t id, bool scatter) {
  return make_mempool(
      {.name = "rx_port_" + std::to_string(id),
       .mbufs = options.mbufs,
       .cache = std::min(256u, options.mbufs / 4),
       .room_bytes =
           scatter ? kUsualRoom : std::max(kUsualRoom, round_up(frame_bytes(options), 64u)),
       .numa_socket = rte_eth_dev_socket_id(id)});
}

Result<void> set_up_queues(const PortOptions& options, uint16_t id, rte_mempool* pool) {
  uint16_t rx = options.rx_descriptors;
  uint16_t tx = options.tx_descriptors;
  if (const int rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx); rc != 0)
    return fail_rte("port " + options.name + ": ring sizes", rc);
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(id));
  for (uint16_t queue = 0; queue < options.rx_queues; ++queue) {
    if (const int rc = rte_eth_rx_queue_setup(id, queue, rx, socket, nullptr, pool); rc != 0)
      return fail_rte("port " + options.name + ": receive queue " + std::to_string(queue), rc);
  }
  for (uint16_t queue = 0; queue < options.tx_queues; ++queue) {
    if (const int rc = rte_eth_tx_queue_setup(id, queue, tx, socket, nullptr); rc != 0)
      return fail_rte("port " + options.name + ": transmit queue " + std::to_string(queue), rc);
  }
  return {};
}

/// Gives the port its MAC address; a device that cannot change it receives everything instead.
Result<hw::MacAddress> apply_mac(const PortOptions& options, uint16_t id, bool& promiscuous) {
  rte_ether_addr own{};
  if (const int rc = rte_eth_macaddr_get(id, &own); rc != 0)
    return fail_rte("port " + options.name + ": MAC address", rc);
  hw::MacAddress mac;
  std::memcpy(mac.bytes, own.addr_bytes, sizeof mac.bytes);
  if (!options.mac || *options.mac == mac) return mac;

  rte_ether_addr wanted{};
  std::memcpy(wanted.addr_bytes, options.mac->bytes, sizeof wanted.addr_bytes);
  const int rc = rte_eth_dev_default_mac_addr_set(id, &wanted);
  if (rc == -ENOTSUP) {
    promiscuous = true;
  } else if (rc != 0) {
    return fail_rte("port " + options.name + ": setting its MAC address", rc);
  }
  return *options.mac;
}

/// Drivers without a setting to change (rings, files) refuse with ENOTSUP and behave as wanted.
Result<void> allow_unsupported(const std::string& what, int rc) {
  if (rc != 0 && rc != -ENOTSUP) return fail_rte(what, rc);
  return {};
}

Result<void> start(const PortOptions& options, uint16_t id, bool promiscuous) {
  const std::string port = "port " + options.name;
  NM_TRY_VOID(allow_unsupported(port + ": mtu " + std::to_string(options.mtu_bytes),
                                rte_eth_dev_set_mtu(id, static_cast<uint16_t>(options.mtu_bytes))));
  if (const int rc = rte_eth_dev_start(id); rc != 0) return fail_rte(port + ": start", rc);
  if (!promiscuous) return {};
  return allow_unsupported(port + ": promiscuous mode", rte_eth_promiscuous_enable(id));
}

}  // namespace

Result<uint16_t> find_port(const std::string& name) {
  uint16_t id = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id) == 0) return id;
  std::string known;
  for (uint64_t next = rte_eth_find_next_owned_by(0, RTE_ETH_DEV_NO_OWNER); next < RTE_MAX_ETHPORTS;
       next = rte_eth_find_next_owned_by(static_cast<uint16_t>(id + 1), RTE_ETH_DEV_NO_OWNER)) {
    id = static_cast<uint16_t>(next);
    char text[RTE_ETH_NAME_MAX_LEN] = {};
    if (rte_eth_dev_get_name_by_port(id, text) != 0) continue;
    known += known.empty() ? "" : ", ";
    known += text;
  }
  return fail(Code::kNotFound, "port '" + name + "': no such ethdev; accepted: " +
                                   (known.empty() ? "none exists (give --vdev or -a)" : known));
}

Result<std::string> driver_of(uint16_t port) {
  rte_eth_dev_info device{};
  if (const int rc = rte_eth_dev_info_get(port, &device); rc != 0)
    return fail_rte("port " + std::to_string(port) + ": device information", rc);
  return std::string(device.driver_name ? device.driver_name : "");
}

Result<Port> Port::open(const PortOptions& options) {
  NM_TRY(const uint16_t id, find_port(options.name));
  NM_TRY(const rte_eth_dev_info device, device_info(options, id));

  const bool scatter = wants_scatter(options, device);
  rte_eth_conf config{};
  config.rxmode.mtu = options.mtu_bytes;
  config.rxmode.offloads = device.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
  if (scatter) config.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
  config.txmode.offloads = device.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

  NM_TRY(Mempool pool, make_receive_pool(options, id, scatter));
  if (const int rc = rte_eth_dev_configure(id, options.rx_queues, options.tx_queues, &config);
      rc != 0) {
    return fail_rte("port " + options.name + ": configuration", rc);
  }
  // From here on the destructor closes the device, whatever fails.
  Port port(PortInfo{.id = id,
                     .name = options.name,
                     .driver = device.driver_name ? device.driver_name : "",
                     .mac = {},
                     .rx_checksum = (config.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0,
                     .scatter = scatter},
            std::move(pool));
  NM_TRY_VOID(set_up_queues(options, id, port.pool()));
  bool promiscuous = options.promiscuous;
  NM_TRY(port.info_.mac, apply_mac(options, id, promiscuous));
  NM_TRY_VOID(start(options, id, promiscuous));
  return port;
}

Port::~Port() {
  stop();
  if (open_) rte_eth_dev_close(info_.id);
}

void Port::stop() {
  if (std::exchange(running_, false)) rte_eth_dev_stop(info_.id);
}

}  // namespace nicmem::dpdk
