// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/port.h"

#include <utility>

#include "drivers/hca/verbs/queues.h"

namespace nicmem::hca_verbs {
namespace {

constexpr uint8_t kPort = 1;

/// Mb/s of one lane, and lanes, as verbs number them. [InfiniBand, 14.2.5.6 PortInfo]
uint32_t lane_mbps(uint32_t active_speed) {
  switch (active_speed) {
    case 1:
      return 2'500;
    case 2:
      return 5'000;
    case 4:
    case 8:
      return 10'000;
    case 16:
      return 14'000;
    case 32:
      return 25'000;
    case 64:
      return 50'000;
    case 128:
      return 100'000;
    default:
      return 0;
  }
}
uint32_t lanes(uint8_t active_width) {
  switch (active_width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

Result<std::unique_ptr<VerbsPort>> VerbsPort::open(VerbsDevice& device,
                                                   const hca::PortOptions& options) {
  std::unique_ptr<VerbsPort> port(new VerbsPort(device));
  port->base_ = port->read_counters();
  if (options.on_event) {
    NM_TRY(port->events_, EventThread::start(device.context(), options.on_event));
  }
  return port;
}

Result<std::unique_ptr<hca::CompletionQueue>> VerbsPort::create_completion_queue(
    const hca::CompletionOptions& options) {
  return VerbsCompletionQueue::create(device_.context(), options);
}

Result<std::unique_ptr<hca::ReceiveQueue>> VerbsPort::create_receive_queue(
    hca::Domain domain, hca::CompletionQueue& cq, const hca::ReceiveOptions& options) {
  return VerbsReceiveQueue::create(device_.context(), device_.domain(domain),
                                   static_cast<VerbsCompletionQueue&>(cq), options);
}

Result<std::unique_ptr<hca::SendQueue>> VerbsPort::create_send_queue(hca::Domain domain,
                                                                     hca::CompletionQueue& cq,
                                                                     uint32_t depth_blocks) {
  return VerbsSendQueue::create(device_.context(), device_.domain(domain),
                                static_cast<VerbsCompletionQueue&>(cq), depth_blocks);
}

Result<void> VerbsPort::steer(const hca::SteeringOptions& options) {
  return steering_.set_defaults(options);
}

Result<std::unique_ptr<hca::Rule>> VerbsPort::create_rule(const hca::RuleOptions& options) {
  return steering_.create_rule(options);
}

Result<void> VerbsPort::set_max_frame(uint32_t bytes) {
  Surroundings& around = device_.surroundings();
  const uint32_t needed = bytes - kBeyondMtu;
  if (around.netdev().empty() || around.mtu() >= needed) return {};
  return around.set_mtu(needed);
}

Result<void> VerbsPort::start() {
  if (!device_.surroundings().netdev().empty()) NM_TRY_VOID(device_.surroundings().set_up(true));
  return steering_.start();
}

void VerbsPort::stop() { steering_.stop(); }

Result<void> VerbsPort::set_link(bool up) {
  if (device_.surroundings().netdev().empty())
    return fail(Code::kUnsupported, device_.capabilities().name +
                                        ": its link follows a network interface, which is in "
                                        "another namespace");
  return device_.surroundings().set_up(up);
}

hca::LinkState VerbsPort::link() const {
  ibv_port_attr port{};
  if (ibv_query_port(device_.context(), kPort, &port) != 0) return {};
  return {.up = port.state == IBV_PORT_ACTIVE,
          .speed_mbps = lane_mbps(port.active_speed) * lanes(port.active_width)};
}

/// Bytes are counted in words of four. [Linux, IB_PMA_PORT_COUNTERS]
hca::PortCounters VerbsPort::read_counters() const {
  const Surroundings& around = device_.surroundings();
  return {.rx_frames = around.counter("counters/port_rcv_packets"),
          .rx_bytes = around.counter("counters/port_rcv_data") * 4,
          .rx_no_buffer = around.counter("hw_counters/out_of_buffer"),
          .rx_malformed = around.counter("counters/port_rcv_errors"),
          .tx_frames = around.counter("counters/port_xmit_packets"),
          .tx_bytes = around.counter("counters/port_xmit_data") * 4,
          .tx_wire_drops = around.counter("counters/port_xmit_discards")};
}

hca::PortCounters VerbsPort::counters() const {
  hca::PortCounters now = read_counters();
  for (const auto field : {&hca::PortCounters::rx_frames, &hca::PortCounters::rx_bytes,
                           &hca::PortCounters::rx_no_buffer, &hca::PortCounters::rx_malformed,
                           &hca::PortCounters::tx_frames, &hca::PortCounters::tx_bytes,
                           &hca::PortCounters::tx_wire_drops})
    now.*field -= base_.*field;
  return now;
}

}  // namespace nicmem::hca_verbs
