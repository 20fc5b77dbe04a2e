// SPDX-License-Identifier: BSD-3-Clause
// A piece of device memory as a WQE names it: an offset, never a pointer, crosses the wire.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nicmem {

struct Region {
  uint64_t offset = 0;  // in the zero-based memory region of the device's memory
  size_t size = 0;      // bytes
  uint32_t key = 0;     // memory key, valid in the domain that the memory was registered in
};

}  // namespace nicmem
