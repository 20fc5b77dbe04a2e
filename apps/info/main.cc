// SPDX-License-Identifier: BSD-3-Clause
// nicmem-info: which devices nicmem can be run on here, what each can do, and why not what it
// cannot. Starts no EAL and moves no frame.
#include <CLI/CLI.hpp>
#include <iostream>

#include "inventory.h"
#include "report.h"

namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Lists the devices that nicmem can be run on: ConnectX cards, and the model. Says of each\n"
      "what it can do, and why not what it cannot. Reserves nothing, takes no frame.",
      "nicmem-info");
  bool json = false;
  app.add_flag("--json", json, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const auto inventory = nicmem::info::look_around();
  if (!inventory) {
    std::cerr << "error: " << inventory.error().what << "\n";
    return kExitError;
  }
  std::cout << (json ? nicmem::info::to_json(*inventory) : nicmem::info::to_text(*inventory));
  return std::cout.flush() ? 0 : kExitError;
}
