// SPDX-License-Identifier: BSD-3-Clause
// The part of a rule that says which frames, and how translation refuses.
#pragma once

#include "flow.h"

namespace nicmem::pmd {

inline tl::unexpected<FlowError> refuse(int error, rte_flow_error_type type, const void* cause,
                                        const char* message) {
  return tl::unexpected<FlowError>({error, type, cause, message});
}

#define NM_FLOW_TRY(expr) \
  if (auto nm_flow_result = (expr); !nm_flow_result) return tl::unexpected(nm_flow_result.error())

/// What the items ask for, or why that cannot be had.
FlowResult<hca::Match> read_pattern(const rte_flow_item* pattern);

}  // namespace nicmem::pmd
