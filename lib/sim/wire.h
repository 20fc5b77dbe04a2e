// SPDX-License-Identifier: BSD-3-Clause
// What a port is plugged into. One virtual call a burst; frames are spans, without FCS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/core.h"
#include "base/result.h"
#include "hca/hca.h"

namespace nicmem::sim {

/// The largest frame that any port or wire of the model takes, without FCS.
inline constexpr uint32_t kMaxFrameBytes = 16384;

using Frame = std::span<const std::byte>;

/// How frames that a port sends lie one behind the other: this many bytes before each, and each
/// aligned to it.
inline constexpr size_t kFrameGap = 8;

/// Owned by a port and called only by the thread that steps the port's device, or under its gate.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Fills the front of `out` with the next frames that have come by `now`; returns how many.
  /// They stay valid until the next call of receive().
  virtual size_t receive(std::span<Frame> out, Nanos now) = 0;

  /// How many frames of kMaxFrameBytes send() is sure to take now.
  virtual size_t room() = 0;
  /// Memory in which the next frames to be sent can be put together, as kFrameGap says, so that
  /// send() need not copy them; room for one of the largest at least. Empty: there is none now.
  virtual std::span<std::byte> lend() { return {}; }
  /// Takes a prefix of `frames`, copying what it keeps; returns its length. What was lent is free
  /// again, but for the frames that it took.
  virtual size_t send(std::span<const Frame> frames, Nanos now) = 0;

  /// Asks for this end to be up or down: the other end sees a carrier or none. From any thread.
  virtual void set_link(bool) {}
  /// Whether the other end is up, as far as the wire knows.
  virtual bool carrier() const { return true; }

  /// Whether frames wait for a posted buffer (true), or are lost when there is none.
  virtual bool lossless() const = 0;
  /// Frames that the wire itself has made so far.
  virtual uint64_t generated() const { return 0; }
  /// Frames that have been sent into the wire and wait in it for this end's receive().
  virtual uint64_t held() const { return 0; }
};

/// Makes the wire of a port that is being opened.
using WireFactory = std::function<Result<std::unique_ptr<Wire>>(const hca::PortOptions&)>;

}  // namespace nicmem::sim
