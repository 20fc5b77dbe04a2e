// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as work requests, on both rings of a modelled port with a real table of memory keys.
// The pages that requests may name have pages on both sides that may not be touched, and the rings
// are heap blocks of their exact size: whatever the engines read or write beyond what they have
// checked ends the program.
//
// Input: Head, then the send ring's bytes, then the receive ring's; what is missing is zero.
// Addresses and keys are the same in every run, so that a corpus can hold valid requests
// (make_corpus.py knows them).
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/endian.h"
#include "hca/hca.h"
#include "hw/doorbell.h"
#include "hw/order.h"
#include "hw/wqe.h"
#include "sim/nic.h"

namespace nicmem {
namespace {

constexpr uint32_t kSendBlocks = 16;
constexpr uint32_t kReceiveDepth = 16;
constexpr uint32_t kEntries = 4;
constexpr uintptr_t kHostAddress = 0x10000000;
constexpr size_t kPageBytes = 4096;

struct Head {
  uint8_t send_posted;     // blocks, modulo twice the ring
  uint8_t receive_posted;  // WQEs, modulo twice the ring
  uint8_t budget;          // of a step
  uint8_t flags;
  be16 frame_bytes;                          // of the frames that come in, modulo 2048
  be16 consumed;                             // completions that the driver claims to have taken
  static constexpr uint8_t kRepairSend = 1;  // indices and queue numbers are made right
  static constexpr uint8_t kLossless = 2;
  static constexpr uint8_t kSmallRoom = 4;  // the wire takes one frame at a time
};
static_assert(sizeof(Head) == 8 && alignof(Head) == 1);

/// Hands out frames of one length and reads every byte of those that it gets.
class FuzzWire final : public sim::Wire {
 public:
  size_t receive(std::span<sim::Frame> out, Nanos) override {
    const size_t count = std::min<size_t>(out.size(), frames_left);
    for (size_t i = 0; i < count; ++i) out[i] = sim::Frame(bytes_).first(frame_bytes);
    frames_left -= count;
    return count;
  }
  size_t room() override { return small_room ? 1 : 64; }
  size_t send(std::span<const sim::Frame> frames, Nanos) override {
    for (const sim::Frame frame : frames) {
      NM_CHECK(frame.size() >= 14 && frame.size() <= sim::kDefaultMaxFrameBytes);
      for (const std::byte byte : frame) sum_ += static_cast<uint8_t>(byte);
    }
    return frames.size();
  }
  bool lossless() const override { return waits; }

  size_t frames_left = 0;
  size_t frame_bytes = 0;
  bool waits = false;
  bool small_room = false;

