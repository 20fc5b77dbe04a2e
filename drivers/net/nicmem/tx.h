// SPDX-License-Identifier: BSD-3-Clause
// The send queue's data path. Control code (txq.cc) fills a TxQueue in; tx_burst() runs it.
//
// Ring shape: `depth` blocks of 64 bytes (a power of two). A packet is one SEND WQE of one or more
// blocks: control, eth (with the inlined header), one data segment per piece of memory. Packets in
// flight wait in `sent`, in order. Every kSignalPackets-th WQE asks for a completion, and its
// completion frees all packets up to it.
#pragma once

#include <cstdint>

#include "compat.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "memory_map.h"

namespace nicmem::pmd {

inline constexpr uint32_t kSignalPackets = 32;  // as DPDK's mlx5 (MLX5_TX_COMP_THRESH)
inline constexpr uint32_t kMaxTxSegments = 60;  // 16-byte segments a WQE, as DPDK's mlx5

struct TxCounters {
  uint64_t packets = 0;  // given to the device
  uint64_t bytes = 0;
  uint64_t errors = 0;             // of these: given back by an error completion
  uint64_t stopped = 0;            // of these: not sent when the port stopped
  uint64_t foreign_memory = 0;     // dropped: a segment lies in another device's memory
  uint64_t unknown_memory = 0;     // dropped: a segment lies in memory that no one registered
  uint64_t too_many_segments = 0;  // dropped: the chain does not fit a WQE
  uint64_t empty = 0;              // dropped: no byte to send
  uint64_t bad_length = 0;         // dropped: no Ethernet header, or more than the port takes
  uint64_t doorbells = 0;          // MMIO writes
};

struct SentPacket {
  rte_mbuf* mbuf;
  uint32_t first_block;  // free running
};

/// Thread rule: the owning lcore only, between start and stop.
struct alignas(RTE_CACHE_LINE_SIZE) TxQueue {
  uint32_t producer = 0;             // blocks written, free running
  uint32_t consumer = 0;             // blocks known to be done
  uint32_t depth = 0;                // blocks
  uint32_t unsignalled_packets = 0;  // since the last WQE that asked for a completion
  uint32_t unsignalled_blocks = 0;
  uint32_t signal_packets = kSignalPackets;
  uint32_t inline_bytes = 0;  // header bytes copied into the WQE
  uint32_t max_frame_bytes = UINT32_MAX;
  uint32_t number = 0;
  std::byte* wqes = nullptr;
  hw::DoorbellRecord* sq_producer = nullptr;
  hw::DoorbellRegister* doorbell = nullptr;

  SentPacket* sent = nullptr;  // ring of `depth` entries
  uint32_t sent_head = 0, sent_tail = 0;

  const hw::Cqe* cqes = nullptr;
  uint32_t cq_head = 0;
  uint32_t cq_depth = 0;
  hw::DoorbellRecord* cq_consumer = nullptr;

  KeyCache keys;
  TxCounters counters;
  hca::SendQueue* queue = nullptr;  // for recovery only
  /// Whether an address that no key covers is some other device's memory.
  bool (*is_foreign)(const void*) = nullptr;
};

/// Sends up to `count` packets; returns how many it took (dropped ones included). Those not taken
/// stay the caller's.
uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count);

/// Frees what the device has finished; at most `limit` packets (0: all). Returns how many.
uint32_t reclaim(TxQueue& queue, uint32_t limit);

/// Frees everything in flight. The queue must not run any more.
void drain(TxQueue& queue);

}  // namespace nicmem::pmd
