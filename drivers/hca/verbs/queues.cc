// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/queues.h"

#include "hw/wqe.h"

namespace nicmem::hca_verbs {
namespace {

/// What libmlx5 made is not what the data path can work on.
tl::unexpected<Error> unfit(const std::string& what, uint64_t got, uint64_t wanted) {
  return fail(Code::kDevice, what + ": libmlx5 made it " + std::to_string(got) + ", asked for " +
                                 std::to_string(wanted));
}

Result<void> expect(const char* what, uint64_t got, uint64_t wanted) {
  if (got == wanted) return {};
  return unfit(what, got, wanted);
}

hw::DoorbellRecord* record_at(void* records, size_t index) {
  return static_cast<hw::DoorbellRecord*>(records) + index;
}

}  // namespace

/// The library makes one entry more than it is asked for, and rounds up. [rdma-core, create_cq]
Result<std::unique_ptr<VerbsCompletionQueue>> VerbsCompletionQueue::create(
    ibv_context* context, const hca::CompletionOptions& options) {
  if (options.inline_bytes != 0)
    return fail(Code::kUnsupported, "no card writes header bytes in front of a completion");
  ibv_cq_init_attr_ex attr{};
  attr.cqe = std::max(options.depth, 2u) - 1;
  mlx5dv_cq_init_attr extra{};
  extra.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;  // else MLX5_CQE_SIZE would choose
  extra.cqe_size = sizeof(hw::Cqe);
  NM_TRY(auto made, own("completion queue of " + std::to_string(options.depth),
                        ibv_cq_ex_to_cq(mlx5dv_create_cq(context, &attr, &extra))));
  std::unique_ptr<VerbsCompletionQueue> queue(new VerbsCompletionQueue(std::move(made)));
  NM_TRY_VOID(queue->show(attr.cqe + 1));
  return queue;
}

Result<void> VerbsCompletionQueue::show(uint32_t wanted) {
  mlx5dv_cq shown{};
  mlx5dv_obj object{};
  object.cq = {.in = queue_.get(), .out = &shown};
  NM_TRY_VOID(check("completion queue: where it is", mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ)));
  NM_TRY_VOID(expect("size of completions", shown.cqe_size, sizeof(hw::Cqe)));
  NM_TRY_VOID(expect("completion queue", shown.cqe_cnt, wanted));
  ring = {static_cast<hw::Cqe*>(shown.buf), shown.cqe_cnt};
  depth = shown.cqe_cnt;
  consumer = record_at(shown.dbrec, 0);
  number = shown.cqn;
  return {};
}

Result<std::unique_ptr<VerbsReceiveQueue>> VerbsReceiveQueue::create(
    ibv_context* context, ibv_pd* domain, const VerbsCompletionQueue& cq,
    const hca::ReceiveOptions& options) {
  if (options.primary != nullptr)
    return fail(Code::kUnsupported,
                "spill=hw: no receive queue of a card falls over to another: accepted: sw");
  ibv_wq_init_attr attr{};
  attr.wq_type = IBV_WQT_RQ;
  attr.max_wr = options.depth;
  attr.max_sge = options.scatter_entries;
  attr.pd = domain;
  attr.cq = cq.verbs();
  NM_TRY(auto made, own("receive queue of " + std::to_string(options.depth),
                        ibv_create_wq(context, &attr)));
  std::unique_ptr<VerbsReceiveQueue> queue(new VerbsReceiveQueue(std::move(made)));
  NM_TRY_VOID(queue->show(options));
  NM_TRY_VOID(queue->change(IBV_WQS_RDY, "ready"));
  return queue;
}

Result<void> VerbsReceiveQueue::show(const hca::ReceiveOptions& wanted) {
  mlx5dv_rwq shown{};
  mlx5dv_obj object{};
  object.rwq = {.in = queue_.get(), .out = &shown};
  NM_TRY_VOID(check("receive queue: where it is", mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ)));
  NM_TRY_VOID(expect("receive queue", shown.wqe_cnt, wanted.depth));
  NM_TRY_VOID(expect("stride of a receive queue", shown.stride,
                     hw::receive_wqe_stride(wanted.scatter_entries)));
  ring = {static_cast<std::byte*>(shown.buf), size_t{shown.wqe_cnt} * shown.stride};
  depth = shown.wqe_cnt;
  stride_bytes = shown.stride;
  producer = record_at(shown.dbrec, 0);  // of the pair it is the receive word already
  number = queue_->wq_num;
  return {};
}

