// SPDX-License-Identifier: BSD-3-Clause
// The bounds check of lib/sim/mr_bounds.h, wrong by one byte: the fuzzer must find that. Only
// wqe_fuzz_planted is built with this folder in front of lib.
#pragma once

#include <cstdint>

namespace nicmem::sim {

constexpr bool within_region(uint64_t offset, uint32_t bytes, uint64_t length) {
  return offset <= length && bytes <= length - offset + 1;
}

}  // namespace nicmem::sim
