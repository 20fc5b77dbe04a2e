// SPDX-License-Identifier: BSD-3-Clause
#include "fib.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace nicmem::l3fwd {
namespace {

Prefix host(const IpAddress& address) { return {.address = address, .length = address.bits()}; }
bool has_broadcast(const Prefix& own) { return !own.address.is_v6 && own.length < 31; }

class Builder {
 public:
  explicit Builder(const Config& config) : config_(config) {}

  Fib build() {
    const nf::NextHopId local = add_hop({.kind = nf::NextHop::Kind::kLocal});
    const nf::NextHopId broadcast = add_hop({.kind = nf::NextHop::Kind::kBroadcast});
    add_connected_networks();
    for (const RouteConfig& route : config_.routes)
      entries_[route.prefix] = hop_to(route.interface, route.mac);
    for (const NeighbourConfig& neighbour : config_.neighbours) {
      if (!is_link_local(neighbour.address))
        entries_[host(neighbour.address)] = hop_to(neighbour.interface, neighbour.mac);
    }
    for (const InterfaceConfig& interface : config_.interfaces) {
      for (const Prefix& own : interface.addresses) {
        if (has_broadcast(own)) {
          entries_[host(network_of(own))] = broadcast;
          entries_[host(broadcast_of(own))] = broadcast;
        }
        if (!is_link_local(own.address)) entries_[host(own.address)] = local;
      }
    }
    Fib fib{.entries = {}, .hops = std::move(hops_)};
    for (const auto& [prefix, hop] : entries_) fib.entries.push_back({prefix, hop});
    return fib;
  }

 private:
  nf::NextHopId add_hop(const nf::NextHop& hop) {
    hops_.push_back(hop);
    return static_cast<nf::NextHopId>(hops_.size() - 1);
  }

  void add_connected_networks() {
    for (size_t i = 0; i < config_.interfaces.size(); ++i) {
      for (const Prefix& own : config_.interfaces[i].addresses) {
        if (is_link_local(own.address)) continue;
        entries_[{.address = network_of(own), .length = own.length}] =
            add_hop({.kind = nf::NextHop::Kind::kUnresolved, .port = static_cast<uint16_t>(i)});
      }
    }
  }

  /// Routes by the hundred thousand share few next hops.
  nf::NextHopId hop_to(size_t interface, const hw::MacAddress& mac) {
    std::array<uint8_t, 6> bytes;
    std::memcpy(bytes.data(), mac.bytes, bytes.size());
    const auto [at, fresh] = by_mac_.try_emplace({interface, bytes}, nf::NextHopId{0});
    if (fresh) {
      at->second = add_hop({.kind = nf::NextHop::Kind::kForward,
                            .port = static_cast<uint16_t>(interface),
                            .mtu_bytes = config_.interfaces[interface].mtu_bytes,
                            .destination = mac,
                            .source = {}});
    }
    return at->second;
  }

  const Config& config_;
  std::vector<nf::NextHop> hops_;
  std::map<Prefix, nf::NextHopId> entries_;
  std::map<std::pair<size_t, std::array<uint8_t, 6>>, nf::NextHopId> by_mac_;
};

}  // namespace

std::vector<uint16_t> Fib::egress_interfaces() const {
  std::set<uint16_t> ports;
  for (const nf::NextHop& hop : hops) {
    if (hop.kind == nf::NextHop::Kind::kForward) ports.insert(hop.port);
  }
  return {ports.begin(), ports.end()};
}

Fib build_fib(const Config& config) { return Builder(config).build(); }

RefusedSources refused_sources(const Config& config) {
  RefusedSources refused;
  for (const InterfaceConfig& interface : config.interfaces) {
    for (const Prefix& own : interface.addresses) {
      if (own.address.is_v6) {
        refused.v6.push_back(own.address.v6);
        continue;
      }
      refused.v4.push_back(own.address.v4);
      if (has_broadcast(own)) refused.v4.push_back(broadcast_of(own).v4);
    }
  }
  return refused;
}

}  // namespace nicmem::l3fwd
