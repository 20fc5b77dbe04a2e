// SPDX-License-Identifier: BSD-3-Clause
// rte_flow: rules that a program puts before the port's default ones. A rule is translated once,
// names its queues by number, and is kept here: the device has it only while the port runs, because
// queues are made anew at each start.
//
// Threads: ethdev serialises the operations of a port.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compat.h"
#include "hca/hca.h"

namespace nicmem::pmd {

/// Rules a port takes. Each is compared with every frame until one matches.
inline constexpr size_t kMaxFlows = 1024;
/// Of MARK: the device reports the number plus one in 24 bits, all of them ones being FLAG.
inline constexpr uint32_t kMaxMark = hca::kMaxFlowTag - 2;

/// A rule as the device wants it, but for the queues themselves.
struct Flow {
  hca::RuleOptions options;      // its rss.table is empty
  std::vector<uint16_t> queues;  // none: the rule drops
};

/// What translation needs to know of the port.
struct FlowLimits {
  uint32_t priorities = 0;        // 0: the device takes no rules
  uint16_t queues = 0;            // receive queues
  std::array<uint8_t, 40> key{};  // of rules that bring none
};

/// What rte_flow_error has; `error` is a positive errno.
struct FlowError {
  int error;
  rte_flow_error_type type;
  const void* cause;
  const char* message;  // what is accepted
};

template <class T>
using FlowResult = tl::expected<T, FlowError>;

/// Everything that a rule can be refused for without asking the device. ENOTSUP: a rule that
/// rte_flow has but this port has not; EINVAL: one that nobody could take.
FlowResult<Flow> translate_flow(const rte_flow_attr* attributes, const rte_flow_item* pattern,
                                const rte_flow_action* actions, const FlowLimits& limits);

}  // namespace nicmem::pmd

/// The program's handle.
struct rte_flow {
  nicmem::pmd::Flow flow;
  std::unique_ptr<nicmem::hca::Rule> rule;  // null while the port is stopped
  nicmem::hca::RuleCount offset{};          // to add to the device's count, modulo 2^64
};

namespace nicmem::pmd {

class FlowTable {
 public:
  bool isolated = false;  // rte_flow_isolate()

  size_t size() const { return flows_.size(); }
  bool full() const { return flows_.size() >= kMaxFlows; }
  /// Whether some rule marks or flags frames.
  bool marks() const;

  /// Also on the device, if the table is in force. On failure everything is as before.
  Result<rte_flow*> create(Flow flow);
  /// kNotFound: no rule of this table.
  Result<void> destroy(const rte_flow* flow);
  void flush() { flows_.clear(); }
  /// Since the rule was made or last reset, over stops of the port. kNotFound: no rule of this
  /// table; kInvalidArgument: it does not count.
  Result<hca::RuleCount> count(const rte_flow* flow, bool reset);

  /// Puts every rule in force on `port`, the oldest first; all or none. The queues live until
  /// stop(). kInvalidArgument: a rule names a queue that is not there.
  Result<void> start(hca::Port& port, std::vector<hca::ReceiveQueue*> queues);
  /// Takes them off the device; counts are kept.
  void stop();

 private:
  Result<void> put_in_force(rte_flow& flow);
  std::list<rte_flow>::iterator find(const rte_flow* flow);

  std::list<rte_flow> flows_;  // handles are addresses of its elements
  hca::Port* port_ = nullptr;  // null: stopped
  std::vector<hca::ReceiveQueue*> queues_;
};

int flow_ops_get(rte_eth_dev* dev, const rte_flow_ops** ops);

}  // namespace nicmem::pmd
