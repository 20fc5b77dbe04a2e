// SPDX-License-Identifier: BSD-3-Clause
// Statistics for people and for programs.
#pragma once

#include <string>

#include "base/result.h"
#include "engine.h"

namespace nicmem::l3fwd {

/// Per port received, transmitted and drops by reason; then the conservation line.
std::string table(const Stats& stats);

/// The same as JSON: {"ports": [...], "total": {...}, "conserved": true}.
std::string to_json(const Stats& stats);

/// kSystem when the file cannot be written.
Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace nicmem::l3fwd