Result<void> VerbsReceiveQueue::change(ibv_wq_state state, const char* what) {
  ibv_wq_attr attr{};
  attr.attr_mask = IBV_WQ_ATTR_STATE;
  attr.wq_state = state;
  return check(std::string("receive queue ") + what, ibv_modify_wq(queue_.get(), &attr));
}

Result<void> VerbsReceiveQueue::reset() {
  NM_TRY_VOID(change(IBV_WQS_RESET, "reset"));
  producer->publish<std::memory_order_release>(0);  // the device reads it when it is ready
  return change(IBV_WQS_RDY, "ready");
}

Result<void> VerbsReceiveQueue::stop() { return change(IBV_WQS_RESET, "reset"); }

Result<void> VerbsReceiveQueue::strip_vlan(bool strip) {
  ibv_wq_attr attr{};
  attr.attr_mask = IBV_WQ_ATTR_FLAGS;
  attr.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
  attr.flags = strip ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0;
  return check("receive queue: tags taken off", ibv_modify_wq(queue_.get(), &attr));
}

/// One pointer a request, nothing inlined: then the library counts one block a request, and the
/// ring has as many as it is asked for. A card gathers as many pieces as the request has, whatever
/// was asked for here. [rdma-core, mlx5_calc_send_wqe; DPDK's mlx5_txq_ibv_qp_create]
Result<std::unique_ptr<VerbsSendQueue>> VerbsSendQueue::create(ibv_context* context, ibv_pd* domain,
                                                               const VerbsCompletionQueue& cq,
                                                               uint32_t depth_blocks) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = domain;
  attr.send_cq = attr.recv_cq = cq.verbs();
  attr.cap.max_send_wr = depth_blocks;
  attr.cap.max_send_sge = 1;
  NM_TRY(auto made, own("send queue of " + std::to_string(depth_blocks) + " blocks",
                        ibv_create_qp_ex(context, &attr)));
  std::unique_ptr<VerbsSendQueue> queue(new VerbsSendQueue(std::move(made)));
  NM_TRY_VOID(queue->show(depth_blocks));
  NM_TRY_VOID(queue->make_ready());
  return queue;
}

Result<void> VerbsSendQueue::show(uint32_t wanted) {
  mlx5dv_qp shown{};
  mlx5dv_obj object{};
  object.qp = {.in = pair_.get(), .out = &shown};
  NM_TRY_VOID(check("send queue: where it is", mlx5dv_init_obj(&object, MLX5DV_OBJ_QP)));
  NM_TRY_VOID(expect("block of a send queue", shown.sq.stride, hw::kWqeBlockBytes));
  NM_TRY_VOID(expect("send queue", shown.sq.wqe_cnt, wanted));
  ring = {static_cast<std::byte*>(shown.sq.buf), size_t{shown.sq.wqe_cnt} * hw::kWqeBlockBytes};
  depth = shown.sq.wqe_cnt;
  producer = record_at(shown.dbrec, MLX5_SND_DBR);
  doorbell = static_cast<hw::DoorbellRegister*>(shown.bf.reg);
  number = pair_->qp_num;
  return {};
}

Result<void> VerbsSendQueue::change(ibv_qp_state state, int more, const char* what) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  return check(std::string("send queue ") + what,
               ibv_modify_qp(pair_.get(), &attr, IBV_QP_STATE | more));
}

Result<void> VerbsSendQueue::make_ready() {
  NM_TRY_VOID(change(IBV_QPS_INIT, IBV_QP_PORT, "to INIT"));
  NM_TRY_VOID(change(IBV_QPS_RTR, 0, "to RTR"));
  return change(IBV_QPS_RTS, 0, "to RTS");
}

Result<void> VerbsSendQueue::reset() {
  NM_TRY_VOID(change(IBV_QPS_RESET, 0, "reset"));
  producer->publish<std::memory_order_release>(0);
  return make_ready();
}

Result<void> VerbsSendQueue::stop() { return change(IBV_QPS_RESET, 0, "reset"); }

}  // namespace nicmem::hca_verbs
