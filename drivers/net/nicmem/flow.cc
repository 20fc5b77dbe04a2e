// SPDX-License-Identifier: BSD-3-Clause
// The table of a port's rules, and the operations of rte_flow on it.
#include "flow.h"

#include <algorithm>
#include <bit>

#include "nicmem/errno.h"
#include "port.h"
#include "ports.h"

namespace nicmem::pmd {
namespace {

/// A device takes tables whose size is a power of two: other lists are repeated in a large one.
Result<std::vector<hca::ReceiveQueue*>> table_of(const std::vector<uint16_t>& wanted,
                                                 const std::vector<hca::ReceiveQueue*>& queues) {
  std::vector<hca::ReceiveQueue*> table;
  if (wanted.empty()) return table;
  table.resize(std::has_single_bit(wanted.size()) ? wanted.size() : hca::kMaxRssTable);
  for (size_t i = 0; i < table.size(); ++i) {
    const uint16_t queue = wanted[i % wanted.size()];
    if (queue >= queues.size())
      return fail(Code::kInvalidArgument, "a flow rule goes to queue " + std::to_string(queue) +
                                              ": accepted: below " + std::to_string(queues.size()) +
                                              ", the port's number of receive queues");
    table[i] = queues[queue];
  }
  return table;
}

int report(rte_flow_error* error, const FlowError& why) {
  return rte_flow_error_set(error, why.error, why.type, why.cause, why.message);
}

/// What the device, or the table, said; rte_flow wants a string that lives as long as the port.
int report(Port& port, rte_flow_error* error, rte_flow_error_type type, const void* cause,
           const Error& why) {
  port.flow_error = why.what;
  return rte_flow_error_set(error, to_errno(why), type, cause, port.flow_error.c_str());
}

FlowResult<Flow> check(rte_eth_dev* dev, const rte_flow_attr* attributes,
                       const rte_flow_item* pattern, const rte_flow_action* actions) {
  const Port& port = port_of(dev);
  if (!port.hca)
    return tl::unexpected<FlowError>({ENODEV, RTE_FLOW_ERROR_TYPE_STATE, nullptr,
                                      "the device is gone: reset or close the port"});
  auto flow = translate_flow(attributes, pattern, actions,
                             {.priorities = port.device->hca->capabilities().rule_priorities,
                              .queues = dev->data->nb_rx_queues,
                              .key = port.rss.key});
  static_assert(kMaxFlows == 1024);
  if (flow && port.flows.full())
    return tl::unexpected<FlowError>({ENOSPC, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                                      "too many rules: accepted: 1024 on a port"});
  return flow;
}

int validate(rte_eth_dev* dev, const rte_flow_attr* attributes, const rte_flow_item pattern[],
             const rte_flow_action actions[], rte_flow_error* error) {
  const auto flow = check(dev, attributes, pattern, actions);
  return flow ? 0 : report(error, flow.error());
}

void look_for_marks(const rte_eth_dev* dev) {
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i)
    if (RxQueueConfig* const queue = rx_queue(dev, i)) look_for_extras(queue->data);
}

rte_flow* create(rte_eth_dev* dev, const rte_flow_attr* attributes, const rte_flow_item pattern[],
                 const rte_flow_action actions[], rte_flow_error* error) {
  auto flow = check(dev, attributes, pattern, actions);
  if (!flow) {
    report(error, flow.error());
    return nullptr;
  }
  Port& port = port_of(dev);
  const auto made = port.flows.create(std::move(*flow));
  if (made) {
    if (port.flows.marks()) look_for_marks(dev);
    return *made;
  }
  report(port, error, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, made.error());
  return nullptr;
}

int destroy(rte_eth_dev* dev, rte_flow* flow, rte_flow_error* error) {
  Port& port = port_of(dev);
  const auto done = port.flows.destroy(flow);
  return done ? 0 : report(port, error, RTE_FLOW_ERROR_TYPE_HANDLE, flow, done.error());
}

int flush(rte_eth_dev* dev, rte_flow_error* /*error*/) {
  port_of(dev).flows.flush();
  return 0;
}

int query(rte_eth_dev* dev, rte_flow* flow, const rte_flow_action* action, void* data,
          rte_flow_error* error) {
  Port& port = port_of(dev);
  if (action == nullptr || action->type != RTE_FLOW_ACTION_TYPE_COUNT)
    return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
                              "query: accepted: count");
  if (data == nullptr)
    return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                              "query: a rte_flow_query_count is needed");
  auto& out = *static_cast<rte_flow_query_count*>(data);
  const auto count = port.flows.count(flow, out.reset != 0);
  if (!count) return report(port, error, RTE_FLOW_ERROR_TYPE_HANDLE, flow, count.error());
  out.hits_set = out.bytes_set = 1;
  out.hits = count->packets;
  out.bytes = count->bytes;
  return 0;
}

