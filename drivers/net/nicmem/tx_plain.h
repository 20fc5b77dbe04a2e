// SPDX-License-Identifier: BSD-3-Clause
// What the loops for packets without offloads share: how to tell them, and the parts of their WQEs.
#pragma once

#include <cstring>

#include "hw/wqe.h"
#include "tx.h"
#include "tx_wqe.h"

namespace nicmem::pmd {

inline constexpr uint64_t kNotPlain =
    RTE_MBUF_F_TX_OFFLOAD_MASK | RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;

/// A packet that asks for nothing, not even for what the device has not, and starts in its own
/// mbuf's buffer, which is host memory.
inline bool is_plain(const rte_mbuf& packet) {
  constexpr uint32_t kLowest = 32;  // of these flags: a shorter constant
  static_assert((kNotPlain >> kLowest) << kLowest == kNotPlain);
  return (static_cast<uint32_t>(packet.ol_flags >> kLowest) & (kNotPlain >> kLowest)) == 0;
}

[[gnu::noinline]] inline bool look_up(TxQueue& q, KeyRange& guess, const void* data) {
  const KeyRange* const range = q.keys.find(data);
  if (range != nullptr) guess = *range;
  return range != nullptr;
}

/// Finds the range of `data`: as a rule the one where the last one lay.
inline bool locate(TxQueue& q, KeyRange& guess, const void* data) {
  return guess.contains(data) || look_up(q, guess, data);
}

inline const char* data_of(const rte_mbuf& segment) {
  return static_cast<const char*>(segment.buf_addr) + segment.data_off;
}

inline void write_pointer(std::byte* wqe, uint32_t segment, const KeyRange& range, const void* data,
                          uint32_t bytes) {
  auto& to = *reinterpret_cast<hw::DataSegment*>(wqe + segment * hw::kWqeSegmentBytes);
  to.byte_count.set(bytes);
  to.key = range.key;
  to.address.set(reinterpret_cast<uintptr_t>(data) - range.base);
}

}  // namespace nicmem::pmd
