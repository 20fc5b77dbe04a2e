// SPDX-License-Identifier: BSD-3-Clause
// Mbuf pools with an owner.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace nicmem::dpdk {

struct MempoolFree {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
/// Owns a pool. Must outlive every port that receives into it, and every mbuf taken from it.
using Mempool = std::unique_ptr<rte_mempool, MempoolFree>;

struct MempoolOptions {
  std::string name;  // unique in the process; DPDK limits it to 25 characters
  uint32_t mbufs = 4096;
  uint32_t cache = 256;        // mbufs a core keeps to itself
  uint32_t room_bytes = 2048;  // for a frame or a segment of it; headroom is added
  int numa_socket = -1;        // -1: any
};

/// kInvalidArgument when room_bytes and headroom exceed 65,535; kExhausted when memory is short.
Result<Mempool> make_mempool(const MempoolOptions& options);

}  // namespace nicmem::dpdk
