// SPDX-License-Identifier: BSD-3-Clause
// rte_flow's attributes and actions to the device's rule, and reasons why not. Pure: no port, no
// device.
#include <algorithm>
#include <cerrno>
#include <span>

#include "flow_pattern.h"
#include "rss.h"

namespace nicmem::pmd {
namespace {

FlowResult<uint32_t> read_attributes(const rte_flow_attr* attr, const FlowLimits& limits) {
  if (attr == nullptr)
    return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, nullptr, "no attributes: ingress is needed");
  if (attr->egress != 0)
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS, attr, "egress: accepted: ingress");
  if (attr->transfer != 0)
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER, attr, "transfer: accepted: ingress");
  if (attr->ingress == 0)
    return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS, attr,
                  "no direction: accepted: ingress");
  if (attr->group != 0)
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, attr, "group: accepted: 0");
  if (limits.priorities == 0)
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "the device takes no rules");
  if (attr->priority >= limits.priorities)
    return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, attr,
                  "priority: accepted: 0 to the device's number of priorities, less one");
  return attr->priority;
}

class ActionReader {
 public:
  ActionReader(Flow& flow, const FlowLimits& limits) : flow_(flow), limits_(limits) {}

  FlowResult<void> read(const rte_flow_action* actions) {
    if (actions == nullptr)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, nullptr,
                    "no actions: one of queue, rss and drop is needed");
    const rte_flow_action* action = actions;
    for (; action->type != RTE_FLOW_ACTION_TYPE_END; ++action)
      if (action->type != RTE_FLOW_ACTION_TYPE_VOID) NM_FLOW_TRY(read_action(*action));
    if (fate_) return {};
    return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, action,
                  "no fate: one of queue, rss and drop is needed");
  }

 private:
  FlowResult<void> read_action(const rte_flow_action& action) {
    switch (action.type) {
      case RTE_FLOW_ACTION_TYPE_DROP:
        NM_FLOW_TRY(once(fate_, action));
        flow_.options.drop = true;
        return {};
      case RTE_FLOW_ACTION_TYPE_QUEUE:
        NM_FLOW_TRY(once(fate_, action));
        return read_queue(action);
      case RTE_FLOW_ACTION_TYPE_RSS:
        NM_FLOW_TRY(once(fate_, action));
        return read_rss(action);
      case RTE_FLOW_ACTION_TYPE_MARK:
        NM_FLOW_TRY(once(tag_, action));
        return read_mark(action);
      case RTE_FLOW_ACTION_TYPE_FLAG:
        NM_FLOW_TRY(once(tag_, action));
        flow_.options.tag = hca::kMaxFlowTag;
        return {};
      case RTE_FLOW_ACTION_TYPE_COUNT:
        NM_FLOW_TRY(once(flow_.options.count, action));
        return {};
      default:
        return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &action,
                      "action: accepted: queue, rss, drop, mark, flag, count, void");
    }
  }

  static FlowResult<void> once(bool& seen, const rte_flow_action& action) {
    if (seen)
      return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &action,
                    "actions: accepted: one of queue, rss and drop; one of mark and flag at most; "
                    "one count at most");
    seen = true;
    return {};
  }

  static tl::unexpected<FlowError> bad(const rte_flow_action& action, const char* message) {
    return refuse(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action.conf, message);
  }

  FlowResult<void> read_queue(const rte_flow_action& action) {
    const auto* const conf = static_cast<const rte_flow_action_queue*>(action.conf);
    if (conf == nullptr) return bad(action, "queue: its configuration is needed");
    return take_queues(action, {&conf->index, 1});
  }

  FlowResult<void> read_mark(const rte_flow_action& action) {
    const auto* const conf = static_cast<const rte_flow_action_mark*>(action.conf);
    if (conf == nullptr) return bad(action, "mark: its configuration is needed");
    static_assert(kMaxMark == 0xfffffd);
    if (conf->id > kMaxMark) return bad(action, "mark: accepted: 0 to 0xfffffd");
    flow_.options.tag = conf->id + 1;
    return {};
  }

  FlowResult<void> take_queues(const rte_flow_action& action, std::span<const uint16_t> queues) {
    if (std::any_of(queues.begin(), queues.end(),
                    [this](uint16_t queue) { return queue >= limits_.queues; }))
      return bad(action, "queue: accepted: below the port's number of receive queues");
    flow_.queues.assign(queues.begin(), queues.end());
    return {};
  }

  FlowResult<void> read_rss(const rte_flow_action& action) {
    const auto* const conf = static_cast<const rte_flow_action_rss*>(action.conf);
    if (conf == nullptr) return bad(action, "rss: its configuration is needed");
    const auto unsupported = [conf](const char* message) {
      return refuse(ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION_CONF, conf, message);
    };
    if (conf->func != RTE_ETH_HASH_FUNCTION_DEFAULT && conf->func != RTE_ETH_HASH_FUNCTION_TOEPLITZ)
      return unsupported("rss function: accepted: default, toeplitz");
    if (conf->level > 1) return unsupported("rss level: accepted: 0, 1");
    hca::RssOptions& rss = flow_.options.rss;
    rss.key = limits_.key;
    if (conf->key_len != 0 && conf->key_len != rss.key.size())
      return bad(action, "rss key: accepted: 40 bytes, or none for the port's own");
    if (conf->key != nullptr && conf->key_len != 0)
      std::copy_n(conf->key, rss.key.size(), rss.key.begin());
    if (conf->types != 0) {
      const auto fields = hash_fields(conf->types);
      if (!fields)
        return unsupported(
            "rss types: accepted: ip, tcp, udp (version 4 and 6), l3-src-only, l3-dst-only, "
            "l4-src-only, l4-dst-only, or 0 for all fields");
      rss.fields = *fields;
    }
    if (conf->queue == nullptr || conf->queue_num == 0 || conf->queue_num > hca::kMaxRssTable)
      return bad(action, "rss queues: accepted: 1 to 512 of them");
    return take_queues(action, {conf->queue, conf->queue_num});
  }

  Flow& flow_;
  const FlowLimits& limits_;
  bool fate_ = false;
  bool tag_ = false;
};

}  // namespace

FlowResult<Flow> translate_flow(const rte_flow_attr* attributes, const rte_flow_item* pattern,
                                const rte_flow_action* actions, const FlowLimits& limits) {
  Flow flow;
  const auto priority = read_attributes(attributes, limits);
  if (!priority) return tl::unexpected(priority.error());
  flow.options.priority = *priority;
  auto match = read_pattern(pattern);
  if (!match) return tl::unexpected(match.error());
  flow.options.match = *match;
  NM_FLOW_TRY(ActionReader(flow, limits).read(actions));
  return flow;
}

}  // namespace nicmem::pmd
