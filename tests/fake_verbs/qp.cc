// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of raw packets: those that send, and those without a ring that spread what comes in
// over a table of receive queues (RSS).
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bits.h"
#include "fake.h"
#include "hw/wqe.h"
#include "sim/queues.h"

namespace nicmem::fake {
namespace {

constexpr uint32_t kMaxSendWqeBytes = 1024;  // max_wqe_sz_sq of a ConnectX-5
constexpr uint32_t kSendOverheadBytes = 48;  // control segment, Ethernet segment of 32 bytes
constexpr uint32_t kInlineHeaderBytes = 4;

/// Bytes of the largest work request that `attr` asks for, in whole blocks; 0: too large.
/// [rdma-core, mlx5_calc_send_wqe]
uint32_t send_wqe_bytes(const ibv_qp_init_attr_ex& attr) {
  uint64_t size = kSendOverheadBytes;
  const uint64_t inlined =
      attr.cap.max_inline_data == 0
          ? 0
          : size + round_up<uint64_t>(kInlineHeaderBytes + uint64_t{attr.cap.max_inline_data}, 16);
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0)
    size += round_up<uint64_t>(attr.max_tso_header, 16);
  size += uint64_t{attr.cap.max_send_sge} * sizeof(hw::DataSegment);
  const uint64_t whole = round_up<uint64_t>(std::max(size, inlined), hw::kWqeBlockBytes);
  return whole > kMaxSendWqeBytes ? 0 : static_cast<uint32_t>(whole);
}

ibv_qp* finish(Qp& qp, const ibv_qp_init_attr_ex& attr, uint32_t number) {
  qp.verbs.qp_context = attr.qp_context;
  qp.verbs.pd = attr.pd;
  qp.verbs.send_cq = attr.send_cq;
  qp.verbs.recv_cq = attr.recv_cq;
  qp.verbs.qp_type = attr.qp_type;
  qp.verbs.state = IBV_QPS_RESET;
  qp.verbs.qp_num = qp.verbs.handle = number;
  return &qp.verbs;
}

ibv_qp* create_send(Context& context, ibv_qp_init_attr_ex& attr) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  if ((attr.comp_mask & ~kKnown) != 0 || attr.send_cq == nullptr || attr.recv_cq == nullptr)
    return null(EINVAL);
  if (attr.cap.max_recv_wr != 0 || attr.srq != nullptr) return null(EOPNOTSUPP);
  const hca::Capabilities& can = context.device.hca->capabilities();
  const uint32_t wqe_bytes = send_wqe_bytes(attr);
  if (wqe_bytes == 0 || attr.cap.max_send_wr == 0 || attr.cap.max_send_wr > can.max_queue_depth)
    return null(EINVAL);
  const uint64_t blocks =
      std::bit_ceil(uint64_t{attr.cap.max_send_wr} * wqe_bytes) / hw::kWqeBlockBytes;
  if (blocks > can.max_queue_depth) return null(EINVAL);
  Pd& pd = of<Pd>(attr.pd);
  Cq& cq = of<Cq>(attr.send_cq);
  context.device.creating = &context;
  auto queue =
      context.device.port->create_send_queue(pd.domain, *cq.queue, static_cast<uint32_t>(blocks));
  if (!queue) return null(errno_of(queue.error()));
  static_cast<void>((*queue)->stop());  // until it is ready to send
  Qp* const qp = make<Qp>(context, Kind::kQp, {&pd.node, &cq.node, &of<Cq>(attr.recv_cq).node});
  qp->send = std::move(*queue);
  qp->uar_offset = context.last_uar_offset;
  attr.cap.max_inline_data = wqe_bytes - kSendOverheadBytes - kInlineHeaderBytes;
  attr.cap.max_send_wr = static_cast<uint32_t>(blocks * hw::kWqeBlockBytes / wqe_bytes);
  qp->cap = attr.cap;
  return finish(*qp, attr, qp->send->number);
}

