// SPDX-License-Identifier: BSD-3-Clause
// Arguments that the model understands: of the device, and of the wire of one of its ports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "sim/fault_plan.h"
#include "sim/generator.h"

namespace nicmem::hca_sim {

inline constexpr std::string_view kKeys =
    "sram, numa, wire, cpu, gen_size, gen_flows, gen_frames, gen_dst, gen_check, rate, seed, fault";

inline constexpr size_t kMinSram = 4_KiB;
inline constexpr size_t kMaxSram = 128_MiB;

struct Options {
  std::string port_name;
  bool guard = false;
  size_t sram_bytes = 256_KiB;
  bool sram_given = false;
  int numa_node = -1;  // where the device is; -1: not told
  std::string cpu = "any";   // a number, "any", or "none": stepped by the program
  std::string wire = "gen";  // "gen", "loop", or a kind and a name: "pair:NAME", "ethdev:NAME"
  sim::GeneratorOptions generator;
  std::shared_ptr<sim::FaultPlan> faults;  // null: the model that cannot fail

  /// Stores one argument. False: not a key of ours. Error: a value that is not accepted.
  Result<bool> take(const std::string& key, const std::string& value);

  bool stepped() const { return cpu == "none"; }
};

}  // namespace nicmem::hca_sim
