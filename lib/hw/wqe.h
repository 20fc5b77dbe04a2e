// SPDX-License-Identifier: BSD-3-Clause
// Work queue entries of ConnectX. Layout: rdma-core mlx5dv.h. A send WQE is a run of 16-byte
// segments in 64-byte basic blocks (WQEBB); it may wrap the ring at a block's end. A receive WQE is
// an array of data segments, its stride a power of two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/endian.h"

namespace nicmem::hw {

inline constexpr uint32_t kWqeBlockBytes = 64;    // WQEBB: unit of the send ring's counters
inline constexpr uint32_t kWqeSegmentBytes = 16;  // "DS": unit of a WQE's length
inline constexpr uint32_t kMaxWqeSegments = 63;   // 6 bits of qpn_ds
inline constexpr uint32_t kMaxQueueDepth = 1u << 15;

/// A receive list ends early with this key and no length. mlx5dv.h: MLX5_INVALID_LKEY
inline constexpr uint32_t kInvalidKey = 0x100;

/// A piece of memory: scatter entry of a receive WQE, gather entry of a send WQE.
struct DataSegment {
  be32 byte_count;  // bit 31: `byte_count` bytes of data follow in the WQE itself
  be32 key;         // mlx5dv.h: lkey
  be64 address;     // virtual address; in a zero-based region the offset in it

  static constexpr uint32_t kInline = 1u << 31;
};
static_assert(sizeof(DataSegment) == 16 && alignof(DataSegment) == 1);
static_assert(offsetof(DataSegment, key) == 4 && offsetof(DataSegment, address) == 8);

enum class SendOpcode : uint8_t {
  kNop = 0x00,
  kSend = 0x0a,
  kTso = 0x0e,                  // the device cuts the packet into segments of EthSegment::mss
  kEnhancedMultiPacket = 0x29,  // many frames in one WQE (mlx5_prm.h, not in mlx5dv.h)
};

/// First segment of every send WQE.
struct ControlSegment {
  be32 opmod_index_opcode;  // [31:24] modifier, [23:8] index of the WQE's first block, [7:0] opcode
  be32 qpn_ds;              // [31:8] queue number, [5:0] length in 16-byte segments
  uint8_t signature;
  uint8_t dci[2];
  uint8_t fm_ce_se;  // [3:2] completion mode
  be32 immediate;

  using Index = Bits<uint32_t, 23, 8>;
  using Opcode = Bits<uint32_t, 7, 0>;
  using QueueNumber = Bits<uint32_t, 31, 8>;
  using Segments = Bits<uint32_t, 5, 0>;
  using Completion = Bits<uint8_t, 3, 2>;
  // When a completion is written. On error: for each WQE that fails, flushed ones included; on the
  // first error: not for those that are flushed. 3 also raises an event.
  static constexpr uint8_t kCompleteOnError = 0, kCompleteOnFirstError = 1, kCompleteAlways = 2;
};
static_assert(sizeof(ControlSegment) == 16 && alignof(ControlSegment) == 1);
static_assert(offsetof(ControlSegment, qpn_ds) == 4 && offsetof(ControlSegment, fm_ce_se) == 11);

/// Second segment of a send WQE on a raw-packet queue. Inlined header bytes start in its last two
/// bytes and go on in the segments that follow: `inline_bytes` says how many, the rest is padding.
/// (mlx5dv.h's struct is 32 bytes because it counts the first such segment in.)
struct EthSegment {
  uint8_t reserved0[4];
  uint8_t checksum_flags;  // FillL3, FillL4
  uint8_t reserved1;
  be16 mss;  // kTso: payload bytes a segment; else 0
  be32 metadata;
  be16 inline_bytes;        // mlx5dv.h: inline_hdr_sz. InsertVlan, or the number of bytes
  uint8_t inline_start[2];  // with InsertVlan the tag's control field, in network order

  using FillL3 = Bits<uint8_t, 6, 6>;         // the IPv4 header's checksum
  using FillL4 = Bits<uint8_t, 7, 7>;         // that of TCP or UDP, pseudo header included
  using InsertVlan = Bits<uint16_t, 15, 15>;  // of inline_bytes; nothing can be inlined then
};
static_assert(sizeof(EthSegment) == 16 && alignof(EthSegment) == 1);
static_assert(offsetof(EthSegment, checksum_flags) == 4 && offsetof(EthSegment, mss) == 6);
static_assert(offsetof(EthSegment, inline_bytes) == 12 && offsetof(EthSegment, inline_start) == 14);

/// Inlined bytes that fit into the eth segment itself.
inline constexpr uint32_t kInlineStartBytes = 2;

/// Length in 16-byte segments of a SEND WQE with `inline_bytes` of header (0, or at least 2) and
/// `pointers` data segments: control, eth, what of the header overflows the eth segment, pointers.
constexpr uint32_t send_wqe_segments(uint32_t inline_bytes, uint32_t pointers) {
  const uint32_t overflow = inline_bytes > kInlineStartBytes ? inline_bytes - kInlineStartBytes : 0;
  return 2 + div_ceil(overflow, kWqeSegmentBytes) + pointers;
}

/// The same in ring blocks.
constexpr uint32_t send_wqe_blocks(uint32_t segments) {
  return div_ceil(segments * kWqeSegmentBytes, kWqeBlockBytes);
}

static_assert(send_wqe_segments(18, 1) == 4 && send_wqe_segments(64, 1) == 7);
static_assert(send_wqe_segments(82, 1) == 8 && send_wqe_blocks(8) == 2 && send_wqe_blocks(4) == 1);

/// Bytes between two receive WQEs with `entries` scatter entries. [libmlx5, mlx5_calc_rwq_size]
constexpr uint32_t receive_wqe_stride(uint32_t entries) {
  return std::bit_ceil(entries * kWqeSegmentBytes);
}

}  // namespace nicmem::hw
