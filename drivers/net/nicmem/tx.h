// SPDX-License-Identifier: BSD-3-Clause
// The send queue's data path. Control code (txq.cc) fills a TxQueue in; tx_burst() runs it.
//
// Ring shape: `depth` blocks of 64 bytes (a power of two). A packet is one WQE of one or more
// blocks: control, eth (with the inlined header), one data segment per piece of memory. Packets in
// flight wait in `sent`, in order. At least every `signal_packets`-th WQE asks for a completion,
// which frees all packets up to its own; `signals` says which that is.
//
// Four files: tx.cc takes packets as they are as a rule (a header and at most one payload, no
// offload), tx_split.cc runs of those that split receive made, tx_general.cc any packet,
// tx_complete.cc gives back what is done.
#pragma once

#include <cstdint>

#include "compat.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "memory_map.h"
#include "tx_split.h"

namespace nicmem::pmd {

inline constexpr uint32_t kSignalPackets = 32;  // as DPDK's mlx5 (MLX5_TX_COMP_THRESH)
inline constexpr uint32_t kTxIdleCheck = 1024;  // polls that found nothing between two checks
inline constexpr uint32_t kMaxTxSegments = 60;  // 16-byte segments a WQE, as DPDK's mlx5
inline constexpr uint32_t kMaxTxBlocks = hw::send_wqe_blocks(kMaxTxSegments);

/// That is counted with when the number of segments is advertised. [DPDK's mlx5,
/// MLX5_MAX_TSO_HEADER]
inline constexpr uint32_t kLongestTsoHeader = 192;

/// Offloads that a packet may ask for. [rte_mbuf ol_flags]
inline constexpr uint64_t kTxOffloadFlags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 |
                                            RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK |
                                            RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_VLAN;

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
  uint64_t bad_offload = 0;        // dropped: an offload that this packet or device cannot have
  uint64_t stuck = 0;              // completions that never came, although later ones did
  uint64_t doorbells = 0;          // MMIO writes
};

/// A WQE that asks for a completion.
struct Signal {
  uint32_t block;      // its first
  uint32_t block_end;  // free running, as `producer`
  uint32_t sent_end;   // packets up to it, free running, as `sent_head`
};

/// Thread rule: the owning lcore only, between start and stop.
struct alignas(RTE_CACHE_LINE_SIZE) TxQueue {
  // Line 0: what writing a WQE takes.
  uint32_t producer = 0;      // blocks written, free running
  uint32_t consumer = 0;      // blocks known to be done
  uint32_t depth = 0;         // blocks
  uint32_t number_field = 0;  // qpn << 8, as ControlSegment::qpn_ds wants it
  std::byte* wqes = nullptr;
  rte_mbuf** sent = nullptr;  // ring of `depth` entries
  uint32_t sent_head = 0;     // packets written
  uint32_t sent_done = 0;     // packets that the device has done with
  uint32_t sent_tail = 0;     // packets freed
  uint32_t inline_bytes = 0;  // header bytes copied into the WQE: 0, or at least 18
  uint32_t max_frame_bytes = UINT32_MAX;
  uint32_t max_plain_bytes = UINT32_MAX - 14;  // behind the Ethernet header
  uint32_t last_block = 0;                     // first block of the newest WQE
  uint32_t plain_blocks = 1;  // that the WQE of a header and one payload takes at most

  // Line 1: what asking for completions and ringing takes.
  Signal* signals = nullptr;  // ring of `cq_depth` entries
  uint32_t signal_head = 0, signal_tail = 0;
  uint32_t unsignalled_packets = 0;  // since the last WQE that asked for a completion
  uint32_t signalled_block = 0;      // `producer` behind that WQE
  uint32_t signal_packets = kSignalPackets;
  hw::DoorbellRecord* sq_producer = nullptr;
  hw::DoorbellRegister* doorbell = nullptr;
  SplitSender* send_split = nullptr;  // for headers of inline_bytes

  hw::Cqe* cqes = nullptr;
  uint32_t cq_head = 0;
  uint32_t cq_depth = 0;
  hw::DoorbellRecord* cq_consumer = nullptr;

  KeyRange header_range;  // where the newest header and payload lay: guesses for the next ones
  KeyRange payload_range;
  KeyRange card_range;  // this device's memory, which the CPU must not read
  KeyCache keys;
  TxCounters counters;
  uint32_t max_tso_bytes = 0;       // 0: the device does not cut packets up
  bool checksum = false;            // the device fills checksums
  bool vlan = false;                // the device inserts tags
  uint32_t idle_polls = 0;          // that found nothing, with packets in flight
  hca::SendQueue* queue = nullptr;  // for recovery only
  /// Whether an address that no key covers is some other device's memory.
  bool (*is_foreign)(const void*) = nullptr;

  uint32_t free_blocks() const { return depth - (producer - consumer); }
  rte_mbuf*& sent_slot(uint32_t index) { return sent[index & (depth - 1)]; }
  std::byte* block(uint32_t index) {
    return wqes + size_t{index & (depth - 1)} * hw::kWqeBlockBytes;
  }
};

/// Sends up to `count` packets; returns how many it took (dropped ones included). Those not taken
/// stay the caller's.
uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count);

/// Whether the packets can be sent; the first that cannot has rte_errno ENOTSUP or EINVAL.
/// [rte_eth_tx_prepare]
uint16_t tx_prepare(void* queue, rte_mbuf** packets, uint16_t count);

/// Writes the WQE of any packet, or drops the packet and counts why. The ring has room for
/// kMaxTxBlocks. tx_general.cc
void send_general(TxQueue& queue, rte_mbuf* packet);

/// Polls completions; frees at most `limit` packets (0: all) that are done. Returns how many.
uint32_t reclaim(TxQueue& queue, uint32_t limit);
/// The same, for a queue that may stand still: if packets wait behind the last completion that was
/// asked for, asks for one of them all. [DRV-11]
uint32_t reclaim_idle(TxQueue& queue, uint32_t limit);

/// Both ends are at the ring's first block, as after a reset of the queue; nothing is in flight.
void rewind(TxQueue& queue);

/// Frees everything in flight. The queue must not run any more.
void drain(TxQueue& queue);

}  // namespace nicmem::pmd
