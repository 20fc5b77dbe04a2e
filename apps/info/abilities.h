// SPDX-License-Identifier: BSD-3-Clause
// What of nicmem a device can do, and why not what it cannot. A function of what is known about it.
#pragma once

#include <string>
#include <vector>

#include "device.h"

namespace nicmem::info {

struct Ability {
  const char* name;     // a word, for programs
  const char* meaning;  // for people, with the argument that asks for it
  std::string why_not;  // empty: the device has it
};

/// Always the same ones, in the same order.
std::vector<Ability> abilities_of(const Device& device);

/// What an operator should put right before frames can move, a sentence each.
std::vector<std::string> problems_of(const Device& device);

}  // namespace nicmem::info
