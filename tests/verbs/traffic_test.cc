// SPDX-License-Identifier: BSD-3-Clause
// Frames through the fake by hand: work requests in the rings that mlx5dv_init_obj shows, on a
// looped wire, stepped. Device memory, steering in both ways, counters, tags, hashes.
#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "rig.h"

namespace nicmem::test {
namespace {

constexpr uint32_t kDepth = 64;

struct Seen {
  bool error;
  uint32_t syndrome, bytes, tag, hash;
};

/// A receive queue and a send queue with a buffer each, in the program's memory.
class Traffic : public Verbs {
 protected:
  Traffic() {
    rx_cq = make_cq(kDepth - 1);
    tx_cq = make_cq(kDepth - 1);
    wq = make_wq(rx_cq, kDepth, 2);
    sq = make_sq(tx_cq, kDepth);
    EXPECT_EQ(to_state(wq, IBV_WQS_RDY), 0);
    make_ready(sq);
    rss = make_rss(make_table({wq}), 0);
    mlx5dv_obj object{};
    object.rwq = {wq, &rwq};
    object.qp = {sq, &sqp};
    EXPECT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ | MLX5DV_OBJ_QP), 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  }

  uint64_t address(size_t offset) const {
    return reinterpret_cast<uintptr_t>(memory.data()) + offset;
  }

  void post(std::vector<hw::DataSegment> list) {
    list.resize(2, {be32(0), be32(hw::kInvalidKey), be64(0)});
    std::memcpy(static_cast<std::byte*>(rwq.buf) + (posted % kDepth) * rwq.stride, list.data(), 32);
    ++posted;
    reinterpret_cast<hw::DoorbellRecord*>(rwq.dbrec)->publish<std::memory_order_release>(posted);
  }
  static hw::DataSegment piece(uint32_t lkey, uint64_t at, uint32_t bytes) {
    return {be32(bytes), be32(lkey), be64(at)};
  }

  void send(uint32_t lkey, uint64_t at, uint32_t bytes) {
    auto* const block = static_cast<std::byte*>(sqp.sq.buf) + (sent % sqp.sq.wqe_cnt) * 64;
    std::memset(block, 0, 64);
    auto& control = *reinterpret_cast<hw::ControlSegment*>(block);
    control.opmod_index_opcode.set(static_cast<uint32_t>(sent << 8) |
                                   static_cast<uint32_t>(hw::SendOpcode::kSend));
    control.qpn_ds.set(sq->qp_num << 8 | 3);
    control.fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
    const hw::DataSegment pointer = piece(lkey, at, bytes);
    std::memcpy(block + 32, &pointer, sizeof pointer);
    ++sent;
    auto* const records = reinterpret_cast<hw::DoorbellRecord*>(sqp.dbrec);
    records[MLX5_SND_DBR].publish<std::memory_order_release>(sent);
    static_cast<hw::DoorbellRegister*>(sqp.bf.reg)->ring(block);
  }
  /// Frame bytes at `offset` of the memory, then out by the wire and in again.
  void round_trip(const std::vector<uint8_t>& frame, size_t offset = 0) {
    std::ranges::copy(frame, memory.begin() + static_cast<std::ptrdiff_t>(offset));
    send(mr->lkey, address(offset), static_cast<uint32_t>(frame.size()));
    settle();
  }
  static void settle() {
    while (nm_fake_verbs_step(kDevice, 64) > 0) {
    }
    nm_fake_verbs_step(kDevice, 64);
    nm_fake_verbs_step(kDevice, 64);
  }

  std::vector<Seen> completed(ibv_cq* cq, uint32_t& index) {
    mlx5dv_obj object{};
    mlx5dv_cq out{};
    object.cq = {cq, &out};
    EXPECT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
    std::vector<Seen> list;
    for (;; ++index) {
      const auto& entry = static_cast<hw::Cqe*>(out.buf)[index & (out.cqe_cnt - 1)];
      const uint8_t own = hw::load_op_own(entry);
      if (!hw::software_owns(own, index, out.cqe_cnt)) break;
      const bool error = hw::is_error(own);
      list.push_back({error, error ? reinterpret_cast<const hw::ErrorCqe&>(entry).syndrome : 0u,
                      entry.byte_count.get(), entry.sop_drop_qpn.get() & 0xffffff,
                      entry.rx_hash_result.get()});
    }
    reinterpret_cast<hw::DoorbellRecord*>(out.dbrec)->publish<std::memory_order_release>(index);
    return list;
  }
  std::vector<Seen> received() { return completed(rx_cq, rx_index); }
  std::vector<Seen> transmitted() { return completed(tx_cq, tx_index); }

