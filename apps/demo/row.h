// SPDX-License-Identifier: BSD-3-Clause
// One row of the demonstration: generated traffic, forwarded by the router's engine through
// net_nicmem in one configuration, measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace nicmem::demo {

struct RowSpec {
  std::string mode;             // as the PMD's devarg
  std::string traffic;          // bytes of a frame without FCS, or "imix"
  size_t sram_bytes = 0;        // configured
  bool across_devices = false;  // in at one device, out at another
};

struct RowOptions {
  uint64_t frames = 1 << 15;  // of the single-stepped part
  double seconds = 0.4;       // of the threaded part
  uint32_t header_bytes = 64;
};

/// Bytes are per packet. PCIe bytes are on the link, acknowledgements and flow control included
/// (hw/pcie.h), from the card's point of view: out leaves it.
struct Row {
  RowSpec spec;
  double frame_bytes = 0;  // mean
  uint64_t packets = 0;    // forwarded, both parts
  uint64_t lost = 0;
  double mpps = 0;                    // threaded: one host core, one model core
  double host_cycles_per_packet = 0;  // single-stepped: TSC cycles of receive, route and send
  double pcie_in_bytes = 0;           // single-stepped, bursts of 32
  double pcie_out_bytes = 0;
  double pcie_payload_bytes = 0;    // of both directions together
  double nicmem_payload_share = 0;  // of the payload bytes received: left on the card
};

Result<Row> run_row(const RowSpec& spec, const RowOptions& options);

}  // namespace nicmem::demo
