// SPDX-License-Identifier: BSD-3-Clause
// What verbs do not tell about a device: the PCI function and the network interface that it also
// is, and the counters that the kernel keeps in sysfs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace nicmem::hca_verbs {

class Surroundings {
 public:
  /// `ibdev_path`: ibv_device::ibdev_path, "/sys/class/infiniband/mlx5_0".
  explicit Surroundings(std::string ibdev_path);

  const std::string& pci_address() const { return pci_address_; }  // empty: not known
  const std::string& netdev() const { return netdev_; }            // empty: not in this namespace
  int numa_node() const;                                           // -1: not known
  std::string text(const char* name) const;                        // of sysfs: "board_id"

  std::array<uint8_t, 6> mac() const;  // zero: there is none
  uint32_t mtu() const;                // 0: there is no interface
  Result<void> set_mtu(uint32_t mtu);
  bool is_up() const;
  Result<void> set_up(bool up);

  /// Of port 1: "counters/port_rcv_packets". 0 where the kernel has none such.
  uint64_t counter(const char* name) const;

 private:
  Result<void> ask(unsigned long what, void* request, const std::string& why) const;

  std::string path_;
  std::string pci_address_;
  std::string netdev_;
};

}  // namespace nicmem::hca_verbs
