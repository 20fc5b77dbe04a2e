// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/mempool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "dpdk/error.h"

namespace nicmem::dpdk {

Result<Mempool> make_mempool(const MempoolOptions& options) {
  constexpr uint32_t kMaxRoom = UINT16_MAX - RTE_PKTMBUF_HEADROOM;
  if (options.room_bytes > kMaxRoom) {
    return fail(Code::kInvalidArgument, "mbuf pool '" + options.name + "': room for " +
                                            std::to_string(options.room_bytes) +
                                            " bytes; accepted: up to " + std::to_string(kMaxRoom));
  }
  rte_mempool* pool = rte_pktmbuf_pool_create(
      options.name.c_str(), options.mbufs, options.cache, 0,
      static_cast<uint16_t>(options.room_bytes + RTE_PKTMBUF_HEADROOM), options.numa_socket);
  if (!pool) {
    return fail_rte("mbuf pool '" + options.name + "': " + std::to_string(options.mbufs) +
                        " mbufs of " + std::to_string(options.room_bytes) + " bytes",
                    rte_errno);
  }
  return Mempool(pool);
}

}  // namespace nicmem::dpdk
