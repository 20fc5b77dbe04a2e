// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include "base/units.h"
#include "compat.h"
#include "log.h"

namespace nicmem::pmd {

Device::~Device() {
  map.reset();
  heap.reset();
  memory.reset();
  if (hca) hca->destroy_domain(domain);
}

Result<void> set_up(Device& device, size_t want_bytes) {
  NM_TRY(device.domain, device.hca->create_domain());
  device.map = std::make_unique<MemoryMap>(*device.hca, device.domain);
  if (device.hca->capabilities().device_memory_bytes == 0) {
    NM_LOG(WARNING, "%s: the device has no memory to give; payloads stay in host memory",
           device.name.c_str());
    return {};
  }
  NM_TRY(device.memory, Memory::allocate(*device.hca, device.domain, want_bytes));
  if (device.memory->size() < want_bytes)
    NM_LOG(WARNING, "%s: asked for %s of device memory, got %s", device.name.c_str(),
           format_size(want_bytes).c_str(), format_size(device.memory->size()).c_str());
  device.heap = std::make_unique<Heap>(*device.memory);
  device.map->add_device_memory(device.memory->window(), device.memory->key());
  return {};
}

}  // namespace nicmem::pmd
