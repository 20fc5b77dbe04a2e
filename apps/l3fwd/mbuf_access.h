// SPDX-License-Identifier: BSD-3-Clause
// How the burst driver reaches DPDK packets: only the first segment's bytes are ever touched, so
// payload segments may lie in device memory.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "nf/counts.h"
#include "nf/packet.h"

namespace nicmem::l3fwd {

inline constexpr uint16_t kBurst = 32;

/// Packets on their way out of one port, collected over one burst.
struct Egress {
  uint16_t port = 0;
  uint16_t count = 0;
  std::array<rte_mbuf*, kBurst> packets{};
  nf::Counter transmitted;
};

/// Models nf::PacketAccess for the burst that arrived on one interface.
class MbufAccess {
 public:
  using Packet = rte_mbuf*;

  MbufAccess(std::span<Egress> egress, nf::Counts& counts) : egress_(egress), counts_(counts) {}

  void prefetch(rte_mbuf* packet) const { prefetch_read(rte_pktmbuf_mtod(packet, const void*)); }
  uint32_t frame_bytes(rte_mbuf* packet) const { return packet->pkt_len; }

  std::optional<nf::PacketView> view(rte_mbuf* packet) const {
    if (sum_of_segments(packet) != packet->pkt_len) [[unlikely]]
      return std::nullopt;
    return nf::PacketView{.headers = {rte_pktmbuf_mtod(packet, std::byte*), packet->data_len},
                          .frame_bytes = packet->pkt_len,
                          .ipv4_checksum = checksum_status(packet->ol_flags)};
  }

  void emit(rte_mbuf* packet, uint16_t interface) {
    Egress& out = egress_[interface];
    NM_DCHECK(out.count < kBurst);
    out.packets[out.count++] = packet;
  }
  void discard(rte_mbuf* packet) const { rte_pktmbuf_free(packet); }
  /// There is no slow path yet: what is punted ends here.
  void punt(rte_mbuf* packet) const { rte_pktmbuf_free(packet); }

  /// Sends what the burst emitted. A port that stays full after some tries costs its packets.
  void flush() {
    for (Egress& out : egress_) {
      if (out.count > 0) send(out);
    }
  }

 private:
  static constexpr int kTries = 8;

  /// Some drivers keep pkt_len in fewer bits than the frame had; such a packet must not leave.
  static uint32_t sum_of_segments(const rte_mbuf* packet) {
    if (packet->nb_segs == 1) [[likely]]
      return packet->data_len;
    uint32_t sum = 0;
    for (const rte_mbuf* segment = packet; segment; segment = segment->next)
      sum += segment->data_len;
    return sum;
  }

  static nf::ChecksumStatus checksum_status(uint64_t flags) {
    switch (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) {
      case RTE_MBUF_F_RX_IP_CKSUM_GOOD:
        return nf::ChecksumStatus::kGood;
      case RTE_MBUF_F_RX_IP_CKSUM_BAD:
        return nf::ChecksumStatus::kBad;
      default:
        return nf::ChecksumStatus::kUnknown;
    }
  }

  void send(Egress& out) {
    uint16_t sent = 0;
    for (int i = 0; i < kTries && sent < out.count; ++i) {
      sent =
          static_cast<uint16_t>(sent + rte_eth_tx_burst(out.port, 0, out.packets.data() + sent,
                                                        static_cast<uint16_t>(out.count - sent)));
    }
    const auto unsent = static_cast<uint16_t>(out.count - sent);
    if (unsent > 0) rte_pktmbuf_free_bulk(out.packets.data() + sent, unsent);
    out.transmitted.add(sent);
    counts_.forwarded.add(sent);
    counts_.drop(nf::DropReason::kTxFull, unsent);
    out.count = 0;
  }

  std::span<Egress> egress_;
  nf::Counts& counts_;
};

}  // namespace nicmem::l3fwd
