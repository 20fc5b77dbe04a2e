// SPDX-License-Identifier: BSD-3-Clause
// What sending costs the model: one send queue, split frames (header inlined, one pointer) or whole
// ones, into a sink, the generator, or a cable whose other end reads nothing but lengths.
//
//   model_tx [SECONDS]        Mpps and ns a frame of step() alone, one line for each case
//   model_tx once CASE N      N frames of a case, for an instruction count:
//     valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=*step_model*'
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/order.h"
#include "hw/wqe.h"
#include "model_bench.h"
#include "sim/cable.h"
#include "sim/generator.h"

namespace nicmem {
namespace {

constexpr uint32_t kDepth = 1024;  // blocks
constexpr size_t kStride = 2048;

struct Case {
  const char* name;
  const char* wire;
  uint32_t frame_bytes, inlined;
  uint8_t checksum_flags;
};
constexpr std::array<Case, 9> kCases = {{
    {"sink 64 B, 18 inlined", "sink", 60, 18, 0},
    {"sink 64 B, all inlined but 4", "sink", 60, 56, 0},
    {"sink 64 B, pointer only", "sink", 60, 0, 0},
    {"sink 1,500 B, 64 inlined", "sink", 1496, 64, 0},
    {"sink 1,500 B, 64 inlined, checksums", "sink", 1496, 64, 0xc0},
    {"generator 64 B, 18 inlined", "gen", 60, 18, 0},
    {"generator 1,500 B, 64 inlined", "gen", 1496, 64, 0},
    {"cable 64 B, 18 inlined", "cable", 60, 18, 0},
    {"cable 1,500 B, 64 inlined", "cable", 1496, 64, 0},
}};

class Sink final : public sim::Wire {
 public:
  size_t receive(std::span<sim::Frame>, Nanos) override { return 0; }
  size_t room() override { return ~size_t{0}; }
  size_t send(std::span<const sim::Frame> frames, Nanos) override { return frames.size(); }
  bool lossless() const override { return true; }
};

class Bench {
 public:
  explicit Bench(const Case& c) : case_(c), payload_(kDepth * kStride) {
    std::unique_ptr<sim::Wire> wire = std::make_unique<Sink>();
    if (c.wire == std::string("gen")) wire = take(sim::Generator::create({.rate = 1}));
    if (c.wire == std::string("cable")) std::tie(wire, other_) = sim::make_cable();
    port_ = nic_->open_port({}, std::move(wire));
    cq_ = take(port_->create_completion_queue({.depth = 256}));
    sq_ = take(port_->create_send_queue(domain_, *cq_, kDepth));
    region_ = take(nic_->register_host_memory(domain_, payload_.data(), payload_.size(),
                                              hca::Access::kReadWrite));
    take(port_->set_max_frame(1518));
    take(port_->start());
  }

  /// One burst; returns the nanoseconds that the model took.
  uint64_t burst() {
    post();
    const auto start = std::chrono::steady_clock::now();
    NM_CHECK(step_model(*nic_, ++now_) == kBurst);
    const auto end = std::chrono::steady_clock::now();
    take_completions();
    if (other_ != nullptr) {
      std::array<sim::Frame, 64> frames;
      while (other_->receive(frames, now_) > 0) {
      }
    }
    return static_cast<uint64_t>((end - start).count());
  }

 private:
  void post() {
    const uint32_t segments = hw::send_wqe_segments(case_.inlined, 1);
    const uint32_t blocks = hw::send_wqe_blocks(segments);
    std::array<std::byte, 1024> wqe{};
    const std::byte* last = nullptr;
    for (uint32_t i = 0; i < kBurst; ++i) {
      auto& control = *view_as<hw::ControlSegment>(std::span<std::byte>(wqe));
      control.opmod_index_opcode.set(uint32_t{posted_} << 8 |
                                     static_cast<uint32_t>(hw::SendOpcode::kSend));
      control.qpn_ds.set(sq_->number << 8 | segments);
      control.fm_ce_se = hw::ControlSegment::Completion::set(
          0, i + 1 == kBurst ? hw::ControlSegment::kCompleteAlways
                             : hw::ControlSegment::kCompleteOnFirstError);
      auto& eth = *view_as<hw::EthSegment>(std::span<std::byte>(wqe).subspan(16));
      eth.checksum_flags = case_.checksum_flags;
      eth.inline_bytes.set(static_cast<uint16_t>(case_.inlined));
      const uint32_t slot = next_slot_++ % kDepth;
      const hw::DataSegment pointer{be32(case_.frame_bytes - case_.inlined), be32(region_->key),
                                    be64(region_->address_of(payload_.data() + slot * kStride))};
      std::memcpy(wqe.data() + (segments - 1) * hw::kWqeSegmentBytes, &pointer, sizeof pointer);
      for (uint32_t b = 0; b < blocks; ++b) {
        std::byte* block = sq_->ring.data() + size_t{posted_ & (kDepth - 1u)} * hw::kWqeBlockBytes;
        std::memcpy(block, wqe.data() + b * hw::kWqeBlockBytes, hw::kWqeBlockBytes);
        if (b == 0) last = block;
        ++posted_;
      }
    }
    sq_->producer->publish<NM_SQ_RECORD_RELEASE>(posted_);
    hw::flush_wc();
    sq_->doorbell->ring(last);
  }

  void take_completions() {
    while (hw::software_owns(hw::load_op_own(cq_->ring[consumed_ & 255]), consumed_, 256)) {
      NM_CHECK(!hw::is_error(cq_->ring[consumed_ & 255].op_own));
      ++consumed_;
    }
    cq_->consumer->publish<NM_CQ_CONSUMER_RELEASE>(consumed_ & 0xffffff);
  }

  Case case_;
  std::vector<std::byte> payload_;
  std::unique_ptr<sim::Nic> nic_ = take(sim::Nic::create({}));
  hca::Domain domain_ = take(nic_->create_domain());
  std::unique_ptr<sim::Wire> other_;
  std::unique_ptr<sim::Nic::Port> port_;
  std::unique_ptr<hca::CompletionQueue> cq_;
  std::unique_ptr<hca::SendQueue> sq_;
  std::unique_ptr<hca::MemoryRegion> region_;
  uint16_t posted_ = 0;
  uint32_t next_slot_ = 0;
  uint32_t consumed_ = 0;
  Nanos now_ = 0;
};

}  // namespace
}  // namespace nicmem

int main(int argc, char** argv) {
  return nicmem::run_benchmark<nicmem::Bench>(nicmem::kCases, argc, argv);
}
