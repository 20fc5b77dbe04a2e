// SPDX-License-Identifier: BSD-3-Clause
// Calls on devices and contexts: list, open, close, what they report, and asynchronous events.
#include <endian.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fake.h"
#include "hca/steering.h"
#include "hw/wqe.h"
#include "sim/send_request.h"

namespace nicmem::fake {
namespace {

constexpr uint32_t kVendorId = 0x02c9;
constexpr uint32_t kConnectX5 = 4119;

ibv_device_attr device_attributes(Device& device) {
  const hca::Capabilities& can = device.hca->capabilities();
  ibv_device_attr a{};
  std::snprintf(a.fw_ver, sizeof a.fw_ver, "16.35.3006");
  a.node_guid = a.sys_image_guid = htobe64(device.guid());
  a.max_mr_size = ~uint64_t{0};
  a.page_size_cap = 0xfffff000;
  a.vendor_id = kVendorId;
  a.vendor_part_id = kConnectX5;
  a.max_qp = 1 << 18;
  a.max_qp_wr = static_cast<int>(can.max_queue_depth);
  a.device_cap_flags = IBV_DEVICE_RAW_IP_CSUM;
  a.max_sge = 30;
  a.max_cq = 1 << 24;
  a.max_cqe = static_cast<int>(can.max_queue_depth) - 1;
  a.max_mr = 1 << 24;
  a.max_pd = 1 << 24;
  a.phys_port_cnt = 1;
  return a;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, size_t size) {
  const Call call("ibv_query_device_ex", context);
  if (const int error = call.fault()) return error;
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < sizeof attr->orig_attr) return EINVAL;
  Device& device = of_context(context).device;
  const hca::Capabilities& can = device.hca->capabilities();
  ibv_device_attr_ex a{};
  a.orig_attr = device_attributes(device);
  a.completion_timestamp_mask = 0x7fffffffffffffff;
  a.hca_core_clock = 1000000;
  a.device_cap_flags_ex = IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_PCI_WRITE_END_PADDING;
  a.tso_caps = {.max_tso = sim::kMaxTsoBytes, .supported_qpts = 1 << IBV_QPT_RAW_PACKET};
  a.rss_caps.supported_qpts = 1 << IBV_QPT_RAW_PACKET;
  a.rss_caps.max_rwq_indirection_tables = 1 << 20;
  a.rss_caps.max_rwq_indirection_table_size = hca::kMaxRssTable;
  a.rss_caps.rx_hash_fields_mask = 0xff;
  a.rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
  a.max_wq_type_rq = 1 << 24;
  a.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_IP_CSUM;
  a.max_dm_size = is_absent("alloc_dm") ? 0 : can.device_memory_bytes;
  a.phys_port_cnt_ex = 1;
  std::memset(static_cast<void*>(attr), 0, size);
  std::memcpy(static_cast<void*>(attr), &a, std::min(size, sizeof a));
  return 0;
}

int query_port(ibv_context* context, uint8_t number, ibv_port_attr* attr, size_t size) {
  const Call call("ibv_query_port", context);
  if (const int error = call.fault()) return error;
  if (number != 1) return EINVAL;
  Device& device = of_context(context).device;
  const bool up = device.port->link().up;
  ibv_port_attr a{};
  a.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = IBV_MTU_1024;
  a.gid_tbl_len = 1;
  a.port_cap_flags = 0;
  a.max_msg_sz = 1u << 30;
  a.pkey_tbl_len = 1;
  a.active_width = 2;         // 4x
  a.active_speed = 32;        // EDR: 25 Gb/s a lane
  a.phys_state = up ? 5 : 3;  // LinkUp, Disabled
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memset(static_cast<void*>(attr), 0, size);
  std::memcpy(static_cast<void*>(attr), &a, std::min(size, sizeof a));
  return 0;
}

ibv_context* open_context(Device& device) {
  if (device.contexts.empty()) {
    if (const int error = device.open()) return null(error);
  }
  auto context = std::make_unique<Context>(device);
  verbs_context& v = context->verbs;
  v.sz = sizeof v;
  v.context.device = &device.verbs;
  v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  v.context.num_comp_vectors = 1;
  v.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  context->uar_fd = v.context.cmd_fd = memfd_create("fake-uar", MFD_CLOEXEC);
  v.query_device_ex = query_device_ex;
  v.query_port = query_port;
  add_memory_operations(v);
  add_queue_operations(v);
  add_flow_operations(v);
  const std::lock_guard lock(device.contexts_mutex);
  device.contexts.push_back(context.get());
  return context.release()->ibv();
}

/// As the kernel does: what the program has left is destroyed, the newest first.
void close_context(Context& context) {
  Device& device = context.device;
  note_leaks(static_cast<uint64_t>(
      std::ranges::count(context.nodes, false, [](const Node* n) { return n->abandoned; })));
  while (!context.nodes.empty()) context.nodes.back()->destroy();
  {
    const std::lock_guard lock(device.contexts_mutex);
    std::erase(device.contexts, &context);
  }
  close(context.verbs.context.async_fd);
  close(context.uar_fd);
  delete &context;
  if (device.contexts.empty()) device.close();
}

}  // namespace
}  // namespace nicmem::fake

