// SPDX-License-Identifier: BSD-3-Clause
// Device memory (MEMIC) and memory regions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/hca/verbs/handles.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

inline constexpr size_t kMemoryUnit = 64;  // MEMIC's base size [Linux, hw/mlx5/dm.c]

class VerbsMemory final : public hca::DeviceMemory {
 public:
  /// kUnsupported: the card has none; kExhausted, kInvalidArgument: it has less.
  static Result<std::unique_ptr<hca::DeviceMemory>> allocate(ibv_context* context, size_t bytes,
                                                             bool guard);
  ~VerbsMemory() override;

  std::span<std::byte> window() override { return guard_.data() != nullptr ? guard_ : mapped_; }
  std::span<std::byte> access() override { return mapped_; }

  Result<std::unique_ptr<hca::MemoryRegion>> register_in(ibv_pd* domain, size_t offset,
                                                         size_t length, hca::Access access);

 private:
  explicit VerbsMemory(Handle<ibv_dm> memory) : memory_(std::move(memory)) {}
  Result<void> map(size_t bytes, bool guard);

  Handle<ibv_dm> memory_;
  std::span<std::byte> mapped_;  // by libmlx5, write-combining
  std::span<std::byte> guard_;   // addresses behind which nothing is; empty: not asked for
};

Result<std::unique_ptr<hca::MemoryRegion>> register_host(ibv_pd* domain, void* start, size_t length,
                                                         hca::Access access);

}  // namespace nicmem::hca_verbs
