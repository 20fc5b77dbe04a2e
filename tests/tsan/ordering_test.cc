// SPDX-License-Identifier: BSD-3-Clause
// One driver thread runs rx_burst and tx_burst, one model thread steps the device: ThreadSanitizer
// must find every handover ordered. The same source, built with one of the four orderings of
// hw/order.h relaxed, must make it object (meson.build).
//
// Ring depths are chosen so that no ordering hides another: the device acquires a queue's record
// only when what it knows of is used up, so a deep ring beside a shallow one leaves just one
// handover a lap.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "drivers/net/nicmem/compat.h"
#include "drivers/net/nicmem/device.h"
#include "drivers/net/nicmem/rx.h"
#include "drivers/net/nicmem/tx.h"
#include "sim/generator.h"
#include "sim/nic.h"

namespace nicmem::test {
namespace {

constexpr uint32_t kShallow = 8, kDeep = 1024;
constexpr uint32_t kFrames = 20'000;
constexpr uint16_t kBurst = 4;

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().what.c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A device with one port, plugged into a generator and sink; stepped by a thread of its own
/// between run() and stop().
class Card {
 public:
  Card() {
    sim::NicOptions nic{.name = "card"};
    nic.wire = [](const hca::PortOptions&) -> Result<std::unique_ptr<sim::Wire>> {
      NM_TRY(auto wire, sim::Generator::create({.flows = 64}));
      return wire;
    };
    device_.name = "card";
    device_.hca = must(sim::Nic::create(nic));
    must(pmd::set_up(device_, 64_KiB));
    port_ = must(device_.hca->open_port({.name = "card"}));
  }
  ~Card() { port_.reset(); }

  void run() {
    must(port_->start());
    thread_ = std::thread([this] {
      while (!stop_.load(std::memory_order_relaxed))
        if (device_.hca->step(kBurst) == 0) std::this_thread::yield();
    });
  }
  void stop() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
    port_->stop();
  }

  pmd::Device& device() { return device_; }
  hca::Port& port() { return *port_; }

 private:
  pmd::Device device_;
  std::unique_ptr<hca::Port> port_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

/// The pool belongs to the driver thread alone: DPDK's rings are not instrumented.
class Pool {
 public:
  Pool() : pool_(rte_pktmbuf_pool_create("tsan", 4095, 0, 0, 512, SOCKET_ID_ANY)) {
    if (pool_ == nullptr) std::abort();
  }
  ~Pool() { rte_mempool_free(pool_); }
  rte_mempool* get() { return pool_; }
  unsigned in_use() const { return rte_mempool_in_use_count(pool_); }

 private:
  rte_mempool* pool_;
};

/// A receive queue whose rings have depths of their own choice. [rxq.cc has them equal]
struct Receiver {
  Receiver(Card& card, Pool& pool, uint32_t wqes, uint32_t completions)
      : cq(must(card.port().create_completion_queue({.depth = completions}))),
        rq(must(card.port().create_receive_queue(card.device().domain, *cq, {.depth = wqes}))),
        mbufs(size_t{wqes} * pmd::kMaxRxSegments) {
    data.depth = wqes;
    data.cq_depth = completions;
    data.num_segments = 1;
    data.segments[0] = {pool.get(), nullptr, 512 - RTE_PKTMBUF_HEADROOM, RTE_PKTMBUF_HEADROOM};
    data.cqes = cq->ring.data();
    data.wqes = rq->ring.data();
    data.stride_bytes = rq->stride_bytes;
    data.mbufs = mbufs.data();
    data.cq_consumer = cq->consumer;
    data.rq_producer = rq->producer;
    data.keys = pmd::KeyCache(card.device().map.get());
    EXPECT_TRUE(pmd::fill(data));
    hca::ReceiveQueue* queues[] = {rq.get()};
    hca::SteeringOptions steering{.promiscuous = true};
    steering.rss.table = queues;
    must(card.port().steer(steering));
  }
  ~Receiver() {
    rq.reset();
    pmd::drain(data);
  }

  uint16_t burst(rte_mbuf** out) { return pmd::rx_burst_for(1)(&data, out, kBurst); }

  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::ReceiveQueue> rq;
  std::vector<rte_mbuf*> mbufs;
  pmd::RxQueue data;
};

struct Sender {
  Sender(Card& card, uint32_t blocks)
      : cq(must(card.port().create_completion_queue({.depth = blocks}))),
        sq(must(card.port().create_send_queue(card.device().domain, *cq, blocks))),
        sent(blocks),
        signals(blocks) {
    data.depth = blocks;
    data.signal_packets = 2;
    data.inline_bytes = 18;
    data.wqes = sq->ring.data();
    data.sq_producer = sq->producer;
    data.doorbell = sq->doorbell;
    data.sent = sent.data();
    data.signals = signals.data();
    data.number_field = hw::ControlSegment::QueueNumber::set(0, sq->number);
    data.plain_blocks = hw::send_wqe_blocks(hw::send_wqe_segments(18, 2));
    data.cqes = cq->ring.data();
    data.cq_depth = blocks;
    data.cq_consumer = cq->consumer;
    data.keys = pmd::KeyCache(card.device().map.get());
    data.is_foreign = pmd::is_device_memory;
  }
  ~Sender() {
    sq.reset();
    pmd::drain(data);
  }

