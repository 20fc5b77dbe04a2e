// SPDX-License-Identifier: BSD-3-Clause
// NUMA nodes: where memory that a device works on should lie.
#pragma once

namespace nicmem::dpdk {

/// The highest node of this machine; 0 where there is no NUMA.
int max_node();

/// Whether memory of `socket` is far from a device on `node`. Either may be -1: not known, or any.
constexpr bool crosses_nodes(int node, int socket) {
  return node >= 0 && socket >= 0 && node != socket;
}

/// While this lives, memory that this thread touches first lies on `node`, if that has some left.
/// -1, or a machine without that node: nothing changes.
class OnNode {
 public:
  explicit OnNode(int node);
  ~OnNode();
  OnNode(const OnNode&) = delete;
  OnNode& operator=(const OnNode&) = delete;

 private:
  bool preferred_;
};

}  // namespace nicmem::dpdk
