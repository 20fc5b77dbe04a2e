// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "base/units.h"

namespace nicmem::hca_verbs {
namespace {

class VerbsRegion final : public hca::MemoryRegion {
 public:
  VerbsRegion(Handle<ibv_mr> region, uintptr_t region_base) : region_(std::move(region)) {
    key = region_->lkey;
    base = region_base;
  }

 private:
  Handle<ibv_mr> region_;
};

unsigned flags_of(hca::Access access) {
  return access == hca::Access::kReadWrite ? IBV_ACCESS_LOCAL_WRITE : 0;
}

}  // namespace

Result<std::unique_ptr<hca::DeviceMemory>> VerbsMemory::allocate(ibv_context* context, size_t bytes,
                                                                 bool guard) {
  ibv_alloc_dm_attr attr{};
  attr.length = round_up(bytes, kMemoryUnit);
  NM_TRY(auto made,
         own("device memory of " + format_size(attr.length), ibv_alloc_dm(context, &attr)));
  std::unique_ptr<VerbsMemory> memory(new VerbsMemory(std::move(made)));
  NM_TRY_VOID(memory->map(attr.length, guard));
  return memory;
}

Result<void> VerbsMemory::map(size_t bytes, bool guard) {
  mlx5dv_dm shown{};
  mlx5dv_obj object{};
  object.dm = {.in = memory_.get(), .out = &shown};
  NM_TRY_VOID(check("device memory: where it is", mlx5dv_init_obj(&object, MLX5DV_OBJ_DM)));
  mapped_ = {static_cast<std::byte*>(shown.buf), bytes};
  if (!guard) return {};
  void* const nothing =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (nothing == MAP_FAILED)
    return fail(Code::kSystem, std::string("guard: mmap: ") + std::strerror(errno), errno);
  guard_ = {static_cast<std::byte*>(nothing), bytes};
  return {};
}

VerbsMemory::~VerbsMemory() {
  if (guard_.data() != nullptr) munmap(guard_.data(), guard_.size());
}

/// A zero-based region: addresses are offsets from its start. The kernel takes no other kind.
Result<std::unique_ptr<hca::MemoryRegion>> VerbsMemory::register_in(ibv_pd* domain, size_t offset,
                                                                    size_t length,
                                                                    hca::Access access) {
  NM_TRY(auto made,
         own("region of device memory",
             ibv_reg_dm_mr(domain, memory_.get(), offset, length,
                           flags_of(access) | static_cast<unsigned>(IBV_ACCESS_ZERO_BASED))));
  const auto base = reinterpret_cast<uintptr_t>(window().data()) + offset;
  return std::make_unique<VerbsRegion>(std::move(made), base);
}

/// Relaxed ordering: the device's writes of payload may pass each other, a completion's may not
/// pass them.
Result<std::unique_ptr<hca::MemoryRegion>> register_host(ibv_pd* domain, void* start, size_t length,
                                                         hca::Access access) {
  const unsigned flags = flags_of(access) | IBV_ACCESS_RELAXED_ORDERING;
  NM_TRY(auto made, own("region of " + format_size(length) + " of host memory",
                        ibv_reg_mr(domain, start, length, static_cast<int>(flags))));
  return std::make_unique<VerbsRegion>(std::move(made), uintptr_t{0});
}

}  // namespace nicmem::hca_verbs
