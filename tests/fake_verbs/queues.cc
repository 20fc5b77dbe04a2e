// SPDX-License-Identifier: BSD-3-Clause
// Completion queues, receive work queues and their tables, and mlx5dv_init_obj, which shows where
// they lie.
#include "sim/queues.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "fake.h"
#include "hw/wqe.h"

namespace nicmem::fake {
namespace {

constexpr uint64_t kBlock = 64;  // MLX5_SEND_WQE_BB: no ring is smaller

/// [rdma-core, create_cq] No parent domains here, and nobody polls by the library.
int check_cq(const ibv_cq_init_attr_ex& attr) {
  constexpr uint32_t kFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attr.comp_mask & ~uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0) return EINVAL;
  if (attr.comp_mask != 0 && (attr.flags & ~kFlags) != 0) return EINVAL;
  return attr.wc_flags != 0 ? ENOTSUP : 0;
}

ibv_cq_ex* create_cq(Context& context, const ibv_cq_init_attr_ex& attr) {
  const uint32_t most = context.device.hca->capabilities().max_queue_depth;
  if (attr.cqe == 0 || attr.cqe >= most) return null(EINVAL);
  if (attr.comp_vector != 0) return null(EINVAL);
  context.device.creating = &context;
  auto queue = context.device.port->create_completion_queue({.depth = std::bit_ceil(attr.cqe + 1)});
  if (!queue) return null(errno_of(queue.error()));
  std::vector<Node*> uses;
  if (attr.channel != nullptr) uses.push_back(&of<Channel>(attr.channel).node);
  Cq* const cq = make<Cq>(context, Kind::kCq, std::move(uses));
  cq->verbs.channel = attr.channel;
  cq->verbs.cq_context = attr.cq_context;
  cq->verbs.cqe = static_cast<int>((*queue)->depth - 1);
  cq->verbs.handle = (*queue)->number;
  cq->queue = std::move(*queue);
  cq->uar = std::make_unique<std::byte[]>(4096);
  return &cq->verbs;
}

ibv_cq_ex* create_cq_ex(ibv_context* verbs, ibv_cq_init_attr_ex* attr) {
  const Call call("ibv_create_cq_ex", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (const int error = check_cq(*attr)) return null(error);
  return create_cq(of_context(verbs), *attr);
}

/// [rdma-core, mlx5_calc_rwq_size; Linux, create_rq's checks of flags]
int check_wq(const Context& context, const ibv_wq_init_attr& attr) {
  const hca::Capabilities& can = context.device.hca->capabilities();
  if (attr.wq_type != IBV_WQT_RQ || attr.pd == nullptr || attr.cq == nullptr) return EINVAL;
  if (attr.max_wr == 0 || attr.max_wr > can.max_queue_depth) return EINVAL;
  if (attr.max_sge == 0 || attr.max_sge > can.max_scatter_entries) return EINVAL;
  if ((attr.comp_mask & ~uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0) return EINVAL;
  if ((attr.comp_mask & IBV_WQ_INIT_ATTR_FLAGS) == 0) return 0;
  constexpr uint32_t kKnown = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS |
                              IBV_WQ_FLAGS_DELAY_DROP | IBV_WQ_FLAGS_PCI_WRITE_END_PADDING;
  if ((attr.create_flags & ~kKnown) != 0) return EINVAL;
  constexpr uint32_t kAbsent = IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_DELAY_DROP;
  return (attr.create_flags & kAbsent) != 0 ? EOPNOTSUPP : 0;
}

ibv_wq* create_wq_checked(Context& context, const ibv_wq_init_attr& attr) {
  if (const int error = check_wq(context, attr)) return null(error);
  Pd& pd = of<Pd>(attr.pd);
  Cq& cq = of<Cq>(attr.cq);
  const uint32_t stride = hw::receive_wqe_stride(attr.max_sge);
  const auto depth = static_cast<uint32_t>(
      std::max(std::bit_ceil(uint64_t{attr.max_wr} * stride), kBlock) / stride);
  context.device.creating = &context;
  auto queue = context.device.port->create_receive_queue(
      pd.domain, *cq.queue, {.depth = depth, .scatter_entries = attr.max_sge});
  if (!queue) return null(errno_of(queue.error()));
  static_cast<void>((*queue)->stop());  // until it is ready
  const bool strips = (attr.comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 &&
                      (attr.create_flags & IBV_WQ_FLAGS_CVLAN_STRIPPING) != 0;
  static_cast<void>((*queue)->strip_vlan(strips));
  Wq* const wq = make<Wq>(context, Kind::kWq, {&pd.node, &cq.node});
  wq->verbs.wq_context = attr.wq_context;
  wq->verbs.pd = attr.pd;
  wq->verbs.cq = attr.cq;
  wq->verbs.wq_type = attr.wq_type;
  wq->verbs.state = IBV_WQS_RESET;
  wq->verbs.wq_num = wq->verbs.handle = (*queue)->number;
  wq->queue = std::move(*queue);
  return &wq->verbs;
}

ibv_wq* create_wq(ibv_context* verbs, ibv_wq_init_attr* attr) {
  const Call call("ibv_create_wq", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  return create_wq_checked(of_context(verbs), *attr);
}

/// Which changes of state there are: RESET to RDY, and from each to RESET and ERR.
bool allowed(ibv_wq_state from, ibv_wq_state to) {
  return to == IBV_WQS_RESET || to == IBV_WQS_ERR || (from == IBV_WQS_RESET && to == IBV_WQS_RDY);
}

int change_state(Wq& wq, ibv_wq_state to) {
  auto& queue = static_cast<sim::SimReceiveQueue&>(*wq.queue);
  if (to == IBV_WQS_ERR) queue.set_error();
  if (to == IBV_WQS_RESET) static_cast<void>(queue.stop());
  if (to == IBV_WQS_RDY) {
    const auto done = queue.restart();
    if (!done) return errno_of(done.error());
  }
  wq.verbs.state = to;
  return 0;
}

int modify_wq(ibv_wq* verbs, ibv_wq_attr* attr) {
  const Call call("ibv_modify_wq", verbs->context);
  if (const int error = call.fault()) return error;
  Wq& wq = of<Wq>(verbs);
  constexpr uint32_t kKnown = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
  if ((attr->attr_mask & ~kKnown) != 0) return EINVAL;
  const bool flags = (attr->attr_mask & IBV_WQ_ATTR_FLAGS) != 0;
  if (flags && (attr->flags_mask & ~uint32_t{IBV_WQ_FLAGS_CVLAN_STRIPPING}) != 0) return EOPNOTSUPP;
  // Not the kernel but the library looks, and its answer is negative. [rdma-core, mlx5_modify_wq]
  if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && attr->curr_wq_state != verbs->state)
    return -EINVAL;
  if ((attr->attr_mask & IBV_WQ_ATTR_STATE) != 0 && attr->wq_state != verbs->state) {
    if (!allowed(verbs->state, attr->wq_state)) return EINVAL;
    if (const int error = change_state(wq, attr->wq_state)) return error;
  }
  if (flags && (attr->flags_mask & IBV_WQ_FLAGS_CVLAN_STRIPPING) != 0) {
    static_cast<void>(wq.queue->strip_vlan((attr->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING) != 0));
  }
  return 0;
}

int destroy_wq(ibv_wq* verbs) {
  const Call call("ibv_destroy_wq");
  Node& node = of<Wq>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_rwq_ind_table* create_table(ibv_context* verbs, ibv_rwq_ind_table_init_attr* attr) {
  const Call call("ibv_create_rwq_ind_table", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (attr->comp_mask != 0 || attr->log_ind_tbl_size >= 32) return null(EINVAL);
  const uint64_t size = uint64_t{1} << attr->log_ind_tbl_size;
  if (size > hca::kMaxRssTable) return null(EINVAL);
  std::vector<Node*> uses;
  std::vector<hca::ReceiveQueue*> queues;
  for (uint64_t i = 0; i < size; ++i) {
    Wq& wq = of<Wq>(attr->ind_tbl[i]);
    uses.push_back(&wq.node);
    queues.push_back(wq.queue.get());
  }
  static uint32_t last_number = 0;
  Table* const table = make<Table>(of_context(verbs), Kind::kTable, std::move(uses));
  table->queues = std::move(queues);
  table->verbs.ind_tbl_num = table->verbs.ind_tbl_handle = static_cast<int>(++last_number);
  return &table->verbs;
}

int destroy_table(ibv_rwq_ind_table* verbs) {
  const Call call("ibv_destroy_rwq_ind_table");
  Node& node = of<Table>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

void show(Cq& cq, mlx5dv_cq& out) {
  out.comp_mask = 0;
  out.buf = cq.queue->ring.data();
  out.dbrec = reinterpret_cast<__be32*>(cq.queue->consumer);
  out.cqe_cnt = cq.queue->depth;
  out.cqe_size = sizeof(hw::Cqe);
  out.cq_uar = cq.uar.get();
  out.cqn = cq.queue->number;
}

/// dbrec is the receive word already.
void show(Wq& wq, mlx5dv_rwq& out) {
  out.comp_mask = 0;
  out.buf = wq.queue->ring.data();
  out.dbrec = reinterpret_cast<__be32*>(wq.queue->producer);
  out.wqe_cnt = wq.queue->depth;
  out.stride = wq.queue->stride_bytes;
}

/// dbrec is the pair.
void show(Qp& qp, mlx5dv_qp& out) {
  const uint64_t asked = out.comp_mask;
  out.comp_mask = 0;
  out.sq = {nullptr, 0, 0};
  out.rq = {nullptr, 0, 0};
  out.bf = {nullptr, 0};
  out.dbrec = nullptr;
  if (qp.send == nullptr) return;
  out.dbrec = reinterpret_cast<__be32*>(qp.send->producer) - MLX5_SND_DBR;
  out.sq = {qp.send->ring.data(), qp.send->depth, static_cast<uint32_t>(kBlock)};
  out.bf.reg = qp.send->doorbell;
  if ((asked & MLX5DV_QP_MASK_UAR_MMAP_OFFSET) != 0) {
    out.comp_mask |= MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
    out.uar_mmap_offset = qp.uar_offset;
  }
  if ((asked & MLX5DV_QP_MASK_RAW_QP_HANDLES) != 0) {
    out.comp_mask |= MLX5DV_QP_MASK_RAW_QP_HANDLES;
    out.sqn = qp.send->number;
    out.rqn = out.tirn = out.tisn = 0;
  }
}

void show(Dm& dm, mlx5dv_dm& out) {
  out.comp_mask &= 0;
  out.buf = dm.memory->window().data();
  out.length = dm.length;
}

}  // namespace

void add_queue_operations(verbs_context& operations) {
  if (!is_absent("create_cq_ex")) operations.create_cq_ex = create_cq_ex;
  operations.create_wq = create_wq;
  operations.modify_wq = modify_wq;
  operations.destroy_wq = destroy_wq;
  operations.create_rwq_ind_table = create_table;
  operations.destroy_rwq_ind_table = destroy_table;
  add_qp_operations(operations);
}

}  // namespace nicmem::fake

using namespace nicmem;
using namespace nicmem::fake;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* verbs, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int vector) {
  const Call call("ibv_create_cq", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (cqe <= 0 || vector < 0) return null(EINVAL);
  ibv_cq_ex* const cq =
      create_cq(of_context(verbs), {.cqe = static_cast<uint32_t>(cqe),
                                    .cq_context = cq_context,
                                    .channel = channel,
                                    .comp_vector = static_cast<uint32_t>(vector)});
  return reinterpret_cast<ibv_cq*>(cq);
}

ibv_cq_ex* mlx5dv_create_cq(ibv_context* verbs, ibv_cq_init_attr_ex* attr,
                            mlx5dv_cq_init_attr* extra) {
  const Call call("mlx5dv_create_cq", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (const int error = check_cq(*attr)) return null(error);
  constexpr uint64_t kCompressed = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
  constexpr uint64_t kFlags = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
  constexpr uint64_t kSize = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  const uint64_t given = extra != nullptr ? extra->comp_mask : 0;
  if ((given & ~(kCompressed | kFlags | kSize)) != 0) return null(EINVAL);
  // The formats that there are; the model may never compress, whatever it was allowed.
  constexpr unsigned kFormats =
      MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX;
  if ((given & kCompressed) != 0 &&
      (extra->cqe_comp_res_format == 0 || (extra->cqe_comp_res_format & ~kFormats) != 0 ||
       !std::has_single_bit(extra->cqe_comp_res_format))) {
    return null(EINVAL);
  }
  if ((given & kFlags) != 0 && extra->flags != 0) return null(EINVAL);
  if ((given & kSize) != 0 && extra->cqe_size == 128) return null(EOPNOTSUPP);
  if ((given & kSize) != 0 && extra->cqe_size != sizeof(hw::Cqe)) return null(EINVAL);
  return create_cq(of_context(verbs), *attr);
}

int ibv_destroy_cq(ibv_cq* verbs) {
  const Call call("ibv_destroy_cq");
  Node& node = of<Cq>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_wq* mlx5dv_create_wq(ibv_context* verbs, ibv_wq_init_attr* attr, mlx5dv_wq_init_attr* extra) {
  const Call call("mlx5dv_create_wq", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  const uint64_t given = extra != nullptr ? extra->comp_mask : 0;
  if ((given & ~uint64_t{MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ}) != 0) return null(EINVAL);
  if (given != 0) return null(EOPNOTSUPP);  // no striding receive queues here
  return create_wq_checked(of_context(verbs), *attr);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* verbs) {
  const Call call("ibv_create_comp_channel", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Channel* const channel = make<Channel>(of_context(verbs), Kind::kChannel, {});
  channel->verbs.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  return &channel->verbs;
}

int ibv_destroy_comp_channel(ibv_comp_channel* verbs) {
  const Call call("ibv_destroy_comp_channel");
  Channel& channel = of<Channel>(verbs);
  if (const int error = channel.node.release(call)) return error;
  close(verbs->fd);
  channel.node.destroy();
  return 0;
}

/// The model raises no events of completions.
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq**, void**) {
  uint64_t one = 0;
  static_cast<void>(!read(channel->fd, &one, sizeof one));
  return -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}

int mlx5dv_init_obj(mlx5dv_obj* object, uint64_t type) {
  const Call call("mlx5dv_init_obj");
  if (const int error = call.fault()) return error;
  constexpr uint64_t kKnown =
      MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_RWQ | MLX5DV_OBJ_DM | MLX5DV_OBJ_PD;
  if ((type & ~kKnown) != 0) return EOPNOTSUPP;
  if ((type & MLX5DV_OBJ_QP) != 0) show(of<Qp>(object->qp.in), *object->qp.out);
  if ((type & MLX5DV_OBJ_CQ) != 0) show(of<Cq>(object->cq.in), *object->cq.out);
  if ((type & MLX5DV_OBJ_RWQ) != 0) show(of<Wq>(object->rwq.in), *object->rwq.out);
  if ((type & MLX5DV_OBJ_DM) != 0) show(of<Dm>(object->dm.in), *object->dm.out);
  if ((type & MLX5DV_OBJ_PD) != 0) {
    object->pd.out->pdn = object->pd.in->handle;
    object->pd.out->comp_mask = 0;
  }
  return 0;
}

}  // extern "C"
