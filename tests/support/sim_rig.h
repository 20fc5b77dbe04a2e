// SPDX-License-Identifier: BSD-3-Clause
// A driver of a few lines and a wire that a test writes to and reads from, to try the NIC model at
// the level of work requests and completions.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "hca/hca.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/wqe.h"
#include "sim/nic.h"

namespace nicmem::test {

using Bytes = std::vector<std::byte>;

/// Fails the test when there is an error.
template <class T>
T ok(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().what;
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// `size` bytes that depend on `tag`.
inline Bytes pattern(size_t size, uint32_t tag = 0) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + tag * 7 + (i >> 8));
  return bytes;
}

/// Hands out `inbox`, collects `outbox`.
class ScriptedWire final : public sim::Wire {
 public:
  size_t receive(std::span<sim::Frame> out, Nanos) override {
    current_.clear();
    while (current_.size() < out.size() && !inbox.empty()) {
      current_.push_back(std::move(inbox.front()));
      inbox.pop_front();
    }
    for (size_t i = 0; i < current_.size(); ++i) out[i] = current_[i];
    return current_.size();
  }
  size_t room() override { return room_frames; }
  size_t send(std::span<const sim::Frame> frames, Nanos) override {
    size_t taken = 0;
    for (; taken < frames.size() && taken < takes; ++taken) {
      outbox.emplace_back(frames[taken].begin(), frames[taken].end());
    }
    return taken;
  }
  bool carrier() const override { return other_end_up; }
  bool lossless() const override { return waits; }
  uint64_t held() const override { return inbox.size(); }

  std::deque<Bytes> inbox;
  std::vector<Bytes> outbox;
  bool waits = true;
  bool other_end_up = true;
  size_t room_frames = 1000;
  size_t takes = 1000;  // of one send()

 private:
  std::vector<Bytes> current_;
};

inline hw::DataSegment segment(uint32_t key, uint64_t address, uint32_t bytes) {
  return {.byte_count = be32(bytes), .key = be32(key), .address = be64(address)};
}
inline hw::DataSegment end_of_list() { return segment(hw::kInvalidKey, 0, 0); }

/// The driver's side of a completion queue.
class Completions {
 public:
  Completions(hca::Port& port, uint32_t depth)
      : cq(ok(port.create_completion_queue({.depth = depth}))) {}

  /// The next entry, if the device has written it; its place is given back unless `keep`.
  std::optional<hw::Cqe> poll(bool keep = false) {
    const auto depth = static_cast<uint32_t>(cq->ring.size());
    const hw::Cqe& entry = cq->ring[next_ & (depth - 1)];
    const uint8_t op_own = hw::load_op_own(entry);
    if (!hw::software_owns(op_own, next_, depth)) return std::nullopt;
    hw::Cqe copy{};
    std::memcpy(static_cast<void*>(&copy), &entry, offsetof(hw::Cqe, op_own));
    copy.op_own = op_own;
    ++next_;
    if (!keep) give_back();
    return copy;
  }
  void give_back() { cq->consumer->publish<NM_CQ_CONSUMER_RELEASE>(next_ & 0xffffff); }
  void restart() { next_ = 0; }

  std::unique_ptr<hca::CompletionQueue> cq;

 private:
  uint32_t next_ = 0;
};

inline hw::ErrorCqe as_error(const hw::Cqe& entry) {
  EXPECT_TRUE(hw::is_error(entry.op_own));
  hw::ErrorCqe error;
  std::memcpy(static_cast<void*>(&error), &entry, sizeof error);
  return error;
}
inline hw::Syndrome syndrome_of(const hw::Cqe& entry) {
  return static_cast<hw::Syndrome>(as_error(entry).syndrome);
}
/// How the work requests that have completed ended; kNone: well.
inline std::vector<hw::Syndrome> outcomes(Completions& completions) {
  std::vector<hw::Syndrome> list;
  while (const auto entry = completions.poll())
    list.push_back(hw::is_error(entry->op_own) ? syndrome_of(*entry) : hw::Syndrome::kNone);
  return list;
}

