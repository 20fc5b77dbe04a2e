// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/device.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "drivers/hca/verbs/memory.h"
#include "drivers/hca/verbs/port.h"
#include "drivers/hca/verbs/steering.h"

namespace nicmem::hca_verbs {
namespace {

constexpr int kMaxQueueDepth = 1 << 15;  // records count 16 bits [PRM]
constexpr uint32_t kMaxScatter = 32;     // as DPDK's mlx5, MLX5_MAX_LOG_RQ_SEGS
constexpr uint32_t kMaxQueues = 1024;
constexpr uint32_t kMaxMtu = 9978;  // of mlx5_core's interfaces

/// libmlx5 reads it while a context is opened: doorbell registers are then mapped uncached, and a
/// store to them leaves the CPU at once. [rdma-core; DPDK's mlx5 does the same]
class ShutUpBlueFlame {
 public:
  ShutUpBlueFlame() : was_set_(secure_getenv(kName) != nullptr) { setenv(kName, "1", 0); }
  ~ShutUpBlueFlame() {
    if (!was_set_) unsetenv(kName);
  }
  ShutUpBlueFlame(const ShutUpBlueFlame&) = delete;
  ShutUpBlueFlame& operator=(const ShutUpBlueFlame&) = delete;

 private:
  static constexpr const char* kName = "MLX5_SHUT_UP_BF";
  const bool was_set_;
};

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

Result<Handle<ibv_context>> open_context(const std::string& ibdev, std::string& path) {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  if (list == nullptr) return verbs_error("list of InfiniBand devices", errno);
  const ShutUpBlueFlame quiet;
  for (int i = 0; i < count; ++i) {
    ibv_device* const device = list.get()[i];
    if (ibdev != ibv_get_device_name(device)) continue;
    path = device->ibdev_path;
    return own(ibdev, ibv_open_device(device));
  }
  return fail(Code::kNotFound, "ibdev=" + ibdev + ": it is gone");
}

}  // namespace

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const DeviceName& name, bool guard) {
  std::string path;
  NM_TRY(Handle<ibv_context> context, open_context(name.ibdev, path));
  std::unique_ptr<VerbsDevice> device(
      new VerbsDevice(std::move(context), Surroundings(std::move(path)), guard));
  NM_TRY_VOID(device->query(name));
  return device;
}

Result<void> VerbsDevice::query(const DeviceName& name) {
  NM_TRY_VOID(check(name.ibdev + ": query", ibv_query_device_ex(context(), nullptr, &attributes_)));
  const ibv_device_attr_ex& a = attributes_;
  const ibv_device_attr& basic = a.orig_attr;
  const bool segments = (a.tso_caps.supported_qpts & (1u << IBV_QPT_RAW_PACKET)) != 0;
  capabilities_ = {
      .name = name.ibdev,
      .pci_address = name.pci_address,
      .mac = surroundings_.mac(),
      .device_memory_bytes = a.max_dm_size,
      .max_queue_depth = std::bit_floor(
          static_cast<uint32_t>(std::min({basic.max_qp_wr, basic.max_cqe + 1, kMaxQueueDepth}))),
      .max_scatter_entries = std::min(static_cast<uint32_t>(basic.max_sge), kMaxScatter),
      .max_queues = std::min(a.max_wq_type_rq, kMaxQueues),
      .max_frame_bytes = kMaxMtu + kBeyondMtu,
      .max_tso_bytes = segments ? a.tso_caps.max_tso : 0,
      .rule_priorities = kRulePriorities,
      .checksum = (a.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM) != 0,
      .vlan = (a.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING) != 0,
      .exact_counters = false,
      .numa_node = name.numa_node,
  };
  return {};
}

Result<hca::Domain> VerbsDevice::create_domain() {
  NM_TRY(auto made, own("protection domain", ibv_alloc_pd(context())));
  const auto domain = domains_.empty()
                          ? hca::Domain{1}
                          : hca::Domain{static_cast<uint32_t>(domains_.rbegin()->first) + 1};
  domains_[domain] = std::move(made);
  return domain;
}

void VerbsDevice::destroy_domain(hca::Domain domain) { domains_.erase(domain); }

Result<std::unique_ptr<hca::DeviceMemory>> VerbsDevice::allocate_device_memory(size_t bytes) {
  return VerbsMemory::allocate(context(), bytes, guard_);
}

Result<std::unique_ptr<hca::MemoryRegion>> VerbsDevice::register_device_memory(
    hca::Domain domain, hca::DeviceMemory& memory, size_t offset, size_t length,
    hca::Access access) {
  auto& own = static_cast<VerbsMemory&>(memory);  // allocate_device_memory() makes no other kind
  return own.register_in(this->domain(domain), offset, length, access);
}

Result<std::unique_ptr<hca::MemoryRegion>> VerbsDevice::register_host_memory(hca::Domain domain,
                                                                             void* start,
                                                                             size_t length,
                                                                             hca::Access access) {
  return register_host(this->domain(domain), start, length, access);
}

Result<std::unique_ptr<hca::Port>> VerbsDevice::open_port(const hca::PortOptions& options) {
  if (port_open_)
    return fail(Code::kExhausted, options.name + ": " + capabilities_.name +
                                      " has one port, and it is in use: accepted: a device of "
                                      "its own for each port");
  NM_TRY(auto port, VerbsPort::open(*this, options));
  port_open_ = true;
  return port;
}

}  // namespace nicmem::hca_verbs
