// SPDX-License-Identifier: BSD-3-Clause
// The fake refuses what kernel and firmware refuse, in the way they do: null and errno, or the
// errno as the result. Called through the inline functions of the real headers.
#include <sys/mman.h>

#include "rig.h"

namespace nicmem::test {
namespace {

TEST_F(Verbs, ListsTheDevicesOfItsVariable) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "mlx5_0");
  EXPECT_STREQ(ibv_get_device_name(list[1]), "mlx5_1");
  EXPECT_EQ(list[2], nullptr);
  EXPECT_TRUE(mlx5dv_is_supported(list[0]));
  ibv_free_device_list(list);
}

TEST_F(Verbs, HasNoDevX) {
  mlx5dv_context_attr attr{};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  NM_EXPECT_NULL(mlx5dv_open_device(context->device, &attr), EOPNOTSUPP);
  attr.flags = 1u << 20;
  NM_EXPECT_NULL(mlx5dv_open_device(context->device, &attr), EINVAL);
  attr = {};
  ibv_context* const other = mlx5dv_open_device(context->device, &attr);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
}

TEST_F(Verbs, ReportsLimits) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(context, nullptr, &attr), 0);
  EXPECT_EQ(attr.max_dm_size, 65536u);
  EXPECT_EQ(attr.orig_attr.max_qp_wr, 32768);
  EXPECT_EQ(attr.rss_caps.max_rwq_indirection_table_size, 512u);
  ibv_query_device_ex_input input{};
  input.comp_mask = 1;
  EXPECT_EQ(ibv_query_device_ex(context, &input, &attr), EINVAL);
  mlx5dv_context more{};
  more.comp_mask = ~uint64_t{0};
  ASSERT_EQ(mlx5dv_query_device(context, &more), 0);
  EXPECT_EQ(more.comp_mask & MLX5DV_CONTEXT_MASK_STRIDING_RQ, 0u);
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(ibv_query_port(context, 2, &port), EINVAL);
}

TEST_F(Verbs, AbsentOperationsAreNotSupported) {
  ibv_td_init_attr td{};
  NM_EXPECT_NULL(ibv_alloc_td(context, &td), EOPNOTSUPP);
  NM_EXPECT_NULL(ibv_alloc_null_mr(pd), EOPNOTSUPP);
}

TEST_F(Verbs, DeviceMemoryIsRoundedUpAndRunsOut) {
  NM_EXPECT_NULL(make_dm(0), EINVAL);
  NM_EXPECT_NULL(make_dm(65537), EINVAL);
  NM_EXPECT_NULL(make_dm(64, 13), EINVAL);
  NM_EXPECT_NULL(make_dm(64, 0, 1), EINVAL);
  ibv_dm* const small = make_dm(65, 12);
  ASSERT_NE(small, nullptr);
  mlx5dv_obj object{};
  mlx5dv_dm out{};
  object.dm = {small, &out};
  ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_DM), 0);
  EXPECT_EQ(out.length, 128u);
  EXPECT_NE(out.buf, nullptr);
  // Each allocation takes whole pages of the BAR: 65536 bytes are 16 of them, one is taken.
  NM_EXPECT_NULL(make_dm(65536), ENOMEM);
  std::vector<ibv_dm*> pages;
  for (int i = 0; i < 15; ++i) pages.push_back(make_dm(64));
  EXPECT_EQ(std::count(pages.begin(), pages.end(), nullptr), 0);
  NM_EXPECT_NULL(make_dm(64), ENOMEM);
  for (ibv_dm* dm : pages) EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_free_dm(small), 0);
}

