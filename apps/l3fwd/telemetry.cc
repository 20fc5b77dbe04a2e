// SPDX-License-Identifier: BSD-3-Clause
#include "telemetry.h"

#include <rte_telemetry.h>

#include <mutex>
#include <string>

#include "base/check.h"

namespace nicmem::l3fwd {
namespace {

// DPDK's callback has no user argument, and comes on DPDK's own thread.
std::mutex engine_lock;
const Engine* current_engine = nullptr;

void add_counts(rte_tel_data* dict, const nf::CountsSnapshot& counts) {
  rte_tel_data_add_dict_u64(dict, "received", counts.received);
  rte_tel_data_add_dict_u64(dict, "received_bytes", counts.received_bytes);
  rte_tel_data_add_dict_u64(dict, "forwarded", counts.forwarded);
  rte_tel_data_add_dict_u64(dict, "punted", counts.punted);
  for (size_t i = 0; i < nf::kDropReasons; ++i) {
    const std::string name = std::string("drop_") + nf::kDropReasonNames[i];
    rte_tel_data_add_dict_u64(dict, name.c_str(), counts.dropped[i]);
  }
}

int answer(const char*, const char*, rte_tel_data* reply) {
  const std::lock_guard guard(engine_lock);
  if (!current_engine) return -1;
  const Stats stats = current_engine->stats();
  rte_tel_data_start_dict(reply);
  add_counts(reply, stats.total());
  for (const PortStats& port : stats.ports) {
    rte_tel_data* dict = rte_tel_data_alloc();
    if (!dict) return -1;
    rte_tel_data_start_dict(dict);
    rte_tel_data_add_dict_string(dict, "name", port.name.c_str());
    rte_tel_data_add_dict_u64(dict, "transmitted", port.transmitted);
    add_counts(dict, port.in);
    const std::string key = "port_" + std::to_string(port.id);
    if (rte_tel_data_add_dict_container(reply, key.c_str(), dict, 0) != 0) {
      rte_tel_data_free(dict);
      return -1;
    }
  }
  return 0;
}

}  // namespace

TelemetryCommand::TelemetryCommand(const Engine& engine) {
  static const int registered = rte_telemetry_register_cmd(
      kCommand, answer, "Packets received, forwarded and dropped by reason. No parameters");
  static_cast<void>(registered);  // without telemetry (--no-telemetry) the program runs as well
  const std::lock_guard guard(engine_lock);
  NM_CHECK(current_engine == nullptr);
  current_engine = &engine;
}

TelemetryCommand::~TelemetryCommand() {
  const std::lock_guard guard(engine_lock);
  current_engine = nullptr;
}

}  // namespace nicmem::l3fwd
