// SPDX-License-Identifier: BSD-3-Clause
// The receive queue's data path. Control code (rxq.cc) fills a RxQueue in; rx_burst() runs it.
//
// Ring shape: `depth` WQEs (a power of two), each a list of up to eight scatter entries, entry k
// pointing at a buffer of segments[k]. Every WQE is posted at all times but between a completion
// and its repost: the ring never shrinks. buffers(k)[slot] owns the buffer that entry k of WQE
// `slot` points at. (Not so with min_posted: rx_short.h.)
//
// Two ways through the ring. rx.cc takes runs of good completions of one or two segments, with
// buffers got in bulk; rx_general.cc takes one completion at a time and can do everything: more
// segments, pools that are dry or scattered over memory, errors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "compat.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "memory_map.h"

namespace nicmem::pmd {

inline constexpr uint32_t kMaxRxSegments = 8;
/// The flow tag of a rule that flags frames without giving them a number. [DPDK's mlx5: mark + 1]
inline constexpr uint32_t kFlowTagFlagOnly = hca::kMaxFlowTag;

inline constexpr uint32_t kRxIdleCheck = 1024;  // polls that found nothing between two checks

/// One scatter entry, the same in every WQE of a queue.
struct RxSegment {
  rte_mempool* pool = nullptr;
  rte_mempool* spill = nullptr;  // taken from when `pool` is dry; may be null
  uint16_t length = 0;           // bytes of a frame that it takes
  uint16_t headroom = 0;         // mbuf data_off
};

/// Where all buffers of a pool lie, when that is one registered range: then no buffer is looked up.
struct PoolWindow {
  rte_mempool* pool = nullptr;  // null: there is none, or it is not in one range
  KeyRange range;
  uint64_t flags = 0;  // of its mbufs: RTE_MBUF_F_EXTERNAL, or none
};

struct RxCounters {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t no_mbuf = 0;            // frames dropped: no replacement buffer
  uint64_t errors = 0;             // error completions
  uint64_t flushed = 0;            // of these: WQEs given back by a queue already in error
  uint64_t stopped = 0;            // frames dropped: complete when the queue stopped, never polled
  uint64_t stuck = 0;              // completions that never came, although later ones did
  uint64_t payload_bytes_nic = 0;  // of second and later segments: left on the card
  uint64_t payload_bytes_host = 0;
  uint64_t primary = 0;  // frames that each of two rings took (spill=hw)
  uint64_t secondary = 0;
};

struct PrimaryRing;  // rx_spill.h
struct ShortRing;    // rx_short.h

/// Thread rule: the owning lcore only, between start and stop.
struct alignas(RTE_CACHE_LINE_SIZE) RxQueue {
  // Line 0: read per burst, `head` written per burst.
  uint32_t head = 0;      // completions consumed = WQEs consumed, free running
  uint32_t depth = 0;     // WQEs
  uint32_t cq_depth = 0;  // completions, at least `depth`
  uint16_t port_id = 0;
  uint8_t num_segments = 0;
  bool lean = false;  // rx.cc may take the ring: see find_windows()
  const hw::Cqe* cqes = nullptr;
  std::byte* wqes = nullptr;
  uint32_t stride_bytes = 0;    // between WQEs
  bool checksum_flags = false;  // report what the device verified
  bool hash = false;            // report the RSS hash
  bool extras = false;          // describe_extras() has something to look for
  rte_mbuf** mbufs = nullptr;
  hw::DoorbellRecord* cq_consumer = nullptr;
  hw::DoorbellRecord* rq_producer = nullptr;

  std::array<RxSegment, kMaxRxSegments> segments{};
  std::array<PoolWindow, 2> windows;  // of segments[0] and [1]
  PoolWindow spill_window;            // of segments[1].spill
  uint32_t spilled = 0;               // posted buffers of segments[1].spill
  bool mixed = false;                 // some have been since the ring was filled
  KeyCache keys;
  RxCounters counters;
  hca::ReceiveQueue* queue = nullptr;  // for recovery only
  uint32_t idle_polls = 0;             // that found nothing
  bool broken = false;                 // has to be reset, and the device has refused so far
  PrimaryRing* primary = nullptr;      // spill=hw: this ring is the secondary of that one
  ShortRing* short_ring = nullptr;     // min_posted: how much of this ring is posted

  /// The ring of buffers that entry `segment` of the WQEs points at.
  rte_mbuf** buffers(uint32_t segment) { return mbufs + size_t{segment} * depth; }
  hw::DataSegment* entries(uint32_t index) {
    return reinterpret_cast<hw::DataSegment*>(wqes + size_t{index & (depth - 1)} * stride_bytes);
  }
};

/// Gives every WQE its buffers and posts the whole ring. False: a pool is dry; what was taken stays
/// in the slots for drain().
bool fill(RxQueue& queue);

/// Frees every posted buffer, and counts the frames in them that no one has polled. The queue must
/// not run any more; its rings are still there.
void drain(RxQueue& queue);

/// Tells the data path that describe_extras() may find something from now on. From any thread.
inline void look_for_extras(RxQueue& queue) {
  std::atomic_ref(queue.extras).store(true, std::memory_order_relaxed);
}
inline bool looks_for_extras(const RxQueue& queue) {
  return std::atomic_ref(const_cast<bool&>(queue.extras)).load(std::memory_order_relaxed);
}

/// What became of the next completion.
enum class RxOutcome : uint8_t {
  kNone,      // there was none
  kFrame,     // a frame for the program
  kConsumed,  // dropped or failed, and counted
  kRestart,   // the queue was in error and has been started anew: nothing is complete
};

/// Takes one completion of any kind. rx_general.cc
RxOutcome receive_one(RxQueue& queue, rte_mbuf*& out);

/// Nothing has come for a while: looks for a completion that is lost, and starts the queue anew
/// when it is, or when the device has refused that before. rx_general.cc
void look_for_trouble(RxQueue& queue);

/// Lets the device reuse the completions, then the WQEs, that have been consumed.
inline void ring(RxQueue& queue) {
  queue.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(queue.head & 0xffffff);
  queue.rq_producer->publish<NM_RQ_RECORD_RELEASE>((queue.head + queue.depth) & 0xffff);
}

/// ethdev's receive function for a queue with that many segments a WQE.
eth_rx_burst_t rx_burst_for(uint32_t num_segments);

}  // namespace nicmem::pmd
