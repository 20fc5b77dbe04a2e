// SPDX-License-Identifier: BSD-3-Clause
// A traffic source and sink: UDP over IPv4 in many flows, all frames built before the first one is
// handed out. Closed loop by default: as fast as buffers are posted, nothing lost. With a rate, it
// sends by the clock, and frames that find no buffer are lost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/ether.h"
#include "sim/wire.h"

namespace nicmem::sim {

struct GeneratorOptions {
  /// Sizes without FCS, used in turn: 42 to kMaxFrameBytes. The smallest legal frame is 60.
  std::vector<uint32_t> frame_bytes = {60};
  uint32_t flows = 1024;  // 1 to 2^20, each with addresses and ports of its own
  uint64_t frames = 0;    // how many to send; 0: endless
  uint64_t rate = 0;      // frames a second; 0: closed loop
  hw::MacAddress destination_mac{};
  hw::MacAddress source_mac{{0x02, 0x00, 0x5e, 0x00, 0x00, 0x01}};
  uint32_t destination = 0xc6120100;  // 198.18.1.0, first address of the prefix that flows use
  uint32_t destination_length = 24;   // of that prefix: 8 to 32
  uint32_t source = 0xc6120000;       // 198.18.0.0/24
  uint64_t seed = 1;                  // of the payload
  bool check = false;                 // sums up payloads, to compare what went out and came back

  /// The simple IMIX, 7:4:1 of 60, 590 and 1514 bytes (64, 594 and 1518 with FCS).
  static std::vector<uint32_t> imix();
};

/// Sums of frames, independent of their order. `check` adds up a CRC of each frame's bytes behind
/// the UDP header, which forwarding does not change; 0 unless asked for.
struct FrameSums {
  uint64_t frames = 0;
  uint64_t bytes = 0;
  uint64_t check = 0;
  friend bool operator==(const FrameSums&, const FrameSums&) = default;
};

class Generator final : public Wire {
 public:
  /// kInvalidArgument names what is accepted.
  static Result<std::unique_ptr<Generator>> create(const GeneratorOptions& options);

  size_t receive(std::span<Frame> out, Nanos now) override;
  size_t room() override { return ~size_t{0}; }
  size_t send(std::span<const Frame> frames, Nanos now) override;
  bool lossless() const override { return options_.rate == 0; }
  uint64_t generated() const override { return sent_.load(std::memory_order_relaxed).frames; }

  /// Of what was handed out, and of what came back. From any thread; each sum of its own moment.
  FrameSums sent() const { return sent_.load(std::memory_order_relaxed); }
  FrameSums received() const { return received_.load(std::memory_order_relaxed); }

 private:
  /// FrameSums that one thread adds to and any may read.
  class SharedSums {
   public:
    FrameSums load(std::memory_order order) const {
      return {frames_.load(order), bytes_.load(order), check_.load(order)};
    }
    void add(const FrameSums& more) {
      const auto bump = [](std::atomic<uint64_t>& sum, uint64_t by) {
        sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
      };
      bump(frames_, more.frames);
      bump(bytes_, more.bytes);
      bump(check_, more.check);
    }

   private:
    std::atomic<uint64_t> frames_{0}, bytes_{0}, check_{0};
  };

  explicit Generator(const GeneratorOptions& options);
  uint64_t due(Nanos now);

  GeneratorOptions options_;
  std::vector<std::byte> memory_;  // all frames
  std::vector<Frame> frames_;      // in the order of sending, repeated for ever
  std::vector<uint32_t> checks_;   // one a frame; empty unless options_.check
  size_t next_ = 0;
  bool started_ = false;
  Nanos start_ = 0;
  SharedSums sent_;
  SharedSums received_;
};

}  // namespace nicmem::sim
