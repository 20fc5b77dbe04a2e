// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/sim/wires.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "sim/cable.h"
#include "sim/generator.h"

namespace nicmem::hca_sim {
namespace {

/// Cables of which one end is plugged in, by name: `wire=pair:NAME` on a second port takes the
/// other.
Result<std::unique_ptr<sim::Wire>> plug_cable(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<sim::Wire>> loose_ends;
  const std::lock_guard lock(mutex);
  if (auto found = loose_ends.find(name); found != loose_ends.end()) {
    auto end = std::move(found->second);
    loose_ends.erase(found);
    return end;
  }
  auto [here, there] = sim::make_cable();
  loose_ends[name] = std::move(there);
  return std::move(here);
}

}  // namespace

Result<std::unique_ptr<sim::Wire>> make_wire(const Options& options, const hca::PortOptions& port,
                                             const EthdevWires& ethdev) {
  const std::string& wire = options.wire;
  if (wire == "loop") return sim::make_loopback();
  if (wire.starts_with("pair:")) return plug_cable(wire.substr(5));
  if (wire.starts_with("ethdev:")) return ethdev(wire.substr(7));
  sim::GeneratorOptions generator = options.generator;
  std::ranges::copy(port.mac, generator.destination_mac.bytes);
  NM_TRY(auto made, sim::Generator::create(generator));
  return made;
}

Nanos steady_now() {
  return static_cast<Nanos>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::steady_clock::now().time_since_epoch())
                                .count());
}

}  // namespace nicmem::hca_sim
