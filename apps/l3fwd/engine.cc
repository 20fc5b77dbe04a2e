// SPDX-License-Identifier: BSD-3-Clause
#include "engine.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "dpdk/lpm.h"
#include "dpdk/port.h"
#include "fib.h"
#include "mbuf_access.h"
#include "nf/burst.h"
#include "nf/l3fwd.h"

namespace nicmem::l3fwd {

static_assert(dpdk::RouteTable::kNoRoute == nf::kNoRoute);
static_assert(nf::RouteTable<dpdk::RouteTable>);
static_assert(nf::PacketAccess<MbufAccess>);

struct Engine::State {
  State(dpdk::RouteTable table, size_t interfaces_count)
      : routes(std::move(table)), egress(interfaces_count), counts(interfaces_count) {}
  ~State() {
    // Each may hold buffers of the others in its send queue.
    for (dpdk::Port& port : ports) port.stop();
  }

  dpdk::RouteTable routes;
  std::vector<nf::NextHop> hops;
  RefusedSources refused;
  std::vector<dpdk::Port> ports;
  std::vector<PortPlacement> placements;
  std::vector<nf::Interface> interfaces;
  std::vector<Egress> egress;
  std::vector<nf::Counts> counts;
};

namespace {

Result<dpdk::RouteTable> make_routes(const Fib& fib) {
  // Several engines may live in one process, one after another or at once; names must differ.
  static std::atomic<unsigned> serial{0};
  const auto of_v6 = static_cast<uint32_t>(std::ranges::count_if(
      fib.entries, [](const Fib::Entry& entry) { return entry.prefix.address.is_v6; }));
  NM_TRY(dpdk::RouteTable table,
         dpdk::RouteTable::create({.name = "l3fwd_" + std::to_string(serial++),
                                   .max_v4 = static_cast<uint32_t>(fib.entries.size()) - of_v6,
                                   .max_v6 = of_v6}));
  for (const Fib::Entry& entry : fib.entries) {
    const IpAddress& address = entry.prefix.address;
    NM_TRY_VOID(address.is_v6 ? table.add(address.v6, entry.prefix.length, entry.hop)
                              : table.add(address.v4, entry.prefix.length, entry.hop));
  }
  return table;
}

Result<std::vector<uint16_t>> find_ports(const Config& config) {
  std::vector<uint16_t> ids;
  for (const InterfaceConfig& interface : config.interfaces) {
    NM_TRY(const uint16_t id, dpdk::find_port(interface.port));
    ids.push_back(id);
  }
  return ids;
}

/// For every port before any is configured, as the driver wants.
Result<std::vector<PortPlacement>> place_ports(const Config& config, const Fib& fib,
                                               const std::vector<uint16_t>& ids,
                                               const NicmemApi& api) {
  std::vector<uint16_t> egress;
  for (const uint16_t interface : fib.egress_interfaces()) egress.push_back(ids[interface]);
  std::vector<PortPlacement> placements;
  for (size_t i = 0; i < ids.size(); ++i) {
    NM_TRY(const std::string driver, dpdk::driver_of(ids[i]));
    NM_TRY(PortPlacement placement,
           place_port(api, ids[i], config.interfaces[i].port, driver, egress));
    placements.push_back(std::move(placement));
  }
  return placements;
}

Result<std::vector<dpdk::Port>> open_ports(const Config& config) {
  std::vector<dpdk::Port> ports;
  ports.reserve(config.interfaces.size());
  for (const InterfaceConfig& interface : config.interfaces) {
    NM_TRY(dpdk::Port port, dpdk::Port::open({.name = interface.port,
                                              .mtu_bytes = interface.mtu_bytes,
                                              .mbufs = interface.rx_buffers,
                                              .promiscuous = interface.accept_any_mac,
                                              .mac = interface.mac}));
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const Config& config) {
  return create(config, Options{.nicmem = find_nicmem_api()});
}

Result<std::unique_ptr<Engine>> Engine::create(const Config& config, const Options& options) {
  Fib fib = build_fib(config);
  NM_TRY(const std::vector<uint16_t> ids, find_ports(config));
  NM_TRY(dpdk::RouteTable routes, make_routes(fib));
  auto state = std::make_unique<State>(std::move(routes), config.interfaces.size());
  NM_TRY(state->placements, place_ports(config, fib, ids, options.nicmem));
  NM_TRY(state->ports, open_ports(config));

  state->hops = std::move(fib.hops);
  for (nf::NextHop& hop : state->hops) hop.source = state->ports[hop.port].info().mac;
  state->refused = refused_sources(config);
  for (size_t i = 0; i < state->ports.size(); ++i) {
    state->egress[i].port = state->ports[i].id();
    state->interfaces.push_back({.mac = state->ports[i].info().mac,
                                 .accept_any_mac = config.interfaces[i].accept_any_mac,
                                 .refused_sources_v4 = state->refused.v4,
                                 .refused_sources_v6 = state->refused.v6});
  }
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

size_t Engine::poll_once() {
  State& s = *state_;
  const nf::Tables tables{s.routes, s.hops};
  size_t received = 0;
  for (size_t i = 0; i < s.ports.size(); ++i) {
    std::array<rte_mbuf*, kBurst> burst;
    const uint16_t count = rte_eth_rx_burst(s.egress[i].port, 0, burst.data(), kBurst);
    if (count == 0) continue;
    const nf::Interface& in = s.interfaces[i];
    MbufAccess access(s.egress, s.counts[i]);
    nf::run_burst(access, s.counts[i], std::span<rte_mbuf*>(burst.data(), count),
                  [&](const nf::PacketView& packet) { return nf::forward(tables, in, packet); });
    access.flush();
    received += count;
  }
  return received;
}

Stats Engine::stats() const {
  Stats stats;
  for (size_t i = 0; i < state_->ports.size(); ++i) {
    const dpdk::PortInfo& info = state_->ports[i].info();
    stats.ports.push_back({.id = info.id,
                           .name = info.name,
                           .in = state_->counts[i].snapshot(),
                           .transmitted = state_->egress[i].transmitted.get()});
  }
  return stats;
}

nf::CountsSnapshot Stats::total() const {
  nf::CountsSnapshot sum;
  for (const PortStats& port : ports) {
    sum.received += port.in.received;
    sum.received_bytes += port.in.received_bytes;
    sum.forwarded += port.in.forwarded;
    sum.punted += port.in.punted;
    for (size_t i = 0; i < nf::kDropReasons; ++i) sum.dropped[i] += port.in.dropped[i];
  }
  return sum;
}

const std::vector<PortPlacement>& Engine::placements() const { return state_->placements; }

}  // namespace nicmem::l3fwd
