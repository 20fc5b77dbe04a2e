// SPDX-License-Identifier: BSD-3-Clause
// The only copies between host and device memory. On a card the mapping is write-combining: stores
// leave in whole 64-byte lines at the link's rate, loads cross PCIe one at a time, 50 to 528 times
// as slow as from DRAM [Pismenny, ASPLOS'22, figure 14]. So: write in aligned units, read never on
// a fast path, and count every read.
#pragma once

#include <cstddef>
#include <span>

#include "base/core.h"
#include "base/result.h"
#include "nicmem/memory.h"
#include "nicmem/region.h"

namespace nicmem {

/// Writes `data` at `offset` of `region`, fenced: a doorbell rung afterwards finds it there.
/// kInvalidArgument: offset or length is no multiple of 4 (the card's unit, rdma-core
/// mlx5_access_dm), or the range leaves the region or the memory.
Result<void> copy_to_nic(Memory& memory, const Region& region, size_t offset,
                         std::span<const std::byte> data);

/// Reads into `out`; counted. Same rules.
Result<void> copy_from_nic(Memory& memory, const Region& region, size_t offset,
                           std::span<std::byte> out);

/// Reads any range, for the rare frame whose payload must be looked at; counted and limited to
/// Memory's rate (10,000 a second unless set). kExhausted above it.
Result<void> slow_read(Memory& memory, const Region& region, size_t offset,
                       std::span<std::byte> out, Nanos now);

/// Overwrites with zeros.
Result<void> scrub(Memory& memory, const Region& region);

}  // namespace nicmem
