// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/steering.h"

#include <cerrno>
#include <cstring>

namespace nicmem::hca_verbs {
namespace {

/// mlx5dv_flow_match_parameters ends in an array without a bound.
struct ParameterBuffer {
  template <class Bytes>
  ParameterBuffer(const Bytes& bytes, size_t count) : storage(sizeof(size_t) + count) {
    get()->match_sz = count;
    std::memcpy(get()->match_buf, bytes.data(), count);
  }
  mlx5dv_flow_match_parameters* get() {
    return reinterpret_cast<mlx5dv_flow_match_parameters*>(storage.data());
  }
  std::vector<std::byte> storage;
};

uint32_t card_priority(uint32_t level, uint32_t rank) { return level * kRanks + rank; }

/// What the device answers when it does not have a call, or not this use of it.
bool is_absent(const Error& error) { return error.code == Code::kUnsupported; }

}  // namespace

Result<void> FlowMaker::make(const hca::Match& match, const FlowOptions& options,
                             std::vector<Flow>& out) {
  const Destination dropped{};
  const std::vector<Destination> nowhere = {dropped};
  for (const Destination& to : options.spread ? options.spread->destinations() : nowhere) {
    NM_TRY(const std::vector<Filter> filters, filters_of(match, to.kind));
    for (const Filter& filter : filters) NM_TRY_VOID(add(filter, to, options, out));
  }
  return {};
}

Result<void> FlowMaker::add(const Filter& filter, const Destination& to, const FlowOptions& options,
                            std::vector<Flow>& out) {
  const uint32_t priority = card_priority(options.priority, to.rank);
  if (has_matchers_ && options.counters == nullptr) {
    auto flow = by_parameters(filter, priority, to, options);
    if (flow) return out.push_back(std::move(*flow)), Result<void>{};
    if (has_matchers_) return tl::unexpected<Error>(std::move(flow.error()));
  }
  NM_TRY(Flow flow, by_specs(filter, priority, to, options));
  out.push_back(std::move(flow));
  return {};
}

Result<std::shared_ptr<mlx5dv_flow_matcher>> FlowMaker::matcher_for(
    const FlowParameters& parameters, uint32_t priority) {
  const auto* const mask = reinterpret_cast<const char*>(parameters.mask.data());
  MatcherKey key{std::string(mask, parameters.size()), priority};
  if (auto known = matchers_[key].lock()) return known;
  ParameterBuffer buffer(parameters.mask, parameters.size());
  mlx5dv_flow_matcher_attr attr{};
  attr.type = IBV_FLOW_ATTR_NORMAL;
  attr.priority = static_cast<uint16_t>(priority);
  attr.match_criteria_enable = parameters.criteria;
  attr.match_mask = buffer.get();
  auto made = own("flow matcher", mlx5dv_create_flow_matcher(context_, &attr));
  if (!made) {
    matchers_.erase(key);
    return tl::unexpected<Error>(std::move(made.error()));
  }
  std::shared_ptr<mlx5dv_flow_matcher> matcher(std::move(*made));
  matchers_[std::move(key)] = matcher;
  return matcher;
}

Result<Flow> FlowMaker::by_parameters(const Filter& filter, uint32_t priority,
                                      const Destination& to, const FlowOptions& options) {
  const FlowParameters parameters = parameters_of(filter);
  auto matcher = matcher_for(parameters, priority);
  if (!matcher) {
    if (is_absent(matcher.error()) && matchers_.empty()) has_matchers_ = false;
    return tl::unexpected<Error>(std::move(matcher.error()));
  }
  std::vector<mlx5dv_flow_action_attr> actions;
  if (options.tag != 0) {
    mlx5dv_flow_action_attr tag{};
    tag.type = MLX5DV_FLOW_ACTION_TAG;
    tag.tag_value = options.tag;
    actions.push_back(tag);
  }
  mlx5dv_flow_action_attr last{};
  last.type = to.pair != nullptr ? MLX5DV_FLOW_ACTION_DEST_IBV_QP : MLX5DV_FLOW_ACTION_DROP;
  last.qp = to.pair;
  actions.push_back(last);
  ParameterBuffer value(parameters.value, parameters.size());
  NM_TRY(auto made, own("flow", mlx5dv_create_flow(matcher->get(), value.get(), actions.size(),
                                                   actions.data())));
  return Flow{options.spread, std::move(*matcher), std::move(made)};
}

Result<Flow> FlowMaker::by_specs(const Filter& filter, uint32_t priority, const Destination& to,
                                 const FlowOptions& options) {
  NM_TRY(std::vector<std::byte> specs,
         specs_of(filter, priority,
                  {.drop = to.pair == nullptr, .tag = options.tag, .counters = options.counters}));
  if (to.pair == nullptr)
    return fail(Code::kUnsupported,
                "rule: specs of verbs belong to a queue: accepted: drop without count, or count "
                "with a queue");
  NM_TRY(auto made,
         own("flow", ibv_create_flow(to.pair, reinterpret_cast<ibv_flow_attr*>(specs.data()))));
  return Flow{options.spread, nullptr, std::move(made)};
}

namespace {

constexpr uint32_t kPacketSlot = 0, kByteSlot = 1;  // of a rule's counters

Result<Handle<ibv_counters>> make_counters(ibv_context* context) {
  ibv_counters_init_attr init{};
  NM_TRY(auto counters, own("counters of a rule", ibv_create_counters(context, &init)));
  ibv_counter_attach_attr attach{};
  attach.counter_desc = IBV_COUNTER_PACKETS;
  attach.index = kPacketSlot;
  NM_TRY_VOID(check("counter of packets",
                    ibv_attach_counters_point_flow(counters.get(), &attach, nullptr)));
  attach.counter_desc = IBV_COUNTER_BYTES;
  attach.index = kByteSlot;
  NM_TRY_VOID(
      check("counter of bytes", ibv_attach_counters_point_flow(counters.get(), &attach, nullptr)));
  return counters;
}

class VerbsRule final : public hca::Rule {
 public:
  VerbsRule(Handle<ibv_counters> counters, std::vector<Flow> flows)
      : counters_(std::move(counters)), flows_(std::move(flows)) {}

