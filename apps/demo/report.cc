// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "hw/pcie.h"
#include "published.h"

namespace nicmem::demo {
namespace {

template <class... Values>
std::string format(const char* text, Values... values) {
  char buffer[1024];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

std::string text_of(const std::optional<Range>& range) {
  return range ? format("%.0f-%.0f", range->low, range->high) : "";
}

}  // namespace

std::string header_line() {
  return "                            frame              packets          host cyc  PCIe "
         "bytes/packet      payload   nicmem  published out / in\n"
         "mode                        bytes   sram       forwarded  lost   Mpps /pkt    out    in  "
         "payload    share    share\n";
}

std::string line(const Row& row) {
  const double total = row.pcie_in_bytes + row.pcie_out_bytes;
  const Published published = published_for(row.spec);
  const std::string figures =
      text_of(published.out) + (published.in ? " / " + text_of(published.in) : "");
  const char* const verdict = figures.empty()    ? ""
                              : !comparable(row) ? " (spills)"
                              : agrees(row)      ? ""
                                                 : " DISAGREES";
  return format(
      "%-27s %5s%s %-8s %11llu %5llu %6.2f %4.0f %6.0f %5.0f %8.0f %7.0f%% %7.0f%%  %s%s\n",
      (row.spec.mode + (row.spec.across_devices ? " (across devices)" : "")).c_str(),
      row.spec.traffic.c_str(), " ", format_size(row.spec.sram_bytes).c_str(),
      static_cast<unsigned long long>(row.packets), static_cast<unsigned long long>(row.lost),
      row.mpps, row.host_cycles_per_packet, row.pcie_out_bytes, row.pcie_in_bytes,
      row.pcie_payload_bytes, total > 0 ? 100 * row.pcie_payload_bytes / total : 0,
      100 * row.nicmem_payload_share, figures.c_str(), verdict);
}

std::string legend() {
  const hw::PcieLink& link = hw::kPcieLink;
  return format(
      "\nMeasured here, on the software ConnectX. PCIe bytes and host cycles (TSC): device and "
      "host take turns,\n"
      "bursts of 32; bytes are counted from the transactions that the driver really caused. Mpps: "
      "the model on\n"
      "one CPU, the router on another, every byte moved: the model's speed, not a card's.\n"
      "Link: MPS %u, MRRS %u, completions of %u, +%u B a request or write, +%u B a completion, x "
      "%.2f link layer.\n"
      "Published: Pismenny et al., ASPLOS'22, two ConnectX-5, read from the paper's figures. A row "
      "that spills to\n"
      "host memory for want of SRAM has no published counterpart.\n",
      link.max_payload_bytes, link.max_read_request_bytes, link.completion_bytes,
      link.request_overhead_bytes, link.completion_overhead_bytes, link.link_layer_factor);
}

std::string to_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    all.push_back({{"mode", row.spec.mode},
                   {"traffic", row.spec.traffic},
                   {"across_devices", row.spec.across_devices},
                   {"frame_bytes", row.frame_bytes},
                   {"sram_bytes", row.spec.sram_bytes},
                   {"packets", row.packets},
                   {"lost", row.lost},
                   {"mpps", row.mpps},
                   {"host_cycles_per_packet", row.host_cycles_per_packet},
                   {"pcie_in_bytes", row.pcie_in_bytes},
                   {"pcie_out_bytes", row.pcie_out_bytes},
                   {"pcie_payload_bytes", row.pcie_payload_bytes},
                   {"nicmem_payload_share", row.nicmem_payload_share}});
  return all.dump(2) + "\n";
}

}  // namespace nicmem::demo