  std::unique_ptr<hca::CompletionQueue> cq;
  std::unique_ptr<hca::SendQueue> sq;
  std::vector<rte_mbuf*> sent;
  std::vector<pmd::Signal> signals;
  pmd::TxQueue data;
};

/// Reads what the device wrote: the frame's first bytes.
void expect_ethernet(const rte_mbuf* packet) {
  const auto* bytes = rte_pktmbuf_mtod(packet, const uint8_t*);
  ASSERT_EQ(packet->data_len, 60);
  ASSERT_EQ(bytes[12], 0x08);
  ASSERT_EQ(bytes[13], 0x00);
}

void receive_frames(uint32_t wqes, uint32_t completions) {
  Pool pool;
  {
    Card card;
    Receiver receiver(card, pool, wqes, completions);
    card.run();
    for (uint32_t received = 0; received < kFrames;) {
      rte_mbuf* packets[kBurst];
      const uint16_t count = receiver.burst(packets);
      for (uint16_t i = 0; i < count; ++i) {
        expect_ethernet(packets[i]);
        rte_pktmbuf_free(packets[i]);
      }
      received += count;
      if (count == 0) std::this_thread::yield();
    }
    card.stop();
    EXPECT_EQ(receiver.data.counters.errors, 0u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Ordering, CompletionsOfManyLaps) { receive_frames(64, 64); }

/// The device learns of reposted WQEs by the receive record alone.
TEST(Ordering, ShallowReceiveRing) { receive_frames(kShallow, kDeep); }

/// The device learns that completions may be overwritten by the consumer record alone.
TEST(Ordering, ShallowCompletionRing) { receive_frames(kDeep, kShallow); }

rte_mbuf* make_packet(Pool& pool, uint32_t number) {
  rte_mbuf* const packet = rte_pktmbuf_alloc(pool.get());
  if (packet == nullptr) std::abort();
  auto* const bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(packet, 60));
  std::memset(bytes, static_cast<int>(number & 0xff), 60);
  return packet;
}

TEST(Ordering, Transmit) {
  Pool pool;
  {
    Card card;
    Sender sender(card, 64);
    card.run();
    for (uint32_t sent = 0; sent < kFrames;) {
      rte_mbuf* packets[kBurst];
      for (uint16_t i = 0; i < kBurst; ++i) packets[i] = make_packet(pool, sent + i);
      const uint16_t count = pmd::tx_burst(&sender.data, packets, kBurst);
      for (uint16_t i = count; i < kBurst; ++i) rte_pktmbuf_free(packets[i]);
      sent += count;
      if (count == 0) std::this_thread::yield();
    }
    card.stop();
    EXPECT_EQ(sender.data.counters.errors, 0u);
    EXPECT_EQ(card.port().counters().tx_frames, sender.data.counters.packets);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Ordering, Forward) {
  Pool pool;
  {
    Card card;
    Receiver receiver(card, pool, 64, 64);
    Sender sender(card, 64);
    card.run();
    for (uint32_t forwarded = 0; forwarded < kFrames;) {
      rte_mbuf* packets[kBurst];
      const uint16_t received = receiver.burst(packets);
      for (uint16_t i = 0; i < received; ++i) rte_pktmbuf_mtod(packets[i], uint8_t*)[0] = 2;
      uint16_t sent = 0;
      while (sent < received)
        sent = static_cast<uint16_t>(sent + pmd::tx_burst(&sender.data, packets + sent,
                                                          static_cast<uint16_t>(received - sent)));
      forwarded += received;
      if (received == 0) std::this_thread::yield();
    }
    card.stop();
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace nicmem::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string prefix = "ordering" + std::to_string(getpid());
  const char* eal[] = {"ordering",       "--no-huge",   "-m", "64",          "--no-pci",
                       "--no-telemetry", "-l",          "0",  "--log-level", "3",
                       "--file-prefix",  prefix.c_str()};
  if (rte_eal_init(static_cast<int>(std::size(eal)), const_cast<char**>(eal)) < 0) return 1;
  const int result = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return result;
}
