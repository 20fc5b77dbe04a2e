// SPDX-License-Identifier: BSD-3-Clause
// The demonstration's first part: a real capture through the router, payload on the card and the
// CPU barred from it, compared byte for byte with what routing must do.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace nicmem::demo {

struct CaptureResult {
  uint64_t frames = 0;      // in the capture
  uint64_t forwarded = 0;   // came out, and as they must
  uint64_t dropped = 0;     // by the router, as they must
  uint64_t wrong = 0;       // differ from what routing must do, or are missing
  uint64_t slow_reads = 0;  // CPU reads of payload
  double nicmem_payload_share = 0;
};

/// Routes `path` (a pcap file) through net_nicmem in mode nicmem with guard=1. `folder` takes the
/// output.
Result<CaptureResult> run_capture(const std::string& path, const std::string& folder);

}  // namespace nicmem::demo
