// SPDX-License-Identifier: BSD-3-Clause
// A ring that is kept short (min_posted, with spill=sw): no more WQEs are posted than the traffic
// needs. A card consumes its ring in the order in which it was posted, so a card's buffer waits for
// its next frame as long as the ring is: a short ring meets it more often, and has less to offer to
// a burst. WQEs that are held back have no buffers. [DESIGN.md 5]
//
// With `auto` the depth follows the backlog that polls find, and after a silence the whole ring is
// posted: a burst that comes then loses nothing that it would not lose otherwise.
#pragma once

#include "rx.h"

namespace nicmem::pmd {

inline constexpr uint32_t kShortestBacklog = 32;  // that `auto` expects: a poll's worth
inline constexpr uint32_t kBacklogsPosted = 4;    // WQEs posted for each frame of the backlog
inline constexpr uint32_t kLapsRemembered = 16;   // of the ring, until the backlog is halved

/// Thread rule: as RxQueue.
struct ShortRing {
  uint32_t least = 0;                   // WQEs to keep posted; 0: auto
  uint32_t target = 0;                  // WQEs to keep posted now
  uint32_t posted = 0;                  // free running; posted - RxQueue::head are with the device
  uint32_t backlog = kShortestBacklog;  // auto: the most that polls have found of late
  uint32_t frames = 0;                  // auto: since `backlog` was halved
  uint32_t silence = 0;                 // polls in a row that found nothing
};

/// ethdev's receive function for a port with min_posted.
uint16_t rx_burst_short(void* queue, rte_mbuf** out, uint16_t max);

// The rest is for queues that have a short ring.

/// Posts the first WQEs of a queue that holds no buffers. False: a pool is dry before the target.
bool fill_short(RxQueue& queue);

/// Starts the queue, which the device has reset, anew, with other buffers.
void restart_short(RxQueue& queue);

}  // namespace nicmem::pmd
