// SPDX-License-Identifier: BSD-3-Clause
// The control path's queue objects: they own the memory that driver and device share, and the
// device's side of it. Not templates: what a port does with them is behind QueueHost. Beyond what
// lib/hca asks for they have the states of verbs: a queue's completions outlive its reset there.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "hca/hca.h"
#include "hw/wqe.h"
#include "sim/gate.h"
#include "sim/queue_memory.h"
#include "sim/rings.h"

namespace nicmem::sim {

/// The port, as its queues see it. Called under the gate.
class QueueHost {
 public:
  virtual ~QueueHost() = default;
  virtual void forget(CompletionRing& ring) = 0;
  virtual void forget(ReceiveRing& ring) = 0;
  virtual void forget(SendRing& ring) = 0;
  /// Whether the device carries a control call out; `what` names it.
  virtual Result<void> admit(const char* what) = 0;
};

class SimCompletionQueue final : public hca::CompletionQueue {
 public:
  SimCompletionQueue(Gate& gate, QueueHost& host, QueueMemory memory, uint32_t queue_depth,
                     uint32_t queue_number)
      : gate_(gate), host_(host), memory_(std::move(memory)) {
    ring = {reinterpret_cast<hw::Cqe*>(memory_.ring), queue_depth};
    depth = queue_depth;
    consumer = memory_.record;
    number = queue_number;
    device_ = std::make_unique<CompletionRing>(ring, *consumer);
  }
  /// The queues that complete here must be gone.
  ~SimCompletionQueue() override {
    const Gate::Control control(gate_);
    NM_CHECK(device_->queues == 0);
    host_.forget(*device_);
  }
  CompletionRing& device() { return *device_; }

 private:
  Gate& gate_;
  QueueHost& host_;
  QueueMemory memory_;
  std::unique_ptr<CompletionRing> device_;
};

/// Fills what a receive and a send ring have in common.
inline void set_up(WorkRing& device, std::byte* ring, hw::DoorbellRecord& record,
                   CompletionRing& completions, hca::Domain domain, uint32_t number) {
  device.ring = ring;
  device.record = &record;
  device.completions = &completions;
  device.domain = domain;
  device.number = number;
  ++completions.queues;
}

class SimReceiveQueue final : public hca::ReceiveQueue {
 public:
  SimReceiveQueue(Gate& gate, QueueHost& host, QueueMemory memory, hca::Domain domain,
                  CompletionRing& completions, const hca::ReceiveOptions& options,
                  uint32_t queue_number)
      : gate_(gate), host_(host), memory_(std::move(memory)) {
    depth = options.depth;
    stride_bytes = hw::receive_wqe_stride(options.scatter_entries);
    ring = {memory_.ring, size_t{depth} * stride_bytes};
    producer = memory_.record;
    number = queue_number;
    device_.depth = depth;
    device_.stride_bytes = stride_bytes;
    device_.user_index = options.user_index;
    set_up(device_, memory_.ring, *producer, completions, domain, number);
  }
  ~SimReceiveQueue() override {
    const Gate::Control control(gate_);
    host_.forget(device_);
    --device_.completions->queues;
  }
  /// Starts the completion ring anew too: all queues that share one must be reset together.
  Result<void> reset() override {
    const Gate::Control control(gate_);
    NM_TRY_VOID(host_.admit("receive queue reset"));
    device_.reset();
    device_.completions->reset();
    return {};
  }
  /// As reset(), but what was completed stays, and the completion ring goes on.
  Result<void> restart() {
    const Gate::Control control(gate_);
    NM_TRY_VOID(host_.admit("receive queue restart"));
    device_.reset();
    return {};
  }
  /// Puts the queue into error, as a work request that failed does.
  void set_error() {
    const Gate::Control control(gate_);
    device_.in_error = true;
  }
  bool in_error() const {
    const Gate::Control control(gate_);
    return device_.in_error;
  }
  Result<void> stop() override {
    const Gate::Control control(gate_);
    device_.stopped = true;
    return {};
  }
  Result<void> strip_vlan(bool strip) override {
    const Gate::Control control(gate_);
    device_.strip_vlan = strip;
    return {};
  }
  ReceiveRing& device() { return device_; }

 private:
  Gate& gate_;
  QueueHost& host_;
  QueueMemory memory_;
  ReceiveRing device_;
};

class SimSendQueue final : public hca::SendQueue {
 public:
  SimSendQueue(Gate& gate, QueueHost& host, QueueMemory memory, hca::Domain domain,
               CompletionRing& completions, uint32_t depth_blocks, uint32_t queue_number)
      : gate_(gate), host_(host), memory_(std::move(memory)) {
    ring = {memory_.ring, size_t{depth_blocks} * hw::kWqeBlockBytes};
    depth = depth_blocks;
    producer = memory_.record;
    doorbell = memory_.doorbell;
    number = queue_number;
    device_.depth = depth;
    device_.stride_bytes = hw::kWqeBlockBytes;
    device_.doorbell = doorbell;
    set_up(device_, memory_.ring, *producer, completions, domain, number);
  }
  ~SimSendQueue() override {
    const Gate::Control control(gate_);
    host_.forget(device_);
    --device_.completions->queues;
  }
  /// As SimReceiveQueue::reset().
  Result<void> reset() override {
    const Gate::Control control(gate_);
    NM_TRY_VOID(host_.admit("send queue reset"));
    device_.reset();
    device_.completions->reset();
    return {};
  }
  /// As reset(), but what was completed stays, and the completion ring goes on.
  Result<void> restart() {
    const Gate::Control control(gate_);
    NM_TRY_VOID(host_.admit("send queue restart"));
    device_.reset();
    return {};
  }
  /// Puts the queue into error, as a work request that failed does.
  void set_error() {
    const Gate::Control control(gate_);
    device_.in_error = true;
  }
  bool in_error() const {
    const Gate::Control control(gate_);
    return device_.in_error;
  }
  Result<void> stop() override {
    const Gate::Control control(gate_);
    device_.stopped = true;
    return {};
  }
  /// Takes back stop(): what has been posted is executed.
  void go() {
    const Gate::Control control(gate_);
    device_.stopped = false;
  }
  SendRing& device() { return device_; }

 private:
  Gate& gate_;
  QueueHost& host_;
  QueueMemory memory_;
  SendRing device_;
};

}  // namespace nicmem::sim
