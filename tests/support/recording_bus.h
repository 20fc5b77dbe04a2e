// SPDX-License-Identifier: BSD-3-Clause
// A bus that remembers every access and counts them a second time, with arithmetic of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/bus.h"

namespace nicmem::test {

/// Counts on its own, packet by packet: writes of at most 256 bytes with 24 bytes around each; read
/// requests for at most 512 bytes, 24 bytes each; answers of at most 256 bytes with 20 around each.
class RecordingBus {
 public:
  static constexpr bool kCanFail = false;

  struct Access {
    bool write;
    hw::PcieClass c;
    sim::Location at;
    uint32_t bytes;
  };

  Nanos read(hw::PcieClass c, const sim::Location& at, uint32_t bytes, Nanos now) {
    log.push_back({false, c, at, bytes});
    return counting_.read(c, at, bytes, now);
  }
  Nanos write(hw::PcieClass c, const sim::Location& at, uint32_t bytes, Nanos now) {
    log.push_back({true, c, at, bytes});
    return counting_.write(c, at, bytes, now);
  }
  hw::PcieTally tally() const { return counting_.tally(); }

  hw::PcieTally count_again() const {
    hw::PcieTally sums;
    for (const Access& access : log) {
      if (access.at.kind == sim::Location::Kind::kSram) continue;
      hw::PcieTransfer& sum = sums[access.c];
      if (access.write) {
        add_packets(sum.out, access.bytes, 256, 24);
      } else {
        for (uint32_t left = access.bytes; left > 0; left -= std::min(left, 512u)) {
          sum.out.tlps += 1;
          sum.out.bytes += 24;
        }
        add_packets(sum.in, access.bytes, 256, 20);
      }
    }
    return sums;
  }

  std::vector<Access> log;

 private:
  static void add_packets(hw::PcieCost& sum, uint32_t bytes, uint32_t most, uint32_t around) {
    while (bytes > 0) {
      const uint32_t packet = bytes < most ? bytes : most;
      sum.tlps += 1;
      sum.bytes += packet + around;
      bytes -= packet;
    }
  }
  sim::CountingBus counting_;
};
static_assert(sim::Bus<RecordingBus>);

}  // namespace nicmem::test
