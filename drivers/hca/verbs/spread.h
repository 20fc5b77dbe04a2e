// SPDX-License-Identifier: BSD-3-Clause
// Where frames go that a rule takes: queue pairs without a ring of their own that spread them over
// receive queues. One hashes one kind of packet only, so a hash over all takes several, each with
// flows of its own. [facts: kernel, create_rss_raw_qp_tir; DPDK's mlx5 does the same]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "drivers/hca/verbs/handles.h"
#include "hca/steering.h"

namespace nicmem::hca_verbs {

/// Frames of one kind, or of any.
struct Destination {
  std::optional<hca::PacketKind> kind;
  ibv_qp* pair = nullptr;
  uint32_t rank = 0;  // among the flows of one rule: lower is looked at first
};
inline constexpr uint32_t kRanks = 3;  // with ports, with addresses, the rest

class Spread {
 public:
  /// The table must have entries. Receive queues outlive it.
  static Result<std::shared_ptr<Spread>> create(ibv_context* context,
                                                const hca::RssOptions& options);
  /// By rank. The last one takes any frame.
  const std::vector<Destination>& destinations() const { return destinations_; }

 private:
  Result<ibv_rwq_ind_table*> make_table(ibv_context* context, std::vector<ibv_wq*> queues);
  Result<void> add(ibv_context* context, std::optional<hca::PacketKind> kind, uint64_t fields,
                   ibv_rwq_ind_table* table, const hca::RssOptions& options);

  std::vector<Handle<ibv_rwq_ind_table>> tables_;
  std::vector<Handle<ibv_qp>> pairs_;  // behind the tables: they go first
  std::vector<Destination> destinations_;
};

}  // namespace nicmem::hca_verbs
