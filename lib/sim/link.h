// SPDX-License-Identifier: BSD-3-Clause
// A port's end of its wire, with a link that may be down. As on a card, work requests are executed
// all the same while it is: the frames are lost, and counted as what the wire did not take. Frames
// that are in the wire wait there.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "sim/wire.h"

namespace nicmem::sim {

class Link final : public Wire {
 public:
  explicit Link(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  /// What the port asks for; the other end sees it.
  void set_link(bool up) override {
    asked_up_ = up;
    wire_->set_link(up);
  }
  bool carrier() const override { return asked_up_ && wire_->carrier(); }

  /// Takes over the link's state, which then stays until the next look; whether it has changed.
  bool look() {
    const bool was = up_;
    up_ = carrier();
    return up_ != was;
  }
  bool up() const { return up_; }

  size_t receive(std::span<Frame> out, Nanos now) override {
    return up_ ? wire_->receive(out, now) : 0;
  }
  size_t room() override { return up_ ? wire_->room() : ~size_t{0}; }
  std::span<std::byte> lend() override { return up_ ? wire_->lend() : std::span<std::byte>(); }
  size_t send(std::span<const Frame> frames, Nanos now) override {
    return up_ ? wire_->send(frames, now) : 0;
  }
  bool lossless() const override { return wire_->lossless(); }
  uint64_t generated() const override { return wire_->generated(); }
  uint64_t held() const override { return wire_->held(); }

 private:
  std::unique_ptr<Wire> wire_;
  bool asked_up_ = true;
  bool up_ = true;
};

}  // namespace nicmem::sim
