// SPDX-License-Identifier: BSD-3-Clause
// What the two engines of a port share.
#pragma once

#include <cstdint>
#include <memory>

#include "hca/hca.h"
#include "sim/bus.h"
#include "sim/mr_table.h"
#include "sim/steering_options.h"
#include "sim/wire.h"

namespace nicmem::sim {

inline constexpr uint32_t kDefaultMaxFrameBytes = 1518;

/// Frames that an engine has from, or gives to, the wire at once.
inline constexpr uint32_t kBatch = 64;

/// In what ports of a device may differ from those of another.
struct PortTraits {
  bool keep_unmatched = false;  // frames that no rule takes wait for one, where the wire can wait
  uint32_t rule_priorities = kRulePriorities;
  bool flush_receives =
      false;  // of a receive queue in error, each request that is posted completes
              // with kFlushed. Linux asks a card for that (flush_in_error_en).
};

template <Bus B>
struct PortCore {
  const MrTable& regions;
  std::unique_ptr<Wire> wire;
  uint32_t header_bytes;
  PortTraits traits{};
  uint32_t max_frame_bytes = kDefaultMaxFrameBytes;
  hca::PortCounters counters{};
  B bus{};

  /// Of `bytes` that lie `frame_offset` into a frame.
  hw::PcieClass class_of(uint32_t frame_offset, uint32_t bytes) const {
    return frame_offset == 0 && bytes <= header_bytes ? hw::PcieClass::kHeader
                                                      : hw::PcieClass::kPayload;
  }
};

}  // namespace nicmem::sim
