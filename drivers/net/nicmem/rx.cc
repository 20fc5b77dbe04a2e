// SPDX-License-Identifier: BSD-3-Clause
// Receive, the way that frames go as a rule: a run of good completions, buffers replaced in bulk,
// one doorbell a burst. Replacement comes before hand-over: with a pool dry nothing has happened
// yet, and rx_general.cc takes the frames one by one.
#include "rx.h"

#include <algorithm>

#include "bulk.h"
#include "rx_describe.h"

namespace nicmem::pmd {
namespace {

constexpr uint32_t kRun = 64;  // completions taken at once

/// What op_own is in a good completion on this lap of the ring.
uint8_t good_on_this_lap(const RxQueue& q) {
  const auto lap = static_cast<uint8_t>((q.head & q.cq_depth) != 0);
  return hw::Cqe::Opcode::set(lap, static_cast<uint8_t>(hw::CqeOpcode::kResponderSend));
}

/// Of the next `most` completions, how many are good frames without one in between that is not.
uint32_t count_good(const hw::Cqe* cqes, uint32_t most, uint8_t good) {
#pragma GCC unroll 4
  for (uint32_t count = 0; count < most; ++count)
    if (hw::load_op_own(cqes[count]) != good) return count;
  return most;
}

/// Fresh payload buffers for a run.
struct Payloads {
  rte_mbuf* own[kRun];
  rte_mbuf** mbufs = own;  // where they stand, until another is got from or given to their pool
  uint32_t on_card = 0;    // the first ones; the rest are of the spill pool
};

/// nicmem first, host memory for the rest. [DESIGN.md 5, spill=sw]
bool take_payloads(const RxQueue& q, Payloads& fresh, uint32_t count) {
  rte_mempool* const pool = q.windows[1].pool;
  fresh.on_card = count;
  fresh.mbufs = get_in_place(pool, fresh.own, count);
  if (fresh.mbufs != nullptr || q.spill_window.pool == nullptr) return fresh.mbufs != nullptr;
  fresh.mbufs = fresh.own;
  const uint32_t first = fresh.on_card = get_up_to(pool, fresh.mbufs, count);
  if (first == count || get_bulk(q.spill_window.pool, fresh.mbufs + first, count - first))
    return true;
  put_bulk(pool, fresh.mbufs, first);
  return false;
}

/// Gives back those behind the first `used` of `count`.
void put_unused(const RxQueue& q, const Payloads& fresh, uint32_t used, uint32_t count) {
  const uint32_t first_spilled = std::max(used, fresh.on_card);
  put_bulk(q.windows[1].pool, fresh.mbufs + used, first_spilled - used);
  put_bulk(q.spill_window.pool, fresh.mbufs + first_spilled, count - first_spilled);
}

/// Two addresses, as one register holds them.
using AddressPair = uint64_t __attribute__((vector_size(16)));

/// Both in wire order.
AddressPair to_wire(AddressPair host) {
  using Octets = uint8_t __attribute__((vector_size(16)));
  constexpr Octets kSwapped = {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8};
  return reinterpret_cast<AddressPair>(__builtin_shuffle(reinterpret_cast<Octets>(host), kSwapped));
}

/// Points one entry of each WQE of a run at its buffer, all of the pool that it pointed into
/// before: length and key stand.
template <uint32_t kStride>
void aim(std::byte* entry, const PoolWindow& window, const RxSegment& segment,
         rte_mbuf* const* buffers, uint32_t count) {
  const uintptr_t offset = segment.headroom - window.range.base;
  const AddressPair offsets = {offset, offset};
  const auto address = [buffers](size_t i) {
    return reinterpret_cast<uintptr_t>(buffers[i]->buf_addr);
  };
  const auto store = [entry](size_t i, uint64_t wire) {
    std::memcpy(entry + i * kStride + offsetof(hw::DataSegment, address), &wire, sizeof wire);
  };
  size_t i = 0;
#pragma GCC unroll 2
  for (; i + 2 <= count; i += 2) {
    const AddressPair pair = to_wire(AddressPair{address(i), address(i + 1)} + offsets);
    store(i, pair[0]);
    store(i + 1, pair[1]);
  }
  if (i < count) store(i, to_wire(AddressPair{address(i), 0} + offsets)[0]);
}

/// The same, with buffers of two pools.
void aim_mixed(const RxQueue& q, std::byte* entry, rte_mbuf* const* buffers, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i, entry += q.stride_bytes) {
    const bool spilled = buffers[i]->pool == q.spill_window.pool;
    const KeyRange& range = (spilled ? q.spill_window : q.windows[1]).range;
    const char* const data = static_cast<char*>(buffers[i]->buf_addr) + q.segments[1].headroom;
    *reinterpret_cast<hw::DataSegment*>(entry) = range.segment(data, q.segments[1].length);
  }
}

/// Hands the first buffers of `count` frames over and puts fresh ones in their place. False: the
/// pool is dry and nothing has changed.
bool exchange_first(const RxQueue& q, rte_mbuf** posted, rte_mbuf** out, uint32_t count) {
  std::copy_n(posted, count, out);
  if (get_bulk(q.windows[0].pool, posted, count)) [[likely]]
    return true;
  std::copy_n(out, count, posted);
  return false;
}

/// Where a run starts in each ring; it does not wrap.
struct Run {
  Run(RxQueue& q, uint32_t length)
      : count(length),
        cqes(q.cqes + (q.head & (q.cq_depth - 1))),
        entries(reinterpret_cast<std::byte*>(q.entries(q.head))),
        first(q.buffers(0) + (q.head & (q.depth - 1))) {}

