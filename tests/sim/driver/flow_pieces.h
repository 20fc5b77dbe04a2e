// SPDX-License-Identifier: BSD-3-Clause
// Lists of rte_flow for tests, and a control path that only records the rules it is given.
#pragma once

#include <rte_flow.h>

#include <list>
#include <memory>
#include <vector>

#include "hca/hca.h"

namespace nicmem::test {

/// Attributes, items and actions; what they point at is the test's.
class FlowPieces {
 public:
  rte_flow_attr attr = [] {
    rte_flow_attr ingress{};
    ingress.ingress = 1;
    return ingress;
  }();

  FlowPieces& item(rte_flow_item_type type, const void* spec = nullptr, const void* mask = nullptr,
                   const void* last = nullptr) {
    items_.insert(items_.end() - 1, {.type = type, .spec = spec, .last = last, .mask = mask});
    return *this;
  }
  FlowPieces& action(rte_flow_action_type type, const void* conf = nullptr) {
    actions_.insert(actions_.end() - 1, {.type = type, .conf = conf});
    return *this;
  }
  FlowPieces& queue(uint16_t index) {
    queues_.push_back(std::make_shared<rte_flow_action_queue>(rte_flow_action_queue{index}));
    return action(RTE_FLOW_ACTION_TYPE_QUEUE, queues_.back().get());
  }

  const rte_flow_item* pattern() const { return items_.data(); }
  const rte_flow_action* actions() const { return actions_.data(); }

 private:
  std::vector<rte_flow_item> items_{{.type = RTE_FLOW_ITEM_TYPE_END}};
  std::vector<rte_flow_action> actions_{{.type = RTE_FLOW_ACTION_TYPE_END}};
  std::vector<std::shared_ptr<rte_flow_action_queue>> queues_;
};

struct RecordedQueue final : hca::ReceiveQueue {
  Result<void> reset() override { return {}; }
  Result<void> stop() override { return {}; }
  Result<void> strip_vlan(bool) override { return {}; }
};

/// Rules in force, in the order in which they came. The call `fail_call` of create_rule() fails.
class RecordingPort final : public hca::Port {
 public:
  struct Recorded {
    std::vector<hca::ReceiveQueue*> queues;
    uint32_t tag = 0;
    hca::RuleCount seen{};
  };
  std::list<Recorded*> rules;
  int calls = 0;
  int fail_call = -1;

  Result<std::unique_ptr<hca::Rule>> create_rule(const hca::RuleOptions& options) override {
    if (calls++ == fail_call) return fail(Code::kExhausted, "told to fail");
    return std::make_unique<RecordedRule>(*this, options);
  }

  Result<std::unique_ptr<hca::CompletionQueue>> create_completion_queue(
      const hca::CompletionOptions&) override {
    return none();
  }
  Result<std::unique_ptr<hca::ReceiveQueue>> create_receive_queue(
      hca::Domain, hca::CompletionQueue&, const hca::ReceiveOptions&) override {
    return none();
  }
  Result<std::unique_ptr<hca::SendQueue>> create_send_queue(hca::Domain, hca::CompletionQueue&,
                                                            uint32_t) override {
    return none();
  }
  Result<void> steer(const hca::SteeringOptions&) override { return {}; }
  Result<void> set_max_frame(uint32_t) override { return {}; }
  Result<void> start() override { return {}; }
  void stop() override {}
  Result<void> set_link(bool) override { return {}; }
  hca::LinkState link() const override { return {}; }
  hca::PortCounters counters() const override { return {}; }
  hw::PcieTally pcie() const override { return {}; }
  size_t last_sent(std::span<std::byte>) const override { return 0; }

 private:
  static tl::unexpected<Error> none() { return fail(Code::kUnsupported, "rules only"); }

  class RecordedRule final : public hca::Rule {
   public:
    RecordedRule(RecordingPort& port, const hca::RuleOptions& options) : port_(port) {
      recorded_.queues.assign(options.rss.table.begin(), options.rss.table.end());
      recorded_.tag = options.tag;
      port_.rules.push_back(&recorded_);
    }
    ~RecordedRule() override { port_.rules.remove(&recorded_); }
    Result<hca::RuleCount> count() const override { return recorded_.seen; }

   private:
    RecordingPort& port_;
    Recorded recorded_;
  };
};

}  // namespace nicmem::test