class Receiver {
 public:
  Receiver(hca::Port& port, hca::Domain domain, uint32_t depth, uint32_t entries = 2,
           uint32_t completions_depth = 0)
      : completions(port, completions_depth == 0 ? depth : completions_depth),
        rq(ok(port.create_receive_queue(domain, *completions.cq,
                                        {.depth = depth, .scatter_entries = entries}))) {}

  void post(std::initializer_list<hw::DataSegment> list) { post(std::vector(list)); }
  /// Ends a list that is shorter than the ring's stride.
  void post(const std::vector<hw::DataSegment>& list) {
    std::byte* at = rq->ring.data() + size_t{posted & (rq->depth - 1u)} * rq->stride_bytes;
    const size_t fit = rq->stride_bytes / sizeof(hw::DataSegment);
    for (size_t i = 0; i < fit; ++i) {
      const hw::DataSegment entry = i < list.size() ? list[i] : end_of_list();
      std::memcpy(at + i * sizeof entry, &entry, sizeof entry);
    }
    ++posted;
    rq->producer->publish<NM_RQ_RECORD_RELEASE>(posted);
  }
  void reset() {
    ok(rq->reset());
    posted = 0;
    completions.restart();
  }

  Completions completions;
  std::unique_ptr<hca::ReceiveQueue> rq;
  uint16_t posted = 0;
};

class Sender {
 public:
  Sender(hca::Port& port, hca::Domain domain, uint32_t depth, uint32_t completions_depth = 64)
      : completions(port, completions_depth),
        sq(ok(port.create_send_queue(domain, *completions.cq, depth))) {}

  /// Builds a SEND work request without posting it.
  Bytes build(const Bytes& inlined, const std::vector<hw::DataSegment>& pointers,
              uint8_t mode = hw::ControlSegment::kCompleteAlways) const {
    const uint32_t segments = hw::send_wqe_segments(static_cast<uint32_t>(inlined.size()),
                                                    static_cast<uint32_t>(pointers.size()));
    Bytes wqe(size_t{segments} * hw::kWqeSegmentBytes);
    control(wqe, hw::SendOpcode::kSend, segments, mode);
    auto& eth = *reinterpret_cast<hw::EthSegment*>(wqe.data() + sizeof(hw::ControlSegment));
    eth.inline_bytes.set(static_cast<uint16_t>(inlined.size()));
    if (!inlined.empty()) std::memcpy(wqe.data() + 30, inlined.data(), inlined.size());
    const size_t first = wqe.size() - pointers.size() * sizeof(hw::DataSegment);
    if (!pointers.empty()) {
      std::memcpy(wqe.data() + first, pointers.data(), pointers.size() * sizeof(hw::DataSegment));
    }
    return wqe;
  }
  /// The eth segment of a request that build() has made.
  static hw::EthSegment& eth_of(Bytes& wqe) {
    return *reinterpret_cast<hw::EthSegment*>(wqe.data() + sizeof(hw::ControlSegment));
  }
  /// The same request as a large packet that the device cuts into segments of `mss`.
  Bytes build_tso(const Bytes& header, const std::vector<hw::DataSegment>& pointers, uint16_t mss,
                  uint8_t checksum_flags = 0) const {
    Bytes wqe = build(header, pointers);
    wqe[3] = static_cast<std::byte>(hw::SendOpcode::kTso);
    eth_of(wqe).mss.set(mss);
    eth_of(wqe).checksum_flags = checksum_flags;
    return wqe;
  }
  /// Puts whole blocks into the ring, across its end too; ring() shows them.
  void put(const Bytes& wqe) {
    Bytes padded = wqe;
    padded.resize(round_up<size_t>(wqe.size(), hw::kWqeBlockBytes));
    for (size_t at = 0; at < padded.size(); at += hw::kWqeBlockBytes) {
      std::byte* block = sq->ring.data() + size_t{posted & (sq->depth - 1u)} * hw::kWqeBlockBytes;
      std::memcpy(block, padded.data() + at, hw::kWqeBlockBytes);
      if (at == 0) last_ = block;
      ++posted;
    }
  }
  void ring() {
    sq->producer->publish<NM_SQ_RECORD_RELEASE>(posted);
    hw::flush_wc();
    sq->doorbell->ring(last_);
  }
  void send(const Bytes& inlined, const std::vector<hw::DataSegment>& pointers,
            uint8_t mode = hw::ControlSegment::kCompleteAlways) {
    put(build(inlined, pointers, mode));
    ring();
  }
  Bytes nop(uint8_t mode = hw::ControlSegment::kCompleteAlways) const {
    Bytes wqe(sizeof(hw::ControlSegment));
    control(wqe, hw::SendOpcode::kNop, 1, mode);
    return wqe;
  }
  void control(Bytes& wqe, hw::SendOpcode opcode, uint32_t segments, uint8_t mode) const {
    auto& c = *reinterpret_cast<hw::ControlSegment*>(wqe.data());
    c.opmod_index_opcode.set(uint32_t{posted} << 8 | static_cast<uint32_t>(opcode));
    c.qpn_ds.set(sq->number << 8 | segments);
    c.fm_ce_se = hw::ControlSegment::Completion::set(0, mode);
  }
  void reset() {
    ok(sq->reset());
    posted = 0;
    completions.restart();
  }

