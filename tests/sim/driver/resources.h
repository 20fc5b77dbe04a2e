// SPDX-License-Identifier: BSD-3-Clause
// What a process holds beside its mbufs: must be the same before and after.
#pragma once

#include <rte_malloc.h>

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace nicmem::test {

inline size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

/// Of DPDK's heaps, all nodes.
inline size_t heap_bytes() {
  size_t sum = 0;
  for (int socket = 0; socket < RTE_MAX_NUMA_NODES; ++socket) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(socket, &stats) == 0) sum += stats.heap_allocsz_bytes;
  }
  return sum;
}

}  // namespace nicmem::test
