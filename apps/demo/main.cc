// SPDX-License-Identifier: BSD-3-Clause
// nicmem-demo: what the runtime does, in one table: a real capture, then generated traffic in the
// four published configurations, forwarded by the router through net_nicmem on the software
// ConnectX.
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "base/units.h"
#include "capture.h"
#include "dpdk/eal.h"
#include "published.h"
#include "report.h"
#include "row.h"

namespace {

using namespace nicmem;
using namespace nicmem::demo;

struct Options {
  std::string json, capture;
  bool no_huge = false, quick = false;
  RowOptions row;
};

std::optional<int> parse(int argc, char** argv, Options& out) {
  CLI::App app("Forwards a capture and generated traffic through net_nicmem and prints one table.",
               "nicmem-demo");
  app.add_option("--capture", out.capture, "pcap file for the first part; none: it is left out")
      ->check(CLI::ExistingFile);
  app.add_option("--json", out.json, "write the rows to FILE")->type_name("FILE");
  app.add_flag("--no-huge", out.no_huge, "run without huge pages");
  app.add_flag("--quick", out.quick, "a tenth of the packets");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (out.quick) out.row = {.frames = 1 << 12, .seconds = 0.04};
  return std::nullopt;
}

/// The first CPU that this process may use: the router's. The model takes another one if there is.
int first_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) return cpu;
  return 0;
}

std::vector<std::string> eal_arguments(const Options& options) {
  std::vector<std::string> eal = {
      "nicmem-demo", "--lcores",       "0@" + std::to_string(first_cpu()),
      "--no-pci",    "--no-telemetry", "--log-level",
      "*:warning",   "--log-level",    "lib.eal:error"};
  eal.insert(eal.end(), {"--file-prefix", "nicmem-demo-" + std::to_string(getpid())});
  // with no device there yet, EAL would choose physical addresses, which net_nicmem does not take
  eal.insert(eal.end(), {"--iova-mode", "va"});
  if (options.no_huge)
    eal.insert(eal.end(), {"--no-huge", "-m", "768"});
  else
    eal.push_back("--in-memory");
  return eal;
}

std::vector<RowSpec> rows() {
  std::vector<RowSpec> specs;
  for (const char* traffic : {"64", "512", "1500", "imix"})
    for (const char* mode : {"host", "split", "nicmem-noinline", "nicmem"})
      specs.push_back({mode, traffic, 8_MiB, false});
  specs.push_back({"nicmem", "1500", 128_KiB, false});  // as today's cards come
  specs.push_back({"nicmem", "1500", 256_KiB, false});
  specs.push_back({"split", "1500", 8_MiB, true});
  return specs;
}

int error(const Error& why) {
  std::cerr << "error: " << why.what << "\n";
  return 1;
}

/// Whether every byte came out as routing must make it and the CPU never read payload.
Result<bool> show_capture(const Options& options) {
  if (options.capture.empty()) return true;
  char folder[] = "/tmp/nicmem-demo-XXXXXX";
  if (mkdtemp(folder) == nullptr) return fail(Code::kSystem, "no folder can be made in /tmp");
  const auto done = run_capture(options.capture, folder);
  unlink((std::string(folder) + "/routed.pcap").c_str());
  rmdir(folder);
  if (!done) return tl::unexpected<Error>(done.error());
  std::printf(
      "capture %s: %llu frames, %llu forwarded byte for byte as routing must, %llu dropped, %llu "
      "wrong; "
      "%.0f %% of the payload stayed on the card, guarded; %llu reads of it by the CPU\n\n",
      options.capture.c_str(), static_cast<unsigned long long>(done->frames),
      static_cast<unsigned long long>(done->forwarded),
      static_cast<unsigned long long>(done->dropped), static_cast<unsigned long long>(done->wrong),
      100 * done->nicmem_payload_share, static_cast<unsigned long long>(done->slow_reads));
  return done->wrong == 0 && done->slow_reads == 0 && done->forwarded > 0;
}

Result<std::vector<Row>> show_rows(const RowOptions& options) {
  std::vector<Row> done;
  const std::vector<RowSpec> specs = rows();
  std::fputs(header_line().c_str(), stdout);
  for (const RowSpec& spec : specs) {
    if (isatty(STDERR_FILENO) != 0)
      std::fprintf(stderr, "\rrow %zu of %zu ...\r", done.size() + 1, specs.size());
    NM_TRY(Row row, run_row(spec, options));
    std::fputs(line(row).c_str(), stdout);
    std::fflush(stdout);
    done.push_back(std::move(row));
  }
  std::fputs(legend().c_str(), stdout);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto status = parse(argc, argv, options)) return *status;
  const auto eal = dpdk::Eal::start(eal_arguments(options));
  if (!eal) return error(eal.error());
  const auto capture = show_capture(options);
  if (!capture) return error(capture.error());
  const auto table = show_rows(options.row);
  if (!table) return error(table.error());
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << to_json(*table);
    if (!file.flush()) return error({Code::kSystem, options.json + ": cannot be written"});
  }
  const bool agree = std::ranges::all_of(*table, [](const Row& row) { return agrees(row); });
  if (!agree) std::cerr << "error: a row is more than 10 % off the published figure\n";
  if (!*capture) std::cerr << "error: the capture did not come out as it must\n";
  return agree && *capture ? 0 : 1;
}