using namespace nicmem;
using namespace nicmem::fake;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  const Call call("ibv_get_device_list");
  if (const int error = call.fault(ENOMEM)) {
    if (count != nullptr) *count = 0;
    return null(error);
  }
  auto** const list =
      static_cast<ibv_device**>(std::calloc(devices().size() + 1, sizeof(ibv_device*)));
  for (size_t i = 0; i < devices().size(); ++i) list[i] = &devices()[i]->verbs;
  if (count != nullptr) *count = static_cast<int>(devices().size());
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
__be64 ibv_get_device_guid(ibv_device* device) { return htobe64(of<Device>(device).guid()); }
int ibv_get_device_index(ibv_device*) { return -1; }
bool mlx5dv_is_supported(ibv_device*) { return true; }
int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

ibv_context* ibv_open_device(ibv_device* device) {
  const Call call("ibv_open_device");
  if (const int error = call.fault(ENOMEM)) return null(error);
  return open_context(of<Device>(device));
}

ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attr) {
  const Call call("mlx5dv_open_device");
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (attr == nullptr || attr->comp_mask != 0) return null(EINVAL);
  if ((attr->flags & ~uint32_t{MLX5DV_CONTEXT_FLAGS_DEVX}) != 0) return null(EINVAL);
  if (attr->flags != 0) return null(EOPNOTSUPP);  // no DevX here
  return open_context(of<Device>(device));
}

int ibv_close_device(ibv_context* context) {
  const Call call("ibv_close_device");
  if (const int error = call.fault()) {
    of_context(context).abandoned = true;
    errno = error;
    return -1;
  }
  close_context(of_context(context));
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  const Call call("ibv_query_device", context);
  if (const int error = call.fault()) return error;
  Device& device = of_context(context).device;
  *attr = device_attributes(device);
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t number, _compat_ibv_port_attr* attr) {
  return query_port(context, number, reinterpret_cast<ibv_port_attr*>(attr),
                    offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, uint8_t number, int index, ibv_gid* gid) {
  const Call call("ibv_query_gid", context);
  if (call.fault() != 0 || number != 1 || index != 0) {
    errno = call.fault() != 0 ? call.fault() : EINVAL;
    return -1;
  }
  gid->global.subnet_prefix = htobe64(0xfe80'0000'0000'0000);
  gid->global.interface_id = htobe64(of_context(context).device.guid());
  return 0;
}

/// Private to rdma-core's own tools. Type 1: RoCE v1 (in sysfs "IB/RoCE v1").
int ibv_query_gid_type(ibv_context*, uint8_t number, unsigned index, int* type) {
  if (number != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *type = 0;
  return 0;
}

int ibv_query_pkey(ibv_context*, uint8_t number, int index, __be16* key) {
  if (number != 1 || index != 0) return -1;
  *key = htobe16(0xffff);
  return 0;
}

int mlx5dv_query_device(ibv_context* context, mlx5dv_context* attr) {
  const Call call("mlx5dv_query_device", context);
  if (const int error = call.fault()) return error;
  Device& device = of_context(context).device;
  const uint64_t asked = attr->comp_mask;
  *attr = {};
  attr->flags = MLX5DV_CONTEXT_FLAGS_CQE_V1;
  if (device.multi_packet) {
    attr->flags |= MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED | MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
  }
  // Of what can be asked for, only these are known, and there is nothing of it.
  attr->comp_mask = asked & (MLX5DV_CONTEXT_MASK_CQE_COMPRESION | MLX5DV_CONTEXT_MASK_SWP |
                             MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS);
  return 0;
}

int mlx5dv_set_context_attr(ibv_context* context, mlx5dv_set_ctx_attr_type type, void* attr) {
  const Call call("mlx5dv_set_context_attr", context);
  if (const int error = call.fault()) return error;
  if (type != MLX5DV_CTX_ATTR_BUF_ALLOCATORS) return ENOTSUP;
  of_context(context).allocators = *static_cast<mlx5dv_ctx_allocators*>(attr);
  return 0;
}

/// Blocks, as the file is set.
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Context& own = of_context(context);
  uint64_t one = 0;
  if (read(context->async_fd, &one, sizeof one) != sizeof one) return -1;
  const std::lock_guard lock(own.events_mutex);
  *event = own.events.front();
  own.events.pop_front();
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

}  // extern "C"
