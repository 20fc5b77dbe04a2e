// SPDX-License-Identifier: BSD-3-Clause
// The ConnectX formats of lib/hw against an outside oracle: rdma-core's <infiniband/mlx5dv.h> (its
// structs, constants and inline helpers), and against literal bytes. Nothing is linked.
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "base/rng.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "support/seed.h"

namespace nicmem::hw {
namespace {

template <class T>
std::array<uint8_t, sizeof(T)> bytes_of(const T& value) {
  std::array<uint8_t, sizeof(T)> out;
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// Our format over the oracle's bytes, and the other way round.
template <class To, class From>
To copy_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To>);
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}

template <size_t N>
using Bytes = std::array<uint8_t, N>;

// ---- Constants

TEST(Mlx5Constants, EqualTheOracles) {
  EXPECT_EQ(kInvalidKey, uint32_t{MLX5_INVALID_LKEY});
  EXPECT_EQ(kWqeBlockBytes, uint32_t{MLX5_SEND_WQE_BB});
  EXPECT_EQ(DataSegment::kInline, static_cast<uint32_t>(MLX5_INLINE_SEG));
  EXPECT_EQ(static_cast<int>(SendOpcode::kNop), MLX5_OPCODE_NOP);
  EXPECT_EQ(static_cast<int>(SendOpcode::kSend), MLX5_OPCODE_SEND);
  EXPECT_EQ(static_cast<int>(SendOpcode::kTso), MLX5_OPCODE_TSO);
  EXPECT_EQ(static_cast<int>(SendOpcode::kEnhancedMultiPacket), 0x29);  // mlx5_prm.h only
  EXPECT_EQ(ControlSegment::Completion::set(0, ControlSegment::kCompleteAlways),
            MLX5_WQE_CTRL_CQ_UPDATE);
  EXPECT_EQ(int{EthSegment::FillL3::kMask}, MLX5_ETH_WQE_L3_CSUM);
  EXPECT_EQ(int{EthSegment::FillL4::kMask}, MLX5_ETH_WQE_L4_CSUM);

  EXPECT_EQ(static_cast<int>(CqeOpcode::kRequester), MLX5_CQE_REQ);
  EXPECT_EQ(static_cast<int>(CqeOpcode::kResponderSend), MLX5_CQE_RESP_SEND);
  EXPECT_EQ(static_cast<int>(CqeOpcode::kRequesterError), MLX5_CQE_REQ_ERR);
  EXPECT_EQ(static_cast<int>(CqeOpcode::kResponderError), MLX5_CQE_RESP_ERR);
  EXPECT_EQ(static_cast<int>(CqeOpcode::kInvalid), MLX5_CQE_INVALID);
  EXPECT_EQ(int{Cqe::Owner::kMask}, MLX5_CQE_OWNER_MASK);
  EXPECT_EQ(int{kOpOwnInitial}, MLX5_CQE_INVALID << 4);

  EXPECT_EQ(static_cast<int>(Syndrome::kLocalLength), MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
  EXPECT_EQ(static_cast<int>(Syndrome::kLocalQpOperation), MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
  EXPECT_EQ(static_cast<int>(Syndrome::kLocalProtection), MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
  EXPECT_EQ(static_cast<int>(Syndrome::kFlushed), MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

// ---- Completions

TEST(Mlx5Cqe, HasTheOraclesOffsets) {
  static_assert(sizeof(Cqe) == sizeof(mlx5_cqe64));
  EXPECT_EQ(offsetof(Cqe, wqe_id), offsetof(mlx5_cqe64, wqe_id));
  EXPECT_EQ(offsetof(Cqe, header_type), offsetof(mlx5_cqe64, hds_ip_ext));
  EXPECT_EQ(offsetof(Cqe, header_type) + 1, offsetof(mlx5_cqe64, l4_hdr_type_etc));
  EXPECT_EQ(offsetof(Cqe, vlan_info), offsetof(mlx5_cqe64, vlan_info));
  EXPECT_EQ(offsetof(Cqe, user_index), offsetof(mlx5_cqe64, srqn_uidx));
  EXPECT_EQ(offsetof(Cqe, metadata), offsetof(mlx5_cqe64, imm_inval_pkey));
  EXPECT_EQ(offsetof(Cqe, byte_count), offsetof(mlx5_cqe64, byte_cnt));
  EXPECT_EQ(offsetof(Cqe, timestamp), offsetof(mlx5_cqe64, timestamp));
  EXPECT_EQ(offsetof(Cqe, sop_drop_qpn), offsetof(mlx5_cqe64, sop_drop_qpn));
  EXPECT_EQ(offsetof(Cqe, wqe_counter), offsetof(mlx5_cqe64, wqe_counter));
  EXPECT_EQ(offsetof(Cqe, signature), offsetof(mlx5_cqe64, signature));
  EXPECT_EQ(offsetof(Cqe, op_own), offsetof(mlx5_cqe64, op_own));
  // mlx5dv.h reserves these bytes; DPDK's mlx5_prm.h (struct mlx5_cqe) names them.
  EXPECT_EQ(offsetof(Cqe, packet_info), 0u);
  EXPECT_EQ(offsetof(Cqe, rx_hash_result), 12u);
  EXPECT_EQ(offsetof(Cqe, rx_hash_type), 16u);
  EXPECT_EQ(offsetof(Cqe, checksum), 20u);
}

TEST(Mlx5Cqe, HasTheseBytes) {
  Cqe cqe{};
  cqe.packet_info = 0x01;
  cqe.wqe_id = be16{0x0203};
  cqe.rx_hash_result = be32{0x0c0d0e0f};
  cqe.rx_hash_type = 0x10;
  cqe.checksum = be16{0x1415};
  cqe.header_type = be16{0x1c1d};
  cqe.vlan_info = be16{0x1e1f};
  cqe.user_index = be32{0x20212223};
  cqe.metadata = be32{0x24252627};
  cqe.byte_count = be32{0x2c2d2e2f};
  cqe.timestamp = be64{0x3031323334353637};
  cqe.sop_drop_qpn = be32{0x38393a3b};
  cqe.wqe_counter = be16{0x3c3d};
  cqe.signature = 0x3e;
  store_op_own(cqe, CqeOpcode::kResponderSend, true);
  // Each byte below equals its own offset where a field stands (bytes 0 and 63 apart).
  const Bytes<64> want = {0x01, 0,    0x02, 0x03, 0,    0,    0,    0,    0,    0,    0,
                          0,    0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0,    0,    0,    0x14, 0x15,
                          0,    0,    0,    0,    0,    0,    0x1c, 0x1d, 0x1e, 0x1f, 0x20,
                          0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0,    0,    0,    0,
                          0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36,
                          0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x21};
  EXPECT_EQ(bytes_of(cqe), want);
}

TEST(Mlx5Cqe, RandomFieldsGiveTheOraclesBytes) {
  Rng rng(test::test_seed());
  for (int i = 0; i < 1000; ++i) {
    mlx5_cqe64 theirs{};
    Cqe ours{};
    const uint64_t a = rng.next(), b = rng.next(), c = rng.next(), d = rng.next();
    theirs.wqe_id = htobe16(static_cast<uint16_t>(a));
    ours.wqe_id = be16{static_cast<uint16_t>(a)};
    theirs.hds_ip_ext = static_cast<uint8_t>(a >> 24);
    theirs.l4_hdr_type_etc = static_cast<uint8_t>(a >> 16);
    ours.header_type = be16{static_cast<uint16_t>(a >> 16)};
    theirs.vlan_info = htobe16(static_cast<uint16_t>(a >> 32));
    ours.vlan_info = be16{static_cast<uint16_t>(a >> 32)};
    theirs.srqn_uidx = htobe32(static_cast<uint32_t>(b));
    ours.user_index = be32{static_cast<uint32_t>(b)};
    theirs.imm_inval_pkey = htobe32(static_cast<uint32_t>(b >> 32));
    ours.metadata = be32{static_cast<uint32_t>(b >> 32)};
    theirs.byte_cnt = htobe32(static_cast<uint32_t>(c));
    ours.byte_count = be32{static_cast<uint32_t>(c)};
    theirs.timestamp = htobe64(d);
    ours.timestamp = be64{d};
    theirs.sop_drop_qpn = htobe32(static_cast<uint32_t>(c >> 32));
    ours.sop_drop_qpn = be32{static_cast<uint32_t>(c >> 32)};
    theirs.wqe_counter = htobe16(static_cast<uint16_t>(a >> 48));
    ours.wqe_counter = be16{static_cast<uint16_t>(a >> 48)};
    theirs.signature = static_cast<uint8_t>(b >> 8);
    ours.signature = static_cast<uint8_t>(b >> 8);
    theirs.op_own = static_cast<uint8_t>(d >> 5);
    ours.op_own = static_cast<uint8_t>(d >> 5);
    ASSERT_EQ(bytes_of(ours), bytes_of(theirs));
  }
}

TEST(Mlx5Cqe, EveryOpOwnByteReadsAsTheOracleReadsIt) {
  for (unsigned value = 0; value < 256; ++value) {
    mlx5_cqe64 theirs{};
    theirs.op_own = static_cast<uint8_t>(value);
    const Cqe ours = copy_as<Cqe>(theirs);
    const uint8_t op_own = load_op_own(ours);
    EXPECT_EQ(op_own, value);
    EXPECT_EQ(Cqe::Owner::get(op_own), mlx5dv_get_cqe_owner(&theirs));
    EXPECT_EQ(Cqe::Opcode::get(op_own), mlx5dv_get_cqe_opcode(&theirs));
    // Formats other than 0 (inlined data, compression) are not asked for, and not written.
    EXPECT_EQ((Bits<uint8_t, 3, 2>::get(op_own)), mlx5dv_get_cqe_format(&theirs));
    EXPECT_EQ((Bits<uint8_t, 1, 1>::get(op_own)), mlx5dv_get_cqe_se(&theirs));
    const unsigned opcode = mlx5dv_get_cqe_opcode(&theirs);
    EXPECT_EQ(is_error(op_own), opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR);
    // libmlx5 cq.c, get_sw_cqe(): valid if the opcode is not INVALID and owner == !!(n & size).
    for (uint32_t index : {0u, 63u, 64u, 127u, 128u, 0xffffffffu}) {
      const bool theirs_owns = opcode != MLX5_CQE_INVALID &&
                               mlx5dv_get_cqe_owner(&theirs) == ((index & 64) != 0 ? 1 : 0);
      EXPECT_EQ(software_owns(op_own, index, 64), theirs_owns) << value << " at " << index;
    }
  }
}

TEST(Mlx5Cqe, WhatTheDeviceStoresReadsAsTheOracleReadsIt) {
  for (const auto opcode : {CqeOpcode::kRequester, CqeOpcode::kResponderSend,
                            CqeOpcode::kRequesterError, CqeOpcode::kResponderError}) {
    for (const bool owner : {false, true}) {
      Cqe ours{};
      store_op_own(ours, opcode, owner);
      auto theirs = copy_as<mlx5_cqe64>(ours);
      EXPECT_EQ(mlx5dv_get_cqe_opcode(&theirs), static_cast<uint8_t>(opcode));
      EXPECT_EQ(mlx5dv_get_cqe_owner(&theirs), owner ? 1 : 0);
      EXPECT_EQ(mlx5dv_get_cqe_format(&theirs), 0);
      EXPECT_EQ(mlx5dv_get_cqe_se(&theirs), 0);
    }
  }
}

// header_type is the oracle's hds_ip_ext (high byte) and l4_hdr_type_etc (low byte).
TEST(Mlx5Cqe, HeaderTypeBitsAreTheOracles) {
  const auto oracle = [](unsigned hds_ip_ext, unsigned l4_hdr_type_etc) {
    mlx5_cqe64 theirs{};
    theirs.hds_ip_ext = static_cast<uint8_t>(hds_ip_ext);
    theirs.l4_hdr_type_etc = static_cast<uint8_t>(l4_hdr_type_etc);
    return copy_as<Cqe>(theirs).header_type.get();
  };
  EXPECT_EQ(oracle(MLX5_CQE_L2_OK, 0), HeaderType::L2Ok::kMask);
  EXPECT_EQ(oracle(MLX5_CQE_L3_OK, 0), HeaderType::L3Ok::kMask);
  EXPECT_EQ(oracle(MLX5_CQE_L4_OK, 0), HeaderType::L4Ok::kMask);
  // libmlx5 cq.c, get_csum_ok(): the L3 type stands in bits [3:2] of l4_hdr_type_etc.
  EXPECT_EQ(oracle(0, MLX5_CQE_L3_HDR_TYPE_IPV6 << 2), HeaderType::L3::set(0, HeaderType::kL3Ipv6));
  EXPECT_EQ(oracle(0, MLX5_CQE_L3_HDR_TYPE_IPV4 << 2), HeaderType::L3::set(0, HeaderType::kL3Ipv4));
  EXPECT_EQ(oracle(0, MLX5_CQE_L3_HDR_TYPE_NONE << 2), HeaderType::L3::set(0, HeaderType::kL3None));
  // Not in mlx5dv.h. DPDK's mlx5_prm.h: bit 0 stripped VLAN tag, [6:4] L4 type, bit 7 fragment.
  EXPECT_EQ(HeaderType::VlanStripped::kMask, 0x0001);
  EXPECT_EQ(HeaderType::IpExtension::kMask, 0x0002);
  EXPECT_EQ(HeaderType::L4::kMask, 0x0070);
  EXPECT_EQ(HeaderType::Fragment::kMask, 0x0080);
}

TEST(Mlx5Cqe, HeaderTypeOfAnIpv4TcpFrameHasTheseBytes) {
  Cqe cqe{};
  uint16_t type = HeaderType::L3::set(0, HeaderType::kL3Ipv4);
  type = HeaderType::L4::set(type, HeaderType::kL4TcpAck);
  type = HeaderType::L2Ok::set(type, 1);
  type = HeaderType::L3Ok::set(type, 1);
  type = HeaderType::L4Ok::set(type, 1);
  cqe.header_type = be16{type};
  EXPECT_EQ(bytes_of(cqe)[28], 0x07);
  EXPECT_EQ(bytes_of(cqe)[29], 0x48);
}

TEST(Mlx5ErrorCqe, HasTheOraclesOffsetsAndTheseBytes) {
  static_assert(sizeof(ErrorCqe) == sizeof(mlx5_err_cqe));
  EXPECT_EQ(offsetof(ErrorCqe, vendor_syndrome), offsetof(mlx5_err_cqe, vendor_err_synd));
  EXPECT_EQ(offsetof(ErrorCqe, syndrome), offsetof(mlx5_err_cqe, syndrome));
  EXPECT_EQ(offsetof(ErrorCqe, opcode_qpn), offsetof(mlx5_err_cqe, s_wqe_opcode_qpn));
  EXPECT_EQ(offsetof(ErrorCqe, wqe_counter), offsetof(mlx5_err_cqe, wqe_counter));
  EXPECT_EQ(offsetof(ErrorCqe, signature), offsetof(mlx5_err_cqe, signature));
  EXPECT_EQ(offsetof(ErrorCqe, op_own), offsetof(mlx5_err_cqe, op_own));

  ErrorCqe error{};
  error.vendor_syndrome = 0x36;
  error.syndrome = static_cast<uint8_t>(Syndrome::kLocalProtection);
  error.opcode_qpn = be32{0x0a123456};
  error.wqe_counter = be16{0x789a};
  error.signature = 0xbc;
  error.op_own = 0xd1;
  Bytes<64> want{};
  const Bytes<10> tail = {0x36, 0x04, 0x0a, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xd1};
  std::copy(tail.begin(), tail.end(), want.begin() + 54);
  EXPECT_EQ(bytes_of(error), want);
}

TEST(Mlx5ErrorCqe, RandomFieldsGiveTheOraclesBytes) {
  Rng rng(test::test_seed());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t a = rng.next();
    mlx5_err_cqe theirs{};
    ErrorCqe ours{};
    theirs.vendor_err_synd = ours.vendor_syndrome = static_cast<uint8_t>(a);
    theirs.syndrome = ours.syndrome = static_cast<uint8_t>(a >> 8);
    theirs.signature = ours.signature = static_cast<uint8_t>(a >> 16);
    theirs.op_own = ours.op_own = static_cast<uint8_t>(a >> 24);
    theirs.s_wqe_opcode_qpn = htobe32(static_cast<uint32_t>(a >> 32));
    ours.opcode_qpn = be32{static_cast<uint32_t>(a >> 32)};
    theirs.wqe_counter = htobe16(static_cast<uint16_t>(a >> 11));
    ours.wqe_counter = be16{static_cast<uint16_t>(a >> 11)};
    ASSERT_EQ(bytes_of(ours), bytes_of(theirs));
  }
}

// ---- Work requests

TEST(Mlx5ControlSegment, HasTheOraclesOffsetsAndTheseBytes) {
  static_assert(sizeof(ControlSegment) == sizeof(mlx5_wqe_ctrl_seg));
  EXPECT_EQ(offsetof(ControlSegment, opmod_index_opcode),
            offsetof(mlx5_wqe_ctrl_seg, opmod_idx_opcode));
  EXPECT_EQ(offsetof(ControlSegment, qpn_ds), offsetof(mlx5_wqe_ctrl_seg, qpn_ds));
  EXPECT_EQ(offsetof(ControlSegment, signature), offsetof(mlx5_wqe_ctrl_seg, signature));
  EXPECT_EQ(offsetof(ControlSegment, dci), offsetof(mlx5_wqe_ctrl_seg, dci_stream_channel_id));
  EXPECT_EQ(offsetof(ControlSegment, fm_ce_se), offsetof(mlx5_wqe_ctrl_seg, fm_ce_se));
  EXPECT_EQ(offsetof(ControlSegment, immediate), offsetof(mlx5_wqe_ctrl_seg, imm));

  ControlSegment ctrl{};
  uint32_t word = ControlSegment::Index::set(0, 0xbeef);
  word = ControlSegment::Opcode::set(word, static_cast<uint8_t>(SendOpcode::kSend));
  ctrl.opmod_index_opcode = be32{word};
  word = ControlSegment::QueueNumber::set(0, 0x123456);
  ctrl.qpn_ds = be32{ControlSegment::Segments::set(word, 7)};
  ctrl.fm_ce_se = ControlSegment::Completion::set(0, ControlSegment::kCompleteAlways);
  const Bytes<16> want = {0x00, 0xbe, 0xef, 0x0a, 0x12, 0x34, 0x56, 0x07,
                          0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(bytes_of(ctrl), want);
}

TEST(Mlx5ControlSegment, RandomFieldsGiveTheOraclesBytes) {
  Rng rng(test::test_seed());
  for (int i = 0; i < 1000; ++i) {
    const auto index = static_cast<uint16_t>(rng.next());
    const auto opcode = static_cast<uint8_t>(rng.next());
    const auto qpn = static_cast<uint32_t>(rng.below(1 << 24));
    const auto segments = static_cast<uint8_t>(rng.below(kMaxWqeSegments + 1));
    const auto signature = static_cast<uint8_t>(rng.next());
    const auto completion = static_cast<uint8_t>(rng.below(4));
    const auto immediate = static_cast<uint32_t>(rng.next());

    ControlSegment ours{};
    uint32_t word = ControlSegment::Index::set(0, index);
    ours.opmod_index_opcode = be32{ControlSegment::Opcode::set(word, opcode)};
    word = ControlSegment::QueueNumber::set(0, qpn);
    ours.qpn_ds = be32{ControlSegment::Segments::set(word, segments)};
    ours.signature = signature;
    ours.fm_ce_se = ControlSegment::Completion::set(0, completion);
    ours.immediate = be32{immediate};

    alignas(16) mlx5_wqe_ctrl_seg theirs{};
    const auto fm_ce_se = static_cast<uint8_t>(completion << 2);
    mlx5dv_set_ctrl_seg(&theirs, index, opcode, 0, qpn, fm_ce_se, segments, signature,
                        htobe32(immediate));
    ASSERT_EQ(bytes_of(ours), bytes_of(theirs));
#if defined(__SSSE3__)
    // Its mask takes the immediate from the top lane unswapped: the same argument as above.
    alignas(16) mlx5_wqe_ctrl_seg vector{};
    mlx5dv_x86_set_ctrl_seg(&vector, index, opcode, 0, qpn, fm_ce_se, segments, signature,
                            htobe32(immediate));
    ASSERT_EQ(bytes_of(ours), bytes_of(vector));
#endif
  }
}

TEST(Mlx5DataSegment, HasTheOraclesOffsetsAndTheseBytes) {
  static_assert(sizeof(DataSegment) == sizeof(mlx5_wqe_data_seg));
  EXPECT_EQ(offsetof(DataSegment, byte_count), offsetof(mlx5_wqe_data_seg, byte_count));
  EXPECT_EQ(offsetof(DataSegment, key), offsetof(mlx5_wqe_data_seg, lkey));
  EXPECT_EQ(offsetof(DataSegment, address), offsetof(mlx5_wqe_data_seg, addr));

  const DataSegment segment{be32{1436}, be32{0xcafe01}, be64{0x1122334455667788}};
  const Bytes<16> want = {0x00, 0x00, 0x05, 0x9c, 0x00, 0xca, 0xfe, 0x01,
                          0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  EXPECT_EQ(bytes_of(segment), want);
}

// libmlx5 qp.c, mlx5_post_wq_recv(): {0, MLX5_INVALID_LKEY, 0} ends a scatter list early.
TEST(Mlx5DataSegment, EndOfListHasTheseBytes) {
  const DataSegment end{be32{0}, be32{kInvalidKey}, be64{0}};
  const Bytes<16> want = {0, 0, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(bytes_of(end), want);
}

TEST(Mlx5DataSegment, RandomFieldsGiveTheOraclesBytes) {
  Rng rng(test::test_seed());
  for (int i = 0; i < 1000; ++i) {
    const auto length = static_cast<uint32_t>(rng.next());
    const auto key = static_cast<uint32_t>(rng.next());
    const uint64_t address = rng.next();
    const DataSegment ours{be32{length}, be32{key}, be64{address}};
    alignas(16) mlx5_wqe_data_seg theirs{};
    mlx5dv_set_data_seg(&theirs, length, key, address);
    ASSERT_EQ(bytes_of(ours), bytes_of(theirs));
#if defined(__SSSE3__)
    alignas(16) mlx5_wqe_data_seg vector{};
    mlx5dv_x86_set_data_seg(&vector, length, key, address);
    ASSERT_EQ(bytes_of(ours), bytes_of(vector));
#endif
  }
}

TEST(Mlx5EthSegment, HasTheOraclesOffsetsAndTheseBytes) {
  // The oracle's struct counts one following segment of inlined bytes in.
  static_assert(sizeof(EthSegment) + kWqeSegmentBytes == sizeof(mlx5_wqe_eth_seg));
  EXPECT_EQ(offsetof(EthSegment, checksum_flags), offsetof(mlx5_wqe_eth_seg, cs_flags));
  EXPECT_EQ(offsetof(EthSegment, mss), offsetof(mlx5_wqe_eth_seg, mss));
  EXPECT_EQ(offsetof(EthSegment, metadata), offsetof(mlx5_wqe_eth_seg, rsvd2));
  EXPECT_EQ(offsetof(EthSegment, inline_bytes), offsetof(mlx5_wqe_eth_seg, inline_hdr_sz));
  EXPECT_EQ(offsetof(EthSegment, inline_start), offsetof(mlx5_wqe_eth_seg, inline_hdr_start));
  EXPECT_EQ(sizeof(EthSegment), offsetof(mlx5_wqe_eth_seg, inline_hdr));
  EXPECT_EQ(kInlineStartBytes, sizeof(mlx5_wqe_eth_seg{}.inline_hdr_start));

  EthSegment eth{};
  eth.checksum_flags = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
  eth.mss = be16{0x0102};
  eth.metadata = be32{0x03040506};
  eth.inline_bytes = be16{64};
  eth.inline_start[0] = 0xaa;
  eth.inline_start[1] = 0xbb;
  const Bytes<16> want = {0x00, 0x00, 0x00, 0x00, 0xc0, 0x00, 0x01, 0x02,
                          0x03, 0x04, 0x05, 0x06, 0x00, 0x40, 0xaa, 0xbb};
  EXPECT_EQ(bytes_of(eth), want);
  // DPDK's mlx5_prm.h: MLX5_ETH_WQE_VLAN_INSERT, bit 31 of the word that ends with the tag.
  EXPECT_EQ(EthSegment::InsertVlan::kMask, 0x8000);
}

// Inlined headers of any length go on behind the eth segment without a gap.
TEST(Mlx5EthSegment, RandomInlinedHeadersGiveTheOraclesBytes) {
  Rng rng(test::test_seed());
  for (int i = 0; i < 1000; ++i) {
    const auto flags = static_cast<uint8_t>(rng.next());
    const auto mss = static_cast<uint16_t>(rng.next());
    const auto inlined = static_cast<uint16_t>(2 + rng.below(81));  // 2..82
    Bytes<96> header{};
    for (auto& byte : header) byte = static_cast<uint8_t>(rng.next());

    Bytes<128> ours{};
    EthSegment eth{};
    eth.checksum_flags = flags;
    eth.mss = be16{mss};
    eth.inline_bytes = be16{inlined};
    std::memcpy(eth.inline_start, header.data(), kInlineStartBytes);
    std::memcpy(ours.data(), &eth, sizeof eth);
    std::memcpy(ours.data() + sizeof eth, header.data() + kInlineStartBytes,
                inlined - kInlineStartBytes);

    alignas(16) Bytes<128> theirs{};
    mlx5dv_set_eth_seg(reinterpret_cast<mlx5_wqe_eth_seg*>(theirs.data()), flags, mss, inlined,
                       header.data());
    ASSERT_EQ(ours, theirs) << inlined << " inlined bytes";
  }
}

// DPDK's mlx5_prm.h and libmlx5: DS = 2 + ceil((N - 2) / 16) + pointers.
TEST(Mlx5SendWqe, CountsSegmentsAtTheLimitsOfTheInlineArea) {
  EXPECT_EQ(send_wqe_segments(0, 1), 3u);
  EXPECT_EQ(send_wqe_segments(2, 1), 3u);
  EXPECT_EQ(send_wqe_segments(3, 1), 4u);
  EXPECT_EQ(send_wqe_segments(17, 1), 4u);
  EXPECT_EQ(send_wqe_segments(18, 1), 4u);
  EXPECT_EQ(send_wqe_segments(19, 1), 5u);
  EXPECT_EQ(send_wqe_segments(66, 1), 7u);
  EXPECT_EQ(send_wqe_segments(67, 1), 8u);
  EXPECT_EQ(send_wqe_segments(82, 1), 8u);
  EXPECT_EQ(send_wqe_segments(83, 1), 9u);
  EXPECT_EQ(send_wqe_blocks(3), 1u);
  EXPECT_EQ(send_wqe_blocks(4), 1u);
  EXPECT_EQ(send_wqe_blocks(5), 2u);
  EXPECT_EQ(send_wqe_blocks(8), 2u);
  EXPECT_EQ(send_wqe_blocks(9), 3u);
}

// libmlx5 verbs.c, mlx5_calc_rwq_size(): a power of two that holds the scatter entries.
TEST(Mlx5ReceiveWqe, StrideIsThePowerOfTwoThatHoldsTheEntries) {
  EXPECT_EQ(receive_wqe_stride(1), 16u);
  EXPECT_EQ(receive_wqe_stride(2), 32u);
  EXPECT_EQ(receive_wqe_stride(3), 64u);
  EXPECT_EQ(receive_wqe_stride(4), 64u);
  EXPECT_EQ(receive_wqe_stride(5), 128u);
}

// The whole request for a frame with 64 inlined header bytes and 1,436 bytes on the card.
TEST(Mlx5SendWqe, OfASplitFrameHasTheOraclesBytes) {
  Bytes<64> header{};
  for (size_t i = 0; i < header.size(); ++i) header[i] = static_cast<uint8_t>(0x80 + i);
  const uint32_t segments = send_wqe_segments(64, 1);

  Bytes<112> ours{};
  ControlSegment ctrl{};
  ctrl.opmod_index_opcode = be32{ControlSegment::Opcode::set(
      ControlSegment::Index::set(0, 0xfffe), static_cast<uint8_t>(SendOpcode::kSend))};
  ctrl.qpn_ds =
      be32{ControlSegment::Segments::set(ControlSegment::QueueNumber::set(0, 0xabcdef), segments)};
  ctrl.fm_ce_se = ControlSegment::Completion::set(0, ControlSegment::kCompleteAlways);
  EthSegment eth{};
  eth.inline_bytes = be16{64};
  std::memcpy(eth.inline_start, header.data(), 2);
  const DataSegment payload{be32{1436}, be32{0x700}, be64{0x600}};
  std::memcpy(&ours[0], &ctrl, 16);
  std::memcpy(&ours[16], &eth, 16);
  std::memcpy(&ours[32], header.data() + 2, 62);
  std::memcpy(&ours[96], &payload, 16);

  alignas(16) Bytes<112> theirs{};
  mlx5dv_set_ctrl_seg(reinterpret_cast<mlx5_wqe_ctrl_seg*>(&theirs[0]), 0xfffe, MLX5_OPCODE_SEND, 0,
                      0xabcdef, MLX5_WQE_CTRL_CQ_UPDATE, 7, 0, 0);
  mlx5dv_set_eth_seg(reinterpret_cast<mlx5_wqe_eth_seg*>(&theirs[16]), 0, 0, 64, header.data());
  mlx5dv_set_data_seg(reinterpret_cast<mlx5_wqe_data_seg*>(&theirs[96]), 1436, 0x700, 0x600);
  EXPECT_EQ(segments, 7u);
  EXPECT_EQ(ours, theirs);
}

// ---- Doorbells

// libmlx5: *dbrec = htobe32(counter).
TEST(Mlx5Doorbell, RecordIsTheCounterInNetworkOrder) {
  DoorbellRecord record;
  for (uint32_t value : {0u, 1u, 0x1234u, 0xffffu, 0xffffffu}) {
    record.publish<std::memory_order_release>(value);
    const uint32_t theirs = htobe32(value);
    EXPECT_EQ(bytes_of(record), bytes_of(theirs));
    EXPECT_EQ(record.read(), value);
  }
  record.publish<std::memory_order_release>(0x1234);
  EXPECT_EQ(bytes_of(record), (Bytes<4>{0x00, 0x00, 0x12, 0x34}));
}

// libmlx5 qp.c, post_send_db(): the first eight bytes of the control segment, as they lie there.
TEST(Mlx5Doorbell, RegisterTakesTheFirstEightBytesOfTheControlSegment) {
  mlx5_wqe_ctrl_seg theirs{};
  mlx5dv_set_ctrl_seg(&theirs, 0x0102, MLX5_OPCODE_SEND, 0, 0x030405, 8, 7, 0, 0);
  DoorbellRegister reg;
  reg.ring(&theirs);
  EXPECT_EQ(bytes_of(reg), (Bytes<8>{0x00, 0x01, 0x02, 0x0a, 0x03, 0x04, 0x05, 0x07}));
  uint64_t first;
  std::memcpy(&first, &theirs, sizeof first);
  EXPECT_EQ(reg.peek(), first);
}

}  // namespace
}  // namespace nicmem::hw
