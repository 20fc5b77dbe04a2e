// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the catalogue's cases share.
#pragma once

#include "conservation.h"

namespace nicmem::test {

inline constexpr const char* kNicmem = "mode=nicmem,split=force,header=64,sram=256KiB";

inline void free_all(std::vector<rte_mbuf*> packets) {
  for (rte_mbuf* packet : packets) rte_pktmbuf_free(packet);
}

/// What arrives of one frame, whose bytes are right.
inline rte_mbuf* carried(const Cable& cable, const Bytes& bytes) {
  cable.carry(bytes);
  const auto packets = cable.there.receive();
  EXPECT_EQ(packets.size(), 1u);
  if (packets.size() != 1) return nullptr;
  EXPECT_EQ(bytes_of(packets[0]), bytes);
  return packets[0];
}

}  // namespace nicmem::test
