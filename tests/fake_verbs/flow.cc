// SPDX-License-Identifier: BSD-3-Clause
// Steering: flows by specs (ibv_create_flow) and in the device's own format (mlx5dv_create_flow),
// and counters.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "fake.h"
#include "match.h"

namespace nicmem::fake {
namespace {

// After those of a program come rules for multicast only, and then the default ones.
// [Linux, MLX5_IB_FLOW_LAST_PRIO, MLX5_IB_FLOW_MCAST_PRIO, MLX5_IB_FLOW_LEFTOVERS_PRIO]
constexpr uint32_t kLastPriority = 15;
constexpr uint32_t kMulticastPriority = 16;
constexpr uint32_t kDefaultPriority = 17;
static_assert(kDefaultPriority + 1 == kModelPriorities);

/// What a flow does, gathered from its specs or actions.
struct Wanted {
  hca::Match match;
  uint32_t priority = 0;
  bool drop = false;
  uint32_t tag = 0;
  Counters* counters = nullptr;
  Qp* qp = nullptr;
};

ibv_flow* create(Context& context, const Wanted& wanted) {
  if (wanted.qp != nullptr && wanted.qp->table == nullptr) return null(EINVAL);
  if (wanted.qp == nullptr && !wanted.drop) return null(EINVAL);
  hca::RuleOptions options{.match = wanted.match,
                           .priority = wanted.priority,
                           .drop = wanted.drop,
                           .tag = wanted.tag,
                           .count = true};
  std::vector<Node*> uses;
  if (wanted.qp != nullptr) {
    uses.push_back(&wanted.qp->node);
    options.rss = {
        .table = wanted.qp->table->queues, .key = wanted.qp->key, .fields = wanted.qp->fields};
  }
  if (wanted.counters != nullptr) uses.push_back(&wanted.counters->node);
  auto rule = context.device.port->create_rule(options);
  if (!rule) return null(errno_of(rule.error()));
  Flow* const flow = make<Flow>(context, Kind::kFlow, std::move(uses));
  flow->rule = std::move(*rule);
  flow->counters = wanted.counters;
  if (flow->counters != nullptr) flow->counters->flows.push_back(flow);
  return &flow->verbs;
}

int take_spec(const ibv_flow_spec& spec, Wanted& wanted) {
  switch (spec.hdr.type) {
    case IBV_FLOW_SPEC_ACTION_DROP:
      wanted.drop = true;
      return spec.hdr.size == sizeof spec.drop ? 0 : EINVAL;
    case IBV_FLOW_SPEC_ACTION_TAG:
      wanted.tag = spec.flow_tag.tag_id;
      if (spec.hdr.size != sizeof spec.flow_tag) return EINVAL;
      return wanted.tag > hca::kMaxFlowTag ? EINVAL : 0;
    case IBV_FLOW_SPEC_ACTION_COUNT:
      wanted.counters = &of<Counters>(spec.flow_count.counters);
      return spec.hdr.size == sizeof spec.flow_count ? 0 : EINVAL;
    default:
      return add_spec(spec, wanted.match);
  }
}

/// [Linux, flow_is_multicast_only]
bool is_multicast_only(const ibv_flow_spec& first) {
  const auto group = [](const uint8_t* address) { return (address[0] & 1) != 0; };
  const auto group_ip = [](uint32_t address) { return (be32toh(address) >> 28) == 0xe; };
  if (first.hdr.type == IBV_FLOW_SPEC_ETH)
    return group(first.eth.mask.dst_mac) && group(first.eth.val.dst_mac);
  return first.hdr.type == IBV_FLOW_SPEC_IPV4 && group_ip(first.ipv4.mask.dst_ip) &&
         group_ip(first.ipv4.val.dst_ip);
}

int take_type(ibv_flow_attr_type type, uint32_t priority, Wanted& wanted) {
  if (priority > kLastPriority) return ENOMEM;  // [Linux, mlx5_ib_create_flow]
  wanted.priority = priority;
  if (type == IBV_FLOW_ATTR_NORMAL) return 0;
  if (type != IBV_FLOW_ATTR_ALL_DEFAULT && type != IBV_FLOW_ATTR_MC_DEFAULT) return EOPNOTSUPP;
  wanted.priority = kDefaultPriority;
  if (type == IBV_FLOW_ATTR_MC_DEFAULT) {
    wanted.match.ether.emplace();
    wanted.match.ether->value.destination.bytes[0] = 1;
    wanted.match.ether->mask.destination.bytes[0] = 1;
  }
  return 0;
}

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  const Call call("ibv_create_flow", qp->context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (!has_net_raw()) return null(EPERM);
  if (attr->comp_mask != 0) return null(EINVAL);
  if (attr->port != 1 || (attr->flags & ~uint32_t{IBV_FLOW_ATTR_FLAGS_DONT_TRAP}) != 0)
    return null(EINVAL);
  if (attr->flags != 0) return null(EOPNOTSUPP);
  Wanted wanted{.qp = &of<Qp>(qp)};
  if (const int error = take_type(attr->type, attr->priority, wanted)) return null(error);
  if (attr->type != IBV_FLOW_ATTR_NORMAL && attr->num_of_specs != 0) return null(EINVAL);
  const auto* at = reinterpret_cast<const std::byte*>(attr + 1);
  for (int i = 0; i < attr->num_of_specs; ++i) {  // attr->size is not looked at: drivers leave it 0
    ibv_flow_spec spec{};                         // specs lie one behind the other, aligned or not
    std::memcpy(static_cast<void*>(&spec), at, sizeof spec.hdr);
    if (spec.hdr.size < sizeof spec.hdr || spec.hdr.size > sizeof spec) return null(EINVAL);
    std::memcpy(static_cast<void*>(&spec), at, spec.hdr.size);
    if (i == 0 && is_multicast_only(spec)) wanted.priority = kMulticastPriority;
    if (const int error = take_spec(spec, wanted)) return null(error);
    at += spec.hdr.size;
  }
  return create(of_context(qp->context), wanted);
}

int destroy_flow(ibv_flow* verbs) {
  const Call call("ibv_destroy_flow");
  Node& node = of<Flow>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_counters* create_counters(ibv_context* verbs, ibv_counters_init_attr* attr) {
  const Call call("ibv_create_counters", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (attr->comp_mask != 0) return null(EOPNOTSUPP);
  return &make<Counters>(of_context(verbs), Kind::kCounters, {})->verbs;
}

int destroy_counters(ibv_counters* verbs) {
  const Call call("ibv_destroy_counters");
  Node& node = of<Counters>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

/// Only before a flow uses them.
int attach_counters(ibv_counters* verbs, ibv_counter_attach_attr* attr, ibv_flow* flow) {
  const Call call("ibv_attach_counters_point_flow", verbs->context);
  if (const int error = call.fault()) return error;
  Counters& counters = of<Counters>(verbs);
  constexpr uint32_t kMostSlots = 64;
  if (flow != nullptr) return EOPNOTSUPP;
  if (attr->comp_mask != 0 || attr->index >= kMostSlots) return EINVAL;
  if (attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES)
    return EINVAL;
  if (!counters.flows.empty()) return EBUSY;
  counters.slots.resize(std::max<size_t>(counters.slots.size(), attr->index + 1), -1);
  counters.slots[attr->index] = static_cast<int>(attr->counter_desc);
  return 0;
}

int read_counters(ibv_counters* verbs, uint64_t* values, uint32_t count, uint32_t flags) {
  const Call call("ibv_read_counters", verbs->context);
  if (const int error = call.fault()) return error;
  const Counters& counters = of<Counters>(verbs);
  if ((flags & ~uint32_t{IBV_READ_COUNTERS_ATTR_PREFER_CACHED}) != 0) return EINVAL;
  if (count < counters.slots.size()) return EINVAL;
  hca::RuleCount sum = counters.gone;
  for (const Flow* flow : counters.flows) {
    const auto seen = flow->rule->count();
    if (!seen) return errno_of(seen.error());
    sum.packets += seen->packets;
    sum.bytes += seen->bytes;
  }
  for (size_t i = 0; i < counters.slots.size(); ++i) {
    if (counters.slots[i] >= 0)
      values[i] = counters.slots[i] == IBV_COUNTER_PACKETS ? sum.packets : sum.bytes;
  }
  return 0;
}

int take_action(const mlx5dv_flow_action_attr& action, Wanted& wanted) {
  switch (action.type) {
    case MLX5DV_FLOW_ACTION_DEST_IBV_QP:
      if (wanted.qp != nullptr || wanted.drop) return EOPNOTSUPP;
      wanted.qp = &of<Qp>(action.qp);
      return 0;
    case MLX5DV_FLOW_ACTION_DROP:
      if (wanted.qp != nullptr || wanted.drop) return EOPNOTSUPP;
      wanted.drop = true;
      return 0;
    case MLX5DV_FLOW_ACTION_TAG:
      wanted.tag = action.tag_value;
      return wanted.tag > hca::kMaxFlowTag ? EINVAL : 0;
    case MLX5DV_FLOW_ACTION_IBV_COUNTER:
    case MLX5DV_FLOW_ACTION_DEST_DEVX:
    case MLX5DV_FLOW_ACTION_COUNTERS_DEVX:
    case MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION:
    case MLX5DV_FLOW_ACTION_DEFAULT_MISS:
      return EOPNOTSUPP;
  }
  return EOPNOTSUPP;
}

// match_criteria_enable: MLX5_MATCH_OUTER_HEADERS, MLX5_MATCH_MISC_PARAMETERS_3
constexpr uint8_t kOuterHeaders = 1, kMisc3 = 1 << 4;
constexpr size_t kParameterSetBytes = 64;  // of fte_match_param, one for each bit of the criteria

}  // namespace

Flow::~Flow() {
  if (counters == nullptr) return;
  if (const auto seen = rule->count()) {
    counters->gone.packets += seen->packets;
    counters->gone.bytes += seen->bytes;
  }
  std::erase(counters->flows, this);
}

void add_flow_operations(verbs_context& operations) {
  if (!is_absent("create_flow")) {
    operations.ibv_create_flow = create_flow;
    operations.ibv_destroy_flow = destroy_flow;
  }
  if (is_absent("create_counters")) return;
  operations.create_counters = create_counters;
  operations.destroy_counters = destroy_counters;
  operations.attach_counters_point_flow = attach_counters;
  operations.read_counters = read_counters;
}

}  // namespace nicmem::fake

using namespace nicmem;
using namespace nicmem::fake;

extern "C" {

mlx5dv_flow_matcher* mlx5dv_create_flow_matcher(ibv_context* verbs,
                                                mlx5dv_flow_matcher_attr* attr) {
  const Call call("mlx5dv_create_flow_matcher", verbs);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (is_absent("create_flow_matcher")) return null(EOPNOTSUPP);
  if ((attr->comp_mask & ~uint64_t{MLX5DV_FLOW_MATCHER_MASK_FT_TYPE}) != 0 ||
      attr->type != IBV_FLOW_ATTR_NORMAL) {
    return null(EOPNOTSUPP);
  }
  if (attr->comp_mask != 0 && attr->ft_type != MLX5DV_FLOW_TABLE_TYPE_NIC_RX)
    return null(EOPNOTSUPP);
  if (attr->match_mask == nullptr || attr->match_mask->match_sz == 0 ||
      attr->match_mask->match_sz > kMaxParameterBytes || attr->flags != 0) {
    return null(EINVAL);
  }
  if ((attr->match_criteria_enable & ~(kOuterHeaders | kMisc3)) != 0) return null(EOPNOTSUPP);
  const auto* mask = reinterpret_cast<const std::byte*>(attr->match_mask->match_buf);
  const std::vector<std::byte> bytes(mask, mask + attr->match_mask->match_sz);
  // Nothing can be asked of headers that the criteria leave out.
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t set = i / kParameterSetBytes;
    if (bytes[i] != std::byte{} && (attr->match_criteria_enable >> set & 1) == 0)
      return null(EINVAL);
  }
  Matcher* const matcher = make<Matcher>(of_context(verbs), Kind::kMatcher, {});
  matcher->mask = bytes;
  matcher->priority = attr->priority;
  return reinterpret_cast<mlx5dv_flow_matcher*>(&matcher->verbs);
}

int mlx5dv_destroy_flow_matcher(mlx5dv_flow_matcher* verbs) {
  const Call call("mlx5dv_destroy_flow_matcher");
  Node& node = of<Matcher>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

ibv_flow* mlx5dv_create_flow(mlx5dv_flow_matcher* verbs, mlx5dv_flow_match_parameters* value,
                             size_t count, mlx5dv_flow_action_attr actions[]) {
  Matcher& matcher = of<Matcher>(verbs);
  const Call call("mlx5dv_create_flow", matcher.verbs.context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  if (!has_net_raw()) return null(EPERM);
  Wanted wanted{.priority = matcher.priority};
  if (matcher.priority > kLastPriority) return null(ENOMEM);
  if (value == nullptr || value->match_sz > kMaxParameterBytes || count == 0) return null(EINVAL);
  const auto* bytes = reinterpret_cast<const std::byte*>(value->match_buf);
  const int unread = read_parameters({bytes, value->match_sz}, matcher.mask, wanted.match);
  if (unread != 0) return null(unread);
  for (size_t i = 0; i < count; ++i) {
    if (const int error = take_action(actions[i], wanted)) return null(error);
  }
  ibv_flow* const flow = create(matcher.node.context, wanted);
  if (flow != nullptr) of<Flow>(flow).node.use(matcher.node);
  return flow;
}

/// net_mlx5 makes one for every QP that it spreads frames with, and hands it to nobody.
mlx5dv_dr_action* mlx5dv_dr_action_create_dest_ibv_qp(ibv_qp* qp) {
  const Call call("mlx5dv_dr_action_create_dest_ibv_qp", qp->context);
  if (const int error = call.fault(ENOMEM)) return null(error);
  Action* const action = make<Action>(of_context(qp->context), Kind::kAction, {&of<Qp>(qp).node});
  return reinterpret_cast<mlx5dv_dr_action*>(&action->verbs);
}

int mlx5dv_dr_action_destroy(mlx5dv_dr_action* verbs) {
  const Call call("mlx5dv_dr_action_destroy");
  Node& node = of<Action>(verbs).node;
  if (const int error = node.release(call)) return error;
  node.destroy();
  return 0;
}

}  // extern "C"
