// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include "nicmem/copy.h"
#include "nicmem/errno.h"
#include "nicmem/nicmem.h"

#define NM_EXPORT __attribute__((visibility("default")))

namespace {

nicmem::Memory& memory_of(const nicmem_region& region) {
  return *reinterpret_cast<nicmem::Memory*>(region.memory);
}
nicmem::Region region_of(const nicmem_region& region) {
  return {region.offset, region.size, region.key};
}
int to_c(const nicmem::Result<void>& result) {
  return result ? 0 : -nicmem::to_errno(result.error());
}

}  // namespace

extern "C" {

NM_EXPORT int nicmem_copy_to(const nicmem_region* region, size_t offset, const void* data,
                             size_t length) {
  if (region->memory == nullptr) return -EINVAL;
  return to_c(nicmem::copy_to_nic(memory_of(*region), region_of(*region), offset,
                                  {static_cast<const std::byte*>(data), length}));
}

NM_EXPORT int nicmem_copy_from(const nicmem_region* region, size_t offset, void* out,
                               size_t length) {
  if (region->memory == nullptr) return -EINVAL;
  return to_c(nicmem::copy_from_nic(memory_of(*region), region_of(*region), offset,
                                    {static_cast<std::byte*>(out), length}));
}

NM_EXPORT int nicmem_slow_read(const nicmem_region* region, size_t offset, void* out, size_t length,
                               uint64_t now_ns) {
  if (region->memory == nullptr) return -EINVAL;
  return to_c(nicmem::slow_read(memory_of(*region), region_of(*region), offset,
                                {static_cast<std::byte*>(out), length}, now_ns));
}

NM_EXPORT void* nicmem_pointer(const nicmem_region* region) {
  if (region->memory == nullptr) return nullptr;
  return memory_of(*region).pointer(region->offset);
}

}  // extern "C"
