// SPDX-License-Identifier: BSD-3-Clause
// A filter in the two forms in which verbs take it.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "drivers/hca/verbs/filter.h"

namespace nicmem::hca_verbs {

/// The device's own form: fte_match_param, of which the sets up to the third of the miscellaneous
/// ones are used. [PRM; rdma-core, mlx5_ifc.h]
inline constexpr size_t kParameterSetBytes = 64;
inline constexpr uint8_t kOuterHeaders = 1 << 0, kMisc3 = 1 << 4;  // match_criteria_enable
struct FlowParameters {
  std::array<std::byte, 5 * kParameterSetBytes> value{};
  std::array<std::byte, 5 * kParameterSetBytes> mask{};
  uint8_t criteria = kOuterHeaders;

  /// Bytes that have to be handed over.
  size_t size() const { return (criteria & kMisc3) != 0 ? value.size() : kParameterSetBytes; }
};
FlowParameters parameters_of(const Filter& filter);

/// What is done with frames, as specs say it.
struct SpecActions {
  bool drop = false;
  uint32_t tag = 0;                  // 0: none
  ibv_counters* counters = nullptr;  // null: none
};

/// ibv_flow_attr, and its specs behind it. kUnsupported: specs cannot say this.
Result<std::vector<std::byte>> specs_of(const Filter& filter, uint32_t priority,
                                        const SpecActions& actions);

}  // namespace nicmem::hca_verbs
