// SPDX-License-Identifier: BSD-3-Clause
// What a card shares with the kernel besides verbs: its network interface (MAC address, MTU, up or
// down), which programs change by other ways, and the counters in sysfs. The fake looks at the one
// and writes the other now and then, as it cannot know when somebody does.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/core.h"
#include "fake.h"

namespace nicmem::fake {

class Surroundings {
 public:
  /// The interface is the first in the device's PCI folder; there may be none.
  explicit Surroundings(Device& device);

  /// Of the interface, if the kernel knows it; else one made of the device's number.
  std::array<uint8_t, 6> mac() const;

  /// Takes over MTU and state of the interface, and writes the counters that have changed. The
  /// device's port is open.
  void look();
  /// The same, if the last time was long ago.
  void look(Nanos now) {
    if (now - looked_ < kEvery) return;
    looked_ = now;
    look();
  }

 private:
  static constexpr Nanos kEvery = 10'000'000;

  void follow_interface();
  void write_counters();
  void write(const std::string& name, uint64_t value) const;

  Device& device_;
  std::string netdev_;  // empty: none
  std::string port_folder_;
  Nanos looked_ = 0;
  int mtu_ = 0;
  bool up_ = true;
  bool writable_ = false;  // the counters
  hca::PortCounters written_{};
};

}  // namespace nicmem::fake
