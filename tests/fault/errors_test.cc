// SPDX-License-Identifier: BSD-3-Clause
// Error completions, again and again: the queues recover, and every frame is accounted for.
#include "base/rng.h"
#include "faulty_port.h"
#include "support/log_on_failure.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

class FaultErrors : public testing::TestWithParam<size_t> {};

/// Descriptors that cannot be read (QP operation), bytes that cannot be reached (protection), and,
/// behind these, work requests that are flushed.
TEST_P(FaultErrors, AThousandFailedAccessesAreSurvived) {
  FaultyPort port(kShapes[GetParam()]);
  ASSERT_EQ(port.open(), 0);
  ASSERT_EQ(port.set_up(), 0);
  ASSERT_EQ(port.start(), 0);
  const LogOnFailure log(port.plan->log);
  Rng rng(test_seed());
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint64_t seen = port.plan->seen(sim::FaultClass::kDma);
    port.plan->arm({.at = sim::FaultClass::kDma, .point = seen + 1 + rng.below(60)});
    port.exchange(16);
    port.plan->disarm();
    if (i % 100 == 0) port.expect_conserved(0);
    if (HasFailure()) return;
  }
  port.exchange(0);
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
  EXPECT_GT(port.xstat("rx_wqe_error"), 0u);
  EXPECT_GT(port.xstat("tx_wqe_error"), 0u);
  EXPECT_EQ(port.stop(), 0);
  port.expect_empty();
}

INSTANTIATE_TEST_SUITE_P(Shapes, FaultErrors, testing::Range(size_t{0}, std::size(kShapes)));

}  // namespace
}  // namespace nicmem::test