  ibv_flow* take_all(ibv_flow_attr_type type = IBV_FLOW_ATTR_ALL_DEFAULT) {
    ibv_flow_attr attr{};
    attr.type = type;
    attr.port = 1;
    return ibv_create_flow(rss, &attr);
  }

  ibv_cq *rx_cq, *tx_cq;
  ibv_wq* wq;
  ibv_qp *sq, *rss;
  ibv_mr* mr;
  mlx5dv_rwq rwq{};
  mlx5dv_qp sqp{};
  std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 16);
  uint16_t posted = 0, sent = 0;
  uint32_t rx_index = 0, tx_index = 0;
};

/// UDP over IPv4 to `port`.
std::vector<uint8_t> udp_frame(uint16_t port, size_t size = 100) {
  std::vector<uint8_t> frame(size);
  std::iota(frame.begin(), frame.end(), uint8_t{3});
  const uint8_t start[] = {2,
                           0,
                           0,
                           0,
                           0,
                           1,
                           2,
                           0,
                           0,
                           0,
                           0,
                           2,
                           8,
                           0,
                           0x45,
                           0,
                           0,
                           86,
                           0,
                           0,
                           0,
                           0,
                           64,
                           17,
                           0,
                           0,
                           10,
                           0,
                           0,
                           1,
                           10,
                           0,
                           0,
                           2,
                           0x12,
                           0x34,
                           static_cast<uint8_t>(port >> 8),
                           static_cast<uint8_t>(port),
                           0,
                           66,
                           0,
                           0};
  std::ranges::copy(start, frame.begin());
  return frame;
}

TEST_F(Traffic, PayloadGoesIntoTheCardsMemoryAndLeavesFromIt) {
  ASSERT_NE(take_all(), nullptr);
  ibv_dm* const dm = make_dm(8192);
  ibv_mr* const card =
      ibv_reg_dm_mr(pd, dm, 4096, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
  post({piece(mr->lkey, address(4096), 64), piece(card->lkey, 256, 2048)});
  const std::vector<uint8_t> frame = udp_frame(7, 1000);
  round_trip(frame);
  const auto first = received();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].error);
  EXPECT_EQ(first[0].bytes, 1000u);
  EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 64, memory.begin() + 4096));
  std::vector<uint8_t> payload(936);
  ASSERT_EQ(ibv_memcpy_from_dm(payload.data(), dm, 4096 + 256, payload.size()), 0);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), frame.begin() + 64));
  post({piece(mr->lkey, address(8192), 2048)});
  send(card->lkey, 256, 936);
  settle();
  ASSERT_EQ(received().size(), 1u);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), memory.begin() + 8192));
  EXPECT_EQ(transmitted().size(), 2u);
}

TEST_F(Traffic, AKeyIsGoodForItsDomainAndItsBoundsOnly) {
  ASSERT_NE(take_all(), nullptr);
  ibv_pd* const other = ibv_alloc_pd(context);
  ibv_mr* const foreign = ibv_reg_mr(other, memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
  send(foreign->lkey, address(0), 100);
  settle();
  const auto ended = transmitted();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].error);
  EXPECT_EQ(ended[0].syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(sq, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  // As net_mlx5 recovers: its completions go on where they were.
  ASSERT_EQ(to_state(sq, IBV_QPS_RESET), 0);
  make_ready(sq);
  EXPECT_EQ(sqp.dbrec[MLX5_SND_DBR], 0u);
  sent = 0;
  round_trip(udp_frame(1));
  EXPECT_EQ(transmitted().size(), 1u);
}

TEST_F(Traffic, AFrameThatIsTooLongEndsOneRequestOnly) {
  ASSERT_NE(take_all(), nullptr);
  post({piece(mr->lkey, address(4096), 64)});
  post({piece(mr->lkey, address(4096), 2048)});
  round_trip(udp_frame(1));
  round_trip(udp_frame(1));
  const auto ended = received();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].syndrome, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
  EXPECT_FALSE(ended[1].error);
}

TEST_F(Traffic, AReceiveQueueRecoversByResetAndReady) {
  ASSERT_NE(take_all(), nullptr);
  post({piece(99, address(4096), 2048)});
  round_trip(udp_frame(1));
  const auto ended = received();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
  ASSERT_EQ(to_state(wq, IBV_WQS_RESET), 0);
  ASSERT_EQ(to_state(wq, IBV_WQS_RDY), 0);
  EXPECT_EQ(*rwq.dbrec, 0u);
  posted = 0;
  post({piece(mr->lkey, address(4096), 2048)});
  round_trip(udp_frame(1));
  EXPECT_EQ(received().size(), 1u);
}

