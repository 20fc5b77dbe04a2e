// SPDX-License-Identifier: BSD-3-Clause
// Any text as device arguments: the driver's, and what it hands on to the model's. Accepted values
// must be in their ranges, and a refusal must say something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "drivers/hca/sim/options.h"
#include "drivers/net/nicmem/devargs.h"

namespace nicmem {
namespace {

void take_rest(const pmd::Devargs& args) {
  hca_sim::Options options;
  for (const auto& [key, value] : args.rest) {
    const Result<bool> known = options.take(key, value);
    if (!known) NM_CHECK(known.error().what.find(key) != std::string::npos);
  }
  NM_CHECK(options.sram_bytes >= hca_sim::kMinSram && options.sram_bytes <= hca_sim::kMaxSram);
  NM_CHECK(options.generator.flows > 0 && !options.generator.frame_bytes.empty());
  NM_CHECK(options.generator.destination_length >= 8 && options.generator.destination_length <= 32);
}

void parse(std::string_view text) {
  const Result<pmd::Devargs> args = pmd::parse_devargs(text);
  if (!args) {
    NM_CHECK(!args.error().what.empty());
    return;
  }
  NM_CHECK(args->header_bytes >= pmd::kMinHeader && args->header_bytes <= pmd::kMaxHeader);
  NM_CHECK(args->tx_inline_bytes <= pmd::kMaxHeader);
  if (args->mac) NM_CHECK(((*args->mac)[0] & 1) == 0);
  take_rest(*args);
}

}  // namespace
}  // namespace nicmem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nicmem::parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