constexpr uint64_t kHashIpv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
constexpr uint64_t kHashIpv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
constexpr uint64_t kHashTcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
constexpr uint64_t kHashUdp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

/// One QP hashes one family and one transport. [Linux, create_rss_raw_qp_tir]
bool valid_fields(uint64_t fields, size_t table_size) {
  if ((fields & ~(kHashIpv4 | kHashIpv6 | kHashTcp | kHashUdp)) != 0) return false;
  if ((fields & kHashIpv4) != 0 && (fields & kHashIpv6) != 0) return false;
  if ((fields & kHashTcp) != 0 && (fields & kHashUdp) != 0) return false;
  return fields != 0 || table_size == 1;
}

/// What the hash covers of each kind of packet: a packet that lacks a header that the QP hashes is
/// not hashed.
std::array<uint8_t, hca::kPacketKinds> fields_by_kind(uint64_t fields) {
  using F = hca::HashFields;
  using enum hca::PacketKind;
  const auto bit = [fields](uint64_t mask, uint8_t field) {
    return (fields & mask) != 0 ? field : uint8_t{0};
  };
  const bool ipv6 = (fields & kHashIpv6) != 0;
  const auto addresses = static_cast<uint8_t>(
      bit(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6, F::kSourceAddress) |
      bit(IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_DST_IPV6, F::kDestinationAddress));
  const auto ports = static_cast<uint8_t>(
      bit(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP, F::kSourcePort) |
      bit(IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP, F::kDestinationPort));
  const auto all = static_cast<uint8_t>(addresses | ports);
  std::array<uint8_t, hca::kPacketKinds> kinds{};
  const auto set = [&kinds](hca::PacketKind kind, uint8_t value) {
    kinds[static_cast<size_t>(kind)] = value;
  };
  if (ports == 0) {
    for (const auto kind : {kIpv4, kIpv4Tcp, kIpv4Udp}) set(kind, ipv6 ? 0 : addresses);
    for (const auto kind : {kIpv6, kIpv6Tcp, kIpv6Udp}) set(kind, ipv6 ? addresses : 0);
    return kinds;
  }
  const bool tcp = (fields & kHashTcp) != 0;
  // Ports without addresses are those of either family.
  const bool any_family = addresses == 0;
  if (!ipv6 || any_family) set(tcp ? kIpv4Tcp : kIpv4Udp, all);
  if (ipv6 || any_family) set(tcp ? kIpv6Tcp : kIpv6Udp, all);
  return kinds;
}

ibv_qp* create_rss(Context& context, const ibv_qp_init_attr_ex& attr) {
  constexpr uint32_t kWanted =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  if (attr.comp_mask != kWanted || attr.rwq_ind_tbl == nullptr) return null(EINVAL);
  if (attr.send_cq != nullptr || attr.cap.max_send_wr != 0) return null(EINVAL);
  const ibv_rx_hash_conf& hash = attr.rx_hash_conf;
  Table& table = of<Table>(attr.rwq_ind_tbl);
  if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) return null(EOPNOTSUPP);
  if (hash.rx_hash_key_len != 40 || hash.rx_hash_key == nullptr) return null(EINVAL);
  if (!valid_fields(hash.rx_hash_fields_mask, table.queues.size())) return null(EINVAL);
  Qp* const qp = make<Qp>(context, Kind::kQp, {&of<Pd>(attr.pd).node, &table.node});
  qp->table = &table;
  std::memcpy(qp->key.data(), hash.rx_hash_key, qp->key.size());
  qp->fields = fields_by_kind(hash.rx_hash_fields_mask);
  static uint32_t last_number = 0x10000;  // above those of the model's queues
  return finish(*qp, attr, ++last_number);
}

ibv_qp* create_qp(Context& context, ibv_qp_init_attr_ex& attr) {
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr.pd == nullptr) return null(EINVAL);
  if (attr.qp_type != IBV_QPT_RAW_PACKET) return null(EOPNOTSUPP);  // nothing else is modelled
  if (!has_net_raw()) return null(EPERM);
  constexpr uint32_t kRss = IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
  return (attr.comp_mask & kRss) != 0 ? create_rss(context, attr) : create_send(context, attr);
}