  uint32_t count;
  const hw::Cqe* cqes;
  std::byte* entries;
  rte_mbuf** first;
};

/// Takes good completions of a queue with one buffer a frame. False: a pool is dry.
bool take_whole(RxQueue& q, const Run& run, rte_mbuf** out) {
  const RxSegment segment = q.segments[0];
  if (!exchange_first(q, run.first, out, run.count)) return false;
  aim<hw::receive_wqe_stride(1)>(run.entries, q.windows[0], segment, run.first, run.count);
  const uint64_t flags = q.windows[0].flags;
  const uint64_t rearm = rearm_data(segment.headroom, 1, q.port_id);
  uint64_t total = 0;
  for (uint32_t i = 0; i < run.count; ++i) {
    const uint32_t bytes = run.cqes[i].byte_count.get();
    total += bytes;
    set_segment(*out[i], rearm, bytes);
    describe(run.cqes[i], *out[i], flags, bytes);
  }
  q.counters.bytes += total;
  return true;
}

/// Counts where the payloads of a run lay, before they are handed over.
void count_payloads(RxQueue& q, const Run& run) {
  rte_mbuf* const* const payloads = run.first + q.depth;
  for (uint32_t i = 0; i < run.count; ++i) {
    const uint32_t bytes = run.cqes[i].byte_count.get();
    if (bytes <= q.segments[0].length) continue;
    const bool spilled = payloads[i]->pool == q.spill_window.pool;
    const bool on_card = !spilled && q.windows[1].range.on_card;
    (on_card ? q.counters.payload_bytes_nic : q.counters.payload_bytes_host) +=
        bytes - q.segments[0].length;
    q.spilled -= spilled;
  }
}

/// What a run comes to.
struct Total {
  uint64_t bytes = 0;        // of all frames
  uint64_t short_bytes = 0;  // of those that end in their header buffer
  uint32_t payloads = 0;     // frames that do not
};

/// Describes each frame, chains its payload and puts one of `fresh` in its place. A frame that ends
/// in its header buffer keeps its payload buffer posted.
Total chain_payloads(const RxQueue& q, const Run& run, rte_mbuf* const* out,
                     rte_mbuf* const* fresh) {
  const uint32_t header_bytes = q.segments[0].length;
  const uint64_t flags = q.windows[0].flags;
  const uint64_t alone = rearm_data(q.segments[0].headroom, 1, q.port_id);
  const uint64_t chained = rearm_data(q.segments[0].headroom, 2, q.port_id);
  const uint64_t second = rearm_data(q.segments[1].headroom, 1, q.port_id);
  rte_mbuf** const payloads = run.first + q.depth;
  rte_mbuf* const* next_fresh = fresh;
  const hw::Cqe* cqe = run.cqes;
  Total total;
  for (size_t i = 0, count = run.count; i != count; ++i, ++cqe) {
    rte_mbuf& header = *out[i];
    const uint32_t bytes = cqe->byte_count.get();
    total.bytes += bytes;
    describe(*cqe, header, flags, bytes);
    if (bytes <= header_bytes) {
      set_segment(header, alone, bytes);
      total.short_bytes += bytes;
      continue;
    }
    rte_mbuf& payload = *payloads[i];
    payloads[i] = *next_fresh++;
    set_segment(header, chained, header_bytes);
    set_segment(payload, second, bytes - header_bytes);
    header.next = &payload;
  }
  total.payloads = static_cast<uint32_t>(next_fresh - fresh);
  return total;
}

/// Takes good completions of a queue that parts header and payload. False: a pool is dry.
bool take_split(RxQueue& q, const Run& run, rte_mbuf** out) {
  Payloads fresh;
  if (!exchange_first(q, run.first, out, run.count)) return false;
  if (!take_payloads(q, fresh, run.count)) {
    put_bulk(q.windows[0].pool, run.first, run.count);
    std::copy_n(out, run.count, run.first);
    return false;
  }
  constexpr uint32_t kStride = hw::receive_wqe_stride(2);
  aim<kStride>(run.entries, q.windows[0], q.segments[0], run.first, run.count);
  const bool all_on_card = q.spilled == 0 && q.windows[1].range.on_card;
  if (!all_on_card) count_payloads(q, run);
  const Total total = chain_payloads(q, run, out, fresh.mbufs);
  q.counters.bytes += total.bytes;
  if (all_on_card)
    q.counters.payload_bytes_nic +=
        total.bytes - total.short_bytes - uint64_t{total.payloads} * q.segments[0].length;

  if (total.payloads > fresh.on_card) {
    q.spilled += total.payloads - fresh.on_card;
    q.mixed = true;
  }
  if (total.payloads != run.count) put_unused(q, fresh, total.payloads, run.count);
  if (total.payloads == 0) return true;  // the posted ones stand
  std::byte* const entries = run.entries + sizeof(hw::DataSegment);
  if (!q.mixed) [[likely]]
    aim<kStride>(entries, q.windows[1], q.segments[1], run.first + q.depth, run.count);
  else
    aim_mixed(q, entries, run.first + q.depth, run.count);
  return true;
}

/// Takes a run of good completions, `most` at most; 0: rx_general.cc has to look.
template <uint32_t kSegments>
uint32_t take_run(RxQueue& q, rte_mbuf** out, uint32_t most) {
  const uint32_t to_end =
      std::min(q.depth - (q.head & (q.depth - 1)), q.cq_depth - (q.head & (q.cq_depth - 1)));
  const uint32_t count = count_good(q.cqes + (q.head & (q.cq_depth - 1)),
                                    std::min(std::min(most, to_end), kRun), good_on_this_lap(q));
  if (count == 0) return 0;
  const Run run(q, count);
  if (!(kSegments == 1 ? take_whole(q, run, out) : take_split(q, run, out))) return 0;
  if (looks_for_extras(q))
    for (uint32_t i = 0; i < count; ++i)
      out[i]->ol_flags |= describe_extras(q, run.cqes[i], *out[i]);
  q.head += count;
  return count;
}

template <uint32_t kSegments>
uint16_t rx_burst(void* queue, rte_mbuf** out, uint16_t max) {
  auto& q = *static_cast<RxQueue*>(queue);
  q.keys.refresh();
  const uint32_t start = q.head;
  uint32_t received = 0;
  while (received < max) {
    uint32_t run = 0;
    if constexpr (kSegments != 0)
      if (q.lean) [[likely]]
        run = take_run<kSegments>(q, out + received, max - received);
    if (run == 0) {
      const RxOutcome outcome = receive_one(q, out[received]);
      if (outcome == RxOutcome::kNone || outcome == RxOutcome::kRestart) break;
      run = outcome == RxOutcome::kFrame ? 1 : 0;
    }
    received += run;
  }
  q.counters.packets += received;
  if (q.head != start)
    ring(q);
  else if (++q.idle_polls % kRxIdleCheck == 0)
    look_for_trouble(q);
  return static_cast<uint16_t>(received);
}

}  // namespace

eth_rx_burst_t rx_burst_for(uint32_t num_segments) {
  if (num_segments == 1) return rx_burst<1>;
  if (num_segments == 2) return rx_burst<2>;
  return rx_burst<0>;
}

}  // namespace nicmem::pmd