 private:
  std::array<std::byte, 2048> bytes_{};
  uint64_t sum_ = 0;
};

template <class T>
T take(Result<T> result) {
  NM_CHECK(result.has_value());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A page at a fixed address between two that allow no access.
std::byte* guarded_page(uintptr_t address) {
  std::byte* const start = reinterpret_cast<std::byte*>(address) - kPageBytes;
  void* const got = mmap(start, 3 * kPageBytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  NM_CHECK(got == start);
  NM_CHECK(mprotect(start + kPageBytes, kPageBytes, PROT_READ | PROT_WRITE) == 0);
  return start + kPageBytes;
}

/// What lives as long as the program: made once, for it is slow.
class Device {
 public:
  Device() {
    auto owned = std::make_unique<FuzzWire>();
    wire = owned.get();
    port_ = nic_->open_port({}, std::move(owned));
    receive_cq_ = take(port_->create_completion_queue({.depth = 64}));
    receive = take(port_->create_receive_queue(
        domain_, *receive_cq_, {.depth = kReceiveDepth, .scatter_entries = kEntries}));
    send_cq_ = take(port_->create_completion_queue({.depth = 64}));
    send = take(port_->create_send_queue(domain_, *send_cq_, kSendBlocks));
    take(port_->steer({.promiscuous = true, .rss = {.table = std::array{receive.get()}}}));
    take(port_->start());
  }

  void reset() {
    take(send->reset());
    take(receive->reset());
  }
  void step(uint32_t budget) { nic_->step(++now_, budget); }
  void consume(uint16_t completions) {
    for (hca::CompletionQueue* cq : {send_cq_.get(), receive_cq_.get()}) {
      cq->consumer->publish<NM_CQ_CONSUMER_RELEASE>(completions);
    }
  }

  FuzzWire* wire = nullptr;
  std::unique_ptr<hca::ReceiveQueue> receive;
  std::unique_ptr<hca::SendQueue> send;

 private:
  using Regions = std::unique_ptr<hca::MemoryRegion>;
  std::unique_ptr<sim::Nic> nic_ = take(sim::Nic::create({.sram_bytes = kPageBytes}));
  hca::Domain domain_ = take(nic_->create_domain());
  hca::Domain foreign_ = take(nic_->create_domain());
  std::byte* host_ = guarded_page(kHostAddress);
  std::byte* constant_ = guarded_page(kHostAddress + 4 * kPageBytes);
  std::unique_ptr<hca::DeviceMemory> card_ = take(nic_->allocate_device_memory(kPageBytes));
  // Keys 0x001, 0x101, 0x201, 0x301, in this order.
  Regions host_region_ =
      take(nic_->register_host_memory(domain_, host_, kPageBytes, hca::Access::kReadWrite));
  Regions card_region_ =
      take(nic_->register_device_memory(domain_, *card_, 0, kPageBytes, hca::Access::kReadWrite));
  Regions constant_region_ =
      take(nic_->register_host_memory(domain_, constant_, kPageBytes, hca::Access::kRead));
  Regions foreign_region_ =
      take(nic_->register_host_memory(foreign_, host_, kPageBytes, hca::Access::kReadWrite));
  std::unique_ptr<sim::Nic::Port> port_;
  std::unique_ptr<hca::CompletionQueue> receive_cq_, send_cq_;
  Nanos now_ = 0;
};

/// Makes what only says where a request lies right in each, so that mutation gets past it.
void repair(hca::SendQueue& queue, uint32_t posted) {
  for (uint32_t block = 0; block < std::min(posted, kSendBlocks);) {
    auto& control = *view_as<hw::ControlSegment>(queue.ring.subspan(block * hw::kWqeBlockBytes));
    const uint32_t first = control.opmod_index_opcode.get();
    const uint32_t second = control.qpn_ds.get();
    control.opmod_index_opcode.set(hw::ControlSegment::Index::set(first, block));
    control.qpn_ds.set(hw::ControlSegment::QueueNumber::set(second, queue.number));
    block += std::max(1u, hw::send_wqe_blocks(hw::ControlSegment::Segments::get(second)));
  }
}

/// Fills `ring` from the front of `input`; returns the rest of that.
std::span<const std::byte> fill(std::span<std::byte> ring, std::span<const std::byte> input) {
  const size_t given = std::min(ring.size(), input.size());
  std::memset(ring.data(), 0, ring.size());
  if (given > 0) std::memcpy(ring.data(), input.data(), given);
  return input.subspan(given);
}

void run(Device& device, std::span<const std::byte> input) {
  Head head{};
  if (const auto* given = view_as<Head>(input)) {
    head = *given;
    input = input.subspan(sizeof head);
  }
  device.reset();
  input = fill(device.send->ring, input);
  fill(device.receive->ring, input);
  const uint32_t posted = head.send_posted % (2 * kSendBlocks);
  if ((head.flags & Head::kRepairSend) != 0) repair(*device.send, posted);
  device.wire->frames_left = 4;
  device.wire->frame_bytes = head.frame_bytes.get() % 2048;
  device.wire->waits = (head.flags & Head::kLossless) != 0;
  device.wire->small_room = (head.flags & Head::kSmallRoom) != 0;
  device.consume(head.consumed.get());
  device.receive->producer->publish<NM_RQ_RECORD_RELEASE>(head.receive_posted %
                                                          (2 * kReceiveDepth));
  device.send->producer->publish<NM_SQ_RECORD_RELEASE>(posted);
  const uint64_t any = ~uint64_t{0};
  device.send->doorbell->ring(&any);
  for (int i = 0; i < 4; ++i) device.step(1u + head.budget % 64);
}

}  // namespace
}  // namespace nicmem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static nicmem::Device& device = *new nicmem::Device;  // its end is the program's
  nicmem::run(device, std::as_bytes(std::span(data, size)));
  return 0;
}
