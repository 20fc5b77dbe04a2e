// SPDX-License-Identifier: BSD-3-Clause
// The demonstration's table and its JSON.
#pragma once

#include <string>
#include <vector>

#include "row.h"

namespace nicmem::demo {

std::string header_line();
std::string line(const Row& row);
/// What the columns are, and which link constants they rest on.
std::string legend();
/// An array of objects, one a row: every value a number but `mode` and `traffic`.
std::string to_json(const std::vector<Row>& rows);

}  // namespace nicmem::demo
