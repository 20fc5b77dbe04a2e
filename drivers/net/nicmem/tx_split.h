// SPDX-License-Identifier: BSD-3-Clause
// Transmit of the shape that split receive makes: a header, all of it inlined, and one payload.
#pragma once

#include <cstdint>

struct rte_mbuf;

namespace nicmem::pmd {

struct TxQueue;

/// Sends packets of this shape until `count` are taken or one is different; returns how many.
/// Their WQEs are of one length and lie in one piece of the ring, which has room for them all:
/// little changes from one to the next.
using SplitSender = uint32_t(TxQueue& queue, rte_mbuf** packets, uint32_t count);

/// The fastest that this CPU and the program's limit for vectors allow, for headers of
/// `header_bytes`; for lengths other than 64 (that of the published rows) and 128 (the default) one
/// that takes no packet. [rte_vect_get_max_simd_bitwidth]
SplitSender* split_sender(uint32_t header_bytes);

}  // namespace nicmem::pmd