TEST_F(Traffic, NothingMovesBeforeQueuesAreReady) {
  ASSERT_NE(take_all(), nullptr);
  ASSERT_EQ(to_state(sq, IBV_QPS_RESET), 0);
  send(mr->lkey, address(0), 100);
  settle();
  EXPECT_TRUE(transmitted().empty());
}

TEST_F(Traffic, SpecsSteerTagAndCount) {
  struct Attr {
    ibv_flow_attr attr;
    ibv_flow_spec_eth eth;
    ibv_flow_spec_ipv4_ext ipv4;
    ibv_flow_spec_tcp_udp udp;
    ibv_flow_spec_action_tag tag;
    ibv_flow_spec_counter_action count;
  } f{};
  ibv_counters_init_attr none{};
  ibv_counters* const counters = ibv_create_counters(context, &none);
  ASSERT_NE(counters, nullptr);
  ibv_counter_attach_attr attach{.counter_desc = IBV_COUNTER_PACKETS, .index = 0};
  EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
  attach = {.counter_desc = IBV_COUNTER_BYTES, .index = 1};
  EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
  f.attr.port = 1;
  f.attr.num_of_specs = 5;
  f.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof f.eth};
  f.ipv4 = {.type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof f.ipv4};
  f.udp = {.type = IBV_FLOW_SPEC_UDP, .size = sizeof f.udp};
  f.udp.val.dst_port = htobe16(7);
  f.udp.mask.dst_port = 0xffff;
  f.tag = {.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof f.tag, .tag_id = 0xabcde};
  f.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof f.count, .counters = counters};
  ibv_flow* const flow = ibv_create_flow(rss, &f.attr);
  ASSERT_NE(flow, nullptr);
  for (int i = 0; i < 4; ++i) post({piece(mr->lkey, address(4096), 2048)});
  for (const uint16_t port : {uint16_t{7}, uint16_t{8}, uint16_t{7}}) round_trip(udp_frame(port));
  const auto seen = received();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].tag, 0xabcdeu);
  uint64_t values[2] = {};
  EXPECT_EQ(ibv_read_counters(counters, values, 1, 0), EINVAL);
  EXPECT_EQ(ibv_read_counters(counters, values, 2, 0), 0);
  EXPECT_EQ(values[0], 2u);
  EXPECT_EQ(values[1], 200u);
  EXPECT_EQ(ibv_destroy_counters(counters), EBUSY);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_read_counters(counters, values, 2, 0), 0);
  EXPECT_EQ(values[0], 2u);
  EXPECT_EQ(ibv_destroy_counters(counters), 0);
  f.tag.tag_id = 0x1000000;
  f.count.size = 4;
  NM_EXPECT_NULL(ibv_create_flow(rss, &f.attr), EINVAL);
}

TEST_F(Traffic, FlowsAreChecked) {
  ibv_flow_attr attr{};
  attr.port = 2;
  NM_EXPECT_NULL(ibv_create_flow(rss, &attr), EINVAL);
  attr.port = 1;
  attr.priority = 16;
  NM_EXPECT_NULL(ibv_create_flow(rss, &attr), ENOMEM);
  attr.priority = 0;
  attr.comp_mask = 1;
  NM_EXPECT_NULL(ibv_create_flow(rss, &attr), EINVAL);
  attr.comp_mask = 0;
  NM_EXPECT_NULL(ibv_create_flow(sq, &attr), EINVAL);  // it does not receive
  attr.type = IBV_FLOW_ATTR_SNIFFER;
  NM_EXPECT_NULL(ibv_create_flow(rss, &attr), EOPNOTSUPP);
  ibv_flow* const flow = take_all();
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(ibv_destroy_qp(rss), EBUSY);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(rss), 0);
}

/// fte_match_param as bytes. [mlx5_ifc.h: fte_match_set_lyr_2_4, fte_match_set_misc3]
struct Parameters {
  size_t size = 320;
  uint8_t bytes[320] = {};
  mlx5dv_flow_match_parameters* get() {
    return reinterpret_cast<mlx5dv_flow_match_parameters*>(this);
  }
};
constexpr size_t kDmac = 8, kVlan = 14, kProtocol = 16, kVersionByte = 18, kUdpTo = 30;
constexpr size_t kSourceIp = 32, kIcmpType = 256 + 32;

