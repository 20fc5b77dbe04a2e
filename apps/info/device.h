// SPDX-License-Identifier: BSD-3-Clause
// What nicmem-info knows about one device, a card or the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hca/hca.h"

namespace nicmem::info {

struct Device {
  std::string name;  // "mlx5_0", "sim"
  bool card = false;
  std::string kind;      // "ConnectX-5"
  std::string firmware;  // empty, here and below: there is none, or it is not known
  std::string board;
  std::string pci_address;
  std::string netdev;
  int numa_node = -1;  // -1: not known
  uint32_t mtu = 0;    // of the network interface, bytes; 0: there is none
  hca::LinkState link;

  std::string refused;  // why it cannot be opened: then nothing below is known
  hca::Capabilities capabilities;
  uint32_t memory_alignment = 0;  // of device memory, bytes
  bool any_mask = true;           // rules compare any bits of a field, not only whole ones

  // Why something cannot be had that was tried; empty: it can.
  std::string memory_refused;    // device memory
  std::string raw_refused;       // queues, and rules that steer frames to them
  std::string counters_refused;  // rules that count
};

/// All devices, and why there are no cards among them, if there are none.
struct Inventory {
  std::vector<Device> devices;
  std::string no_cards;
};

}  // namespace nicmem::info
