// SPDX-License-Identifier: BSD-3-Clause
// The generic burst driver: owns prefetching, counting by reason and handing over, for any packet
// function and any kind of packet, so that this loop is written, tested and tuned once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/prefetch.h"
#include "nf/counts.h"
#include "nf/packet.h"
#include "nf/verdict.h"

namespace nicmem::nf {

/// How the driver reaches a packet, and who takes it afterwards. Each packet is handed to exactly
/// one of emit, discard, punt.
template <class A>
concept PacketAccess = requires(A& access, typename A::Packet packet, uint16_t port) {
  access.prefetch(packet);
  /// Nothing when the packet's buffers do not add up to its length.
  { access.view(packet) } -> std::same_as<std::optional<PacketView>>;
  { access.frame_bytes(packet) } -> std::convertible_to<uint32_t>;
  access.emit(packet, port);  // counts it as forwarded, or as tx_full, once it knows
  access.discard(packet);
  access.punt(packet);
};

/// Runs `function` (PacketView -> Verdict) over a burst. Everything but what happens to emitted
/// packets is counted in `counts`.
template <PacketAccess Access, class Function>
void run_burst(Access& access, Counts& counts, std::span<typename Access::Packet> burst,
               Function&& function) {
  constexpr size_t kAhead = 4;
  using Packet = typename Access::Packet;
  uint64_t bytes = 0;
  for_each_ahead<kAhead>(
      burst, [&](Packet packet) { access.prefetch(packet); },
      [&](Packet packet) {
        bytes += access.frame_bytes(packet);
        const std::optional<PacketView> view = access.view(packet);
        const Verdict verdict = view ? function(*view) : Verdict::drop(DropReason::kLengthMismatch);
        switch (verdict.kind) {
          case Verdict::Kind::kForward:
            access.emit(packet, verdict.port);
            break;
          case Verdict::Kind::kDrop:
            counts.drop(verdict.reason);
            access.discard(packet);
            break;
          case Verdict::Kind::kPunt:
            counts.punted.add(1);
            access.punt(packet);
            break;
        }
      });
  counts.received.add(burst.size());
  counts.received_bytes.add(bytes);
}

}  // namespace nicmem::nf