int isolate(rte_eth_dev* dev, int set, rte_flow_error* error) {
  Port& port = port_of(dev);
  const bool before = port.flows.isolated;
  port.flows.isolated = set != 0;
  if (!dev->data->dev_started) return 0;
  const auto steered = steer(port);
  if (steered) return 0;
  port.flows.isolated = before;
  return report(port, error, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, steered.error());
}

const rte_flow_ops kFlowOps = [] {
  rte_flow_ops ops{};
  ops.validate = locked<validate>;
  ops.create = locked<create>;
  ops.destroy = locked<destroy>;
  ops.flush = locked<flush>;
  ops.query = locked<query>;
  ops.isolate = locked<isolate>;
  return ops;
}();

}  // namespace

Result<void> FlowTable::put_in_force(rte_flow& flow) {
  NM_TRY(const auto table, table_of(flow.flow.queues, queues_));
  hca::RuleOptions options = flow.flow.options;
  options.rss.table = table;
  NM_TRY(flow.rule, port_->create_rule(options));
  return {};
}

Result<rte_flow*> FlowTable::create(Flow flow) {
  flows_.push_back({.flow = std::move(flow), .rule = nullptr});
  if (port_ != nullptr) {
    if (const auto done = put_in_force(flows_.back()); !done) {
      flows_.pop_back();
      return tl::unexpected(done.error());
    }
  }
  return &flows_.back();
}

std::list<rte_flow>::iterator FlowTable::find(const rte_flow* flow) {
  return std::find_if(flows_.begin(), flows_.end(),
                      [flow](const rte_flow& one) { return &one == flow; });
}

bool FlowTable::marks() const {
  return std::any_of(flows_.begin(), flows_.end(),
                     [](const rte_flow& one) { return one.flow.options.tag != 0; });
}

Result<void> FlowTable::destroy(const rte_flow* flow) {
  const auto found = find(flow);
  if (found == flows_.end()) return fail(Code::kNotFound, "flow rule: none of this port's");
  flows_.erase(found);
  return {};
}

Result<hca::RuleCount> FlowTable::count(const rte_flow* flow, bool reset) {
  const auto found = find(flow);
  if (found == flows_.end()) return fail(Code::kNotFound, "flow rule: none of this port's");
  if (!found->flow.options.count)
    return fail(Code::kInvalidArgument, "query: accepted: rules made with the action count");
  hca::RuleCount now{};
  if (found->rule) {
    NM_TRY(now, found->rule->count());
  }
  hca::RuleCount& offset = found->offset;
  const hca::RuleCount sum{now.packets + offset.packets, now.bytes + offset.bytes};
  if (reset) offset = {0 - now.packets, 0 - now.bytes};
  return sum;
}

Result<void> FlowTable::start(hca::Port& port, std::vector<hca::ReceiveQueue*> queues) {
  port_ = &port;
  queues_ = std::move(queues);
  for (rte_flow& flow : flows_) {
    if (const auto done = put_in_force(flow); !done) {
      stop();
      return done;
    }
  }
  return {};
}

void FlowTable::stop() {
  for (rte_flow& flow : flows_) {
    if (flow.rule && flow.flow.options.count) {
      if (const auto now = flow.rule->count()) {
        flow.offset.packets += now->packets;
        flow.offset.bytes += now->bytes;
      }
    }
    flow.rule.reset();
  }
  port_ = nullptr;
  queues_.clear();
}

int flow_ops_get(rte_eth_dev* /*dev*/, const rte_flow_ops** ops) {
  *ops = &kFlowOps;
  return 0;
}

}  // namespace nicmem::pmd
