// SPDX-License-Identifier: BSD-3-Clause
// An ethdev of any driver, from options to started: asks the device what it offers and takes that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "dpdk/mempool.h"
#include "hw/ether.h"

namespace nicmem::dpdk {

struct PortOptions {
  std::string name;  // of the ethdev: "net_pcap0", "0000:03:00.0"
  uint16_t rx_queues = 1;
  uint16_t tx_queues = 1;
  uint16_t rx_descriptors = 1024;  // adjusted to what the device allows
  uint16_t tx_descriptors = 2048;  // a whole receive ring may wait behind a busy wire
  uint32_t mtu_bytes = 1500;
  uint32_t mbufs = 4096;  // receive buffers of the port, all queues
  bool promiscuous = false;
  std::optional<hw::MacAddress> mac;  // default: the device's own
};

/// What the program should know of a port that has been opened.
struct PortInfo {
  uint16_t id = 0;
  std::string name;
  std::string driver;
  hw::MacAddress mac;
  bool rx_checksum = false;  // the device checks IPv4 header checksums
  bool scatter = false;      // a long frame may come in several segments
};

/// The id of the ethdev of that name. kNotFound names the ones that exist.
Result<uint16_t> find_port(const std::string& name);
/// The driver's name: "net_nicmem".
Result<std::string> driver_of(uint16_t port);

/// Owns a started port and its receive buffers; stops and closes it at the end. Ports that forward
/// to each other hold each other's buffers in their send queues: stop() all of them before the
/// first is closed.
class Port {
 public:
  /// kNotFound: no such ethdev. kInvalidArgument: an option beyond what the device accepts, which
  /// the error gives. Others as the driver reports them.
  static Result<Port> open(const PortOptions& options);

  Port(Port&& other) noexcept
      : info_(std::move(other.info_)),
        pool_(std::move(other.pool_)),
        open_(std::exchange(other.open_, false)),
        running_(std::exchange(other.running_, false)) {}
  Port& operator=(Port&&) = delete;
  ~Port();

  /// Lets nothing in or out any more, and gives back what waits in the send queues. Idempotent.
  void stop();

  const PortInfo& info() const { return info_; }
  uint16_t id() const { return info_.id; }
  rte_mempool* pool() const { return pool_.get(); }

 private:
  Port(PortInfo info, Mempool pool) : info_(std::move(info)), pool_(std::move(pool)) {}

  PortInfo info_;
  Mempool pool_;
  bool open_ = true;
  bool running_ = true;
};

}  // namespace nicmem::dpdk