/// A match in the making: fields as bytes of value and mask.
struct FieldMatch {
  Parameters value, mask;
  uint8_t criteria = 1;

  FieldMatch& with(size_t at, std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) {
      value.bytes[at] = byte;
      mask.bytes[at++] = 0xff;
    }
    return *this;
  }
  /// Bits of byte kVersionByte: customer's tag, service tag, fragment, version (4), TCP flags.
  FieldMatch& with_bits(uint8_t bits, uint8_t of) {
    value.bytes[kVersionByte] |= bits;
    mask.bytes[kVersionByte] |= of;
    return *this;
  }
  FieldMatch& with_version(uint8_t version) {
    return with_bits(static_cast<uint8_t>(version << 1), 0x1e);
  }
};

std::vector<uint8_t> tagged(std::vector<uint8_t> frame, uint16_t tag) {
  const uint8_t bytes[] = {0x81, 0, static_cast<uint8_t>(tag >> 8), static_cast<uint8_t>(tag)};
  frame.insert(frame.begin() + 12, bytes, bytes + 4);
  return frame;
}
std::vector<uint8_t> icmp_frame(uint8_t type) {
  std::vector<uint8_t> frame = udp_frame(0);
  frame[23] = 1;
  frame[34] = type;
  return frame;
}
std::vector<uint8_t> ipv6_frame(uint8_t source) {
  std::vector<uint8_t> frame(80);
  const uint8_t start[] = {2, 0,    0,    0,    0, 9, 2, 0, 0,  0,  0,
                           2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 26, 17, 64};
  std::ranges::copy(start, frame.begin());
  frame[22] = 0x20;
  frame[37] = source;
  frame[58] = 0;
  frame[59] = 26;
  return frame;
}

class Matchers : public Traffic {
 protected:
  /// Which of the frames a rule for `match` takes; an errno instead if there is none, negative.
  int taken(FieldMatch match) {
    mlx5dv_flow_matcher_attr attr{};
    attr.match_criteria_enable = match.criteria;
    attr.match_mask = match.mask.get();
    mlx5dv_flow_matcher* const matcher = mlx5dv_create_flow_matcher(context, &attr);
    if (matcher == nullptr) return -errno;
    mlx5dv_flow_action_attr action{};
    action.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP;
    action.qp = rss;
    ibv_flow* const flow = mlx5dv_create_flow(matcher, match.value.get(), 1, &action);
    const int error = errno;
    int bits = 0;
    for (size_t i = 0; flow != nullptr && i < frames.size(); ++i) {
      post({piece(mr->lkey, address(4096), 2048)});
      round_trip(frames[i]);
      bits |= received().empty() ? 0 : 1 << i;
      transmitted();
    }
    if (flow != nullptr) {
      EXPECT_EQ(ibv_destroy_flow(flow), 0);
    }
    EXPECT_EQ(mlx5dv_destroy_flow_matcher(matcher), 0);
    return flow != nullptr ? bits : -error;
  }

  static constexpr int kUdp7 = 1, kUdp8 = 2, kTagged = 4, kPing = 8, kPong = 16, kV6 = 32;
  const std::vector<std::vector<uint8_t>> frames = {
      udp_frame(7),  udp_frame(8),  tagged(udp_frame(7), 0x2005),
      icmp_frame(8), icmp_frame(0), ipv6_frame(3)};
};

TEST_F(Matchers, TakeWhatTheirFieldsSay) {
  EXPECT_EQ(taken(FieldMatch().with(kDmac, {2, 0, 0, 0, 0, 9})), kV6);
  EXPECT_EQ(taken(FieldMatch().with_version(4)), kUdp7 | kUdp8 | kTagged | kPing | kPong);
  EXPECT_EQ(taken(FieldMatch().with_version(6)), kV6);
  EXPECT_EQ(taken(FieldMatch().with_version(4).with(kUdpTo, {0, 7})), kUdp7 | kTagged);
  EXPECT_EQ(taken(FieldMatch().with_version(4).with(kProtocol, {1})), kPing | kPong);
  EXPECT_EQ(taken(FieldMatch().with_version(4).with(kSourceIp + 12, {10, 0, 0, 1})),
            kUdp7 | kUdp8 | kTagged | kPing | kPong);
  EXPECT_EQ(taken(FieldMatch().with_version(6).with(kSourceIp, {0x20})), kV6);
  EXPECT_EQ(taken(FieldMatch().with_version(6).with(kSourceIp, {0x21})), 0);
  EXPECT_EQ(taken(FieldMatch().with_bits(0x80, 0x80).with(kVlan, {0x20, 0x05})), kTagged);
  EXPECT_EQ(taken(FieldMatch().with_bits(0x80, 0x80).with(kVlan, {0x20, 0x06})), 0);
  EXPECT_EQ(taken(FieldMatch().with_bits(0x40, 0x40)), 0);  // a service tag
  FieldMatch ping = FieldMatch().with_version(4).with(kIcmpType, {8});
  ping.criteria = 1 | 1 << 4;
  EXPECT_EQ(taken(ping), kPing);
}

