// SPDX-License-Identifier: BSD-3-Clause
// Secondary processes: they see a port's statistics and what it tells about itself, and can do
// nothing to it. They ask by DPDK's messages; the primary process writes the answer into the port's
// shared memory. Nothing that a secondary process reads points into the primary's heap.
#pragma once

#include <atomic>

#include "compat.h"

namespace nicmem::pmd {

struct Port;

inline constexpr uint32_t kMaxSharedQueues = 16;
inline constexpr uint32_t kMaxXstats = 128;

/// What the primary knows of a port, copied at a secondary's request.
struct Snapshot {
  rte_eth_dev_info info;  // without pointers
  rte_eth_stats stats;
  rte_eth_rxq_info rx[kMaxSharedQueues];  // mempools lie at the same address in every process
  rte_eth_txq_info tx[kMaxSharedQueues];
  uint32_t xstats;
  uint64_t values[kMaxXstats];
  rte_eth_xstat_name names[kMaxXstats];
};

/// rte_eth_dev_data::dev_private.
struct SharedPort {
  Port* port;                     // the primary's own
  std::atomic<uint32_t> version;  // odd: the primary is writing
  Snapshot snapshot;
};

/// Lets secondary processes ask this one, the primary.
void answer_secondaries();

/// Attaches to a port of the primary. Returns 0, or -errno.
int attach_secondary(rte_vdev_device* vdev);

}  // namespace nicmem::pmd
