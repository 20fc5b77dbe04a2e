// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/sim/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "dpdk/on_node.h"

namespace nicmem::hca_sim {
namespace {

tl::unexpected<Error> bad_value(const std::string& key, const std::string& value,
                                const std::string& accepted) {
  return fail(Code::kInvalidArgument, key + "=" + value + ": accepted: " + accepted);
}

Result<uint64_t> parse_number(const std::string& key, const std::string& value, uint64_t low,
                              uint64_t high) {
  uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || rest != end || number < low || number > high)
    return bad_value(key, value, std::to_string(low) + ".." + std::to_string(high));
  return number;
}

bool valid_wire(const std::string& wire) {
  if (wire == "gen" || wire == "loop") return true;
  for (const std::string kind : {"pair:", "ethdev:"})
    if (wire.starts_with(kind) && wire.size() > kind.size()) return true;
  return false;
}

Result<void> take_sizes(sim::GeneratorOptions& generator, const std::string& value) {
  if (value == "imix") {
    generator.frame_bytes = sim::GeneratorOptions::imix();
    return {};
  }
  const auto bytes = parse_number("gen_size", value, 60, sim::kMaxFrameBytes);
  if (!bytes)
    return bad_value("gen_size", value, "60.." + std::to_string(sim::kMaxFrameBytes) + ", imix");
  generator.frame_bytes = {static_cast<uint32_t>(*bytes)};
  return {};
}

Result<void> take_destination(sim::GeneratorOptions& generator, const std::string& value) {
  const size_t slash = value.find('/');
  in_addr address{};
  if (inet_pton(AF_INET, value.substr(0, slash).c_str(), &address) != 1)
    return bad_value("gen_dst", value, "an IPv4 prefix such as 198.18.1.0/24");
  uint64_t length = 32;
  if (slash != std::string::npos) {
    NM_TRY(length, parse_number("gen_dst", value.substr(slash + 1), 8, 32));
  }
  generator.destination = ntohl(address.s_addr);
  generator.destination_length = static_cast<uint32_t>(length);
  return {};
}

/// "none": the model that can fail, and nothing that does; else CLASS@K or CLASS@K+.
Result<std::shared_ptr<sim::FaultPlan>> take_fault(const std::string& value) {
  auto plan = std::make_shared<sim::FaultPlan>();
  if (value == "none") return plan;
  const size_t at = std::min(value.find('@'), value.size());
  const auto& names = sim::kFaultClassNames;
  const auto name = std::find(names.begin(), names.end(), value.substr(0, at));
  std::string point = value.substr(std::min(at + 1, value.size()));
  const bool and_later = point.ends_with('+');
  if (and_later) point.pop_back();
  const auto k = parse_number("fault", point, 1, UINT64_MAX);
  if (name == names.end() || !k)
    return bad_value("fault", value,
                     "none, or the k-th point, from 1, that fails: allocation@K, dma@K, "
                     "completion@K, doorbell@K; K+: that and all later ones");
  plan->arm({.at = static_cast<sim::FaultClass>(name - names.begin()),
             .point = *k,
             .and_later = and_later});
  return plan;
}

}  // namespace

Result<bool> Options::take(const std::string& key, const std::string& value) {
  if (key == "sram") {
    const auto size = parse_size(value);
    if (!size || *size < kMinSram || *size > kMaxSram)
      return bad_value(key, value,
                       format_size(kMinSram) + ".." + format_size(kMaxSram) +
                           ", in bytes or with K, KiB, M, MiB");
    sram_bytes = *size;
    sram_given = true;
  } else if (key == "numa") {
    NM_TRY(const uint64_t node,
           parse_number(key, value, 0, static_cast<uint64_t>(dpdk::max_node())));
    numa_node = static_cast<int>(node);
  } else if (key == "cpu") {
    if (value != "any" && value != "none" && !parse_number(key, value, 0, 4095))
      return bad_value(key, value, "0..4095, any, none");
    cpu = value;
  } else if (key == "wire") {
    if (!valid_wire(value)) return bad_value(key, value, "gen, loop, pair:NAME, ethdev:NAME");
    wire = value;
  } else if (key == "gen_size") {
    NM_TRY_VOID(take_sizes(generator, value));
  } else if (key == "gen_flows") {
    NM_TRY(const uint64_t flows, parse_number(key, value, 1, 1u << 20));
    generator.flows = static_cast<uint32_t>(flows);
  } else if (key == "gen_frames") {
    NM_TRY(generator.frames, parse_number(key, value, 0, UINT64_MAX));
  } else if (key == "gen_dst") {
    NM_TRY_VOID(take_destination(generator, value));
  } else if (key == "gen_check") {
    NM_TRY(const uint64_t check, parse_number(key, value, 0, 1));
    generator.check = check != 0;
  } else if (key == "rate") {
    NM_TRY(generator.rate, parse_number(key, value, 1, 1'000'000'000));
  } else if (key == "seed") {
    NM_TRY(generator.seed, parse_number(key, value, 0, UINT64_MAX));
  } else if (key == "fault") {
    NM_TRY(faults, take_fault(value));
  } else {
    return false;
  }
  return true;
}

}  // namespace nicmem::hca_sim
