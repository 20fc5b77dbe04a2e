// SPDX-License-Identifier: BSD-3-Clause
// One modelled Ethernet port: a wire, two engines, and the queues that they serve.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hca/hca.h"
#include "sim/event_box.h"
#include "sim/gate.h"
#include "sim/link.h"
#include "sim/port_core.h"
#include "sim/queues.h"
#include "sim/rule.h"
#include "sim/rx_engine.h"
#include "sim/steering_options.h"
#include "sim/tx_engine.h"

namespace nicmem::sim {

inline constexpr uint32_t kMaxScatterEntries = 32;
inline constexpr uint32_t kMaxQueues = 64;
inline constexpr uint32_t kLinkMbps = 100'000;

/// What a port needs of its device. Called under the gate.
class PortHost {
 public:
  virtual ~PortHost() = default;
  virtual bool has(hca::Domain domain) const = 0;
  virtual uint32_t next_queue_number() = 0;
  virtual void forget(hca::Port& port) = 0;
  virtual EventBox& events() = 0;
  /// Whether the device carries a control call out; `what` names it.
  virtual Result<void> admit(const char* what) = 0;
  virtual Result<QueueMemory> queue_memory(QueueKind kind, size_t ring_bytes) = 0;
};

/// Control calls from any one thread at a time; run() from the thread that steps the device.
template <Bus B>
class BasicPort final : public hca::Port, private QueueHost {
 public:
  BasicPort(Gate& gate, PortHost& host, const MrTable& regions, const hca::PortOptions& options,
            std::unique_ptr<Wire> wire, const PortTraits& traits = {})
      : gate_(gate),
        host_(host),
        on_event_(options.on_event),
        core_{.regions = regions,
              .wire = std::make_unique<Link>(std::move(wire)),
              .header_bytes = options.header_bytes,
              .traits = traits},
        link_(static_cast<Link&>(*core_.wire)),
        rx_(core_),
        tx_(core_) {}
  /// The port's queues and rules must be gone.
  ~BasicPort() override {
    host_.events().forget(*this);
    const Gate::Control control(gate_);
    NM_CHECK(completion_rings_.empty() && !rx_.steering().has_rules());
    host_.forget(*this);
  }

  Result<std::unique_ptr<hca::CompletionQueue>> create_completion_queue(
      const hca::CompletionOptions& options) override {
    NM_TRY_VOID(check_depth("completion queue", options.depth));
    if (options.inline_bytes != 0) {
      return nicmem::fail(Code::kUnsupported, "completion queue: inlining is not modelled yet");
    }
    const Gate::Control control(gate_);
    NM_TRY_VOID(admit("completion queue"));
    NM_TRY(QueueMemory memory,
           host_.queue_memory(QueueKind::kCompletion, size_t{options.depth} * sizeof(hw::Cqe)));
    QueueHost& host = *this;
    auto queue = std::make_unique<SimCompletionQueue>(gate_, host, std::move(memory), options.depth,
                                                      host_.next_queue_number());
    completion_rings_.push_back(&queue->device());
    watch("cq", *queue, std::as_bytes(queue->ring), sizeof(hw::Cqe), queue->consumer);
    return queue;
  }

  Result<std::unique_ptr<hca::ReceiveQueue>> create_receive_queue(
      hca::Domain domain, hca::CompletionQueue& cq, const hca::ReceiveOptions& options) override {
    NM_TRY_VOID(check_depth("receive queue", options.depth));
    if (options.scatter_entries == 0 || options.scatter_entries > kMaxScatterEntries) {
      return nicmem::fail(Code::kInvalidArgument,
                          "receive queue: " + std::to_string(options.scatter_entries) +
                              " scatter entries, accepted: 1 to " +
                              std::to_string(kMaxScatterEntries));
    }
    const Gate::Control control(gate_);
    NM_TRY(CompletionRing * ring, ring_of(cq, domain));
    if (receive_queues_.size() >= kMaxQueues) return too_many("receive");
    NM_TRY(ReceiveRing * primary, primary_of(options, *ring));
    NM_TRY_VOID(admit("receive queue"));
    const size_t bytes = size_t{options.depth} * hw::receive_wqe_stride(options.scatter_entries);
    NM_TRY(QueueMemory memory, host_.queue_memory(QueueKind::kReceive, bytes));
    QueueHost& host = *this;
    auto queue = std::make_unique<SimReceiveQueue>(gate_, host, std::move(memory), domain, *ring,
                                                   options, host_.next_queue_number());
    receive_queues_.push_back({queue.get(), &queue->device()});
    if (primary != nullptr) {
      queue->device().primary = primary;
      primary->secondary = &queue->device();
    }
    watch("rq", *queue, queue->ring, queue->stride_bytes, queue->producer);
    return queue;
  }

