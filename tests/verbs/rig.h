// SPDX-License-Identifier: BSD-3-Clause
// What each test of the fake starts with: an open device that is stepped, and calls with the
// arguments that a driver gives.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "fake_verbs/nm_fake_verbs.h"

namespace nicmem::test {

inline constexpr const char* kDevice = "mlx5_0";

/// The device by the name of `name`, opened; null: it has none such.
inline ibv_context* open_device(const char* name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

class Verbs : public testing::Test {
 protected:
  Verbs() : context(open_device(kDevice)), pd(ibv_alloc_pd(context)) {}
  ~Verbs() override {
    nm_fake_verbs_fail(0);
    nm_fake_verbs_raw(1);
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_EQ(nm_fake_verbs_live(nullptr), 0u);
  }

  ibv_cq_ex* try_cq(uint32_t cqe, mlx5dv_cq_init_attr extra = {}) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = cqe;
    return mlx5dv_create_cq(context, &attr, &extra);
  }
  ibv_cq* make_cq(uint32_t cqe = 255) { return ibv_cq_ex_to_cq(try_cq(cqe)); }

  ibv_wq_init_attr wq_attr(ibv_cq* cq, uint32_t depth = 64, uint32_t entries = 2) const {
    ibv_wq_init_attr attr{};
    attr.wq_type = IBV_WQT_RQ;
    attr.max_wr = depth;
    attr.max_sge = entries;
    attr.pd = pd;
    attr.cq = cq;
    return attr;
  }
  ibv_wq* make_wq(ibv_cq* cq, uint32_t depth = 64, uint32_t entries = 2) {
    ibv_wq_init_attr attr = wq_attr(cq, depth, entries);
    return ibv_create_wq(context, &attr);
  }
  static int to_state(ibv_wq* wq, ibv_wq_state state) {
    ibv_wq_attr attr{};
    attr.attr_mask = IBV_WQ_ATTR_STATE;
    attr.wq_state = state;
    return ibv_modify_wq(wq, &attr);
  }

  ibv_rwq_ind_table* make_table(std::vector<ibv_wq*> queues) {
    ibv_rwq_ind_table_init_attr attr{};
    while ((size_t{1} << attr.log_ind_tbl_size) < queues.size()) ++attr.log_ind_tbl_size;
    attr.ind_tbl = queues.data();
    return ibv_create_rwq_ind_table(context, &attr);
  }

  ibv_qp_init_attr_ex rss_attr(ibv_rwq_ind_table* table, uint64_t fields, uint8_t key_len = 40) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_RAW_PACKET;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    attr.pd = pd;
    attr.rwq_ind_tbl = table;
    attr.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
    attr.rx_hash_conf.rx_hash_key_len = key_len;
    attr.rx_hash_conf.rx_hash_key = key;
    attr.rx_hash_conf.rx_hash_fields_mask = fields;
    return attr;
  }
  ibv_qp* make_rss(ibv_rwq_ind_table* table, uint64_t fields) {
    ibv_qp_init_attr_ex attr = rss_attr(table, fields);
    return ibv_create_qp_ex(context, &attr);
  }

  ibv_qp_init_attr_ex sq_attr(ibv_cq* cq, uint32_t depth = 64) const {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_RAW_PACKET;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = pd;
    attr.send_cq = attr.recv_cq = cq;
    attr.cap.max_send_wr = depth;
    attr.cap.max_send_sge = 1;
    return attr;
  }
  ibv_qp* make_sq(ibv_cq* cq, uint32_t depth = 64) {
    ibv_qp_init_attr_ex attr = sq_attr(cq, depth);
    return ibv_create_qp_ex(context, &attr);
  }
  static int to_state(ibv_qp* qp, ibv_qp_state state, int more = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | more);
  }
  static void make_ready(ibv_qp* qp) {
    EXPECT_EQ(to_state(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
    EXPECT_EQ(to_state(qp, IBV_QPS_RTR), 0);
    EXPECT_EQ(to_state(qp, IBV_QPS_RTS), 0);
  }

  ibv_dm* make_dm(size_t length, uint32_t log_align = 0, uint32_t comp_mask = 0) {
    ibv_alloc_dm_attr attr{};
    attr.length = length;
    attr.log_align_req = log_align;
    attr.comp_mask = comp_mask;
    return ibv_alloc_dm(context, &attr);
  }

  ibv_context* context;
  ibv_pd* pd;
  uint8_t key[40] = {1, 2, 3, 4, 5};
};

/// Of a call that returns a pointer: it failed, with that errno.
#define NM_EXPECT_NULL(call, error) \
  do {                              \
    errno = 0;                      \
    EXPECT_EQ((call), nullptr);     \
    EXPECT_EQ(errno, error);        \
  } while (false)

}  // namespace nicmem::test
