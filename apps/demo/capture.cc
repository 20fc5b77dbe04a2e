// SPDX-License-Identifier: BSD-3-Clause
#include "capture.h"

#include <pcap/pcap.h>

#include <cstring>
#include <memory>
#include <vector>

#include "apps/l3fwd/engine.h"
#include "ports.h"

namespace nicmem::demo {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr const char* kPort = "net_nicmem0";
constexpr uint8_t kRouterMac[6] = {0x02, 0, 0, 0, 0, 0x01};
constexpr uint8_t kNextHopMac[6] = {0x02, 0, 0, 0, 0x02, 0x01};

Result<std::vector<Bytes>> read_frames(const std::string& path) {
  char why[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> file(pcap_open_offline(path.c_str(), why),
                                                        pcap_close);
  if (!file) return fail(Code::kSystem, path + ": " + why + "; accepted: a pcap file");
  std::vector<Bytes> frames;
  pcap_pkthdr* record = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(file.get(), &record, &data) == 1)
    frames.emplace_back(data, data + record->caplen);
  return frames;
}

uint16_t header_checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

/// Plain IPv4 routing written anew, with the checksum computed from scratch: what must come out, or
/// nothing. Frames that need more than that (options, other protocols) are expected to be dropped
/// or are left to the tests: the bundled captures hold plain unicast IPv4.
bool route(Bytes& frame) {
  if (frame.size() < 34 || (frame[0] & 1) != 0 || frame[12] != 0x08 || frame[13] != 0x00 ||
      frame[14] != 0x45)
    return false;
  uint8_t* const ip = frame.data() + 14;
  if (header_checksum(ip) != 0 || ip[8] <= 1) return false;
  ip[8] = static_cast<uint8_t>(ip[8] - 1);
  ip[10] = ip[11] = 0;
  const uint16_t sum = header_checksum(ip);
  ip[10] = static_cast<uint8_t>(sum >> 8);
  ip[11] = static_cast<uint8_t>(sum);
  std::memcpy(frame.data(), kNextHopMac, 6);
  std::memcpy(frame.data() + 6, kRouterMac, 6);
  return true;
}

l3fwd::Config router() {
  l3fwd::InterfaceConfig interface;
  interface.port = kPort;
  interface.addresses = {*l3fwd::parse_prefix("192.0.2.1/24")};
  interface.accept_any_mac = true;  // captures come from other networks
  l3fwd::RouteConfig route;
  route.prefix = *l3fwd::parse_prefix("0.0.0.0/0");
  std::memcpy(&route.mac, kNextHopMac, sizeof kNextHopMac);
  l3fwd::Config config;
  config.interfaces = {interface};
  config.routes = {route};
  return config;
}

/// Forwards until the wire is empty.
Result<void> forward_all(CaptureResult& result) {
  NM_TRY(const auto engine, l3fwd::Engine::create(router()));
  for (int idle = 0; idle < 64; ++idle) {
    step(kPort, 32);
    if (engine->poll_once() != 0) idle = 0;
  }
  const Xstats x = xstats_of(kPort);
  result.slow_reads = x.at("slow_reads") + x.at("nicmem_reads");
  result.nicmem_payload_share = static_cast<double>(x.at("rx_payload_nicmem_permille")) / 1000;
  result.dropped = engine->stats().total().dropped_total();
  return {};
}

}  // namespace

Result<CaptureResult> run_capture(const std::string& path, const std::string& folder) {
  CaptureResult result;
  const std::string output = folder + "/routed.pcap";
  {
    Vdevs vdevs;
    NM_TRY_VOID(vdevs.plug("net_pcap0", "rx_pcap=" + path + ",tx_pcap=" + output));
    NM_TRY_VOID(vdevs.plug(
        kPort,
        "wire=ethdev:net_pcap0,mode=nicmem,split=force,header=64,sram=8MiB,guard=1,cpu=none,"
        "promiscuous=1,mac=02:00:00:00:00:01"));
    NM_TRY_VOID(forward_all(result));
  }
  NM_TRY(std::vector<Bytes> expected, read_frames(path));
  NM_TRY(const std::vector<Bytes> got, read_frames(output));
  result.frames = expected.size();
  std::erase_if(expected, [](Bytes& frame) { return !route(frame); });
  for (size_t i = 0; i < expected.size() || i < got.size(); ++i) {
    const bool same = i < expected.size() && i < got.size() && expected[i] == got[i];
    ++(same ? result.forwarded : result.wrong);
  }
  return result;
}

}  // namespace nicmem::demo
