// SPDX-License-Identifier: BSD-3-Clause
// Which frames a port takes, and which queue each goes to: the program's rules in the order of
// their priority, then the default ones.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/view.h"
#include "hca/steering.h"
#include "hw/ether.h"
#include "sim/match.h"
#include "sim/rings.h"
#include "sim/rss.h"

namespace nicmem::sim {

/// Spreads frames over a table of queues by a hash.
class Spread {
 public:
  Spread() = default;
  /// `table`: the device's side of `options.table`, in the same order; a power of two, or none.
  Spread(const hca::RssOptions& options, std::vector<ReceiveRing*> table)
      : table_(std::move(table)), fields_(options.fields) {
    if (table_.size() > 1) toeplitz_ = std::make_unique<Toeplitz>(options.key);
  }

  bool empty() const { return table_.empty(); }

  /// Of a table that is not empty. One entry: no hash is computed.
  ReceiveRing& pick(Frame frame, const Parsed& parsed, RssHash& hash) const {
    if (toeplitz_ == nullptr) return *table_[0];
    hash = rss_hash(*toeplitz_, frame, parsed, fields_);
    return *table_[hash.type == 0 ? 0 : hash.value & (table_.size() - 1)];
  }

  bool uses(const ReceiveRing& queue) const { return std::ranges::count(table_, &queue) != 0; }

 private:
  std::vector<ReceiveRing*> table_;
  std::unique_ptr<Toeplitz> toeplitz_;  // null: at most one entry
  std::array<uint8_t, hca::kPacketKinds> fields_{};
};

/// Addresses as numbers, sorted.
class MacSet {
 public:
  MacSet() = default;
  explicit MacSet(std::span<const hw::MacAddress> addresses) {
    for (const hw::MacAddress& address : addresses) numbers_.push_back(number_of(address));
    std::ranges::sort(numbers_);
  }
  bool contains(const hw::MacAddress& address) const {
    return std::ranges::binary_search(numbers_, number_of(address));
  }

 private:
  static uint64_t number_of(const hw::MacAddress& address) {
    uint64_t number = 0;
    std::memcpy(&number, address.bytes, sizeof address.bytes);
    return number;
  }
  std::vector<uint64_t> numbers_;
};

/// What hca::SteeringOptions say.
class DefaultRules {
 public:
  /// Take nothing.
  DefaultRules() = default;
  DefaultRules(const hca::SteeringOptions& options, Spread spread)
      : spread_(std::move(spread)),
        unicast_(options.unicast),
        multicast_(options.multicast),
        promiscuous_(options.promiscuous),
        all_multicast_(options.all_multicast),
        off_(options.isolated || spread_.empty()) {
    if (options.vlans != nullptr) vlans_ = std::make_unique<std::bitset<4096>>(*options.vlans);
  }

  const Spread& spread() const { return spread_; }

  bool accept(Frame frame, const Parsed& parsed) const {
    return !off_ && accepts_address(view_as<hw::EtherHeader>(frame)->destination) &&
           (vlans_ == nullptr || accepts_vlan(frame, parsed));
  }

 private:
  static constexpr hw::MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

  bool accepts_address(const hw::MacAddress& to) const {
    if (promiscuous_) return true;
    if (!to.is_group()) return unicast_.contains(to);
    return all_multicast_ || to == kBroadcast || multicast_.contains(to);
  }
  bool accepts_vlan(Frame frame, const Parsed& parsed) const {
    const hw::VlanTag* tag = outer_tag(frame, parsed);
    return tag == nullptr || vlans_->test(hw::VlanTag::Vlan::get(tag->control.get()));
  }

  Spread spread_;
  MacSet unicast_;
  MacSet multicast_;
  std::unique_ptr<const std::bitset<4096>> vlans_;  // null: all
  bool promiscuous_ = false;
  bool all_multicast_ = false;
  bool off_ = true;
};

/// A rule of the program's.
struct RuleEntry {
  hca::Match match;
  uint32_t priority = 0;
  uint32_t tag = 0;
  Spread spread;  // empty: frames are dropped
  hca::RuleCount count{};
};

/// Where a frame goes.
struct Verdict {
  ReceiveRing* queue = nullptr;  // null: it is dropped
  RssHash hash;
  RuleEntry* rule = nullptr;  // that took it; null: the default ones
};

class Steering {
 public:
  void set_defaults(DefaultRules defaults) { defaults_ = std::move(defaults); }

  void add(RuleEntry& rule) {
    const auto later = std::ranges::upper_bound(rules_, rule.priority, {}, &RuleEntry::priority);
    rules_.insert(later, &rule);
  }
  void remove(RuleEntry& rule) { std::erase(rules_, &rule); }
  bool has_rules() const { return !rules_.empty(); }

  /// `frame` has an Ethernet header.
  Verdict decide(Frame frame, const Parsed& parsed) const {
    Verdict verdict;
    for (RuleEntry* rule : rules_) {
      if (!matches(rule->match, frame, parsed)) continue;
      verdict.rule = rule;
      if (!rule->spread.empty()) verdict.queue = &rule->spread.pick(frame, parsed, verdict.hash);
      return verdict;
    }
    if (defaults_.accept(frame, parsed)) {
      verdict.queue = &defaults_.spread().pick(frame, parsed, verdict.hash);
    }
    return verdict;
  }

  /// The default rules must not outlive a queue of theirs: they take nothing from then on.
  void forget(const ReceiveRing& queue) {
    for (const RuleEntry* rule : rules_) NM_CHECK(!rule->spread.uses(queue));
    if (defaults_.spread().uses(queue)) defaults_ = DefaultRules();
  }

 private:
  std::vector<RuleEntry*> rules_;  // first the one to look at first
  DefaultRules defaults_;
};

}  // namespace nicmem::sim
