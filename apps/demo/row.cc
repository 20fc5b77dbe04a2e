// SPDX-License-Identifier: BSD-3-Clause
#include "row.h"

#include <rte_cycles.h>

#include <chrono>

#include "apps/l3fwd/engine.h"
#include "base/units.h"
#include "hw/pcie.h"
#include "ports.h"

namespace nicmem::demo {
namespace {

constexpr uint32_t kBurst = 32;
constexpr const char* kNames[] = {"net_nicmem0", "net_nicmem1"};

size_t ports_of(const RowSpec& spec) { return spec.across_devices ? 2 : 1; }

/// Frames that come in at port `i` are for 198.18.(1+i).0/24.
std::string devargs(const RowSpec& spec, const RowOptions& options, size_t i, const char* cpu) {
  return "mode=" + spec.mode + ",split=force,header=" + std::to_string(options.header_bytes) +
         ",sram=" + format_size(spec.sram_bytes) + ",gen_size=" + spec.traffic +
         ",gen_dst=198.18." + std::to_string(1 + i) + ".0/24,cpu=" + cpu;
}

/// One route: everything leaves by the port it came in at, or by the other one.
l3fwd::Config router(const RowSpec& spec) {
  l3fwd::Config config;
  const size_t ports = ports_of(spec);
  for (size_t i = 0; i < ports; ++i) {
    l3fwd::InterfaceConfig interface;
    interface.port = kNames[i];
    interface.addresses = {*l3fwd::parse_prefix("192.0.2." + std::to_string(1 + 64 * i) + "/26")};
    config.interfaces.push_back(interface);
    l3fwd::RouteConfig route;
    route.prefix = *l3fwd::parse_prefix("198.18." + std::to_string(1 + i) + ".0/24");
    route.mac = *l3fwd::parse_mac("02:00:00:00:02:01");
    route.interface = ports - 1 - i;
    config.routes.push_back(route);
  }
  return config;
}

/// Sums of all ports, or of one statistic's difference.
Xstats sum_xstats(const RowSpec& spec) {
  Xstats sum;
  for (size_t i = 0; i < ports_of(spec); ++i)
    for (const auto& [name, value] : xstats_of(kNames[i])) sum[name] += value;
  return sum;
}

/// Everything that came from the wire and did not go out again, and does not wait anywhere.
uint64_t lost(const Xstats& x, const l3fwd::Stats& stats) {
  uint64_t sum = stats.total().dropped_total();
  for (const char* name :
       {"rx_no_buffer", "rx_no_mbuf", "rx_oversize", "rx_filtered", "rx_wqe_error", "rx_malformed",
        "rx_stopped", "tx_wire_drops", "tx_wqe_error", "tx_stopped", "tx_foreign_memory",
        "tx_unknown_memory", "tx_too_many_segments", "tx_empty", "tx_bad_length"})
    sum += x.at(name);
  return sum;
}

struct Link {
  uint64_t in = 0, out = 0;
};

Link link_bytes_of(const Xstats& x, hw::PcieClass one) {
  const std::string name = std::string("pcie_") + hw::kPcieClassNames[static_cast<size_t>(one)];
  return {x.at(name + "_in_bytes"), x.at(name + "_out_bytes")};
}

void add_pcie(Row& row, const Xstats& x, uint64_t packets) {
  const auto per_packet = [packets](uint64_t bytes) {
    return hw::link_bytes(bytes) / static_cast<double>(packets);
  };
  uint64_t in = 0, out = 0;
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    const Link link = link_bytes_of(x, static_cast<hw::PcieClass>(i));
    in += link.in;
    out += link.out;
  }
  const Link payload = link_bytes_of(x, hw::PcieClass::kPayload);
  row.pcie_in_bytes = per_packet(in);
  row.pcie_out_bytes = per_packet(out);
  row.pcie_payload_bytes = per_packet(payload.in + payload.out);
  const uint64_t on_card = x.at("rx_payload_nicmem_bytes"), in_host = x.at("rx_payload_host_bytes");
  row.nicmem_payload_share = on_card + in_host == 0 ? 0
                                                    : static_cast<double>(on_card) /
                                                          static_cast<double>(on_card + in_host);
}

/// Device and host take turns, so that bursts are full and nothing depends on time.
Result<void> run_stepped(Row& row, const RowOptions& options) {
  const size_t ports = ports_of(row.spec);
  Vdevs vdevs;
  for (size_t i = 0; i < ports; ++i)
    NM_TRY_VOID(vdevs.plug(kNames[i], devargs(row.spec, options, i, "none")));
  NM_TRY(const auto engine, l3fwd::Engine::create(router(row.spec)));

  uint64_t cycles = 0;
  const auto turn = [&] {
    for (size_t i = 0; i < ports; ++i) step(kNames[i], kBurst);
    const uint64_t start = rte_rdtsc();
    const size_t packets = engine->poll_once();
    cycles += rte_rdtsc() - start;
    return packets;
  };
  for (int warm_up = 0; warm_up < 128; ++warm_up) turn();
  const Xstats before = sum_xstats(row.spec);
  cycles = 0;
  uint64_t packets = 0;
  while (packets < options.frames) {
    const size_t here = turn();
    if (here == 0) return fail(Code::kDevice, "no packet came although buffers are posted");
    packets += here;
  }
  const Xstats x = difference(sum_xstats(row.spec), before);
  row.frame_bytes =
      static_cast<double>(x.at("rx_good_bytes")) / static_cast<double>(x.at("rx_good_packets"));
  row.host_cycles_per_packet = static_cast<double>(cycles) / static_cast<double>(packets);
  add_pcie(row, x, packets);
  row.packets += engine->stats().total().forwarded;
  row.lost += lost(sum_xstats(row.spec), engine->stats());
  return {};
}

/// The device runs on a thread of its own, the host as fast as it can.
Result<void> run_threaded(Row& row, const RowOptions& options) {
  using Clock = std::chrono::steady_clock;
  const size_t ports = ports_of(row.spec);
  Vdevs vdevs;
  for (size_t i = 0; i < ports; ++i)
    NM_TRY_VOID(vdevs.plug(kNames[i], devargs(row.spec, options, i, "any")));
  NM_TRY(const auto engine, l3fwd::Engine::create(router(row.spec)));
  const auto run_for = [&engine](double seconds) {
    const auto start = Clock::now();
    std::chrono::duration<double> elapsed{};
    do {
      for (int i = 0; i < 64; ++i) engine->poll_once();
      elapsed = Clock::now() - start;
    } while (elapsed.count() < seconds);
    return elapsed.count();
  };
  run_for(options.seconds / 8);
  const uint64_t before = engine->stats().total().forwarded;
  const double seconds = run_for(options.seconds);
  const uint64_t forwarded = engine->stats().total().forwarded;
  row.mpps = static_cast<double>(forwarded - before) / seconds / 1e6;
  row.packets += forwarded;
  row.lost += lost(sum_xstats(row.spec), engine->stats());
  return {};
}

}  // namespace

Result<Row> run_row(const RowSpec& spec, const RowOptions& options) {
  Row row{.spec = spec};
  NM_TRY_VOID(run_stepped(row, options));
  NM_TRY_VOID(run_threaded(row, options));
  return row;
}

}  // namespace nicmem::demo
