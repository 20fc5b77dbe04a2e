// SPDX-License-Identifier: BSD-3-Clause
// Split rings by the device (spill=hw): two rings complete into one queue. The primary ring has as
// many WQEs posted as the card has buffers, the secondary, which RxQueue describes, is always full
// with buffers in host memory and takes a frame when the primary has nothing posted. So no frame is
// lost that a plain ring as long as the secondary would not lose. [DESIGN.md 5]
//
// A frame of the primary takes its buffers along: nothing replaces them but refill_primary(), with
// what has come back to the pools. A frame of the secondary is received as in any other ring.
#pragma once

#include "rx.h"

namespace nicmem::pmd {

/// Reported by the completions of the primary ring, in user_index; the secondary reports 0.
inline constexpr uint32_t kPrimaryIndex = 1;

/// Thread rule: as RxQueue.
struct PrimaryRing {
  uint32_t depth = 0;   // WQEs it could have, a power of two
  uint32_t most = 0;    // WQEs it has at most: its queue's share of the card's buffers
  uint32_t head = 0;    // consumed, free running
  uint32_t posted = 0;  // free running; posted - head are with the device
  std::byte* wqes = nullptr;
  uint32_t stride_bytes = 0;
  hw::DoorbellRecord* producer = nullptr;
  rte_mbuf** mbufs = nullptr;          // headers, then payloads; null: not posted
  RxSegment payload;                   // of the card
  hca::ReceiveQueue* queue = nullptr;  // these two for recovery only
  hca::ReceiveQueue* secondary = nullptr;

  uint32_t slot(uint32_t index) const { return index & (depth - 1); }
};

/// ethdev's receive function for a port with spill=hw.
uint16_t rx_burst_spill(void* queue, rte_mbuf** out, uint16_t max);

// The rest does nothing to a queue without a primary ring.

/// Posts what the card's pool has, up to PrimaryRing::most, as long as there are header buffers.
void refill_primary(RxQueue& queue);

/// Frees the primary ring's buffers. Neither ring may run.
void drain_primary(RxQueue& queue);

/// Empties the primary ring and lets it run; the secondary is stopped. False: the device refuses.
bool reset_primary(RxQueue& queue);

}  // namespace nicmem::pmd