  Result<std::unique_ptr<hca::SendQueue>> create_send_queue(hca::Domain domain,
                                                            hca::CompletionQueue& cq,
                                                            uint32_t depth_blocks) override {
    NM_TRY_VOID(check_depth("send queue", depth_blocks));
    const Gate::Control control(gate_);
    NM_TRY(CompletionRing * ring, ring_of(cq, domain));
    if (send_queues_ >= kMaxQueues) return too_many("send");
    NM_TRY_VOID(admit("send queue"));
    NM_TRY(QueueMemory memory,
           host_.queue_memory(QueueKind::kSend, size_t{depth_blocks} * hw::kWqeBlockBytes));
    QueueHost& host = *this;
    auto queue = std::make_unique<SimSendQueue>(gate_, host, std::move(memory), domain, *ring,
                                                depth_blocks, host_.next_queue_number());
    tx_.add(queue->device());
    watch("sq", *queue, queue->ring, hw::kWqeBlockBytes, queue->producer);
    ++send_queues_;
    return queue;
  }

  Result<void> steer(const hca::SteeringOptions& options) override {
    NM_TRY_VOID(check(options.rss));
    const Gate::Control control(gate_);
    NM_TRY(Spread spread, spread_of(options.rss));
    rx_.steering().set_defaults(DefaultRules(options, std::move(spread)));
    return {};
  }

  /// Destroying a queue that a rule uses is a bug of the caller: NM_CHECK.
  Result<std::unique_ptr<hca::Rule>> create_rule(const hca::RuleOptions& options) override {
    NM_TRY_VOID(check(options, core_.traits.rule_priorities));
    const Gate::Control control(gate_);
    RuleEntry entry{.match = options.match, .priority = options.priority, .tag = options.tag};
    if (!options.drop) {
      NM_TRY(entry.spread, spread_of(options.rss));
    }
    return std::make_unique<SimRule>(gate_, rx_.steering(), std::move(entry), options.count);
  }

  Result<void> set_link(bool up) override {
    const Gate::Control control(gate_);
    link_.set_link(up);
    return {};
  }

  Result<void> set_max_frame(uint32_t bytes) override {
    if (bytes < 60 || bytes > kMaxFrameBytes) {
      return nicmem::fail(Code::kInvalidArgument, "largest frame: " + std::to_string(bytes) +
                                                      " bytes, accepted: 60 to " +
                                                      std::to_string(kMaxFrameBytes));
    }
    const Gate::Control control(gate_);
    core_.max_frame_bytes = bytes;
    return {};
  }

  Result<void> start() override {
    const Gate::Control control(gate_);
    started_ = true;
    link_.look();
    return {};
  }

  /// What was posted for sending goes out as far as the wire takes it; frames from the wire wait.
  void stop() override {
    const Gate::Control control(gate_);
    if (!started_) return;
    while (!broken_ && tx_.run(now_, hw::kMaxQueueDepth) > 0) {
    }
    if constexpr (B::kCanFail) hand_over_late(kFailed - 1);
    started_ = false;
  }

  hca::LinkState link() const override {
    const Gate::Control control(gate_);
    return {.up = started_ && link_.carrier(), .speed_mbps = kLinkMbps};
  }

  hca::PortCounters counters() const override {
    const Gate::Control control(gate_);
    hca::PortCounters counters = core_.counters;
    counters.generated = core_.wire->generated();
    counters.wire_held = core_.wire->held() + rx_.held();
    return counters;
  }

  hw::PcieTally pcie() const override {
    const Gate::Control control(gate_);
    return core_.bus.tally();
  }

  size_t last_sent(std::span<std::byte> out) const override {
    const Gate::Control control(gate_);
    const Frame frame = tx_.last_sent();
    std::copy_n(frame.begin(), std::min(out.size(), frame.size()), out.begin());
    return frame.size();
  }

  /// To be used when nothing steps the device.
  const B& bus() const { return core_.bus; }
  B& bus() { return core_.bus; }

  /// Under the gate. From now on no queue of the port moves, for good.
  void break_down(hca::PortEvent why) {
    broken_ = true;
    host_.events().post(*this, on_event_, why);
  }
  /// Under the gate. Moves at most `budget` frames each way; returns how many.
  size_t run(Nanos now, uint32_t budget) {
    now_ = now;
    if (!started_ || broken_) return 0;
    if (link_.look()) host_.events().post(*this, on_event_, hca::PortEvent::kLinkChanged);
    if constexpr (B::kCanFail) hand_over_late(now);
    if (core_.traits.flush_receives) [[unlikely]] {
      for (const Receiver& receiver : receive_queues_) rx_.flush(*receiver.ring, now);
    }
    const size_t sent = tx_.run(now, budget);
    return sent + (link_.up() ? rx_.run(now, budget) : 0);
  }

