// SPDX-License-Identifier: BSD-3-Clause
// A send work request as the device reads it: fetched whole out of the ring, which it may wrap, and
// then never looked up in host memory again, so that what was checked is what is executed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/view.h"
#include "hw/wqe.h"
#include "sim/rings.h"

namespace nicmem::sim {

struct SendWqe {
  static constexpr uint32_t kMaxBlocks = hw::send_wqe_blocks(hw::kMaxWqeSegments);

  // Not initialised: fetch() fills [0, blocks).
  alignas(64) std::array<std::byte, size_t{kMaxBlocks} * hw::kWqeBlockBytes> bytes;
  uint32_t segments;      // of 16 bytes, as the control segment says
  uint32_t blocks;        // that these take; at least 1, at most what is posted
  hw::SendOpcode opcode;  // any value
  uint8_t completion;
  bool well_formed;  // the control segment makes sense

  std::span<const std::byte> body() const {
    return std::span<const std::byte>(bytes).first(size_t{segments} * hw::kWqeSegmentBytes);
  }

  /// Reads the work request at the queue's head; at least one block is posted.
  void fetch(const SendRing& queue) {
    copy_block(queue, 0);
    const auto& control = *view_as<hw::ControlSegment>(std::span<const std::byte>(bytes));
    const uint32_t first = control.opmod_index_opcode.get();
    const uint32_t second = control.qpn_ds.get();
    segments = hw::ControlSegment::Segments::get(second);
    opcode = static_cast<hw::SendOpcode>(hw::ControlSegment::Opcode::get(first));
    completion = hw::ControlSegment::Completion::get(control.fm_ce_se);
    const uint32_t needed = std::max(1u, hw::send_wqe_blocks(segments));
    blocks = std::min<uint32_t>(needed, queue.available());
    well_formed = hw::ControlSegment::Index::get(first) == queue.head &&
                  hw::ControlSegment::QueueNumber::get(second) == queue.number &&
                  blocks == needed && segments >= fewest_segments();
    for (uint32_t i = 1; i < blocks; ++i) copy_block(queue, i);
  }

  bool always_completes() const { return completion >= hw::ControlSegment::kCompleteAlways; }

 private:
  /// Of a request of this opcode; more than there can be for one that the device does not execute.
  uint32_t fewest_segments() const {
    if (opcode == hw::SendOpcode::kSend || opcode == hw::SendOpcode::kTso ||
        opcode == hw::SendOpcode::kEnhancedMultiPacket) {
      return 2;
    }
    return opcode == hw::SendOpcode::kNop ? 1 : hw::kMaxWqeSegments + 1;
  }

  void copy_block(const SendRing& queue, uint32_t i) {
    std::memcpy(bytes.data() + size_t{i} * hw::kWqeBlockBytes,
                queue.slot(static_cast<uint16_t>(queue.head + i)), hw::kWqeBlockBytes);
  }
};

}  // namespace nicmem::sim
