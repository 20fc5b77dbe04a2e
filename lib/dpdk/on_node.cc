// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/on_node.h"

#include <numa.h>

namespace nicmem::dpdk {

int max_node() { return numa_available() < 0 ? 0 : numa_max_node(); }

OnNode::OnNode(int node) : preferred_(node >= 0 && numa_available() >= 0 && node <= max_node()) {
  if (preferred_) numa_set_preferred(node);
}

OnNode::~OnNode() {
  if (preferred_) numa_set_localalloc();
}

}  // namespace nicmem::dpdk