TEST_F(Verbs, DeviceMemoryIsCopiedInWords) {
  ibv_dm* const dm = make_dm(128);
  uint32_t words[4] = {1, 2, 3, 4}, back[4] = {};
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 112, words, 16), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(back, dm, 112, 16), 0);
  EXPECT_EQ(std::memcmp(words, back, 16), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 2, words, 4), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 4, words, 6), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 116, words, 16), EFAULT);
  EXPECT_EQ(ibv_memcpy_from_dm(back, dm, 128, 4), EFAULT);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(Verbs, DeviceMemoryIsRegisteredZeroBased) {
  ibv_dm* const dm = make_dm(4096);
  constexpr unsigned kWrite = IBV_ACCESS_LOCAL_WRITE, kZero = IBV_ACCESS_ZERO_BASED;
  NM_EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 4096, kWrite), EINVAL);
  NM_EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 4096, kWrite | kZero | IBV_ACCESS_ON_DEMAND), EINVAL);
  NM_EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 64, 4096, kWrite | kZero), EINVAL);
  NM_EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 0, kWrite | kZero), EINVAL);
  NM_EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_REMOTE_WRITE | kZero), EINVAL);
  ibv_mr* const mr = ibv_reg_dm_mr(pd, dm, 64, 4032, kWrite | kZero);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(Verbs, HostMemoryMustBeMappedAndNotTheCards) {
  std::vector<char> memory(8192);
  ibv_mr* const mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, memory.size());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  void* const hole = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 8192);
  NM_EXPECT_NULL(ibv_reg_mr(pd, hole, 8192, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  NM_EXPECT_NULL(ibv_reg_mr(pd, memory.data(), 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
  NM_EXPECT_NULL(ibv_reg_mr(pd, memory.data(), 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  ibv_dm* const dm = make_dm(4096);
  mlx5dv_obj object{};
  mlx5dv_dm out{};
  object.dm = {dm, &out};
  ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_DM), 0);
  NM_EXPECT_NULL(ibv_reg_mr(pd, out.buf, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(Verbs, CompletionQueuesArePowersOfTwoInTheirFirstState) {
  NM_EXPECT_NULL(try_cq(0), EINVAL);
  NM_EXPECT_NULL(try_cq(32768), EINVAL);
  NM_EXPECT_NULL(try_cq(7, {.comp_mask = 8}), EINVAL);
  constexpr uint64_t kSize = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  NM_EXPECT_NULL(try_cq(7, {.comp_mask = kSize, .cqe_size = 32}), EINVAL);
  NM_EXPECT_NULL(try_cq(7, {.comp_mask = kSize, .cqe_size = 128}), EOPNOTSUPP);
  constexpr uint64_t kCompressed = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
  NM_EXPECT_NULL(try_cq(7, {.comp_mask = kCompressed}), EINVAL);
  ibv_cq_init_attr_ex wanted{};
  wanted.cqe = 7;
  wanted.wc_flags = IBV_WC_EX_WITH_BYTE_LEN;
  NM_EXPECT_NULL(mlx5dv_create_cq(context, &wanted, nullptr), ENOTSUP);
  ibv_cq_ex* const cq = try_cq(8, {.comp_mask = kSize, .cqe_size = 64});
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->cqe, 15);
  mlx5dv_obj object{};
  mlx5dv_cq out{};
  out.comp_mask = ~uint64_t{0};
  object.cq = {ibv_cq_ex_to_cq(cq), &out};
  ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
  EXPECT_EQ(out.comp_mask, 0u);
  EXPECT_EQ(out.cqe_cnt, 16u);
  EXPECT_EQ(out.cqe_size, 64u);
  EXPECT_EQ(*out.dbrec, 0u);
  for (uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(static_cast<const mlx5_cqe64*>(out.buf)[i].op_own, 0xf0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(Verbs, ReceiveQueuesHaveRingsOfPowersOfTwo) {
  ibv_cq* const cq = make_cq();
  ibv_wq_init_attr attr = wq_attr(cq, 0);
  NM_EXPECT_NULL(ibv_create_wq(context, &attr), EINVAL);
  attr = wq_attr(cq, 32769);
  NM_EXPECT_NULL(ibv_create_wq(context, &attr), EINVAL);
  attr = wq_attr(cq, 64, 33);
  NM_EXPECT_NULL(ibv_create_wq(context, &attr), EINVAL);
  attr = wq_attr(cq);
  attr.comp_mask = 1u << 5;
  NM_EXPECT_NULL(ibv_create_wq(context, &attr), EINVAL);
  attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
  attr.create_flags = IBV_WQ_FLAGS_DELAY_DROP;
  NM_EXPECT_NULL(ibv_create_wq(context, &attr), EOPNOTSUPP);
  mlx5dv_wq_init_attr striding{};
  striding.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ;
  attr = wq_attr(cq);
  NM_EXPECT_NULL(mlx5dv_create_wq(context, &attr, &striding), EOPNOTSUPP);
  struct Case {
    uint32_t depth, entries, wanted_depth, wanted_stride;
  };
  for (const Case& c : {Case{1, 1, 4, 16}, {64, 2, 64, 32}, {65, 3, 128, 64}, {1, 2, 2, 32}}) {
    ibv_wq* const wq = make_wq(cq, c.depth, c.entries);
    ASSERT_NE(wq, nullptr);
    mlx5dv_obj object{};
    mlx5dv_rwq out{};
    object.rwq = {wq, &out};
    ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ), 0);
    EXPECT_EQ(out.wqe_cnt, c.wanted_depth);
    EXPECT_EQ(out.stride, c.wanted_stride);
    EXPECT_EQ(*out.dbrec, 0u);
    EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, ReceiveQueuesGoFromResetToReady) {
  ibv_wq* const wq = make_wq(make_cq());
  EXPECT_EQ(wq->state, IBV_WQS_RESET);
  EXPECT_EQ(to_state(wq, IBV_WQS_RDY), 0);
  EXPECT_EQ(to_state(wq, IBV_WQS_ERR), 0);
  EXPECT_EQ(to_state(wq, IBV_WQS_RDY), EINVAL);
  EXPECT_EQ(to_state(wq, IBV_WQS_RESET), 0);
  EXPECT_EQ(to_state(wq, IBV_WQS_RDY), 0);
  ibv_wq_attr attr{};
  attr.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
  attr.wq_state = IBV_WQS_RESET;
  attr.curr_wq_state = IBV_WQS_ERR;
  EXPECT_EQ(ibv_modify_wq(wq, &attr), -EINVAL);  // the library's own answer
  attr = {};
  attr.attr_mask = 1u << 7;
  EXPECT_EQ(ibv_modify_wq(wq, &attr), EINVAL);
}

TEST_F(Verbs, SendQueuesAreSizedAsLibmlx5Does) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr_ex attr = sq_attr(cq, 100);
  attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  attr.max_tso_header = 192;
  // 48 + 192 + 16 bytes are 4 blocks; 100 times that, the next power of two: 512 blocks.
  ibv_qp* const qp = ibv_create_qp_ex(context, &attr);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(attr.cap.max_send_wr, 128u);
  mlx5dv_obj object{};
  mlx5dv_qp out{};
  out.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET | MLX5DV_QP_MASK_RAW_QP_HANDLES | 1u << 20;
  object.qp = {qp, &out};
  ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
  EXPECT_EQ(out.comp_mask,
            uint64_t{MLX5DV_QP_MASK_UAR_MMAP_OFFSET | MLX5DV_QP_MASK_RAW_QP_HANDLES});
  EXPECT_EQ(out.sq.wqe_cnt, 512u);
  EXPECT_EQ(out.sq.stride, 64u);
  EXPECT_EQ(out.sqn, qp->qp_num);
  EXPECT_EQ(out.rq.buf, nullptr);
  EXPECT_NE(out.bf.reg, nullptr);
  EXPECT_EQ(out.bf.size, 0u);
  EXPECT_EQ(out.dbrec[MLX5_RCV_DBR], 0u);
  EXPECT_EQ(out.dbrec[MLX5_SND_DBR], 0u);
  attr = sq_attr(cq, 0);
  NM_EXPECT_NULL(ibv_create_qp_ex(context, &attr), EINVAL);
  attr = sq_attr(cq, 32768);
  attr.cap.max_inline_data = 200;
  NM_EXPECT_NULL(ibv_create_qp_ex(context, &attr), EINVAL);
  attr = sq_attr(cq);
  attr.cap.max_inline_data = 1000;
  NM_EXPECT_NULL(ibv_create_qp_ex(context, &attr), EINVAL);
  attr = sq_attr(cq);
  attr.qp_type = IBV_QPT_RC;
  NM_EXPECT_NULL(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
}

TEST_F(Verbs, SendQueuesGoThroughAllStates) {
  ibv_qp* const qp = make_sq(make_cq());
  EXPECT_EQ(to_state(qp, IBV_QPS_RTS), EINVAL);
  EXPECT_EQ(to_state(qp, IBV_QPS_INIT), EINVAL);  // without a port
  EXPECT_EQ(to_state(qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
  EXPECT_EQ(to_state(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
  EXPECT_EQ(to_state(qp, IBV_QPS_RTS), EINVAL);
  EXPECT_EQ(to_state(qp, IBV_QPS_RTR, IBV_QP_PORT), EINVAL);
  EXPECT_EQ(to_state(qp, IBV_QPS_RTR), 0);
  EXPECT_EQ(to_state(qp, IBV_QPS_RTS), 0);
  EXPECT_EQ(to_state(qp, IBV_QPS_ERR), 0);
  EXPECT_EQ(to_state(qp, IBV_QPS_RTS), EINVAL);
  EXPECT_EQ(to_state(qp, IBV_QPS_RESET), 0);
  make_ready(qp);
}

TEST_F(Verbs, RssQueuePairsHashOneFamilyAndOneTransport) {
  ibv_cq* const cq = make_cq();
  ibv_wq* const wq = make_wq(cq);
  ibv_rwq_ind_table* const table = make_table({wq, wq});
  ASSERT_NE(table, nullptr);
  constexpr uint64_t kV4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
  constexpr uint64_t kV6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
  constexpr uint64_t kTcp = IBV_RX_HASH_SRC_PORT_TCP, kUdp = IBV_RX_HASH_DST_PORT_UDP;
  NM_EXPECT_NULL(make_rss(table, kV4 | kV6), EINVAL);
  NM_EXPECT_NULL(make_rss(table, kV4 | kTcp | kUdp), EINVAL);
  NM_EXPECT_NULL(make_rss(table, 0), EINVAL);  // no hash, several queues
  NM_EXPECT_NULL(make_rss(table, uint64_t{1} << 20), EINVAL);
  for (const uint8_t length : {uint8_t{0}, uint8_t{39}, uint8_t{41}}) {
    ibv_qp_init_attr_ex attr = rss_attr(table, kV4, length);
    NM_EXPECT_NULL(ibv_create_qp_ex(context, &attr), EINVAL);
  }
  ibv_qp* const qp = make_rss(table, kV4 | kUdp);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(to_state(qp, IBV_QPS_INIT, IBV_QP_PORT), ENOSYS);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), EBUSY);
  EXPECT_EQ(ibv_destroy_wq(wq), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
  ibv_rwq_ind_table_init_attr attr{};
  attr.log_ind_tbl_size = 10;
  NM_EXPECT_NULL(ibv_create_rwq_ind_table(context, &attr), EINVAL);
  attr.log_ind_tbl_size = 0;
  attr.comp_mask = 1;
  NM_EXPECT_NULL(ibv_create_rwq_ind_table(context, &attr), EINVAL);
}

TEST_F(Verbs, RawPacketsNeedACapability) {
  ibv_cq* const cq = make_cq();
  ibv_wq* const wq = make_wq(cq);
  ibv_rwq_ind_table* const table = make_table({wq});
  ibv_qp* const qp = make_rss(table, 0);
  nm_fake_verbs_raw(0);
  NM_EXPECT_NULL(make_sq(cq), EPERM);
  NM_EXPECT_NULL(make_rss(table, 0), EPERM);
  ibv_flow_attr attr{};
  attr.port = 1;
  NM_EXPECT_NULL(ibv_create_flow(qp, &attr), EPERM);
  EXPECT_NE(make_wq(cq), nullptr);  // these do not
  EXPECT_NE(make_dm(64), nullptr);
}

TEST_F(Verbs, RingsLieInTheProgramsMemory) {
  static int live;
  live = 0;
  mlx5dv_ctx_allocators allocators{};
  allocators.alloc = [](size_t size, void*) {
    ++live;
    return aligned_alloc(4096, (size + 4095) & ~size_t{4095});
  };
  allocators.free = [](void* memory, void*) {
    --live;
    free(memory);
  };
  ASSERT_EQ(mlx5dv_set_context_attr(context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &allocators), 0);
  ibv_cq* const cq = make_cq();
  EXPECT_EQ(live, 2);  // ring, records
  ibv_qp* const qp = make_sq(cq);
  EXPECT_EQ(live, 4);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(live, 0);
}

TEST_F(Verbs, TheKthCallFails) {
  nm_fake_verbs_fail(2);
  EXPECT_NE(make_cq(), nullptr);
  NM_EXPECT_NULL(make_cq(), ENOMEM);
  EXPECT_STREQ(nm_fake_verbs_failed(), "mlx5dv_create_cq");
  ibv_cq* const cq = make_cq();
  ASSERT_NE(cq, nullptr);
  const uint64_t live = nm_fake_verbs_live("cq");
  nm_fake_verbs_fail(1);
  EXPECT_EQ(ibv_destroy_cq(cq), EIO);
  EXPECT_EQ(nm_fake_verbs_live("cq"), live - 1);  // who tried has not leaked it
}

TEST_F(Verbs, EventsAreRead) {
  ibv_async_event event{};
  ASSERT_EQ(nm_fake_verbs_event(kDevice, "port_down"), 0);
  nm_fake_verbs_step(kDevice, 1);
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(event.element.port_num, 1);
  ibv_ack_async_event(&event);
  ASSERT_EQ(nm_fake_verbs_event(kDevice, "port_up"), 0);
  nm_fake_verbs_step(kDevice, 1);
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
  ASSERT_EQ(nm_fake_verbs_event(kDevice, "fatal"), 0);
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  NM_EXPECT_NULL(make_cq(), EIO);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace nicmem::test
