// SPDX-License-Identifier: BSD-3-Clause
// Wires without an outside: a loopback plug, and a cable between two ports. Nothing is lost in
// them: a full ring keeps the sender from taking more work (room()).
#pragma once

#include <memory>
#include <utility>

#include "sim/frame_ring.h"
#include "sim/wire.h"

namespace nicmem::sim {

/// What one end sends and receives, over rings which it may share with another end.
class CableEnd final : public Wire {
 public:
  CableEnd(std::shared_ptr<FrameRing> out, std::shared_ptr<FrameRing> in)
      : out_(std::move(out)), in_(std::move(in)) {}

  size_t receive(std::span<Frame> out, Nanos) override { return in_->pop(out); }
  size_t room() override { return out_->room(); }
  std::span<std::byte> lend() override { return out_->lend(); }
  size_t send(std::span<const Frame> frames, Nanos) override {
    size_t sent = 0;
    while (sent < frames.size() && out_->push(frames[sent])) ++sent;
    out_->publish();
    return sent;
  }
  bool lossless() const override { return true; }
  uint64_t held() const override { return in_->waiting(); }

 private:
  std::shared_ptr<FrameRing> out_;
  std::shared_ptr<FrameRing> in_;
};

/// What a port sends comes back to it.
inline std::unique_ptr<Wire> make_loopback(size_t ring_bytes = FrameRing::kDefaultBytes) {
  auto ring = std::make_shared<FrameRing>(ring_bytes);
  return std::make_unique<CableEnd>(ring, ring);
}

/// Two ends; each may be stepped by a thread of its own, and either may go first.
inline std::pair<std::unique_ptr<Wire>, std::unique_ptr<Wire>> make_cable(
    size_t ring_bytes = FrameRing::kDefaultBytes) {
  auto there = std::make_shared<FrameRing>(ring_bytes);
  auto back = std::make_shared<FrameRing>(ring_bytes);
  return {std::make_unique<CableEnd>(there, back), std::make_unique<CableEnd>(back, there)};
}

}  // namespace nicmem::sim