ibv_qp* create_qp_ex(ibv_context* verbs, ibv_qp_init_attr_ex* attr) {
  const Call call("ibv_create_qp_ex", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  return create_qp(of_context(verbs), *attr);
}

/// The table of changes for raw packets: what each needs, and may have. [ibv_modify_qp(3)]
int check_change(const Qp& qp, const ibv_qp_attr& attr, int mask) {
  const ibv_qp_state from = qp.verbs.state;
  const ibv_qp_state to = attr.qp_state;
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != from) return EINVAL;
  mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return mask == 0 ? 0 : EINVAL;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
    return mask == IBV_QP_PORT && attr.port_num == 1 ? 0 : EINVAL;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return mask == 0 ? 0 : EINVAL;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) return mask == 0 ? 0 : EINVAL;
  return EINVAL;
}

}  // namespace

void add_qp_operations(verbs_context& operations) { operations.create_qp_ex = create_qp_ex; }

}  // namespace nicmem::fake

using namespace nicmem;
using namespace nicmem::fake;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const Call call("ibv_create_qp", pd->context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  ibv_qp_init_attr_ex extended{};
  std::memcpy(static_cast<void*>(&extended), attr, sizeof *attr);
  extended.pd = pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_qp* const qp = create_qp(of_context(pd->context), extended);
  if (qp != nullptr) attr->cap = extended.cap;
  return qp;
}

ibv_qp* mlx5dv_create_qp(ibv_context* verbs, ibv_qp_init_attr_ex* attr,
                         mlx5dv_qp_init_attr* extra) {
  const Call call("mlx5dv_create_qp", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  constexpr uint32_t kLoopback =
      MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC;
  const uint64_t given = extra != nullptr ? extra->comp_mask : 0;
  if ((given & ~uint64_t{MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS}) != 0) return null(EINVAL);
  if (given != 0 && (extra->create_flags & ~kLoopback) != 0) return null(EOPNOTSUPP);
  return create_qp(of_context(verbs), *attr);
}

int ibv_modify_qp(ibv_qp* verbs, ibv_qp_attr* attr, int mask) {
  const Call call("ibv_modify_qp", verbs->context);
  if (const int error = call.fault()) return error;
  Qp& qp = of<Qp>(verbs);
  if (qp.send == nullptr) return ENOSYS;  // an RSS QP has no states [Linux, mlx5_ib_modify_qp]
  if (const int error = check_change(qp, *attr, mask)) return error;
  auto& queue = static_cast<sim::SimSendQueue&>(*qp.send);
  if (attr->qp_state == IBV_QPS_ERR) queue.set_error();
  if (attr->qp_state == IBV_QPS_RESET) {
    const auto done = queue.restart();
    if (!done) return errno_of(done.error());
    static_cast<void>(queue.stop());
  }
  if (attr->qp_state == IBV_QPS_RTS) queue.go();
  verbs->state = attr->qp_state;
  return 0;
}

int ibv_query_qp(ibv_qp* verbs, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const Call call("ibv_query_qp", verbs->context);
  if (const int error = call.fault()) return error;
  const Qp& qp = of<Qp>(verbs);
  if (qp.send == nullptr) return ENOSYS;
  *attr = {};
  *init = {};
  const bool broken = static_cast<const sim::SimSendQueue&>(*qp.send).in_error();
  attr->qp_state = attr->cur_qp_state = broken ? IBV_QPS_ERR : verbs->state;
  attr->port_num = 1;
  attr->cap = init->cap = qp.cap;
  init->send_cq = verbs->send_cq;
  init->recv_cq = verbs->recv_cq;
  init->qp_type = verbs->qp_type;
  return 0;
}

int ibv_destroy_qp(ibv_qp* verbs) {
  const Call call("ibv_destroy_qp");
  Node& node = of<Qp>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

}  // extern "C"
