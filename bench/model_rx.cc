// SPDX-License-Identifier: BSD-3-Clause
// What receiving costs the model: a promiscuous port whose wire is the generator, split or whole
// buffers in host memory, one queue or several.
//
//   model_rx [SECONDS]        Mpps and ns a frame of step() alone, one line for each case
//   model_rx once CASE N      N frames of a case, for an instruction count:
//     valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=*step_model*'
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "model_bench.h"
#include "sim/generator.h"

namespace nicmem {
namespace {

constexpr uint32_t kDepth = 1024;
constexpr size_t kStride = 2048;

struct Case {
  const char* name;
  uint32_t frame_bytes, header_bytes, queues, flows;
};
constexpr std::array<Case, 6> kCases = {{
    {"64 B, split at 128", 60, 128, 1, 1},
    {"64 B, split at 18", 60, 18, 1, 1},
    {"64 B, 256 flows", 60, 128, 1, 256},
    {"64 B, 256 flows, 4 queues", 60, 128, 4, 256},
    {"1,500 B, split at 128", 1496, 128, 1, 1},
    {"1,500 B, 256 flows", 1496, 128, 1, 256},
}};

/// A queue whose work requests have two entries: a header of `header_bytes` and the rest.
class Queue {
 public:
  Queue(sim::Nic& nic, sim::Nic::Port& port, hca::Domain domain, uint32_t header_bytes)
      : buffers_(kDepth * kStride),
        header_bytes_(header_bytes),
        cq_(take(port.create_completion_queue({.depth = kDepth}))),
        rq_(take(port.create_receive_queue(domain, *cq_, {.depth = kDepth, .scatter_entries = 2}))),
        region_(take(nic.register_host_memory(domain, buffers_.data(), buffers_.size(),
                                              hca::Access::kReadWrite))) {
    post(kDepth);
  }
  hca::ReceiveQueue* rq() const { return rq_.get(); }

  /// Takes the completions and posts as many buffers again; returns how many.
  uint32_t work() {
    uint32_t taken = 0;
    while (hw::software_owns(hw::load_op_own(cq_->ring[consumed_ & (kDepth - 1)]), consumed_,
                             kDepth)) {
      NM_CHECK(!hw::is_error(cq_->ring[consumed_ & (kDepth - 1)].op_own));
      ++consumed_;
      ++taken;
    }
    cq_->consumer->publish<NM_CQ_CONSUMER_RELEASE>(consumed_ & 0xffffff);
    post(taken);
    return taken;
  }

 private:
  void post(uint32_t count) {
    for (; count > 0; --count) {
      const uint32_t slot = posted_++ & (kDepth - 1u);
      const uint64_t start = region_->address_of(buffers_.data() + slot * kStride);
      const hw::DataSegment list[] = {{be32(header_bytes_), be32(region_->key), be64(start)},
                                      {be32(static_cast<uint32_t>(kStride) - header_bytes_),
                                       be32(region_->key), be64(start + header_bytes_)}};
      std::memcpy(rq_->ring.data() + size_t{slot} * rq_->stride_bytes, list, sizeof list);
    }
    rq_->producer->publish<NM_RQ_RECORD_RELEASE>(posted_);
  }

  std::vector<std::byte> buffers_;
  uint32_t header_bytes_;
  std::unique_ptr<hca::CompletionQueue> cq_;
  std::unique_ptr<hca::ReceiveQueue> rq_;
  std::unique_ptr<hca::MemoryRegion> region_;
  uint16_t posted_ = 0;
  uint32_t consumed_ = 0;
};

class Bench {
 public:
  explicit Bench(const Case& c) {
    port_ = nic_->open_port(
        {}, take(sim::Generator::create({.frame_bytes = {c.frame_bytes}, .flows = c.flows})));
    std::vector<hca::ReceiveQueue*> table;
    for (uint32_t i = 0; i < c.queues; ++i) {
      queues_.push_back(std::make_unique<Queue>(*nic_, *port_, domain_, c.header_bytes));
      table.push_back(queues_.back()->rq());
    }
    hca::RssOptions rss{.table = table};
    for (size_t i = 0; i < rss.key.size(); ++i) rss.key[i] = static_cast<uint8_t>(i * 37 + 1);
    take(port_->steer({.promiscuous = true, .rss = rss}));
    take(port_->start());
  }

  /// One burst; returns the nanoseconds that the model took.
  uint64_t burst() {
    const auto start = std::chrono::steady_clock::now();
    NM_CHECK(step_model(*nic_, ++now_) == kBurst);
    const auto end = std::chrono::steady_clock::now();
    uint32_t taken = 0;
    for (const auto& queue : queues_) taken += queue->work();
    NM_CHECK(taken == kBurst);
    return static_cast<uint64_t>((end - start).count());
  }

 private:
  std::unique_ptr<sim::Nic> nic_ = take(sim::Nic::create({}));
  hca::Domain domain_ = take(nic_->create_domain());
  std::unique_ptr<sim::Nic::Port> port_;
  std::vector<std::unique_ptr<Queue>> queues_;
  Nanos now_ = 0;
};

}  // namespace
}  // namespace nicmem

int main(int argc, char** argv) {
  return nicmem::run_benchmark<nicmem::Bench>(nicmem::kCases, argc, argv);
}
