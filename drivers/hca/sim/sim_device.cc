// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/sim/sim_device.h"

#include <rte_lcore.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "dpdk/ethdev_wire.h"
#include "dpdk/on_node.h"
#include "drivers/hca/sim/engine.h"
#include "drivers/hca/sim/wires.h"
#include "sim/nic.h"

namespace nicmem::hca_sim {
namespace {

/// CPUs that these lcores do not use.
cpu_set_t cpus_without(bool main_lcore, bool workers) {
  cpu_set_t free;
  CPU_ZERO(&free);
  const long count = std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE);
  for (int cpu = 0; cpu < count; ++cpu) CPU_SET(cpu, &free);
  unsigned lcore;
  RTE_LCORE_FOREACH(lcore) {
    if (!(lcore == rte_get_main_lcore() ? main_lcore : workers)) continue;
    const rte_cpuset_t used = rte_lcore_cpuset(lcore);
    for (int cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET(cpu, &used)) CPU_CLR(cpu, &free);
  }
  return free;
}

/// CPUs that no lcore uses; else those of the main lcore, which in many programs waits at a prompt;
/// else all.
cpu_set_t free_cpus() {
  cpu_set_t free = cpus_without(true, true);
  if (CPU_COUNT(&free) == 0) free = cpus_without(false, true);
  return CPU_COUNT(&free) != 0 ? free : cpus_without(false, false);
}

/// The model, what its ports' wires shall be, and its place on an engine thread.
class SimDevice final : public hca::Hca {
 public:
  explicit SimDevice(Options options) : options_(std::move(options)) { expect(options_); }
  ~SimDevice() override {
    if (!options_.stepped()) Engine::remove(*nic_);
  }

  Result<void> start(const std::string& name) {
    const dpdk::OnNode here(options_.numa_node);
    sim::NicOptions nic{.name = name, .sram_bytes = options_.sram_bytes, .guard = options_.guard};
    nic.wire = [this](const hca::PortOptions& port) {
      return make_wire(wires_.at(port.name), port, dpdk::EthdevWire::open);
    };
    nic.faults = options_.faults;
    nic.numa_node = options_.numa_node;
    // A test that steps a model with faults counts time in steps.
    if (!options_.stepped() || options_.faults == nullptr) nic.now = steady_now;
    NM_TRY(nic_, sim::make_nic(std::move(nic)));
    return options_.stepped() ? Result<void>{} : Engine::add(*nic_, options_.cpu, free_cpus());
  }

  void expect(const Options& port) { wires_[port.port_name] = port; }
  const Options& options() const { return options_; }

  const hca::Capabilities& capabilities() const override { return nic_->capabilities(); }
  Result<hca::Domain> create_domain() override { return nic_->create_domain(); }
  void destroy_domain(hca::Domain domain) override { nic_->destroy_domain(domain); }
  Result<std::unique_ptr<hca::DeviceMemory>> allocate_device_memory(size_t bytes) override {
    return nic_->allocate_device_memory(bytes);
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_device_memory(hca::Domain domain,
                                                                    hca::DeviceMemory& memory,
                                                                    size_t offset, size_t length,
                                                                    hca::Access access) override {
    return nic_->register_device_memory(domain, memory, offset, length, access);
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_host_memory(hca::Domain domain, void* start,
                                                                  size_t length,
                                                                  hca::Access access) override {
    return nic_->register_host_memory(domain, start, length, access);
  }
  Result<std::unique_ptr<hca::Port>> open_port(const hca::PortOptions& options) override {
    return nic_->open_port(options);
  }
  size_t step(uint32_t budget) override { return options_.stepped() ? nic_->step(budget) : 0; }

 private:
  Options options_;
  std::map<std::string, Options> wires_;  // by port name
  std::unique_ptr<hca::Hca> nic_;
};

}  // namespace

Result<std::unique_ptr<hca::Hca>> open(const std::string& name, const Options& options) {
  auto device = std::make_unique<SimDevice>(options);
  NM_TRY_VOID(device->start(name));
  return device;
}

Result<void> join(hca::Hca& device, const Options& options) {
  auto& sim = static_cast<SimDevice&>(device);  // open() makes no other kind
  const Options& there = sim.options();
  if ((options.sram_given && options.sram_bytes != there.sram_bytes) ||
      options.guard != there.guard || options.stepped() != there.stepped() ||
      (options.faults != nullptr && there.faults == nullptr))
    return fail(
        Code::kInvalidArgument,
        options.port_name +
            ": sram, cpu, guard and fault belong to the device: ports that share it give the same");
  sim.expect(options);
  return {};
}

std::shared_ptr<sim::FaultPlan> fault_plan(hca::Hca& device) {
  return static_cast<SimDevice&>(device).options().faults;  // as above
}

}  // namespace nicmem::hca_sim
