// SPDX-License-Identifier: BSD-3-Clause
// The memory side of the modelled card: SRAM pieces, memory regions, protection domains. It does
// not depend on the bus.
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "hca/hca.h"
#include "sim/fault_plan.h"
#include "sim/gate.h"
#include "sim/mr_table.h"
#include "sim/sram.h"

namespace nicmem::sim {

/// The objects that it makes must be gone before it.
class NicMemory {
 public:
  /// `faults` may be null.
  explicit NicMemory(Sram sram, std::shared_ptr<FaultPlan> faults = nullptr)
      : sram_(std::move(sram)), faults_(std::move(faults)) {}
  ~NicMemory();

  Result<hca::Domain> create_domain();
  /// Its regions and queues must be gone.
  void destroy_domain(hca::Domain domain);

  /// Destroying the result while a region of it exists is a bug of the caller: NM_CHECK.
  Result<std::unique_ptr<hca::DeviceMemory>> allocate(size_t bytes);
  /// `memory` was allocated here.
  Result<std::unique_ptr<hca::MemoryRegion>> register_device(hca::Domain domain,
                                                             hca::DeviceMemory& memory,
                                                             size_t offset, size_t length,
                                                             hca::Access access);
  Result<std::unique_ptr<hca::MemoryRegion>> register_host(hca::Domain domain, void* start,
                                                           size_t length, hca::Access access);

  // Under the gate:
  /// Whether the device carries a control call out; `what` names it in the error.
  Result<void> admit(const char* what);
  /// No control call is carried out any more; `why` is a literal.
  void break_down(const char* why) { broken_ = why; }
  bool has(hca::Domain domain) const { return domains_.contains(domain); }
  const MrTable& regions() const { return regions_; }

  Gate& gate() { return gate_; }
  size_t sram_bytes() const { return sram_.size(); }

 private:
  class Piece;
  class Registration;
  Result<std::unique_ptr<hca::MemoryRegion>> add(const Region& region, uintptr_t base,
                                                 Piece* piece);

  Gate gate_;
  Sram sram_;
  MrTable regions_;
  std::set<Piece*> pieces_;
  std::set<hca::Domain> domains_;
  uint32_t last_domain_ = 0;
  std::shared_ptr<FaultPlan> faults_;
  const char* broken_ = nullptr;
};

}  // namespace nicmem::sim
