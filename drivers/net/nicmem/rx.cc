// SPDX-License-Identifier: BSD-3-Clause
// Receive: poll a completion, find its buffers, replace them, hand the frame over; one doorbell a
// burst. Replacement comes before hand-over: with a pool dry the frame is dropped and counted, and
// its buffers are posted again.
#include "rx.h"

#include <algorithm>

namespace nicmem::pmd {
namespace {

/// A buffer that is to take a WQE's entry, and that entry.
struct Replacement {
  rte_mbuf* mbuf;
  hw::DataSegment entry;
};
using Replacements = std::array<Replacement, kMaxRxSegments>;

/// The next completion, or null while the device owns its slot.
const hw::Cqe* poll(const RxQueue& q) {
  const hw::Cqe& cqe = q.cqes[q.head & (q.cq_depth - 1)];
  return hw::software_owns(hw::load_op_own(cqe), q.head, q.cq_depth) ? &cqe : nullptr;
}

/// How many segments a frame of `bytes` fills.
template <uint32_t kSegments>
uint32_t segments_used(const RxQueue& q, uint32_t bytes) {
  if constexpr (kSegments == 1) return 1;
  if constexpr (kSegments == 2) return bytes > q.segments[0].length ? 2 : 1;
  uint32_t used = 1;
  for (uint32_t room = q.segments[0].length; bytes > room && used < q.num_segments; ++used)
    room += q.segments[used].length;
  return used;
}

/// A buffer for segment `k`: nicmem first, host memory when it has none. [DESIGN.md 5, spill=sw]
rte_mbuf* take_buffer(const RxSegment& segment) {
  void* buffer = nullptr;
  if (rte_mempool_get(segment.pool, &buffer) == 0) return static_cast<rte_mbuf*>(buffer);
  if (segment.spill != nullptr && rte_mempool_get(segment.spill, &buffer) == 0)
    return static_cast<rte_mbuf*>(buffer);
  return nullptr;
}

/// Points the entry at the buffer. False: its memory cannot be registered.
bool aim(RxQueue& q, const RxSegment& segment, Replacement& out) {
  const void* const data = static_cast<char*>(out.mbuf->buf_addr) + segment.headroom;
  const KeyRange* const range = q.keys.find(data);
  if (range == nullptr) [[unlikely]]
    return false;
  out.entry = range->segment(data, segment.length);
  return true;
}

bool take(RxQueue& q, const RxSegment& segment, Replacement& out) {
  out.mbuf = take_buffer(segment);
  if (out.mbuf == nullptr) return false;
  if (aim(q, segment, out)) [[likely]]
    return true;
  rte_mbuf_raw_free(out.mbuf);
  return false;
}

/// All `count` replacements or none.
bool take_all(RxQueue& q, uint32_t count, Replacements& fresh) {
  for (uint32_t k = 0; k < count; ++k) {
    if (take(q, q.segments[k], fresh[k])) continue;
    while (k-- > 0) rte_mbuf_raw_free(fresh[k].mbuf);
    return false;
  }
  return true;
}

/// Points entries 0..count-1 of a WQE at `fresh`; the other entries keep their buffers.
void post(RxQueue& q, uint32_t index, const Replacements& fresh, uint32_t count) {
  auto* const entries =
      reinterpret_cast<hw::DataSegment*>(q.wqes + size_t{index & (q.depth - 1)} * q.stride_bytes);
  rte_mbuf** const slot = q.slot(index).data();
  for (uint32_t k = 0; k < count; ++k) {
    entries[k] = fresh[k].entry;
    slot[k] = fresh[k].mbuf;
  }
}

uint32_t packet_type(uint16_t header_type) {
  using H = hw::HeaderType;
  const uint16_t l3 = H::L3::get(header_type), l4 = H::L4::get(header_type);
  if (l3 == H::kL3None) return RTE_PTYPE_L2_ETHER;
  const bool extended = H::IpExtension::get(header_type) != 0;
  uint32_t type = RTE_PTYPE_L2_ETHER;
  if (l3 == H::kL3Ipv4) type |= extended ? RTE_PTYPE_L3_IPV4_EXT : RTE_PTYPE_L3_IPV4;
  if (l3 == H::kL3Ipv6) type |= extended ? RTE_PTYPE_L3_IPV6_EXT : RTE_PTYPE_L3_IPV6;
  if (H::Fragment::get(header_type) != 0) return type | RTE_PTYPE_L4_FRAG;
  if (l4 == H::kL4Udp) return type | RTE_PTYPE_L4_UDP;
  if (l4 != H::kL4None) return type | RTE_PTYPE_L4_TCP;
  return type;
}

uint64_t checksum_flags(uint16_t header_type) {
  using H = hw::HeaderType;
  uint64_t flags = 0;
  if (H::L3::get(header_type) == H::kL3Ipv4)
    flags |=
        H::L3Ok::get(header_type) != 0 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
  if (H::L4::get(header_type) != H::kL4None && H::Fragment::get(header_type) == 0)
    flags |=
        H::L4Ok::get(header_type) != 0 ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : RTE_MBUF_F_RX_L4_CKSUM_BAD;
  return flags;
}

/// What the completion says about the frame goes into its first mbuf.
void describe(const RxQueue& q, const hw::Cqe& cqe, rte_mbuf& first) {
  const uint16_t header_type = cqe.header_type.get();
  uint64_t flags = first.ol_flags & RTE_MBUF_F_EXTERNAL;  // says where the pool's buffers lie
  if (q.checksum_flags) flags |= checksum_flags(header_type);
  if (q.hash && cqe.rx_hash_type != 0) {
    first.hash.rss = cqe.rx_hash_result.get();
    flags |= RTE_MBUF_F_RX_RSS_HASH;
  }
  first.ol_flags = flags;
  first.packet_type = packet_type(header_type);
  first.port = q.port_id;
  first.vlan_tci = 0;
}

/// Chains the segments that the frame fills and counts where its payload lies.
void chain(RxQueue& q, rte_mbuf* const* segment, uint32_t count, uint32_t bytes) {
  rte_mbuf& first = *segment[0];
  first.pkt_len = bytes;
  first.nb_segs = static_cast<uint16_t>(count);
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t here = std::min<uint32_t>(bytes, q.segments[k].length);
    segment[k]->data_off = q.segments[k].headroom;
    segment[k]->data_len = static_cast<uint16_t>(here);
    segment[k]->next = k + 1 < count ? segment[k + 1] : nullptr;
    bytes -= here;
    if (k == 0) continue;
    const bool spilled = segment[k]->pool != q.segments[k].pool || q.segments[k].spill == nullptr;
    (spilled ? q.counters.payload_bytes_host : q.counters.payload_bytes_nic) += here;
  }
}

/// Lets the device reuse the completions, then the WQEs, that this burst has consumed.
void ring(RxQueue& q) {
  q.cq_consumer->publish<NM_CQ_CONSUMER_RELEASE>(q.head & 0xffffff);
  q.rq_producer->publish<NM_RQ_RECORD_RELEASE>((q.head + q.depth) & 0xffff);
}

/// Counts a failed WQE; its buffers stay posted. True: the device has stopped the queue.
bool stopped_by_error(RxQueue& q, const hw::Cqe& cqe) {
  const auto& error = reinterpret_cast<const hw::ErrorCqe&>(cqe);
  const auto syndrome = static_cast<hw::Syndrome>(error.syndrome);
  ++q.counters.errors;
  if (syndrome == hw::Syndrome::kFlushed) ++q.counters.flushed;
  return syndrome != hw::Syndrome::kLocalLength;
}

/// Starts the queue anew with the buffers it has. Every WQE is written again, for what is wrong
/// with one may be in its bytes. [as DPDK's mlx5_rx_err_handle]
void recover(RxQueue& q) {
  if (q.queue == nullptr || !q.queue->reset()) return;
  for (uint32_t index = 0; index < q.depth; ++index) {
    Replacements same;
    bool known = true;
    for (uint32_t k = 0; k < q.num_segments; ++k) {
      same[k].mbuf = q.slot(index)[k];
      known = aim(q, q.segments[k], same[k]) && known;
    }
    if (known) post(q, index, same, q.num_segments);
  }
  q.head = 0;
  ring(q);
}

template <uint32_t kSegments>
uint16_t rx_burst(void* queue, rte_mbuf** out, uint16_t max) {
  auto& q = *static_cast<RxQueue*>(queue);
  q.keys.refresh();
  uint16_t received = 0;
  const uint32_t start = q.head;
  for (uint16_t budget = max; budget > 0; --budget) {
    const hw::Cqe* const cqe = poll(q);
    if (cqe == nullptr) break;
    const uint32_t index = q.head++;

    if (hw::is_error(cqe->op_own)) [[unlikely]] {
      if (!stopped_by_error(q, *cqe)) continue;
      recover(q);
      break;
    }
    const uint32_t bytes = cqe->byte_count.get();
    const uint32_t used = segments_used<kSegments>(q, bytes);
    Replacements fresh;
    if (!take_all(q, used, fresh)) {
      ++q.counters.no_mbuf;
      continue;
    }

    rte_mbuf* const* const filled = q.slot(index).data();
    out[received] = filled[0];
    describe(q, *cqe, *filled[0]);
    chain(q, filled, used, bytes);
    post(q, index, fresh, used);
    q.counters.bytes += bytes;
    ++received;
  }
  q.counters.packets += received;
  if (q.head != start) ring(q);
  return received;
}

}  // namespace

bool fill(RxQueue& q) {
  for (uint32_t index = 0; index < q.depth; ++index) {
    Replacements fresh;
    if (!take_all(q, q.num_segments, fresh)) return false;
    post(q, index, fresh, q.num_segments);
  }
  q.head = 0;
  ring(q);
  return true;
}

void drain(RxQueue& q) {
  for (const hw::Cqe* cqe = poll(q); cqe != nullptr; cqe = poll(q)) {
    if (!hw::is_error(cqe->op_own)) ++q.counters.stopped;
    ++q.head;
  }
  for (uint32_t index = 0; index < q.depth; ++index)
    for (rte_mbuf*& mbuf : q.slot(index)) {
      if (mbuf != nullptr) rte_mbuf_raw_free(mbuf);
      mbuf = nullptr;
    }
}

eth_rx_burst_t rx_burst_for(uint32_t num_segments) {
  if (num_segments == 1) return rx_burst<1>;
  if (num_segments == 2) return rx_burst<2>;
  return rx_burst<0>;
}

}  // namespace nicmem::pmd