TEST_F(Matchers, AreRefusedWhereTheModelCannotFollow) {
  EXPECT_EQ(taken(FieldMatch().with_bits(0x20, 0x20)), -EOPNOTSUPP);  // fragments
  EXPECT_EQ(taken(FieldMatch().with_bits(0, 0x80)), -EOPNOTSUPP);     // no tag
  EXPECT_EQ(taken(FieldMatch().with(kProtocol, {17})), -EOPNOTSUPP);  // of which IP?
  EXPECT_EQ(taken(FieldMatch().with_version(4).with(kSourceIp, {1})), -EINVAL);
  FieldMatch other = FieldMatch().with(kIcmpType + 2, {1});  // ICMPv6
  other.criteria = 1 << 4;
  EXPECT_EQ(taken(other), -EOPNOTSUPP);
}

TEST_F(Traffic, MatchersSteerInTheDevicesOwnFormat) {
  Parameters mask, value;
  mask.bytes[kProtocol] = 0xff;
  value.bytes[kProtocol] = 17;
  mask.bytes[kVersionByte] = 0x1e;  // bits 0x93..0x96: four bits behind three
  value.bytes[kVersionByte] = 4 << 1;
  mask.bytes[kUdpTo] = mask.bytes[kUdpTo + 1] = 0xff;
  value.bytes[kUdpTo + 1] = 7;
  mlx5dv_flow_matcher_attr attr{};
  attr.match_criteria_enable = 1;
  attr.match_mask = mask.get();
  mlx5dv_flow_matcher* const matcher = mlx5dv_create_flow_matcher(context, &attr);
  ASSERT_NE(matcher, nullptr);
  mlx5dv_flow_action_attr actions[2] = {};
  actions[0].type = MLX5DV_FLOW_ACTION_DEST_IBV_QP;
  actions[0].qp = rss;
  actions[1].type = MLX5DV_FLOW_ACTION_TAG;
  actions[1].tag_value = 5;
  ibv_flow* const flow = mlx5dv_create_flow(matcher, value.get(), 2, actions);
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(mlx5dv_destroy_flow_matcher(matcher), EBUSY);
  for (int i = 0; i < 4; ++i) post({piece(mr->lkey, address(4096), 2048)});
  for (const uint16_t port : {uint16_t{8}, uint16_t{7}, uint16_t{9}}) round_trip(udp_frame(port));
  const auto seen = received();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].tag, 5u);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  nm_fake_verbs_raw(0);
  NM_EXPECT_NULL(mlx5dv_create_flow(matcher, value.get(), 2, actions), EPERM);
  nm_fake_verbs_raw(1);
  actions[1].type = MLX5DV_FLOW_ACTION_COUNTERS_DEVX;
  NM_EXPECT_NULL(mlx5dv_create_flow(matcher, value.get(), 2, actions), EOPNOTSUPP);
  EXPECT_EQ(mlx5dv_destroy_flow_matcher(matcher), 0);
  attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
  NM_EXPECT_NULL(mlx5dv_create_flow_matcher(context, &attr), EOPNOTSUPP);
  attr.type = IBV_FLOW_ATTR_NORMAL;
  attr.comp_mask = 2;
  NM_EXPECT_NULL(mlx5dv_create_flow_matcher(context, &attr), EOPNOTSUPP);
  attr.comp_mask = 0;
  attr.match_criteria_enable = 2;
  NM_EXPECT_NULL(mlx5dv_create_flow_matcher(context, &attr), EOPNOTSUPP);
}

TEST_F(Traffic, TheModelsLogCanBeRead) {
  ASSERT_NE(take_all(), nullptr);
  post({piece(mr->lkey, address(4096), 2048)});
  round_trip(udp_frame(1));
  std::vector<char> text(nm_fake_verbs_log(kDevice, nullptr, 0) + 1);
  nm_fake_verbs_log(kDevice, text.data(), text.size());
  EXPECT_THAT(text.data(), testing::HasSubstr("completes WQE 0"));
}

}  // namespace
}  // namespace nicmem::test