  Result<hca::RuleCount> count() const override {
    if (counters_ == nullptr)
      return fail(Code::kUnsupported, "rule: it was made without a counter");
    std::array<uint64_t, 2> values{};
    NM_TRY_VOID(check("counters of a rule",
                      ibv_read_counters(counters_.get(), values.data(), values.size(), 0)));
    return hca::RuleCount{.packets = values[kPacketSlot], .bytes = values[kByteSlot]};
  }

 private:
  Handle<ibv_counters> counters_;
  std::vector<Flow> flows_;  // last: the first to go
};

hca::Match to_address(const hw::MacAddress& address, const hw::MacAddress& mask) {
  hca::Match match;
  match.ether.emplace();
  match.ether->value.destination = address;
  match.ether->mask.destination = mask;
  return match;
}

constexpr hw::MacAddress kAllBits{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr hw::MacAddress kGroupBit{{1, 0, 0, 0, 0, 0}};

/// The addresses that the default rules take.
std::vector<hca::Match> address_matches(const Defaults& defaults) {
  if (defaults.promiscuous) return {hca::Match{}};
  std::vector<hca::Match> all;
  for (const hw::MacAddress& mac : defaults.unicast) all.push_back(to_address(mac, kAllBits));
  if (defaults.all_multicast) {
    all.push_back(to_address(kGroupBit, kGroupBit));
    return all;
  }
  all.push_back(to_address(kAllBits, kAllBits));  // broadcast
  for (const hw::MacAddress& mac : defaults.multicast) all.push_back(to_address(mac, kAllBits));
  return all;
}

/// The same, for frames without a tag and for each VLAN.
std::vector<hca::Match> with_vlans(const hca::Match& match, const std::bitset<4096>& vlans) {
  std::vector<hca::Match> all;
  all.push_back(match);
  all.back().untagged = true;
  for (size_t vlan = 0; vlan < vlans.size(); ++vlan) {
    if (!vlans.test(vlan)) continue;
    hca::Match tagged = match;
    tagged.vlan.emplace();
    tagged.vlan->value.control.set(static_cast<uint16_t>(vlan));
    tagged.vlan->mask.control.set(hw::VlanTag::Vlan::kMask);
    all.push_back(tagged);
  }
  return all;
}

}  // namespace

Defaults::Defaults(const hca::SteeringOptions& options)
    : promiscuous(options.promiscuous),
      all_multicast(options.all_multicast),
      isolated(options.isolated),
      unicast(options.unicast.begin(), options.unicast.end()),
      multicast(options.multicast.begin(), options.multicast.end()),
      table(options.rss.table.begin(), options.rss.table.end()),
      key(options.rss.key),
      fields(options.rss.fields) {
  if (options.vlans != nullptr) vlans = *options.vlans;
}

Result<std::vector<Flow>> Steering::make_flows(const Defaults& defaults, uint32_t level) {
  std::vector<Flow> flows;
  if (defaults.table.empty() || defaults.isolated) return flows;
  FlowOptions options{.priority = level};
  NM_TRY(options.spread,
         Spread::create(maker_.context(),
                        {.table = defaults.table, .key = defaults.key, .fields = defaults.fields}));
  for (const hca::Match& match : address_matches(defaults)) {
    const std::vector<hca::Match> matches =
        defaults.vlans ? with_vlans(match, *defaults.vlans) : std::vector{match};
    for (const hca::Match& one : matches) NM_TRY_VOID(maker_.make(one, options, flows));
  }
  return flows;
}

/// New flows are made before the old ones go: no frame falls between them.
Result<void> Steering::set_defaults(const hca::SteeringOptions& options) {
  Defaults defaults(options);
  if (started_) {
    const uint32_t other = level_ == kRulePriorities ? kRulePriorities + 1 : kRulePriorities;
    NM_TRY(flows_, make_flows(defaults, other));
    level_ = other;
  }
  defaults_ = std::move(defaults);
  return {};
}

Result<void> Steering::start() {
  NM_TRY(flows_, make_flows(defaults_, level_));
  started_ = true;
  return {};
}

void Steering::stop() {
  flows_.clear();
  started_ = false;
}

Result<std::unique_ptr<hca::Rule>> Steering::create_rule(const hca::RuleOptions& options) {
  FlowOptions flow{.priority = options.priority, .tag = options.tag};
  if (options.priority >= kRulePriorities)
    return fail(Code::kInvalidArgument, "rule: priority " + std::to_string(options.priority) +
                                            ": accepted: below " + std::to_string(kRulePriorities));
  if (!options.drop && !options.rss.table.empty()) {
    NM_TRY(flow.spread, Spread::create(maker_.context(), options.rss));
  }
  Handle<ibv_counters> counters;
  if (options.count) {
    NM_TRY(counters, make_counters(maker_.context()));
  }
  flow.counters = counters.get();
  std::vector<Flow> flows;
  NM_TRY_VOID(maker_.make(options.match, flow, flows));
  return std::make_unique<VerbsRule>(std::move(counters), std::move(flows));
}

}  // namespace nicmem::hca_verbs
