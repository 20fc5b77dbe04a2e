// SPDX-License-Identifier: BSD-3-Clause
// The short way of the transmit engine against the long one: the same ring bytes on two devices, of
// which one has a bus that could fail and so takes the long way only. Frames, completions, counters
// and the transfers on the link must be the same.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/failing_bus.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

/// One device with memory that both have at the same addresses, under the same keys.
template <class Nic>
struct Side : Rig<Nic> {
  explicit Side(Bytes& shared) {
    card = Buffer::on_card(*this->nic, this->domain, 4096);
    host.region = ok(this->nic->register_host_memory(this->domain, shared.data(), shared.size(),
                                                     hca::Access::kRead));
    std::ranges::copy(pattern(4096, 3), card.data().begin());
    sender = std::make_unique<Sender>(*this->port, this->domain, 32, 8);
  }
  hw::DataSegment in_host(const Bytes& shared, size_t offset, uint32_t size) const {
    return segment(host.region->key, host.region->address_of(shared.data() + offset), size);
  }

  Buffer card, host;
  std::unique_ptr<Sender> sender;
};

class PlainSend : public testing::Test {
 protected:
  ~PlainSend() override { FailingBus::forget_plans(); }

  hw::DataSegment random_piece() {
    const auto size = static_cast<uint32_t>(1 + rng.below(rng.below(6) == 0 ? 1600 : 200));
    const size_t offset = rng.below(4096 - 100);  // may end beyond the region
    return rng.below(2) == 0 ? shorter.card.at(offset, size)
                             : shorter.in_host(shared, offset, size);
  }

  Bytes random_request() {
    std::vector<hw::DataSegment> pieces(rng.below(4));
    for (hw::DataSegment& piece : pieces) piece = random_piece();
    const Bytes header = pattern(rng.below(3) == 0 ? 0 : 2 + rng.below(120));
    Bytes wqe = shorter.sender->build(header, pieces, static_cast<uint8_t>(rng.below(4)));
    if (rng.below(30) == 0) wqe[rng.below(wqe.size())] = static_cast<std::byte>(rng.next());
    return wqe;
  }

  void post(const Bytes& wqe) {
    shorter.sender->put(wqe);
    longer.sender->put(wqe);
  }

  template <class Any>
  static std::vector<Bytes> completions(Side<Any>& side) {
    std::vector<Bytes> list;
    while (const auto entry = side.sender->completions.poll()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&*entry);
      list.emplace_back(bytes, bytes + sizeof *entry);
    }
    return list;
  }

  Rng rng{test_seed()};
  Bytes shared = pattern(4096, 9);
  Side<sim::Nic> shorter{shared};
  Side<sim::BasicNic<FailingBus>> longer{shared};
};

TEST_F(PlainSend, TheShortWayDoesWhatTheLongWayDoes) {
  uint64_t errors = 0;
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    for (uint64_t n = 1 + rng.below(5); n > 0; --n) post(random_request());
    shorter.sender->ring();
    longer.sender->ring();
    const auto budget = static_cast<uint32_t>(1 + rng.below(8));
    for (int step = 0; step < 8; ++step) {
      ASSERT_EQ(shorter.nic->step(++shorter.now, budget), longer.nic->step(++longer.now, budget));
    }
    ASSERT_EQ(shorter.wire->outbox, longer.wire->outbox);
    ASSERT_EQ(completions(shorter), completions(longer));
    for (int step = 0; step < 8; ++step) {
      ASSERT_EQ(shorter.nic->step(++shorter.now, 64), longer.nic->step(++longer.now, 64));
    }
    ASSERT_EQ(completions(shorter), completions(longer));
    ASSERT_EQ(shorter.wire->outbox, longer.wire->outbox);
    hw::PcieTally moved = shorter.port->pcie(), expected = longer.port->pcie();
    // The short way asks for room in the completion ring only when there will be an entry.
    moved[hw::PcieClass::kDoorbellRecord] = expected[hw::PcieClass::kDoorbellRecord] = {};
    ASSERT_EQ(moved, expected);
    const hca::PortCounters a = shorter.port->counters(), b = longer.port->counters();
    ASSERT_EQ(a.tx_frames, b.tx_frames);
    ASSERT_EQ(a.tx_bytes, b.tx_bytes);
    ASSERT_EQ(a.tx_error, b.tx_error);
    if (a.tx_error > errors || rng.below(50) == 0) {
      shorter.sender->reset();
      longer.sender->reset();
    }
    errors = a.tx_error;
    shorter.wire->outbox.clear();
    longer.wire->outbox.clear();
  }
  EXPECT_GT(shorter.port->counters().tx_frames, 2000u);
  EXPECT_GT(errors, 200u);
}

}  // namespace
}  // namespace nicmem::test
