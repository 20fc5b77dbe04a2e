// SPDX-License-Identifier: BSD-3-Clause
// What the driver and nicmem-info find in the verbs piece, the one shared object that needs
// rdma-core: it is opened by whoever asks for a card, so that all else runs where there is none.
// Both sides come from one build: the interface is C++, its version is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/hca/verbs/options.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

/// A ConnectX of this machine, as far as it can be told without opening it.
struct DeviceName {
  std::string ibdev;        // "mlx5_0"
  std::string pci_address;  // "0000:ca:00.0"; empty: not known
  std::string netdev;       // its network interface; empty: none in this namespace
  int numa_node = -1;       // -1: not known
};

/// What a device says when it is opened.
struct DeviceReport {
  std::string firmware;         // "16.35.3006"
  std::string board;            // "MT_0000000012"; empty: not known
  uint32_t vendor_part_id = 0;  // 4119: ConnectX-5
  hca::Capabilities capabilities;
  uint32_t memory_alignment = 0;  // of device memory, bytes
  hca::LinkState link;
  uint32_t mtu = 0;              // of the network interface; 0: there is none
  bool raw_packets = false;      // queues and steering may be made (CAP_NET_RAW)
  bool flow_matchers = false;    // steering in the device's own format; else verbs' specs
  std::string memory_refused;    // why no device memory could be had; empty: it could
  std::string raw_refused;       // why not raw_packets
  std::string counters_refused;  // why no rule can count; empty: they can
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  /// Every ConnectX that rdma-core lists.
  virtual Result<std::vector<DeviceName>> list() = 0;
  /// The one that `ibdev` names: an InfiniBand device or a PCI address. kNotFound names those that
  /// there are.
  virtual Result<DeviceName> find(const std::string& ibdev) = 0;
  virtual Result<std::unique_ptr<hca::Hca>> open(const Options& options) = 0;
  /// Opens the device, tries what nicmem needs, and closes it.
  virtual Result<DeviceReport> report(const DeviceName& device) = 0;
};

/// Changes whenever anything does that both sides see.
inline constexpr uint32_t kPluginVersion = 2;
inline constexpr const char* kPluginFile = "nicmem_verbs.so";
inline constexpr const char* kPluginSymbol = "nm_hca_verbs_plugin";

/// Type of kPluginSymbol: null when the versions differ.
using PluginEntry = Plugin*(uint32_t version);

}  // namespace nicmem::hca_verbs
