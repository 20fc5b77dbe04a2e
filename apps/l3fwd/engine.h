// SPDX-License-Identifier: BSD-3-Clause
// The forwarding engine: configuration to ports and tables, then a polling loop that the caller
// turns. The program nicmem-l3fwd is this plus options; a demonstration can run it in-process.
//
//   auto engine = Engine::create(config);      // the EAL is up; ports exist, not configured
//   while (running) (*engine)->poll_once();
//   print((*engine)->stats());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config.h"
#include "nf/counts.h"
#include "placement.h"

namespace nicmem::l3fwd {

struct PortStats {
  uint16_t id = 0;
  std::string name;
  nf::CountsSnapshot in;     // packets that arrived here, by what became of them
  uint64_t transmitted = 0;  // packets that left here
};

struct Stats {
  std::vector<PortStats> ports;

  nf::CountsSnapshot total() const;
};

/// Thread rule: one thread polls; stats() may be called from any.
class Engine {
 public:
  struct Options {
    NicmemApi nicmem = {};  // find_nicmem_api(), or a test's own
  };

  /// Opens and starts every port of the configuration, which it takes over until destroyed.
  /// kNotFound: no such ethdev. kInvalidArgument: a value the device does not accept.
  /// kUnsupported: see place_port. kExhausted: memory.
  static Result<std::unique_ptr<Engine>> create(const Config& config, const Options& options);
  static Result<std::unique_ptr<Engine>> create(const Config& config);

  /// Receives one burst from each port and forwards it. Returns the number of packets received.
  size_t poll_once();

  Stats stats() const;

  /// Where each port's payload lies, in the order of the interfaces.
  const std::vector<PortPlacement>& placements() const;

  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace nicmem::l3fwd
