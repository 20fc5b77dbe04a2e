// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "abilities.h"
#include "base/units.h"

namespace nicmem::info {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const char* label, const std::string& value) {
  char text[32];
  std::snprintf(text, sizeof text, "  %-15s ", label);
  return text + (value.empty() ? "-" : value) + "\n";
}

std::string link_words(const hca::LinkState& link) {
  return link.up ? "up, " + std::to_string(link.speed_mbps) + " Mb/s" : "down";
}

std::string memory_words(const Device& device) {
  const size_t bytes = device.capabilities.device_memory_bytes;
  if (bytes == 0) return "none";
  return format_size(bytes) + " at most, in units of " + format_size(device.memory_alignment);
}

std::string limit_words(const hca::Capabilities& limits) {
  return "rings of " + std::to_string(limits.max_queue_depth) + ", " +
         std::to_string(limits.max_queues) + " queues, " +
         std::to_string(limits.max_scatter_entries) + " pieces a receive request, frames of " +
         std::to_string(limits.max_frame_bytes) + " B, TSO of " +
         format_size(limits.max_tso_bytes) + ", " + std::to_string(limits.rule_priorities) +
         " rule priorities";
}

/// How a program is given the device.
std::string devargs(const Device& device) {
  return device.card ? "hca=verbs,ibdev=" + device.name : std::string("hca=sim");
}

std::string facts(const Device& device) {
  const std::string mtu = device.mtu != 0 ? ", MTU " + std::to_string(device.mtu) : std::string();
  std::string out;
  if (device.card) {
    out += line("PCI address", device.pci_address);
    out += line("NUMA node", device.numa_node < 0 ? "not known" : std::to_string(device.numa_node));
    out += line("interface", device.netdev + mtu);
  }
  if (!device.refused.empty()) return out;
  if (device.card)
    out +=
        line("firmware", device.firmware + (device.board.empty() ? "" : ", board " + device.board));
  out += line("link", link_words(device.link));
  out += line("device memory", memory_words(device));
  out += line("limits", limit_words(device.capabilities));
  return out;
}

/// What is wrong with the device as a whole is not said again.
std::string text_of(const Ability& ability, const std::vector<std::string>& problems) {
  char text[160];
  std::snprintf(text, sizeof text, "  %-3s %-15s %s", ability.why_not.empty() ? "yes" : "no",
                ability.name, ability.meaning);
  if (ability.why_not.empty()) return std::string(text) + "\n";
  const bool said = std::ranges::find(problems, ability.why_not) != problems.end();
  return text + (": " + (said ? std::string("see the problem above") : ability.why_not)) + "\n";
}

std::string text_of(const Device& device) {
  const std::vector<std::string> problems = problems_of(device);
  std::string out = device.name + (device.kind.empty() ? "" : ": " + device.kind) + "\n";
  out += facts(device);
  out += line("use", "--vdev net_nicmem0," + devargs(device));
  for (const std::string& problem : problems) out += line("problem", problem);
  for (const Ability& ability : abilities_of(device)) out += text_of(ability, problems);
  return out;
}

Json limits_json(const Device& device) {
  const hca::Capabilities& limits = device.capabilities;
  return {{"queue_depth", limits.max_queue_depth},
          {"queues", limits.max_queues},
          {"scatter_entries", limits.max_scatter_entries},
          {"frame_bytes", limits.max_frame_bytes},
          {"tso_bytes", limits.max_tso_bytes},
          {"rule_priorities", limits.rule_priorities}};
}

Json abilities_json(const Device& device) {
  Json all = Json::object();
  for (const Ability& ability : abilities_of(device))
    all[ability.name] = {{"works", ability.why_not.empty()}, {"why_not", ability.why_not}};
  return all;
}

Json json_of(const Device& device) {
  Json out{{"name", device.name},
           {"hca", device.card ? "verbs" : "sim"},
           {"devargs", devargs(device)},
           {"kind", device.kind},
           {"pci_address", device.pci_address},
           {"numa_node", device.numa_node},
           {"netdev", device.netdev},
           {"refused", device.refused}};
  if (device.refused.empty()) {
    out["firmware"] = device.firmware;
    out["board"] = device.board;
    out["mtu"] = device.mtu;
    out["link"] = {{"up", device.link.up}, {"speed_mbps", device.link.speed_mbps}};
    out["device_memory"] = {{"bytes", device.capabilities.device_memory_bytes},
                            {"alignment", device.memory_alignment}};
    out["limits"] = limits_json(device);
  }
  out["abilities"] = abilities_json(device);
  out["problems"] = problems_of(device);
  return out;
}

}  // namespace

std::string to_text(const Inventory& inventory) {
  std::string out;
  if (!inventory.no_cards.empty()) out += "no cards: " + inventory.no_cards + "\n\n";
  for (const Device& device : inventory.devices)
    out += (&device == &inventory.devices.front() ? "" : "\n") + text_of(device);
  return out;
}

std::string to_json(const Inventory& inventory) {
  Json devices = Json::array();
  for (const Device& device : inventory.devices) devices.push_back(json_of(device));
  const Json all{{"no_cards", inventory.no_cards}, {"devices", std::move(devices)}};
  return all.dump(2) + "\n";
}

}  // namespace nicmem::info
