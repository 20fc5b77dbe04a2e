// SPDX-License-Identifier: BSD-3-Clause
// The bounds check of a memory region. In a header of its own so that tests/fuzz can put a wrong
// one in its place and prove that a fuzzer finds it.
#pragma once

#include <cstdint>

namespace nicmem::sim {

/// Whether `bytes` from `offset` on lie in a region of `length` bytes. Any values are allowed.
constexpr bool within_region(uint64_t offset, uint32_t bytes, uint64_t length) {
  return offset <= length && bytes <= length - offset;
}

}  // namespace nicmem::sim
