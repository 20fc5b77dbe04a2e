// SPDX-License-Identifier: BSD-3-Clause
// Calls that say what something is called, and calls that the device does not have. They are here
// because one that reached the real library with the fake's objects would crash in it.
#include "fake.h"

using namespace nicmem::fake;

extern "C" {

const char* ibv_event_type_str(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    case IBV_EVENT_PORT_ERR:
      return "port error";
    case IBV_EVENT_DEVICE_FATAL:
      return "local catastrophic error";
    default:
      return "unknown";
  }
}

const char* ibv_port_state_str(ibv_port_state state) {
  constexpr const char* kNames[] = {"invalid state", "PORT_DOWN",   "PORT_INIT",
                                    "PORT_ARMED",    "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};
  return static_cast<size_t>(state) < std::size(kNames) ? kNames[state] : kNames[0];
}

const char* ibv_node_type_str(ibv_node_type type) {
  return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

ibv_context* ibv_import_device(int) { return null(EOPNOTSUPP); }
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) { return null(EOPNOTSUPP); }
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) { return null(EOPNOTSUPP); }
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) { return null(EOPNOTSUPP); }
// Never with something to give back.
void ibv_unimport_pd(ibv_pd*) {}
void ibv_unimport_mr(ibv_mr*) {}
void ibv_unimport_dm(ibv_dm*) {}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return null(EOPNOTSUPP);
}
int ibv_resize_cq(ibv_cq*, int) { return EOPNOTSUPP; }
void* mlx5dv_dm_map_op_addr(ibv_dm*, uint8_t) { return null(EOPNOTSUPP); }
int mlx5dv_get_clock_info(ibv_context*, mlx5dv_clock_info*) { return EOPNOTSUPP; }
int _mlx5dv_query_port(ibv_context*, uint32_t, mlx5dv_port*, size_t) { return EOPNOTSUPP; }

ibv_dm* mlx5dv_alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr,
                        mlx5dv_alloc_dm_attr* extra) {
  if (extra->type != MLX5DV_DM_TYPE_MEMIC) return null(EOPNOTSUPP);
  if (extra->comp_mask != 0) return null(EINVAL);
  return ibv_alloc_dm(context, attr);
}

}  // extern "C"
