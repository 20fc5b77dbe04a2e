// SPDX-License-Identifier: BSD-3-Clause
// The k-th fault: a clean run of a scenario counts the points of each class, then the scenario is
// run again for each k with the k-th point failing. Nothing may crash, leak or be lost without a
// counter, and the port has to work again afterwards.
#include <array>
#include <cstdio>

#include "faulty_port.h"
#include "support/log_on_failure.h"

namespace nicmem::test {
namespace {

using sim::FaultClass;
constexpr FaultClass kClasses[] = {FaultClass::kAllocation, FaultClass::kDma,
                                   FaultClass::kCompletion, FaultClass::kDoorbell};

struct Scenario {
  const char* name;
  void (*prepare)(FaultyPort& port);  // without faults
  void (*run)(FaultyPort& port);
};

void up(FaultyPort& port) {
  ASSERT_EQ(port.open(), 0);
  ASSERT_EQ(port.set_up(), 0);
  ASSERT_EQ(port.start(), 0);
}

constexpr Scenario kScenarios[] = {
    {"start", [](FaultyPort& port) { ASSERT_EQ(port.open(), 0); },
     [](FaultyPort& port) {
       static_cast<void>(port.set_up());
       static_cast<void>(port.start());
     }},
    {"traffic", up, [](FaultyPort& port) { port.exchange(128); }},
    {"reconfigure",
     [](FaultyPort& port) {
       up(port);
       port.exchange(8);
     },
     [](FaultyPort& port) {
       EXPECT_EQ(port.stop(), 0);
       static_cast<void>(port.set_up(static_cast<uint16_t>(3 - port.shape().queues), 1600));
       static_cast<void>(port.start());
       port.exchange(32);
     }},
    {"stop",
     [](FaultyPort& port) {
       up(port);
       port.exchange(8);
     },
     [](FaultyPort& port) {
       port.send(16);  // arrive and are never polled
       port.step();
       port.send(16);  // leave when the port stops
       EXPECT_EQ(port.stop(), 0);
     }},
};

using Points = std::array<uint64_t, sim::kFaultClasses>;

/// After whatever has happened: no fault any more, a new start, and 100 frames come back.
void expect_recovered(FaultyPort& port) {
  port.plan->disarm();
  EXPECT_EQ(port.stop(), 0);
  port.expect_empty();
  port.expect_conserved(port.hits(FaultClass::kCompletion));
  ASSERT_EQ(port.set_up(), 0);
  ASSERT_EQ(port.start(), 0);
  port.exchange(0);  // what waited in the wire
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(port.hits(FaultClass::kCompletion));
  EXPECT_EQ(port.stop(), 0);
  port.expect_empty();
}

/// One run of `scenario`, with `fault` if there is one; returns the points that it came by.
Points run(const Scenario& scenario, const Shape& shape, const sim::Fault* fault) {
  FaultyPort port(shape);
  scenario.prepare(port);
  if (testing::Test::HasFatalFailure()) return {};
  const LogOnFailure log(port.plan->log);
  port.plan->restart();
  if (fault != nullptr) port.plan->arm(*fault);
  scenario.run(port);
  Points points;
  for (const FaultClass c : kClasses) {
    points[static_cast<size_t>(c)] = port.plan->seen(c);
    EXPECT_EQ(port.hits(c), fault != nullptr && fault->at == c ? 1u : 0u);
  }
  expect_recovered(port);
  port.close();
  return points;
}

class KthFault : public testing::TestWithParam<std::tuple<size_t, size_t>> {
 public:
  static void TearDownTestSuite() {
    for (const FaultClass c : kClasses)
      EXPECT_GT(total_[static_cast<size_t>(c)], 0u)
          << "no scenario came by a point of class "
          << sim::kFaultClassNames[static_cast<size_t>(c)];
  }
  static inline Points total_{};
};

TEST_P(KthFault, IsSurvived) {
  const Scenario& scenario = kScenarios[std::get<0>(GetParam())];
  const Shape& shape = kShapes[std::get<1>(GetParam())];
  const Points clean = run(scenario, shape, nullptr);
  ASSERT_FALSE(HasFailure()) << "the clean run";
  for (const FaultClass c : kClasses) {
    const uint64_t total = clean[static_cast<size_t>(c)];
    const char* const name = sim::kFaultClassNames[static_cast<size_t>(c)];
    for (uint64_t k = 1; k <= total; ++k) {
      SCOPED_TRACE(testing::Message() << name << "@" << k << " of " << total);
      const sim::Fault fault{.at = c, .point = k};
      run(scenario, shape, &fault);
      if (HasFailure()) return;
    }
    total_[static_cast<size_t>(c)] += total;
    std::printf("%s, %s: %s: %" PRIu64 " points, each failed once\n", scenario.name, shape.name,
                name, total);
  }
  const Points again = run(scenario, shape, nullptr);
  EXPECT_EQ(again, clean);
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<size_t, size_t>>& test) {
  return std::string(kScenarios[std::get<0>(test.param)].name) + "_" +
         name_of_shape(std::get<1>(test.param));
}
INSTANTIATE_TEST_SUITE_P(All, KthFault,
                         testing::Combine(testing::Range(size_t{0}, std::size(kScenarios)),
                                          testing::Range(size_t{0}, std::size(kShapes))),
                         name_of_case);

}  // namespace
}  // namespace nicmem::test
