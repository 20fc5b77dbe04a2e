// SPDX-License-Identifier: BSD-3-Clause
// What happens to a device by itself, through the port: reset, removal, a link that flaps, and
// completions that are lost. The program is told, the port can be closed, frames add up.
#include "faulty_port.h"

namespace nicmem::test {
namespace {

using hca::PortEvent;

/// Counts the events of a port.
class Told {
 public:
  explicit Told(uint16_t port) : port_(port) {
    for (const rte_eth_event_type type : kTypes)
      EXPECT_EQ(rte_eth_dev_callback_register(port, type, count, this), 0);
  }
  ~Told() {
    for (const rte_eth_event_type type : kTypes)
      EXPECT_EQ(rte_eth_dev_callback_unregister(port_, type, count, this), 0);
  }
  uint32_t of(rte_eth_event_type type) const { return events_[type]; }

 private:
  static constexpr rte_eth_event_type kTypes[] = {RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RESET,
                                                  RTE_ETH_EVENT_INTR_RMV};
  static int count(uint16_t, rte_eth_event_type type, void* told, void*) {
    ++static_cast<Told*>(told)->events_[type];
    return 0;
  }
  uint16_t port_;
  uint32_t events_[RTE_ETH_EVENT_MAX] = {};
};

class FaultEvents : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    ASSERT_EQ(port.open(), 0);
    ASSERT_EQ(port.set_up(1), 0);
    ASSERT_EQ(port.start(), 0);
    ASSERT_EQ(port.exchange(50), 50u);
  }
  FaultyPort port{kShapes[GetParam()]};
};

/// Frames are on the way when the device stops answering.
void lose_device(FaultyPort& port, PortEvent what) {
  port.plan->at_step(1, what);
  EXPECT_EQ(port.send(16), 16u);
  port.step();
  EXPECT_EQ(port.receive(), 0u);
  port.send(16);  // nobody minds, nobody sends
  port.step();
  EXPECT_EQ(port.receive(), 0u);
}

TEST_P(FaultEvents, AResetDeviceIsReportedAndThePortCanBeReset) {
  const Told told(port.id());
  lose_device(port, PortEvent::kDeviceReset);
  EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_RESET), 1u);
  EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_RMV), 0u);
  EXPECT_EQ(rte_eth_dev_is_removed(port.id()), 0);
  EXPECT_EQ(port.stop(), 0);
  port.expect_conserved(0);
  port.expect_empty();
  EXPECT_LT(port.start(), 0) << "the device is still what it was";
  port.expect_empty();
  ASSERT_EQ(rte_eth_dev_reset(port.id()), 0);
  port.plan = hca_sim::fault_plan(*port.port().device->hca);
  port.forget_frames();
  ASSERT_EQ(port.set_up(1), 0);
  ASSERT_EQ(port.start(), 0);
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
  EXPECT_EQ(port.stop(), 0);
  port.expect_empty();
}

TEST_P(FaultEvents, ARemovedDeviceIsReportedAndThePortCloses) {
  {
    const Told told(port.id());
    lose_device(port, PortEvent::kRemoved);
    EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_RMV), 1u);
    EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_RESET), 0u);
    EXPECT_EQ(rte_eth_dev_is_removed(port.id()), 1);
    EXPECT_EQ(port.stop(), 0);
    port.expect_conserved(0);
    port.expect_empty();
    EXPECT_LT(port.start(), 0);
  }
  port.close();
  ASSERT_EQ(port.open(), 0) << "the name is free again";
  port.forget_frames();
  ASSERT_EQ(port.set_up(1), 0);
  ASSERT_EQ(port.start(), 0);
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
}

TEST_P(FaultEvents, AFlappingLinkIsReportedOncePerChange) {
  const Told told(port.id());
  rte_eth_link link{};
  for (uint32_t i = 0; i < 100; ++i) {
    port.plan->at_step(1, PortEvent::kLinkChanged, false);
    port.step();
    EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_LSC), 2 * i + 1);
    ASSERT_EQ(rte_eth_link_get_nowait(port.id(), &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    port.exchange(8);
    port.plan->at_step(1, PortEvent::kLinkChanged, true);
    port.step();
    EXPECT_EQ(told.of(RTE_ETH_EVENT_INTR_LSC), 2 * i + 2);
    ASSERT_EQ(rte_eth_link_get_nowait(port.id(), &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
    if (HasFailure()) return;
  }
  port.exchange(0);
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
  EXPECT_EQ(port.stop(), 0);
  port.expect_conserved(0);
  port.expect_empty();
}

/// The next completion is of a frame received: with packets to send that ask for none.
TEST_P(FaultEvents, ALostReceiveCompletionIsSeenAndCounted) {
  const uint64_t completions = port.plan->seen(sim::FaultClass::kCompletion);
  port.plan->arm({.at = sim::FaultClass::kCompletion, .point = completions + 1});
  ASSERT_EQ(port.send(1), 1u);
  port.step();
  port.plan->disarm();
  const uint64_t good = port.xstat("rx_good_packets");
  const bool receive_side = port.xstat("rx_device_frames") == good + 1 && port.receive() == 0;
  ASSERT_TRUE(receive_side) << "the lost completion was another one";
  EXPECT_EQ(port.xstat("rx_stuck"), 0u) << "nothing behind it: it may still come";
  port.exchange(8);
  EXPECT_EQ(port.xstat("rx_stuck"), 1u);
  EXPECT_GT(port.xstat("rx_stopped"), 0u) << "frames behind it were in a ring that was reset";
  EXPECT_EQ(port.xstat("rx_device_frames"), port.xstat("rx_good_packets") +
                                                port.xstat("rx_no_mbuf") +
                                                port.xstat("rx_stopped") + port.xstat("rx_stuck"));
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
  EXPECT_EQ(port.stop(), 0);
  port.expect_empty();
}

/// Of the completions of some bursts, the one of a send is lost: a later one stands for it.
TEST_P(FaultEvents, ALostSendCompletionIsSeenAndCostsNoPacket) {
  ASSERT_EQ(rte_eth_stats_reset(port.id()), 0);
  port.forget_frames();
  uint64_t received = 0;
  for (uint32_t lost = 0; lost < 200 && port.xstat("tx_stuck") == 0; ++lost) {
    const uint64_t completions = port.plan->seen(sim::FaultClass::kCompletion);
    port.plan->arm({.at = sim::FaultClass::kCompletion, .point = completions + 1 + lost % 34});
    received += port.exchange(64);
    for (uint32_t i = 0; i < 2 * pmd::kTxIdleCheck; ++i) {
      port.step(1);
      rte_eth_tx_done_cleanup(port.id(), 0, 0);
    }
    port.plan->disarm();
  }
  EXPECT_EQ(port.xstat("tx_stuck"), 1u);
  EXPECT_EQ(port.xstat("tx_wqe_error"), 0u);
  received += port.exchange(100);
  EXPECT_EQ(received + port.xstat("rx_stopped") + port.xstat("rx_stuck"),
            port.xstat("tx_device_frames"));
  EXPECT_EQ(port.stop(), 0);
  port.expect_conserved(0);
  port.expect_empty();
}

INSTANTIATE_TEST_SUITE_P(Shapes, FaultEvents, testing::Range(size_t{0}, std::size(kShapes)),
                         [](const testing::TestParamInfo<size_t>& shape) {
                           return name_of_shape(shape.param);
                         });

}  // namespace
}  // namespace nicmem::test
