// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace nicmem::l3fwd {
namespace {

nlohmann::ordered_json counts_json(const nf::CountsSnapshot& counts) {
  nlohmann::ordered_json out{{"received", counts.received},
                             {"received_bytes", counts.received_bytes},
                             {"forwarded", counts.forwarded},
                             {"punted", counts.punted},
                             {"dropped", counts.dropped_total()}};
  nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
  for (size_t i = 0; i < nf::kDropReasons; ++i)
    reasons[nf::kDropReasonNames[i]] = counts.dropped[i];
  out["drops"] = std::move(reasons);
  return out;
}

}  // namespace

std::string table(const Stats& stats) {
  char line[256];
  std::snprintf(line, sizeof line, "%-24s %14s %14s %14s\n", "port", "received", "transmitted",
                "dropped");
  std::string out = line;
  for (const PortStats& port : stats.ports) {
    std::snprintf(line, sizeof line, "%-24s %14lu %14lu %14lu\n", port.name.c_str(),
                  port.in.received, port.transmitted, port.in.dropped_total());
    out += line;
    for (size_t i = 0; i < nf::kDropReasons; ++i) {
      if (port.in.dropped[i] == 0) continue;
      std::snprintf(line, sizeof line, "  drop %-47s %14lu\n", nf::kDropReasonNames[i],
                    port.in.dropped[i]);
      out += line;
    }
  }
  const nf::CountsSnapshot total = stats.total();
  std::snprintf(line, sizeof line,
                "received = forwarded + dropped + punted: %lu = %lu + %lu + %lu: %s\n",
                total.received, total.forwarded, total.dropped_total(), total.punted,
                total.received == total.accounted() ? "ok" : "NOT CONSERVED");
  return out + line;
}

std::string to_json(const Stats& stats) {
  nlohmann::ordered_json ports = nlohmann::ordered_json::array();
  for (const PortStats& port : stats.ports) {
    nlohmann::ordered_json entry{{"port", port.id}, {"name", port.name}};
    entry.update(counts_json(port.in));
    entry["transmitted"] = port.transmitted;
    ports.push_back(std::move(entry));
  }
  const nf::CountsSnapshot total = stats.total();
  const nlohmann::ordered_json out{{"ports", std::move(ports)},
                                   {"total", counts_json(total)},
                                   {"conserved", total.received == total.accounted()}};
  return out.dump(2) + "\n";
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    return fail(Code::kSystem, path + ": cannot be written: " + std::strerror(errno), errno);
  return {};
}

}  // namespace nicmem::l3fwd
