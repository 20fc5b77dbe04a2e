// SPDX-License-Identifier: BSD-3-Clause
// nicmem-l3fwd: an IPv4 and IPv6 router over any DPDK port, which leaves payload where the device
// put it.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>

#include "config.h"
#include "dpdk/eal.h"
#include "engine.h"
#include "report.h"
#include "run.h"
#include "telemetry.h"

namespace {

using namespace nicmem;
using namespace nicmem::l3fwd;

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

std::atomic<bool> stop{false};

struct ProgramOptions {
  std::string config;
  bool check = false;
  std::string json;
  RunLimits limits;
};

int report_error(const Error& error) {
  std::cerr << "error: " << error.what << "\n";
  return kExitError;
}

/// Nothing when the program should go on, else its exit status.
std::optional<int> parse_options(const std::vector<std::string>& arguments, ProgramOptions& out) {
  CLI::App app(
      "IPv4 and IPv6 router over DPDK ports.\n"
      "EAL options come first: nicmem-l3fwd -l 0 -d librte_net_nicmem.so --vdev ... -- --config "
      "FILE",
      "nicmem-l3fwd");
  app.add_option("--config", out.config, "configuration, YAML")->required()->type_name("FILE");
  app.add_flag("--check", out.check, "check the configuration, print a summary, start no port");
  app.add_option("--json", out.json, "write the final statistics to FILE")->type_name("FILE");
  app.add_option("--stats", out.limits.stats_seconds, "print statistics every SECONDS")
      ->check(CLI::Range(0, 86'400))
      ->type_name("SECONDS");
  app.add_option("--frames", out.limits.frames, "stop after receiving N packets")->type_name("N");
  app.add_option("--idle-exit", out.limits.idle_exit_ms, "stop after MS without a packet")
      ->check(CLI::Range(0, 86'400'000))
      ->type_name("MS");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend() - 1);  // as CLI11 wants
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return std::nullopt;
}

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int forward_until_stopped(const Config& config, const ProgramOptions& options) {
  auto engine = Engine::create(config);
  if (!engine) return report_error(engine.error());
  for (const PortPlacement& placement : (*engine)->placements())
    std::cout << describe(placement) << "\n";
  std::cout << "forwarding" << std::endl;

  {
    const TelemetryCommand telemetry(**engine);
    run(**engine, options.limits, stop, std::cout);
  }
  const Stats stats = (*engine)->stats();
  std::cout << table(stats) << std::flush;
  if (!options.json.empty()) {
    if (const auto written = write_file(options.json, to_json(stats)); !written)
      return report_error(written.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  dpdk::SplitArguments arguments = dpdk::split_arguments(argc, argv);
  ProgramOptions options;
  if (const auto status = parse_options(arguments.own, options)) return *status;
  const auto config = load_config(options.config);
  if (!config) return report_error(config.error());
  if (options.check) {
    std::cout << summary(*config) << options.config << ": accepted\n";
    return 0;
  }
  stop_on_signals();  // before the EAL starts threads: a signal then stops the loop at once
  auto eal = dpdk::Eal::start(std::move(arguments.eal));
  if (!eal) return report_error(eal.error());
  return forward_until_stopped(*config, options);
}
