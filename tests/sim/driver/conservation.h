// SPDX-License-Identifier: BSD-3-Clause
// Where every frame and every buffer of some ports is, when nothing moves: the equations of the
// driver's README, counted from its statistics and from the rings themselves.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <set>
#include <vector>

#include "port_fixture.h"

namespace nicmem::test {

/// The segments of a packet, and of the packets whose memory it shares.
inline void add_segments(std::set<const rte_mbuf*>& all, const rte_mbuf* packet) {
  for (const rte_mbuf* segment = packet; segment != nullptr; segment = segment->next) {
    all.insert(segment);
    if (RTE_MBUF_CLONED(segment))
      all.insert(rte_mbuf_from_indirect(const_cast<rte_mbuf*>(segment)));
  }
}

/// Adds what posted receive WQEs and unfinished send WQEs of a port own.
inline void add_rings(std::set<const rte_mbuf*>& busy, const TestPort& port) {
  rte_eth_dev* const dev = &rte_eth_devices[port.id()];
  for (uint16_t q = 0; q < dev->data->nb_rx_queues; ++q) {
    const pmd::RxQueueConfig& rx = *pmd::rx_queue(dev, q);
    if (rx.data.mbufs == nullptr) continue;
    for (const rte_mbuf* mbuf : rx.mbufs) {
      if (mbuf == nullptr) continue;
      EXPECT_TRUE(busy.insert(mbuf).second) << "posted twice";
    }
  }
  for (uint16_t q = 0; q < dev->data->nb_tx_queues; ++q) {
    pmd::TxQueue& tx = pmd::tx_queue(dev, q)->data;
    if (tx.sent == nullptr) continue;
    for (uint32_t at = tx.sent_tail; at != tx.sent_head; ++at) add_segments(busy, tx.sent_slot(at));
  }
}

/// Buffers of every pool of these ports and of `pools`: allocated = free + posted + held, where
/// `held` are the packets that the test has.
inline void check_buffers(std::initializer_list<const TestPort*> ports,
                          const std::vector<rte_mbuf*>& held = {},
                          std::set<rte_mempool*> pools = {}) {
  std::set<const rte_mbuf*> busy;
  for (const rte_mbuf* packet : held) add_segments(busy, packet);
  for (const TestPort* port : ports) {
    add_rings(busy, *port);
    pools.insert(port->pool());
    if (port->port().card_payload) pools.insert(port->port().card_payload->pool());
    if (port->port().host_payload) pools.insert(port->port().host_payload->pool());
  }
  for (const rte_mempool* pool : pools) {
    const auto taken = std::count_if(busy.begin(), busy.end(),
                                     [pool](const rte_mbuf* mbuf) { return mbuf->pool == pool; });
    EXPECT_EQ(pool->size, rte_mempool_avail_count(pool) + static_cast<uint32_t>(taken))
        << pool->name;
  }
}

/// Frames of one port, its receive queues polled empty.
inline void check_frames(const TestPort& port) {
  const auto x = [&port](const char* name) { return port.xstat(name); };
  EXPECT_EQ(x("rx_device_frames"),
            x("rx_good_packets") + x("rx_no_mbuf") + x("rx_stopped") + x("rx_stuck"));
  EXPECT_EQ(x("tx_good_packets"), x("tx_device_frames") + x("tx_wire_drops"));
  EXPECT_EQ(x("tx_errors"), x("tx_wqe_error") + x("tx_foreign_memory") + x("tx_unknown_memory") +
                                x("tx_too_many_segments") + x("tx_empty") + x("tx_bad_length") +
                                x("tx_bad_offload") + x("tx_stopped"));
}

/// Everything that `from` has put on the cable arrived at `to`, or is counted there.
inline void check_cable(const TestPort& from, const TestPort& to) {
  uint64_t seen = 0;
  for (const char* name : {"rx_device_frames", "rx_no_buffer", "rx_oversize", "rx_filtered",
                           "rx_dropped_by_rule", "rx_wqe_error", "rx_malformed", "wire_held"})
    seen += to.xstat(name);
  EXPECT_EQ(from.xstat("tx_device_frames"), seen);
}

/// All of it, for the two ends of a cable.
inline void check_conservation(const Cable& cable, const std::vector<rte_mbuf*>& held = {},
                               std::set<rte_mempool*> pools = {}) {
  check_buffers({&cable.here, &cable.there}, held, std::move(pools));
  for (const TestPort* port : {&cable.here, &cable.there}) {
    SCOPED_TRACE("port " + std::to_string(port->id()));
    check_frames(*port);
  }
  check_cable(cable.here, cable.there);
  check_cable(cable.there, cable.here);
}

}  // namespace nicmem::test
