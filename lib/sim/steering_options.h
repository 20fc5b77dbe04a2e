// SPDX-License-Identifier: BSD-3-Clause
// What the model accepts as steering: kInvalidArgument says what is wrong and what is accepted.
#pragma once

#include "base/result.h"
#include "hca/steering.h"

namespace nicmem::sim {

inline constexpr uint32_t kRulePriorities = 16;

/// Of the table only its size.
Result<void> check(const hca::RssOptions& options);
Result<void> check(const hca::RuleOptions& options, uint32_t priorities = kRulePriorities);

}  // namespace nicmem::sim
