// SPDX-License-Identifier: BSD-3-Clause
// Verbs objects that free themselves, and verbs errors as ours. Two conventions meet here: calls
// that return a pointer set errno, calls that return an int return it.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace nicmem::hca_verbs {

/// That `what` failed with the errno `error`, and how it is put right where that is known.
tl::unexpected<Error> verbs_error(const std::string& what, int error);

/// Of calls that return an errno, now and then negated. [rdma-core, mlx5_modify_wq]
Result<void> check(const std::string& what, int error);

/// An object that cannot be destroyed stays until its context is closed, and is spoken of once.
struct Destroy {
  void operator()(ibv_context* context) const;
  void operator()(ibv_pd* domain) const;
  void operator()(ibv_dm* memory) const;
  void operator()(ibv_mr* region) const;
  void operator()(ibv_cq* queue) const;
  void operator()(ibv_wq* queue) const;
  void operator()(ibv_rwq_ind_table* table) const;
  void operator()(ibv_qp* pair) const;
  void operator()(ibv_flow* flow) const;
  void operator()(ibv_counters* counters) const;
  void operator()(mlx5dv_flow_matcher* matcher) const;
};

template <class Object>
using Handle = std::unique_ptr<Object, Destroy>;

/// Takes what a call has made: null is its failure, and errno says why.
template <class Object>
Result<Handle<Object>> own(const std::string& what, Object* made) {
  if (made == nullptr) return verbs_error(what, errno);
  return Handle<Object>(made);
}

}  // namespace nicmem::hca_verbs