 private:
  struct Receiver {
    const hca::ReceiveQueue* queue;
    ReceiveRing* ring;
  };

  static Result<void> check_depth(const char* what, uint32_t depth) {
    if (std::has_single_bit(depth) && depth <= hw::kMaxQueueDepth) return {};
    return nicmem::fail(Code::kInvalidArgument, std::string(what) + ": depth " +
                                                    std::to_string(depth) +
                                                    ", accepted: powers of two up to " +
                                                    std::to_string(hw::kMaxQueueDepth));
  }

  static tl::unexpected<Error> too_many(const char* direction) {
    return nicmem::fail(Code::kExhausted, std::string(direction) + " queues: the port has " +
                                              std::to_string(kMaxQueues));
  }

  /// The device's side of `cq`, if that and `domain` are this port's and its device's.
  Result<CompletionRing*> ring_of(hca::CompletionQueue& cq, hca::Domain domain) {
    if (!host_.has(domain)) {
      return nicmem::fail(Code::kNotFound, "queue: protection domain " +
                                               std::to_string(static_cast<uint32_t>(domain)) +
                                               " does not exist");
    }
    for (CompletionRing* ring : completion_rings_) {
      if (ring->serves(cq)) return ring;
    }
    return nicmem::fail(
        Code::kInvalidArgument,
        "queue: completion queue " + std::to_string(cq.number) + " is not this port's");
  }

  /// The ring that a new one stands in for; null: none is asked for.
  Result<ReceiveRing*> primary_of(const hca::ReceiveOptions& options, const CompletionRing& cq) {
    if (options.primary == nullptr) return nullptr;
    const auto at = std::ranges::find(receive_queues_, options.primary, &Receiver::queue);
    if (at == receive_queues_.end() || at->ring->completions != &cq ||
        at->ring->primary != nullptr || at->ring->secondary != nullptr) {
      return nicmem::fail(Code::kInvalidArgument,
                          "receive queue: its primary: accepted: a receive queue of this port that "
                          "completes into the same queue and is in no other pair");
    }
    return at->ring;
  }

  /// The device's side of `options.table`.
  Result<Spread> spread_of(const hca::RssOptions& options) {
    std::vector<ReceiveRing*> rings;
    for (const hca::ReceiveQueue* queue : options.table) {
      const auto at = std::ranges::find(receive_queues_, queue, &Receiver::queue);
      if (at == receive_queues_.end()) {
        return nicmem::fail(Code::kInvalidArgument, "RSS table: entry " +
                                                        std::to_string(rings.size()) +
                                                        " is no receive queue of this port");
      }
      rings.push_back(at->ring);
    }
    return Spread(options, std::move(rings));
  }

  Result<void> admit(const char* what) override { return host_.admit(what); }

  void hand_over_late(Nanos now) {
    for (CompletionRing* ring : completion_rings_) ring->hand_over_late(now);
  }

  /// Tells a bus that keeps a log what lies where.
  template <class Queue>
  void watch(const char* kind, const Queue& queue, std::span<const std::byte> ring,
             size_t stride_bytes, const void* record) {
    if constexpr (requires { core_.bus.watch({}); }) {
      core_.bus.watch({.kind = kind,
                       .number = queue.number,
                       .start = ring.data(),
                       .bytes = ring.size(),
                       .stride_bytes = static_cast<uint32_t>(stride_bytes),
                       .record = record});
    }
  }

  void forget(CompletionRing& ring) override { std::erase(completion_rings_, &ring); }
  void forget(ReceiveRing& ring) override {
    if (ring.primary != nullptr) ring.primary->secondary = nullptr;
    if (ring.secondary != nullptr) ring.secondary->primary = nullptr;
    std::erase_if(receive_queues_, [&](const Receiver& r) { return r.ring == &ring; });
    rx_.steering().forget(ring);
  }
  void forget(SendRing& ring) override {
    tx_.remove(ring);
    --send_queues_;
  }

  Gate& gate_;
  PortHost& host_;
  std::function<void(hca::PortEvent)> on_event_;
  PortCore<B> core_;
  Link& link_;  // core_.wire
  RxEngine<B> rx_;
  TxEngine<B> tx_;
  std::vector<CompletionRing*> completion_rings_;
  std::vector<Receiver> receive_queues_;
  uint32_t send_queues_ = 0;
  bool started_ = false;
  bool broken_ = false;
  Nanos now_ = 0;  // of the last run()
};

}  // namespace nicmem::sim
