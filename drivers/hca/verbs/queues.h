// SPDX-License-Identifier: BSD-3-Clause
// Completion, receive and send queues, whose rings, records and registers libmlx5 shows
// (mlx5dv_init_obj). The library itself never polls or posts: completions that it would clean up
// at a reset it leaves alone then (MLX5_CQ_FLAGS_DV_OWNED).
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/hca/verbs/handles.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

class VerbsCompletionQueue final : public hca::CompletionQueue {
 public:
  static Result<std::unique_ptr<VerbsCompletionQueue>> create(
      ibv_context* context, const hca::CompletionOptions& options);
  ibv_cq* verbs() const { return queue_.get(); }

 private:
  explicit VerbsCompletionQueue(Handle<ibv_cq> queue) : queue_(std::move(queue)) {}
  Result<void> show(uint32_t wanted);

  Handle<ibv_cq> queue_;
};

/// Ready to receive from the start.
class VerbsReceiveQueue final : public hca::ReceiveQueue {
 public:
  static Result<std::unique_ptr<VerbsReceiveQueue>> create(ibv_context* context, ibv_pd* domain,
                                                           const VerbsCompletionQueue& cq,
                                                           const hca::ReceiveOptions& options);
  Result<void> reset() override;
  Result<void> stop() override;
  Result<void> strip_vlan(bool strip) override;
  ibv_wq* verbs() const { return queue_.get(); }

 private:
  explicit VerbsReceiveQueue(Handle<ibv_wq> queue) : queue_(std::move(queue)) {}
  Result<void> show(const hca::ReceiveOptions& wanted);
  Result<void> change(ibv_wq_state state, const char* what);

  Handle<ibv_wq> queue_;
};

/// Ready to send from the start.
class VerbsSendQueue final : public hca::SendQueue {
 public:
  static Result<std::unique_ptr<VerbsSendQueue>> create(ibv_context* context, ibv_pd* domain,
                                                        const VerbsCompletionQueue& cq,
                                                        uint32_t depth_blocks);
  Result<void> reset() override;
  Result<void> stop() override;

 private:
  explicit VerbsSendQueue(Handle<ibv_qp> pair) : pair_(std::move(pair)) {}
  Result<void> show(uint32_t wanted);
  Result<void> make_ready();
  Result<void> change(ibv_qp_state state, int more, const char* what);

  Handle<ibv_qp> pair_;
};

}  // namespace nicmem::hca_verbs
