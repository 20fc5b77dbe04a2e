// SPDX-License-Identifier: BSD-3-Clause
// Wires without an outside: a loopback plug, and a cable between two ports. Nothing is lost in
// them: a full ring keeps the sender from taking more work (room()).
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "sim/frame_ring.h"
#include "sim/wire.h"

namespace nicmem::sim {

/// One direction of a cable.
struct Strand {
  explicit Strand(size_t ring_bytes) : ring(ring_bytes) {}
  FrameRing ring;
  std::atomic<bool> sender_up{true};
};

/// What one end sends and receives, over strands which it may share with another end.
class CableEnd final : public Wire {
 public:
  CableEnd(std::shared_ptr<Strand> out, std::shared_ptr<Strand> in)
      : out_(std::move(out)), in_(std::move(in)) {}

  size_t receive(std::span<Frame> out, Nanos) override { return in_->ring.pop(out); }
  size_t room() override { return out_->ring.room(); }
  std::span<std::byte> lend() override { return out_->ring.lend(); }
  size_t send(std::span<const Frame> frames, Nanos) override {
    size_t sent = 0;
    while (sent < frames.size() && out_->ring.push(frames[sent])) ++sent;
    out_->ring.publish();
    return sent;
  }
  void set_link(bool up) override { out_->sender_up.store(up, std::memory_order_relaxed); }
  bool carrier() const override { return in_->sender_up.load(std::memory_order_relaxed); }
  bool lossless() const override { return true; }
  uint64_t held() const override { return in_->ring.waiting(); }

 private:
  std::shared_ptr<Strand> out_;
  std::shared_ptr<Strand> in_;
};

/// What a port sends comes back to it.
inline std::unique_ptr<Wire> make_loopback(size_t ring_bytes = FrameRing::kDefaultBytes) {
  auto strand = std::make_shared<Strand>(ring_bytes);
  return std::make_unique<CableEnd>(strand, strand);
}

/// Two ends; each may be stepped by a thread of its own, and either may go first.
inline std::pair<std::unique_ptr<Wire>, std::unique_ptr<Wire>> make_cable(
    size_t ring_bytes = FrameRing::kDefaultBytes) {
  auto there = std::make_shared<Strand>(ring_bytes);
  auto back = std::make_shared<Strand>(ring_bytes);
  return {std::make_unique<CableEnd>(there, back), std::make_unique<CableEnd>(back, there)};
}

}  // namespace nicmem::sim
