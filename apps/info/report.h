// SPDX-License-Identifier: BSD-3-Clause
// An inventory for people and for programs.
#pragma once

#include <string>

#include "device.h"

namespace nicmem::info {

std::string to_text(const Inventory& inventory);
/// One object; docs/connectx.md names its members. Ends with a newline.
std::string to_json(const Inventory& inventory);

}  // namespace nicmem::info
