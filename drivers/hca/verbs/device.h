// SPDX-License-Identifier: BSD-3-Clause
// A ConnectX by rdma-core: protection domains and memory, and its one port.
//
// [rdma-core 44; what kernel and firmware ask: facts of tests/verbs/contract_test.cc]
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "drivers/hca/verbs/handles.h"
#include "drivers/hca/verbs/plugin.h"
#include "drivers/hca/verbs/surroundings.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

/// From a frame without FCS to its MTU, as ethdev's drivers count: an Ethernet header and two tags.
/// (An interface takes one tag beyond its MTU: frames with two reach it whole only if it has 4
/// bytes more.)
inline constexpr uint32_t kBeyondMtu = 22;

class VerbsDevice final : public hca::Hca {
 public:
  static Result<std::unique_ptr<VerbsDevice>> open(const DeviceName& name, bool guard);

  const hca::Capabilities& capabilities() const override { return capabilities_; }
  Result<hca::Domain> create_domain() override;
  void destroy_domain(hca::Domain domain) override;
  Result<std::unique_ptr<hca::DeviceMemory>> allocate_device_memory(size_t bytes) override;
  Result<std::unique_ptr<hca::MemoryRegion>> register_device_memory(hca::Domain domain,
                                                                    hca::DeviceMemory& memory,
                                                                    size_t offset, size_t length,
                                                                    hca::Access access) override;
  Result<std::unique_ptr<hca::MemoryRegion>> register_host_memory(hca::Domain domain, void* start,
                                                                  size_t length,
                                                                  hca::Access access) override;
  /// A card's device has one port: kExhausted while it is open.
  Result<std::unique_ptr<hca::Port>> open_port(const hca::PortOptions& options) override;
  size_t step(uint32_t /*budget*/) override { return 0; }

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain(hca::Domain domain) const { return domains_.at(domain).get(); }
  Surroundings& surroundings() { return surroundings_; }
  const Surroundings& surroundings() const { return surroundings_; }
  const ibv_device_attr_ex& attributes() const { return attributes_; }
  void port_closed() { port_open_ = false; }

 private:
  VerbsDevice(Handle<ibv_context> context, Surroundings surroundings, bool guard)
      : context_(std::move(context)), surroundings_(std::move(surroundings)), guard_(guard) {}
  Result<void> query(const DeviceName& name);

  Handle<ibv_context> context_;
  Surroundings surroundings_;
  const bool guard_;
  ibv_device_attr_ex attributes_{};
  hca::Capabilities capabilities_;
  std::map<hca::Domain, Handle<ibv_pd>> domains_;
  bool port_open_ = false;
};

}  // namespace nicmem::hca_verbs
