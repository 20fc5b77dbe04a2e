// SPDX-License-Identifier: BSD-3-Clause
#include "tx_split.h"

#include <rte_cpuflags.h>
extern "C" {  // as this header of DPDK 22.11 forgets to say
#include <rte_vect.h>
}

#include <algorithm>
#include <cstring>

#include "tx_plain.h"

namespace nicmem::pmd {
namespace {

/// Copies in units of 16 bytes: what every 64-bit CPU has.
struct Copy16 {
  static constexpr uint32_t kBytes = 16;
  static void copy(std::byte* to, const void* from) { std::memcpy(to, from, kBytes); }
  static void end() {}
};

#if defined(__x86_64__)
/// Copies in units of 32 bytes. In assembly, because GCC inlines no function for AVX2 into a loop
/// that is compiled for other CPUs too; nothing but these instructions needs to differ.
struct Copy32 {
  static constexpr uint32_t kBytes = 32;
  struct Unit {
    std::byte bytes[kBytes];
  };
  static void copy(std::byte* to, const void* from) {
    asm("vmovdqu %1, %%ymm0\n\tvmovdqu %%ymm0, %0"
        : "=m"(*reinterpret_cast<Unit*>(to))
        : "m"(*static_cast<const Unit*>(from))
        : "xmm0");
  }
  /// Mixing with SSE instructions costs time while upper halves are in use. [Intel optimization
  /// reference manual, Mixing AVX code with SSE code]
  static void end() { asm volatile("vzeroupper"); }
};
#endif

template <uint32_t kBytes, class Copy>
void copy_units(std::byte* to, const void* from) {
  static_assert(kBytes % Copy::kBytes == 0);
  for (uint32_t at = 0; at < kBytes; at += Copy::kBytes)
    Copy::copy(to + at, static_cast<const std::byte*>(from) + at);
}

template <uint32_t kHeader, class Copy>
uint32_t send_split(TxQueue& q, rte_mbuf** packets, uint32_t count) {
  constexpr uint32_t kSegments = hw::send_wqe_segments(kHeader, 1);
  constexpr uint32_t kBlocks = hw::send_wqe_blocks(kSegments);
  const uint32_t to_end = (q.depth - (q.producer & (q.depth - 1))) / kBlocks;
  count = std::min(std::min(count, to_end), q.depth - (q.sent_head & (q.depth - 1)));
  if (!locate(q, q.payload_range, data_of(*packets[0]->next))) return 0;
  const KeyRange range = q.payload_range;  // of all: looking another one up ends the run
  const uint32_t max_payload = q.max_frame_bytes - kHeader;
  const WqeStart start = wqe_start(q.number_field | kSegments, kHeader);
  std::byte* wqe = q.block(q.producer);
  uint32_t producer = q.producer;
  uint64_t bytes = 0;
  size_t sent = 0;
  for (; sent != count; ++sent) {
    const rte_mbuf& packet = *packets[sent];
    if (!is_plain(packet) || packet.nb_segs != 2 || packet.data_len != kHeader) break;
    const rte_mbuf& payload = *packet.next;
    const uint32_t payload_bytes = payload.data_len;
    const char *const header = data_of(packet), *const data = data_of(payload);
    if (payload_bytes - 1 >= max_payload || !range.contains(data)) break;
    copy_units<sizeof start, Copy>(wqe, &start);
    set_index(wqe, producer);
    copy_units<kHeader, Copy>(wqe + offsetof(WqeStart, eth.inline_start), header);
    write_pointer(wqe, kSegments - 1, range, data, payload_bytes);
    bytes += payload_bytes;
    wqe += kBlocks * hw::kWqeBlockBytes;
    producer += kBlocks;
  }
  Copy::end();
  std::copy_n(packets, sent, &q.sent_slot(q.sent_head));
  if (sent != 0)
    note(q, static_cast<uint32_t>(sent), producer - kBlocks, producer, bytes + sent * kHeader);
  return static_cast<uint32_t>(sent);
}

/// For headers of other lengths.
uint32_t send_none(TxQueue& /*q*/, rte_mbuf** /*packets*/, uint32_t /*count*/) { return 0; }

bool has_avx2() {
#if defined(__x86_64__)
  return rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256 &&
         rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) == 1;
#else
  return false;
#endif
}

template <uint32_t kHeader>
SplitSender* sender_of() {
#if defined(__x86_64__)
  if (has_avx2()) return send_split<kHeader, Copy32>;
#endif
  return send_split<kHeader, Copy16>;
}

}  // namespace

SplitSender* split_sender(uint32_t header_bytes) {
  if (header_bytes == 64) return sender_of<64>();
  if (header_bytes == 128) return sender_of<128>();
  return send_none;
}

}  // namespace nicmem::pmd
