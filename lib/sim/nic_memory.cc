// SPDX-License-Identifier: BSD-3-Clause
// The memory side of the modelled card: see nic_memory.h.
#include "sim/nic_memory.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/check.h"
#include "base/units.h"

namespace nicmem::sim {

class NicMemory::Piece final : public hca::DeviceMemory {
 public:
  Piece(NicMemory& nic, const Sram::Piece& piece) : nic_(nic), piece_(piece) {
    nic_.pieces_.insert(this);
  }
  ~Piece() override {
    const Gate::Control control(nic_.gate_);
    NM_CHECK(registrations == 0);
    nic_.pieces_.erase(this);
    nic_.sram_.release(piece_);
  }
  std::span<std::byte> window() override { return {piece_.window, piece_.bytes}; }
  std::span<std::byte> access() override {
    return {nic_.sram_.memory() + piece_.offset, piece_.bytes};
  }
  uint64_t offset() const { return piece_.offset; }

  int registrations = 0;

 private:
  NicMemory& nic_;
  Sram::Piece piece_;
};

class NicMemory::Registration final : public hca::MemoryRegion {
 public:
  Registration(NicMemory& nic, Piece* piece, uint32_t region_key, uintptr_t region_base)
      : nic_(nic), piece_(piece) {
    key = region_key;
    base = region_base;
    if (piece_ != nullptr) ++piece_->registrations;
  }
  ~Registration() override {
    const Gate::Control control(nic_.gate_);
    nic_.regions_.remove(key);
    if (piece_ != nullptr) --piece_->registrations;
  }

 private:
  NicMemory& nic_;
  Piece* piece_;  // null: host memory
};

Result<void> NicMemory::admit(const char* what) {
  if (broken_ != nullptr) {
    return fail(
        Code::kSystem,
        std::string(what) + ": the device " + broken_ + ": close its ports and open it again", EIO);
  }
  if (faults_ == nullptr) return {};
  const bool fails = faults_->pass(FaultClass::kAllocation).fails;
  faults_->log.add({.kind = EventKind::kControl,
                    .fate = fails ? EventFate::kFailure : EventFate::kDone,
                    .what = what});
  if (!fails) return {};
  return fail(Code::kExhausted, std::string(what) + ": fails by plan, as allocation " +
                                    std::to_string(faults_->seen(FaultClass::kAllocation)));
}

NicMemory::~NicMemory() { NM_CHECK(pieces_.empty() && regions_.empty()); }

Result<hca::Domain> NicMemory::create_domain() {
  const Gate::Control control(gate_);
  NM_TRY_VOID(admit("protection domain"));
  const hca::Domain domain{++last_domain_};
  domains_.insert(domain);
  return domain;
}

void NicMemory::destroy_domain(hca::Domain domain) {
  const Gate::Control control(gate_);
  domains_.erase(domain);
}

Result<std::unique_ptr<hca::DeviceMemory>> NicMemory::allocate(size_t bytes) {
  const Gate::Control control(gate_);
  NM_TRY_VOID(admit("device memory"));
  NM_TRY(const Sram::Piece piece, sram_.allocate(bytes));
  return std::make_unique<Piece>(*this, piece);
}

Result<std::unique_ptr<hca::MemoryRegion>> NicMemory::register_device(hca::Domain domain,
                                                                      hca::DeviceMemory& memory,
                                                                      size_t offset, size_t length,
                                                                      hca::Access access) {
  const Gate::Control control(gate_);
  const auto same = [&](const Piece* piece) { return piece == &memory; };
  const auto at = std::find_if(pieces_.begin(), pieces_.end(), same);
  if (at == pieces_.end()) {
    return fail(Code::kInvalidArgument, "memory region: the memory is another device's");
  }
  Piece& piece = **at;
  const size_t size = piece.access().size();
  if (offset > size || length > size - offset) {
    return fail(Code::kInvalidArgument,
                "memory region: bytes " + std::to_string(offset) + " to " + std::to_string(offset) +
                    " + " + std::to_string(length) + ", the memory has " + std::to_string(size));
  }
  const Region region{.memory = piece.access().data() + offset,
                      .base = 0,
                      .length = length,
                      .sram_offset = piece.offset() + offset,
                      .domain = domain,
                      .kind = Location::Kind::kSram,
                      .writable = access == hca::Access::kReadWrite};
  return add(region, reinterpret_cast<uintptr_t>(piece.window().data() + offset), &piece);
}

Result<std::unique_ptr<hca::MemoryRegion>> NicMemory::register_host(hca::Domain domain, void* start,
                                                                    size_t length,
                                                                    hca::Access access) {
  const Gate::Control control(gate_);
  const auto address = reinterpret_cast<uintptr_t>(start);
  if (start == nullptr || address + length < address) {
    return fail(Code::kInvalidArgument, "memory region: no memory at " + std::to_string(address) +
                                            ", length " + std::to_string(length));
  }
  const Region region{.memory = static_cast<std::byte*>(start),
                      .base = address,
                      .length = length,
                      .sram_offset = 0,
                      .domain = domain,
                      .kind = Location::Kind::kHost,
                      .writable = access == hca::Access::kReadWrite};
  return add(region, 0, nullptr);
}

Result<std::unique_ptr<hca::MemoryRegion>> NicMemory::add(const Region& region, uintptr_t base,
                                                          Piece* piece) {
  if (region.length == 0) {
    return fail(Code::kInvalidArgument, "memory region: 0 bytes asked for");
  }
  if (!has(region.domain)) {
    return fail(Code::kNotFound, "memory region: protection domain " +
                                     std::to_string(static_cast<uint32_t>(region.domain)) +
                                     " does not exist");
  }
  NM_TRY_VOID(admit("memory region"));
  NM_TRY(const uint32_t key, regions_.add(region));
  return std::make_unique<Registration>(*this, piece, key, base);
}

}  // namespace nicmem::sim