  Completions completions;
  std::unique_ptr<hca::SendQueue> sq;
  uint16_t posted = 0;

 private:
  const std::byte* last_ = nullptr;
};

/// Memory with a region over it. Host memory unless made by `on_card`.
struct Buffer {
  Bytes bytes;                                // host memory only
  std::unique_ptr<hca::DeviceMemory> memory;  // device memory only
  std::unique_ptr<hca::MemoryRegion> region;

  static Buffer in_host(hca::Hca& nic, hca::Domain domain, size_t size,
                        hca::Access access = hca::Access::kReadWrite) {
    Buffer buffer;
    buffer.bytes.resize(size);
    buffer.region =
        ok(nic.register_host_memory(domain, buffer.bytes.data(), buffer.bytes.size(), access));
    return buffer;
  }
  static Buffer on_card(hca::Hca& nic, hca::Domain domain, size_t size,
                        hca::Access access = hca::Access::kReadWrite) {
    Buffer buffer;
    buffer.memory = ok(nic.allocate_device_memory(size));
    buffer.region = ok(nic.register_device_memory(domain, *buffer.memory, 0, size, access));
    return buffer;
  }
  std::span<std::byte> data() { return memory ? memory->access() : std::span<std::byte>(bytes); }
  hw::DataSegment at(size_t offset, uint32_t size) {
    const std::byte* start = memory ? memory->window().data() : bytes.data();
    return segment(region->key, region->address_of(start + offset), size);
  }
  Bytes copy(size_t offset, size_t size) {
    const auto all = data();
    return {all.begin() + static_cast<std::ptrdiff_t>(offset),
            all.begin() + static_cast<std::ptrdiff_t>(offset + size)};
  }
};

/// One device, one domain, one started port on a scripted wire, promiscuous by `receive_on`.
template <class Nic = sim::Nic>
struct Rig {
  explicit Rig(sim::NicOptions options = {}, hca::PortOptions port_options = {})
      : nic(ok(Nic::create(std::move(options)))), domain(ok(nic->create_domain())) {
    auto owned = std::make_unique<ScriptedWire>();
    wire = owned.get();
    port = nic->open_port(port_options, std::move(owned));
    ok(port->start());
  }
  void receive_on(const std::vector<hca::ReceiveQueue*>& queues) {
    ok(port->steer({.promiscuous = true, .rss = {.table = queues}}));
  }
  /// Until nothing moves.
  void settle() {
    while (nic->step(++now, 64) > 0) {
    }
  }

  std::unique_ptr<Nic> nic;
  hca::Domain domain;
  ScriptedWire* wire = nullptr;
  std::unique_ptr<typename Nic::Port> port;
  Nanos now = 0;
};

}  // namespace nicmem::test
