// SPDX-License-Identifier: BSD-3-Clause
// The port of a device: its queues, its rules, its network interface.
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/hca/verbs/device.h"
#include "drivers/hca/verbs/events.h"
#include "drivers/hca/verbs/steering.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

class VerbsPort final : public hca::Port {
 public:
  static Result<std::unique_ptr<VerbsPort>> open(VerbsDevice& device,
                                                 const hca::PortOptions& options);
  ~VerbsPort() override { device_.port_closed(); }

  Result<std::unique_ptr<hca::CompletionQueue>> create_completion_queue(
      const hca::CompletionOptions& options) override;
  Result<std::unique_ptr<hca::ReceiveQueue>> create_receive_queue(
      hca::Domain domain, hca::CompletionQueue& cq, const hca::ReceiveOptions& options) override;
  Result<std::unique_ptr<hca::SendQueue>> create_send_queue(hca::Domain domain,
                                                            hca::CompletionQueue& cq,
                                                            uint32_t depth_blocks) override;
  Result<void> steer(const hca::SteeringOptions& options) override;
  Result<std::unique_ptr<hca::Rule>> create_rule(const hca::RuleOptions& options) override;

  /// By the interface's MTU, which is raised if need be, for all who use the interface.
  Result<void> set_max_frame(uint32_t bytes) override;

  /// Frames come in while default rules are in force: start() puts those of steer() in force.
  Result<void> start() override;
  void stop() override;

  Result<void> set_link(bool up) override;
  hca::LinkState link() const override;
  hca::PortCounters counters() const override;
  hw::PcieTally pcie() const override { return {}; }
  size_t last_sent(std::span<std::byte> /*out*/) const override { return 0; }

  /// Whether rules are made in the device's own format, as far as has been seen.
  bool makes_matchers() const { return steering_.maker().has_matchers(); }

 private:
  explicit VerbsPort(VerbsDevice& device) : device_(device), steering_(device.context()) {}
  hca::PortCounters read_counters() const;

  VerbsDevice& device_;
  Steering steering_;
  hca::PortCounters base_;
  std::unique_ptr<EventThread> events_;  // last: the first to go
};

}  // namespace nicmem::hca_verbs
