// SPDX-License-Identifier: BSD-3-Clause
// Completion queue entries of ConnectX, 64 bytes. Layout: rdma-core mlx5dv.h `struct mlx5_cqe64`
// and `struct mlx5_err_cqe`; receive fields as DPDK's mlx5_prm.h reads them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/endian.h"
#include "hw/order.h"

namespace nicmem::hw {

enum class CqeOpcode : uint8_t {
  kRequester = 0x0,       // a send WQE has been executed
  kResponderSend = 0x2,   // a frame has been received
  kRequesterError = 0xd,  // ErrorCqe, send side
  kResponderError = 0xe,  // ErrorCqe, receive side
  kInvalid = 0xf,         // never written by the device: the ring's initial state
};

/// One completion. `op_own` is shared live with the device: use load_op_own()/store_op_own().
struct Cqe {
  uint8_t packet_info;  // bit 0: tunnelled
  uint8_t reserved0;
  be16 wqe_id;  // shared receive queues only
  uint8_t reserved1[8];
  be32 rx_hash_result;   // 0: no hash was computed
  uint8_t rx_hash_type;  // RxHash below
  uint8_t reserved2[3];
  be16 checksum;
  uint8_t reserved3[6];
  be16 header_type;  // HeaderType below. mlx5dv.h: hds_ip_ext, l4_hdr_type_etc
  be16 vlan_info;    // TCI of the stripped tag
  be32 user_index;   // mlx5dv.h: srqn_uidx
  be32 metadata;     // mlx5dv.h: imm_inval_pkey
  uint8_t reserved4[4];
  be32 byte_count;    // bytes of the frame, FCS excluded, over all scatter entries
  be64 timestamp;     // device ticks
  be32 sop_drop_qpn;  // receive: [23:0] flow tag; send: [31:24] opcode, [23:0] queue number
  be16 wqe_counter;   // index of the WQE that this entry completes, 16 bits
  uint8_t signature;
  uint8_t op_own;  // [7:4] opcode, [3:2] format, [1] solicited, [0] owner

  using Opcode = Bits<uint8_t, 7, 4>;
  using Owner = Bits<uint8_t, 0, 0>;
};
static_assert(sizeof(Cqe) == 64 && alignof(Cqe) == 1);
static_assert(offsetof(Cqe, rx_hash_result) == 12 && offsetof(Cqe, rx_hash_type) == 16);
static_assert(offsetof(Cqe, header_type) == 28 && offsetof(Cqe, vlan_info) == 30);
static_assert(offsetof(Cqe, user_index) == 32 && offsetof(Cqe, metadata) == 36);
static_assert(offsetof(Cqe, byte_count) == 44 && offsetof(Cqe, timestamp) == 48);
static_assert(offsetof(Cqe, sop_drop_qpn) == 56 && offsetof(Cqe, wqe_counter) == 60);
static_assert(offsetof(Cqe, signature) == 62 && offsetof(Cqe, op_own) == 63);

/// Bits of Cqe::header_type: what the device's parser found.
struct HeaderType {
  using VlanStripped = Bits<uint16_t, 0, 0>;
  using IpExtension = Bits<uint16_t, 1, 1>;
  using L3 = Bits<uint16_t, 3, 2>;  // kL3None ..
  using L4 = Bits<uint16_t, 6, 4>;  // kL4None ..
  using Fragment = Bits<uint16_t, 7, 7>;
  using L2Ok = Bits<uint16_t, 8, 8>;
  using L3Ok = Bits<uint16_t, 9, 9>;
  using L4Ok = Bits<uint16_t, 10, 10>;
  static constexpr uint16_t kL3None = 0, kL3Ipv6 = 1, kL3Ipv4 = 2;
  static constexpr uint16_t kL4None = 0, kL4Tcp = 1, kL4Udp = 2, kL4TcpEmptyAck = 3, kL4TcpAck = 4;
};

/// Why a WQE failed.
enum class Syndrome : uint8_t {
  kNone = 0x00,
  kLocalLength = 0x01,       // the frame is longer than the scatter list
  kLocalQpOperation = 0x02,  // the WQE is malformed
  kLocalProtection = 0x04,   // bad key, range, right or protection domain
  kFlushed = 0x05,           // the queue was already in error
};

/// The error form of a completion.
struct ErrorCqe {
  uint8_t reserved0[54];
  uint8_t vendor_syndrome;
  uint8_t syndrome;  // Syndrome
  be32 opcode_qpn;   // [31:24] opcode of the WQE, [23:0] queue number
  be16 wqe_counter;
  uint8_t signature;
  uint8_t op_own;
};
static_assert(sizeof(ErrorCqe) == 64 && alignof(ErrorCqe) == 1);
static_assert(offsetof(ErrorCqe, vendor_syndrome) == 54 && offsetof(ErrorCqe, syndrome) == 55);
static_assert(offsetof(ErrorCqe, opcode_qpn) == 56 && offsetof(ErrorCqe, wqe_counter) == 60);
static_assert(offsetof(ErrorCqe, op_own) == offsetof(Cqe, op_own));

/// What op_own is before the device has written the entry once (libmlx5 mlx5_alloc_cq_buf).
inline constexpr uint8_t kOpOwnInitial = 0xf0;

/// The driver's view of the owner byte; what else the entry holds may be read after this.
inline uint8_t load_op_own(const Cqe& cqe) {
  return std::atomic_ref(const_cast<uint8_t&>(cqe.op_own)).load(NM_CQE_OWNER_ACQUIRE);
}

/// The device hands the entry over, after all its other bytes.
inline void store_op_own(Cqe& cqe, CqeOpcode opcode, bool owner) {
  const auto value = Cqe::Opcode::set(owner ? 1 : 0, static_cast<uint8_t>(opcode));
  std::atomic_ref(cqe.op_own).store(value, std::memory_order_release);
}

/// Whether software owns entry `index` (free running) of a ring of `depth` (a power of two): the
/// owner bit flips on each lap, so its expected value is the lap's parity. [PRM, CQE ownership]
inline bool software_owns(uint8_t op_own, uint32_t index, uint32_t depth) {
  const bool lap = (index & depth) != 0;
  return (Cqe::Owner::get(op_own) != 0) == lap &&
         Cqe::Opcode::get(op_own) != static_cast<uint8_t>(CqeOpcode::kInvalid);
}

inline bool is_error(uint8_t op_own) {
  const uint8_t opcode = Cqe::Opcode::get(op_own);
  return opcode == static_cast<uint8_t>(CqeOpcode::kRequesterError) ||
         opcode == static_cast<uint8_t>(CqeOpcode::kResponderError);
}

}  // namespace nicmem::hw
