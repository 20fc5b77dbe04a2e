// SPDX-License-Identifier: BSD-3-Clause
// Which frames the port takes: default rules and the program's own, as flows.
//
// A card's priorities are split among rules: each level has kRanks, one for each rank of a rule's
// flows (spread.h). The default rules have the last two levels: new ones take the level that the
// old ones do not have, so that while both are there each frame goes one way. Flows are made in the
// device's own format (mlx5dv_create_flow), with a matcher for each mask and priority, which flows
// share; by verbs' specs (ibv_create_flow) where the device lacks matchers, and for rules that
// count, for counters of verbs go with specs only.
#pragma once

#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/hca/verbs/flow_format.h"
#include "drivers/hca/verbs/handles.h"
#include "drivers/hca/verbs/spread.h"
#include "hca/steering.h"

namespace nicmem::hca_verbs {

inline constexpr uint32_t kCardPriorities = 16;  // [Linux, MLX5_IB_FLOW_LAST_PRIO]
inline constexpr uint32_t kDefaultLevels = 2;
inline constexpr uint32_t kRulePriorities = kCardPriorities / kRanks - kDefaultLevels;

/// One flow, and what it needs: a matcher, if it has one, and where its frames go, which the kernel
/// does not let go before it.
struct Flow {
  std::shared_ptr<Spread> spread;
  std::shared_ptr<mlx5dv_flow_matcher> matcher;
  Handle<ibv_flow> flow;
};

/// What a rule's flows do with frames, and what they are made of.
struct FlowOptions {
  uint32_t priority = 0;           // a level
  std::shared_ptr<Spread> spread;  // null: frames are dropped
  uint32_t tag = 0;
  ibv_counters* counters = nullptr;
};

/// Makes flows.
class FlowMaker {
 public:
  explicit FlowMaker(ibv_context* context) : context_(context) {}
  ibv_context* context() const { return context_; }
  /// Adds the flows of `match` to `out`; on failure those that were made stay there.
  Result<void> make(const hca::Match& match, const FlowOptions& options, std::vector<Flow>& out);
  bool has_matchers() const { return has_matchers_; }

 private:
  using MatcherKey = std::pair<std::string, uint32_t>;  // mask, priority

  Result<void> add(const Filter& filter, const Destination& to, const FlowOptions& options,
                   std::vector<Flow>& out);
  Result<std::shared_ptr<mlx5dv_flow_matcher>> matcher_for(const FlowParameters& parameters,
                                                           uint32_t priority);
  Result<Flow> by_parameters(const Filter& filter, uint32_t priority, const Destination& to,
                             const FlowOptions& options);
  Result<Flow> by_specs(const Filter& filter, uint32_t priority, const Destination& to,
                        const FlowOptions& options);

  ibv_context* context_;
  bool has_matchers_ = true;  // until the device refuses one
  std::map<MatcherKey, std::weak_ptr<mlx5dv_flow_matcher>> matchers_;
};

/// Default rules, by value: what hca::SteeringOptions points to does not last.
struct Defaults {
  Defaults() = default;
  explicit Defaults(const hca::SteeringOptions& options);

  bool promiscuous = false, all_multicast = false, isolated = false;
  std::vector<hw::MacAddress> unicast, multicast;
  std::optional<std::bitset<4096>> vlans;
  std::vector<hca::ReceiveQueue*> table;
  std::array<uint8_t, 40> key{};
  std::array<uint8_t, hca::kPacketKinds> fields{};
};

class Steering {
 public:
  explicit Steering(ibv_context* context) : maker_(context) {}
  /// The port is gone before rules are: they hold what they need.
  Result<void> set_defaults(const hca::SteeringOptions& options);
  Result<std::unique_ptr<hca::Rule>> create_rule(const hca::RuleOptions& options);
  /// Default rules are in force between the two.
  Result<void> start();
  void stop();
  const FlowMaker& maker() const { return maker_; }

 private:
  Result<std::vector<Flow>> make_flows(const Defaults& defaults, uint32_t level);

  FlowMaker maker_;
  Defaults defaults_;
  uint32_t level_ = kRulePriorities;  // of the flows that are in force
  std::vector<Flow> flows_;
  bool started_ = false;
};

}  // namespace nicmem::hca_verbs
