// SPDX-License-Identifier: BSD-3-Clause
// The modelled ConnectX as an hca::Hca: device memory, memory regions, ports, and step(), which is
// all that makes it run.
//
// Threads: the control calls come from one thread at a time, step() from one thread at a time (the
// same or another); they keep out of each other's way. Rings, records and registers are used
// without a lock, in the order that lib/hw names. Every object must be gone before the Nic.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "hca/hca.h"
#include "sim/fault_bus.h"
#include "sim/gate.h"
#include "sim/nic_memory.h"
#include "sim/port.h"
#include "sim/sram.h"
#include "sim/wire.h"

namespace nicmem::sim {

struct NicOptions {
  std::string name = "sim";
  size_t sram_bytes = 256_KiB;  // 1 to Sram::kMaxBytes
  bool guard = false;           // DeviceMemory::window() allows no access
  PortTraits ports = {};
  int numa_node = -1;                      // reported; -1: not known
  WireFactory wire = {};                   // for Hca::open_port(options)
  QueueMemoryFactory memory = {};          // of all rings and records; none: the model's own
  std::function<Nanos()> now = {};         // for Hca::step(budget); none: one nanosecond a step
  std::shared_ptr<FaultPlan> faults = {};  // what goes wrong; accesses: FaultyNic only
};

template <Bus B>
class BasicNic final : public hca::Hca, private PortHost {
 public:
  using Port = BasicPort<B>;

  static Result<std::unique_ptr<BasicNic>> create(NicOptions options) {
    NM_TRY(Sram sram, Sram::create(options.sram_bytes, options.guard));
    return std::unique_ptr<BasicNic>(new BasicNic(std::move(options), std::move(sram)));
  }
  ~BasicNic() override { NM_CHECK(ports_.empty()); }

  const hca::Capabilities& capabilities() const override { return capabilities_; }
  Result<hca::Domain> create_domain() override { return memory_.create_domain(); }
  void destroy_domain(hca::Domain domain) override { memory_.destroy_domain(domain); }

  Result<std::unique_ptr<hca::DeviceMemory>> allocate_device_memory(size_t bytes) override {
    return memory_.allocate(bytes);
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_device_memory(hca::Domain domain,
                                                                    hca::DeviceMemory& memory,
                                                                    size_t offset, size_t length,
                                                                    hca::Access access) override {
    return memory_.register_device(domain, memory, offset, length, access);
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_host_memory(hca::Domain domain, void* start,
                                                                  size_t length,
                                                                  hca::Access access) override {
    return memory_.register_host(domain, start, length, access);
  }

  /// Asks NicOptions::wire for what the port is plugged into.
  Result<std::unique_ptr<hca::Port>> open_port(const hca::PortOptions& options) override {
    NM_TRY_VOID(admit_call("port"));
    if (options_.wire == nullptr) {
      return nicmem::fail(Code::kInvalidArgument,
                          "port " + options.name + ": the model was made without a wire");
    }
    NM_TRY(std::unique_ptr<Wire> wire, options_.wire(options));
    return std::unique_ptr<hca::Port>(open_port(options, std::move(wire)));
  }

  std::unique_ptr<Port> open_port(const hca::PortOptions& options, std::unique_ptr<Wire> wire) {
    const Gate::Control control(memory_.gate());
    PortHost& host = *this;
    auto port = std::make_unique<Port>(memory_.gate(), host, memory_.regions(), options,
                                       std::move(wire), options_.ports);
    if constexpr (requires { port->bus().follow(options_.faults); })
      port->bus().follow(options_.faults);
    ports_.push_back(port.get());
    return port;
  }

  size_t step(uint32_t budget) override {
    return step(options_.now ? options_.now() : ++steps_, budget);
  }

  /// Moves at most `budget` frames per port and direction; returns how many. `now` never goes back.
  size_t step(Nanos now, uint32_t budget) {
    if (options_.faults != nullptr) [[unlikely]]
      happen();
    size_t moved = 0;
    {
      const Gate::Step gate(memory_.gate());
      for (Port* port : ports_) moved += port->run(now, budget);
    }
    events_.deliver();
    return moved;
  }

 private:
  BasicNic(NicOptions options, Sram sram)
      : options_(std::move(options)), memory_(std::move(sram), options_.faults) {
    capabilities_ = {.name = options_.name,
                     .device_memory_bytes = memory_.sram_bytes(),
                     .max_queue_depth = hw::kMaxQueueDepth,
                     .max_scatter_entries = kMaxScatterEntries,
                     .max_queues = kMaxQueues,
                     .max_frame_bytes = kMaxFrameBytes,
                     .max_tso_bytes = kMaxTsoBytes,
                     .rule_priorities = options_.ports.rule_priorities,
                     .checksum = true,
                     .vlan = true,
                     .spill = true,
                     .numa_node = options_.numa_node};
  }

  Result<void> admit_call(const char* what) {
    const Gate::Control control(memory_.gate());
    return memory_.admit(what);
  }
  Result<void> admit(const char* what) override { return memory_.admit(what); }

  /// What the plan has for the device before this step.
  void happen() {
    FaultPlan& plan = *options_.faults;
    {
      const Gate::Step gate(memory_.gate());
      plan.step();
    }
    while (const std::optional<PlannedEvent> event = plan.due()) {
      plan.log.add({.kind = EventKind::kDevice, .what = to_text(*event)});
      if (event->what == hca::PortEvent::kLinkChanged) {
        for (Port* port : ports_) static_cast<void>(port->set_link(event->link_up));
      } else {
        break_down(event->what);
      }
    }
  }

  /// The queues stop where they are and no call works any more, until all is closed. Who uses the
  /// ports learns it last.
  void break_down(hca::PortEvent event) {
    const Gate::Step gate(memory_.gate());
    memory_.break_down(event == hca::PortEvent::kRemoved ? "is gone" : "has been reset");
    for (Port* port : ports_) port->break_down(event);
  }

  bool has(hca::Domain domain) const override { return memory_.has(domain); }
  uint32_t next_queue_number() override { return ++last_queue_; }
  void forget(hca::Port& port) override { std::erase(ports_, &port); }
  EventBox& events() override { return events_; }
  Result<QueueMemory> queue_memory(QueueKind kind, size_t ring_bytes) override {
    return options_.memory ? options_.memory(kind, ring_bytes)
                           : make_queue_memory(kind, ring_bytes);
  }

  NicOptions options_;
  hca::Capabilities capabilities_;
  NicMemory memory_;
  EventBox events_;
  std::vector<Port*> ports_;
  uint32_t last_queue_ = 0;
  Nanos steps_ = 0;
};

using Nic = BasicNic<CountingBus>;
extern template class BasicPort<CountingBus>;
extern template class BasicNic<CountingBus>;

/// Fails and logs as NicOptions::faults says.
using FaultyNic = BasicNic<FaultBus>;
extern template class BasicPort<FaultBus>;
extern template class BasicNic<FaultBus>;

/// The model that `options` need: a FaultyNic if there is a plan, else a Nic.
Result<std::unique_ptr<hca::Hca>> make_nic(NicOptions options);

}  // namespace nicmem::sim
