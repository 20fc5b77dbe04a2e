// SPDX-License-Identifier: BSD-3-Clause
// From the two ways in which verbs say which frames a rule takes to the model's one.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <optional>
#include <span>

#include "hca/steering.h"

namespace nicmem::fake {

/// Adds an `ibv_flow_spec_*` (no action) to `match`. 0, or the errno of the kernel.
int add_spec(const ibv_flow_spec& spec, hca::Match& match);

/// fte_match_param, outer headers and ICMP only: value and mask in the device's format. 0, or an
/// errno.
int read_parameters(std::span<const std::byte> value, std::span<const std::byte> mask,
                    hca::Match& match);

}  // namespace nicmem::fake
