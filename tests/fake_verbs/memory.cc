// SPDX-License-Identifier: BSD-3-Clause
// Protection domains, memory regions and device memory.
#include <sys/mman.h>

#include <cstring>

#include "base/bits.h"
#include "fake.h"

namespace nicmem::fake {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint32_t kMinDmAlignment = 6;  // log2 of MEMIC's unit, 64 bytes [Linux, hw/mlx5/dm.c]
constexpr uint32_t kMaxDmAlignment = 12;

constexpr unsigned kRemoteAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kHostAccess = IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | IBV_ACCESS_MW_BIND |
                                 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |
                                 IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_OPTIONAL_RANGE;
constexpr unsigned kDmAccess =
    IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;

hca::Access access_of(unsigned flags) {
  return (flags & IBV_ACCESS_LOCAL_WRITE) != 0 ? hca::Access::kReadWrite : hca::Access::kRead;
}

/// Remote writes need the right to write locally. [Linux, ib_check_mr_access]
bool inconsistent(unsigned access) {
  return (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
         (access & IBV_ACCESS_LOCAL_WRITE) == 0;
}

/// Whether the kernel could pin these pages: they are mapped, and not the card's own memory.
bool can_be_pinned(const Context& context, const void* start, size_t length) {
  const auto first = reinterpret_cast<uintptr_t>(start) & ~uintptr_t{kPageBytes - 1};
  const uintptr_t end = round_up(reinterpret_cast<uintptr_t>(start) + length, kPageBytes);
  std::vector<unsigned char> pages((end - first) / kPageBytes);
  if (mincore(reinterpret_cast<void*>(first), end - first, pages.data()) != 0) return false;
  for (const Node* node : context.nodes) {
    if (node->kind != Kind::kDm) continue;
    const auto& dm = *static_cast<const Dm*>(node->object);
    const auto window = reinterpret_cast<uintptr_t>(dm.memory->window().data());
    if (first < window + dm.memory->window().size() && window < end) return false;
  }
  return true;
}

Mr* make_mr(Pd& pd, Dm* dm, std::unique_ptr<hca::MemoryRegion> region, size_t length) {
  std::vector<Node*> uses{&pd.node};
  if (dm != nullptr) uses.push_back(&dm->node);
  Mr* const mr = make<Mr>(pd.node.context, Kind::kMr, std::move(uses));
  mr->verbs.pd = &pd.verbs;
  mr->verbs.length = length;
  mr->verbs.lkey = mr->verbs.rkey = region->key;
  mr->verbs.handle = region->key;
  mr->region = std::move(region);
  return mr;
}

ibv_mr* register_host(const char* name, ibv_pd* verbs, void* start, size_t length, uint64_t iova,
                      unsigned access) {
  const Call call(name, verbs->context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Pd& pd = of<Pd>(verbs);
  if ((access & ~kHostAccess) != 0 || inconsistent(access) || length == 0) return null(EINVAL);
  // A region at another address than its own is possible on a card; nobody here asks for one.
  if (iova != reinterpret_cast<uintptr_t>(start)) return null(EOPNOTSUPP);
  if (!can_be_pinned(pd.node.context, start, length)) return null(EFAULT);
  auto region =
      pd.node.context.device.hca->register_host_memory(pd.domain, start, length, access_of(access));
  if (!region) return null(errno_of(region.error()));
  Mr* const mr = make_mr(pd, nullptr, std::move(*region), length);
  mr->verbs.addr = start;
  return &mr->verbs;
}

/// The device reads and writes its memory in words. [rdma-core, mlx5_access_dm]
int check_dm_access(const Dm& dm, uint64_t offset, size_t length) {
  if (offset % 4 != 0 || length % 4 != 0) return EINVAL;
  return offset > dm.length || length > dm.length - offset ? EFAULT : 0;
}

int memcpy_to_dm(ibv_dm* verbs, uint64_t offset, const void* from, size_t length) {
  Dm& dm = of<Dm>(verbs);
  if (const int error = check_dm_access(dm, offset, length)) return error;
  std::memcpy(dm.memory->access().data() + offset, from, length);
  return 0;
}

int memcpy_from_dm(void* to, ibv_dm* verbs, uint64_t offset, size_t length) {
  Dm& dm = of<Dm>(verbs);
  if (const int error = check_dm_access(dm, offset, length)) return error;
  std::memcpy(to, dm.memory->access().data() + offset, length);
  return 0;
}

ibv_dm* alloc_dm(ibv_context* verbs, ibv_alloc_dm_attr* attr) {
  const Call call("ibv_alloc_dm", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Context& context = of_context(verbs);
  if (attr->comp_mask != 0 || attr->length == 0 || attr->log_align_req > kMaxDmAlignment)
    return null(EINVAL);
  if (attr->length > context.device.hca->capabilities().device_memory_bytes) return null(EINVAL);
  const size_t length = round_up<size_t>(attr->length, size_t{1} << kMinDmAlignment);
  auto memory = context.device.hca->allocate_device_memory(length);
  if (!memory) return null(errno_of(memory.error()));
  Dm* const dm = make<Dm>(context, Kind::kDm, {});
  dm->verbs.memcpy_to_dm = memcpy_to_dm;
  dm->verbs.memcpy_from_dm = memcpy_from_dm;
  dm->memory = std::move(*memory);
  dm->length = length;
  return &dm->verbs;
}

int free_dm(ibv_dm* verbs) {
  const Call call("ibv_free_dm");
  Node& node = of<Dm>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* verbs, ibv_dm* memory, uint64_t offset, size_t length,
                  unsigned int access) {
  const Call call("ibv_reg_dm_mr", verbs->context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Pd& pd = of<Pd>(verbs);
  Dm& dm = of<Dm>(memory);
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || (access & ~kDmAccess) != 0 || inconsistent(access))
    return null(EINVAL);
  if (length == 0 || offset > dm.length || length > dm.length - offset) return null(EINVAL);
  if (&dm.node.context != &pd.node.context) return null(EINVAL);
  auto region = pd.node.context.device.hca->register_device_memory(pd.domain, *dm.memory, offset,
                                                                   length, access_of(access));
  if (!region) return null(errno_of(region.error()));
  return &make_mr(pd, &dm, std::move(*region), length)->verbs;
}

}  // namespace

Pd::~Pd() { node.context.device.hca->destroy_domain(domain); }

void add_memory_operations(verbs_context& operations) {
  if (is_absent("alloc_dm")) return;
  operations.alloc_dm = alloc_dm;
  operations.free_dm = free_dm;
  if (!is_absent("reg_dm_mr")) operations.reg_dm_mr = reg_dm_mr;
}

}  // namespace nicmem::fake

using namespace nicmem::fake;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* verbs) {
  const Call call("ibv_alloc_pd", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Context& context = of_context(verbs);
  const auto domain = context.device.hca->create_domain();
  if (!domain) return null(errno_of(domain.error()));
  Pd* const pd = make<Pd>(context, Kind::kPd, {});
  pd->domain = *domain;
  pd->verbs.handle = static_cast<uint32_t>(*domain);
  return &pd->verbs;
}

int ibv_dealloc_pd(ibv_pd* verbs) {
  const Call call("ibv_dealloc_pd");
  Node& node = of<Pd>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* start, size_t length, int access) {
  return register_host("ibv_reg_mr", pd, start, length, reinterpret_cast<uintptr_t>(start),
                       static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* start, size_t length, uint64_t iova, int access) {
  return register_host("ibv_reg_mr_iova", pd, start, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* start, size_t length, uint64_t iova, unsigned access) {
  return register_host("ibv_reg_mr_iova2", pd, start, length, iova, access);
}

int ibv_dereg_mr(ibv_mr* verbs) {
  const Call call("ibv_dereg_mr");
  Node& node = of<Mr>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

}  // extern "C"
