// SPDX-License-Identifier: BSD-3-Clause
// Two receive rings in one completion queue: the secondary takes what finds nothing in the primary.
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

/// A primary ring (user_index 1) and its secondary (user_index 2), and a buffer for them.
struct PairRig : Rig<> {
  PairRig() {
    receive_on({primary.get()});
    buffer = Buffer::in_host(*nic, domain, 65536);
  }
  std::unique_ptr<hca::ReceiveQueue> make(uint32_t user_index, hca::ReceiveQueue* of) {
    return ok(port->create_receive_queue(domain, *completions.cq,
                                         {.depth = 8, .user_index = user_index, .primary = of}));
  }
  void post(hca::ReceiveQueue& queue, uint16_t count) {
    for (uint16_t i = 0; i < queue.depth; ++i) {
      const hw::DataSegment entry = buffer.at(size_t{i} * 2048, 2048);
      std::memcpy(queue.ring.data() + size_t{i} * queue.stride_bytes, &entry, sizeof entry);
    }
    queue.producer->publish<NM_RQ_RECORD_RELEASE>(count);
  }
  void arrive(int frames) {
    for (int i = 0; i < frames; ++i) wire->inbox.push_back(pattern(100));
    settle();
  }
  /// user_index of what has completed, in order.
  std::vector<uint32_t> takers() {
    std::vector<uint32_t> all;
    while (const auto entry = completions.poll()) all.push_back(entry->user_index.get());
    return all;
  }

  Completions completions{*port, 16};
  std::unique_ptr<hca::ReceiveQueue> primary = make(1, nullptr);
  std::unique_ptr<hca::ReceiveQueue> secondary = make(2, primary.get());
  Buffer buffer;
};

using Indices = std::vector<uint32_t>;

TEST(SimPair, TheSecondaryTakesWhatFindsNothingInThePrimary) {
  PairRig rig;
  rig.post(*rig.primary, 2);
  rig.post(*rig.secondary, 8);
  rig.arrive(4);
  EXPECT_EQ(rig.takers(), (Indices{1, 1, 2, 2}));
  rig.post(*rig.primary, 3);
  rig.arrive(2);
  EXPECT_EQ(rig.takers(), (Indices{1, 2}));
  EXPECT_EQ(rig.port->counters().rx_frames, 6u);
}

TEST(SimPair, AFrameWaitsOrIsDroppedWhenBothAreEmpty) {
  for (const bool waits : {true, false}) {
    PairRig rig;
    rig.wire->waits = waits;
    rig.post(*rig.primary, 1);
    rig.post(*rig.secondary, 1);
    rig.arrive(3);
    EXPECT_EQ(rig.takers(), (Indices{1, 2}));
    EXPECT_EQ(rig.port->counters().rx_no_buffer, waits ? 0u : 1u);
    EXPECT_EQ(rig.port->counters().wire_held, waits ? 1u : 0u);
  }
}

TEST(SimPair, AStopOrAnErrorOfEitherStopsBothUntilBothAreReset) {
  for (const bool first : {true, false}) {
    PairRig rig;
    rig.post(*rig.primary, 4);
    rig.post(*rig.secondary, 4);
    ok((first ? rig.primary : rig.secondary)->stop());
    rig.arrive(2);
    EXPECT_TRUE(rig.takers().empty());
    EXPECT_EQ(rig.port->counters().rx_no_buffer, 2u);
    ok(rig.primary->reset());
    ok(rig.secondary->reset());
    rig.post(*rig.secondary, 8);
    rig.arrive(1);
    EXPECT_EQ(rig.takers(), (Indices{2}));
  }
}

TEST(SimPair, ASecondaryMayGoFirstOrLast) {
  PairRig rig;
  rig.post(*rig.primary, 1);
  rig.secondary.reset();
  rig.arrive(2);
  EXPECT_EQ(rig.takers(), (Indices{1}));
  rig.secondary = rig.make(2, rig.primary.get());
  rig.primary.reset();
}

TEST(SimPair, RefusesAPrimaryThatIsInAPairOrCompletesElsewhere) {
  PairRig rig;
  const auto refused = [&rig](hca::CompletionQueue& cq, hca::ReceiveQueue* primary) {
    const auto made =
        rig.port->create_receive_queue(rig.domain, cq, {.depth = 8, .primary = primary});
    return !made && made.error().code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused(*rig.completions.cq, rig.primary.get()));
  EXPECT_TRUE(refused(*rig.completions.cq, rig.secondary.get()));
  Completions other(*rig.port, 8);
  const auto free = rig.make(3, nullptr);
  EXPECT_TRUE(refused(*other.cq, free.get()));
  EXPECT_FALSE(refused(*rig.completions.cq, free.get()));
}

}  // namespace
}  // namespace nicmem::test
