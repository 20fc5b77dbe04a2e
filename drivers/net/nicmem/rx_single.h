// SPDX-License-Identifier: BSD-3-Clause
// The steps of receiving one completion, for the receive functions that are not made for runs of
// them: rx_general.cc, which has them, and rx_spill.cc.
#pragma once

#include <array>

#include "rx.h"

namespace nicmem::pmd {

/// A buffer that is to take a WQE's entry, and that entry.
struct Replacement {
  rte_mbuf* mbuf;
  hw::DataSegment entry;
};
using Replacements = std::array<Replacement, kMaxRxSegments>;

/// The next completion, or null while the device owns its slot.
const hw::Cqe* poll(const RxQueue& queue);

/// How many segments a frame of `bytes` fills.
uint32_t segments_used(const RxQueue& queue, uint32_t bytes);

/// A buffer of that segment's pools. False: they are dry, or its memory cannot be registered.
bool take(RxQueue& queue, const RxSegment& segment, Replacement& out);
/// One for each of the first `count` segments, or none.
bool take_all(RxQueue& queue, uint32_t count, Replacements& fresh);

/// Points entries 0..count-1 of WQE `index` at `fresh`; the other entries keep their buffers.
void post(RxQueue& queue, uint32_t index, const Replacements& fresh, uint32_t count);

/// Chains the buffers that a frame of `bytes` fills and counts where its payload lies.
void chain(RxQueue& queue, rte_mbuf* const* segments, uint32_t count, uint32_t bytes);

/// Counts a failed WQE; its buffers stay posted. True: the device has stopped the queue. A syndrome
/// that nobody knows costs its frame: if the queue has stopped, what is flushed behind it tells.
/// [as DPDK's mlx5_rx_err_handle]
bool stopped_by_error(RxQueue& queue, const hw::Cqe& cqe);

/// Starts the queue anew with the buffers it has. If the device refuses (false), look_for_trouble()
/// asks it again.
bool recover(RxQueue& queue);

}  // namespace nicmem::pmd
