// SPDX-License-Identifier: BSD-3-Clause
// Each class of error completion, receive and send: counted, its queue goes on or is reset as the
// class wants, nothing is lost without a counter. The model makes the error by itself; the test
// then writes the class under test over the one that the model gave.
#include "faulty_port.h"

namespace nicmem::test {
namespace {

constexpr hw::Syndrome kUnknown{0x22};

const char* name_of(hw::Syndrome syndrome) {
  switch (syndrome) {
    case hw::Syndrome::kNone:
      return "none";
    case hw::Syndrome::kLocalLength:
      return "local_length";
    case hw::Syndrome::kLocalQpOperation:
      return "qp_operation";
    case hw::Syndrome::kLocalProtection:
      return "local_protection";
    case hw::Syndrome::kFlushed:
      return "flushed";
  }
  return "unknown";
}

/// The error completion at the queue's head.
template <class Queue>
hw::ErrorCqe* error_of(Queue& queue, uint32_t head) {
  const hw::Cqe& cqe = queue.cqes[head & (queue.cq_depth - 1)];
  const uint8_t op_own = hw::load_op_own(cqe);
  if (!hw::software_owns(op_own, head, queue.cq_depth) || !hw::is_error(op_own)) return nullptr;
  return reinterpret_cast<hw::ErrorCqe*>(const_cast<hw::Cqe*>(&cqe));
}

struct Error {
  hw::Syndrome syndrome;
  bool device_stops;  // what the model does: a bad key stops the queue, a short list does not
  uint32_t resets;    // by the driver
};

class FaultySyndrome : public testing::TestWithParam<std::tuple<size_t, Error>> {
 protected:
  void SetUp() override {
    ASSERT_EQ(port.open(), 0);
    ASSERT_EQ(port.set_up(1), 0);
    ASSERT_EQ(port.start(), 0);
    ASSERT_EQ(port.exchange(100), 100u);
    resets_before = port.plan->seen(sim::FaultClass::kAllocation);
  }
  uint64_t resets() const { return port.plan->seen(sim::FaultClass::kAllocation) - resets_before; }
  void expect_works() {
    port.exchange(0);
    EXPECT_EQ(port.exchange(200), 200u);
    port.expect_conserved(0);
    EXPECT_EQ(port.stop(), 0);
    port.expect_empty();
  }
  Error error() const { return std::get<1>(GetParam()); }

  FaultyPort port{kShapes[std::get<0>(GetParam())]};
  uint64_t resets_before = 0;
};

class FaultReceiveSyndrome : public FaultySyndrome {};

TEST_P(FaultReceiveSyndrome, IsCountedAndTheQueueGoesOn) {
  pmd::RxQueue& queue = port.rx();
  auto* const wqe = reinterpret_cast<hw::DataSegment*>(
      queue.wqes + size_t{queue.head & (queue.depth - 1)} * queue.stride_bytes);
  const hw::DataSegment good[2] = {wqe[0], wqe[1]};
  if (error().device_stops) {
    wqe[0].key = be32(0xdead00);
  } else {
    wqe[0].byte_count = be32(16);
    wqe[1] = {be32(0), be32(hw::kInvalidKey), be64(0)};
  }
  ASSERT_EQ(port.send(1, 700), 1u);
  port.step();
  wqe[0] = good[0];
  wqe[1] = good[1];
  hw::ErrorCqe* const cqe = error_of(queue, queue.head);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(static_cast<hw::Syndrome>(cqe->syndrome),
            error().device_stops ? hw::Syndrome::kLocalProtection : hw::Syndrome::kLocalLength);
  cqe->syndrome = static_cast<uint8_t>(error().syndrome);
  EXPECT_EQ(port.receive(), 0u);
  EXPECT_EQ(port.xstat("rx_wqe_error"), 1u);
  EXPECT_EQ(queue.counters.errors, 1u);
  EXPECT_EQ(queue.counters.flushed, error().syndrome == hw::Syndrome::kFlushed ? 1u : 0u);
  EXPECT_EQ(resets(), error().resets);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(port.id(), &stats), 0);
  EXPECT_GE(stats.ierrors, 1u);
  expect_works();
}

class FaultSendSyndrome : public FaultySyndrome {};

TEST_P(FaultSendSyndrome, IsCountedAndTheQueueIsReset) {
  pmd::TxQueue& queue = port.tx();
  rte_eth_tx_done_cleanup(port.id(), 0, 0);
  port.step();
  rte_eth_tx_done_cleanup(port.id(), 0, 0);
  ASSERT_EQ(port.xstat("tx_in_flight"), 0u);
  const uint32_t first = queue.producer, cq_head = queue.cq_head;
  ASSERT_EQ(port.send(1, 700), 1u);
  // the last segment of the WQE points at what is not inlined
  auto* const block = queue.wqes + size_t{first & (queue.depth - 1)} * hw::kWqeBlockBytes;
  const auto& control = *reinterpret_cast<const hw::ControlSegment*>(block);
  const uint32_t segments = hw::ControlSegment::Segments::get(control.qpn_ds.get());
  const uint32_t at =
      (first * hw::kWqeBlockBytes + (segments - 1) * 16) & (queue.depth * hw::kWqeBlockBytes - 1);
  reinterpret_cast<hw::DataSegment*>(queue.wqes + at)->key = be32(0xdead00);
  port.step();
  hw::ErrorCqe* const cqe = error_of(queue, cq_head);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(static_cast<hw::Syndrome>(cqe->syndrome), hw::Syndrome::kLocalProtection);
  cqe->syndrome = static_cast<uint8_t>(error().syndrome);
  rte_eth_tx_done_cleanup(port.id(), 0, 0);
  EXPECT_EQ(port.xstat("tx_wqe_error"), 1u);
  EXPECT_EQ(port.xstat("tx_in_flight"), 0u);
  EXPECT_EQ(resets(), 1u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(port.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors, 1u);
  expect_works();
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<size_t, Error>>& test) {
  const auto& [shape, error] = test.param;
  return std::string(name_of(error.syndrome)) + (error.device_stops ? "_stops_" : "_goes_on_") +
         name_of_shape(shape);
}
const auto kAllShapes = testing::Range(size_t{0}, std::size(kShapes));
/// Two rings into one completion queue (shape 1) have tests of their own: spill_test.cc, DRV_01.
const auto kOneRingShapes = testing::Values(size_t{0}, size_t{2}, size_t{3}, size_t{4}, size_t{5});

INSTANTIATE_TEST_SUITE_P(
    Classes, FaultReceiveSyndrome,
    testing::Combine(kOneRingShapes,
                     testing::Values(Error{hw::Syndrome::kLocalLength, false, 0},
                                     Error{hw::Syndrome::kLocalQpOperation, true, 1},
                                     Error{hw::Syndrome::kLocalProtection, true, 1},
                                     Error{hw::Syndrome::kFlushed, true, 1},
                                     Error{kUnknown, false, 0})),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    Classes, FaultSendSyndrome,
    testing::Combine(kAllShapes, testing::Values(Error{hw::Syndrome::kLocalLength, true, 1},
                                                 Error{hw::Syndrome::kLocalQpOperation, true, 1},
                                                 Error{hw::Syndrome::kLocalProtection, true, 1},
                                                 Error{hw::Syndrome::kFlushed, true, 1},
                                                 Error{kUnknown, true, 1})),
    name_of_case);

}  // namespace
}  // namespace nicmem::test
