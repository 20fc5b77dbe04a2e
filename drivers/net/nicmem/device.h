// SPDX-License-Identifier: BSD-3-Clause
// A device as the driver holds it: the control path, one protection domain, the card's memory and
// what is registered. Ports share one when they were given the same `device=NAME`.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "devargs.h"
#include "hca/hca.h"
#include "memory_map.h"
#include "nicmem/heap.h"
#include "nicmem/memory.h"

namespace nicmem::pmd {

struct Device {
  std::string name;
  Control control = Control::kSim;
  std::unique_ptr<hca::Hca> hca;
  bool stepped = false;  // has no clock of its own: rte_pmd_nicmem_step() runs it
  hca::Domain domain{};
  std::unique_ptr<Memory> memory;  // null: the device has none, or not enough
  std::unique_ptr<Heap> heap;      // over `memory`
  std::unique_ptr<MemoryMap> map;
  uint32_t ports = 0;  // attached now

  ~Device();
};

/// Allocates the device's memory and makes its maps. Device memory that cannot be had is no error:
/// everything then lies in host memory, and `memory` stays null.
Result<void> set_up(Device& device, size_t want_bytes);

/// Whether `pointer` lies in the memory of any device of this process.
bool is_device_memory(const void* pointer);

}  // namespace nicmem::pmd
