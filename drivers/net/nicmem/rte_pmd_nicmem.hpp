// SPDX-License-Identifier: BSD-3-Clause
// The C++ form of rte_pmd_nicmem.h: device memory of a port that frees itself.
#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"
#include "rte_pmd_nicmem.h"

namespace nicmem::pmd {

/// An allocation on a port's device. Owns it; free before the port is closed.
class PortMemory {
 public:
  /// kNotFound: no such port of net_nicmem; kExhausted: not that much is free; kUnsupported: the
  /// device has none.
  static Result<PortMemory> allocate(uint16_t port_id, size_t bytes) {
    nicmem_region region{};
    const int error = rte_pmd_nicmem_alloc(port_id, bytes, &region);
    if (error == 0) return PortMemory(port_id, region);
    const Code code = error == -ENODEV   ? Code::kNotFound
                      : error == -ENOMEM ? Code::kExhausted
                      : error == -EINVAL ? Code::kInvalidArgument
                                         : Code::kUnsupported;
    return fail(code,
                "port " + std::to_string(port_id) + ": " + std::to_string(bytes) +
                    " bytes of device memory",
                -error);
  }

  PortMemory(PortMemory&& other) noexcept
      : port_id_(other.port_id_), region_(std::exchange(other.region_, {})) {}
  PortMemory& operator=(PortMemory&& other) noexcept {
    std::swap(port_id_, other.port_id_);
    std::swap(region_, other.region_);
    return *this;
  }
  ~PortMemory() {
    if (region_.memory != nullptr) rte_pmd_nicmem_free(port_id_, &region_);
  }

  const nicmem_region& region() const { return region_; }
  void* pointer() const { return nicmem_pointer(&region_); }

  /// Offset and length: multiples of 4.
  Result<void> write(size_t offset, std::span<const std::byte> data) {
    if (nicmem_copy_to(&region_, offset, data.data(), data.size()) == 0) return {};
    return fail(Code::kInvalidArgument,
                "write of " + std::to_string(data.size()) + " bytes at " + std::to_string(offset) +
                    ": accepted: multiples of 4 within " + std::to_string(region_.size));
  }

 private:
  PortMemory(uint16_t port_id, const nicmem_region& region) : port_id_(port_id), region_(region) {}

  uint16_t port_id_;
  nicmem_region region_;
};

}  // namespace nicmem::pmd
