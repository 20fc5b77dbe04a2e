// SPDX-License-Identifier: BSD-3-Clause
// The host's own memory fails: pools that cannot be made, pools whose k-th get fails, and objects
// of the device that cannot be made while a port is probed.
#include <rte_mbuf_pool_ops.h>

#include "faulty_port.h"

namespace nicmem::test {
namespace {

/// DPDK's ring pool, with gets and creations that fail by plan. Thread rule: one thread.
struct PoolPlan {
  uint64_t gets = 0, fail_get = 0;  // 1: the first; 0: none
  uint64_t creations = 0, fail_creation = 0;
  bool armed = false;
};
PoolPlan plan;

const rte_mempool_ops& inner() {
  for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; ++i)
    if (std::string(rte_mempool_ops_table.ops[i].name) == "ring_mp_mc")
      return rte_mempool_ops_table.ops[i];
  ADD_FAILURE() << "DPDK's ring pool is not there";
  return rte_mempool_ops_table.ops[0];
}

int create(rte_mempool* pool) {
  if (plan.armed && ++plan.creations == plan.fail_creation) return -ENOMEM;
  return inner().alloc(pool);
}
int get(rte_mempool* pool, void** objects, unsigned count) {
  if (plan.armed && ++plan.gets == plan.fail_get) return -ENOBUFS;
  return inner().dequeue(pool, objects, count);
}

/// Every pool of packets that is made while this lives may fail.
class FailingPools {
 public:
  FailingPools() {
    static const int registered = [] {
      rte_mempool_ops ops{};
      std::snprintf(ops.name, sizeof ops.name, "failing_ring");
      ops.alloc = create;
      ops.free = [](rte_mempool* pool) { inner().free(pool); };
      ops.enqueue = [](rte_mempool* pool, void* const* objects, unsigned count) {
        return inner().enqueue(pool, objects, count);
      };
      ops.dequeue = get;
      ops.get_count = [](const rte_mempool* pool) { return inner().get_count(pool); };
      return rte_mempool_register_ops(&ops);
    }();
    EXPECT_GE(registered, 0);
    EXPECT_EQ(rte_mbuf_set_user_mempool_ops("failing_ring"), 0);
    plan = {};
  }
  ~FailingPools() {
    plan = {};
    EXPECT_EQ(rte_mbuf_set_user_mempool_ops("ring_mp_mc"), 0);
  }
};

/// While this lives, the plan holds for whatever the port does.
class Armed {
 public:
  Armed(uint64_t fail_get, uint64_t fail_creation) {
    plan = {.fail_get = fail_get, .fail_creation = fail_creation, .armed = true};
  }
  ~Armed() { plan.armed = false; }
};

void expect_works(FaultyPort& port) {
  if (!port.started()) {
    ASSERT_EQ(port.set_up(), 0);
    ASSERT_EQ(port.start(), 0);
  }
  port.exchange(0);
  EXPECT_EQ(port.exchange(100), 100u);
  port.expect_conserved(0);
  EXPECT_EQ(port.stop(), 0);
  port.expect_conserved(0);
  port.expect_empty();
}

class FaultHostMemory : public testing::TestWithParam<size_t> {
 protected:
  FailingPools pools;
};

/// The driver makes pools at the first start only: card and host payload.
TEST_P(FaultHostMemory, APoolThatCannotBeMadeFailsTheStartOrStaysInHostMemory) {
  uint64_t creations = 0;
  {
    FaultyPort port(kShapes[GetParam()]);
    ASSERT_EQ(port.open(), 0);
    ASSERT_EQ(port.set_up(), 0);
    const Armed armed(0, 0);
    ASSERT_EQ(port.start(), 0);
    creations = plan.creations;
  }
  std::printf("%s: %" PRIu64 " pools made\n", kShapes[GetParam()].name, creations);
  for (uint64_t k = 1; k <= creations; ++k) {
    SCOPED_TRACE(k);
    FaultyPort port(kShapes[GetParam()]);
    ASSERT_EQ(port.open(), 0);
    ASSERT_EQ(port.set_up(), 0);
    int started = 0;
    {
      const Armed armed(0, k);
      started = port.start();
    }
    if (started != 0) port.expect_empty();
    // without a pool on the card payloads go to host memory; without that the port cannot run
    EXPECT_EQ(started == 0, k == 2) << started;
    expect_works(port);
  }
}

/// Every get that a start makes, and every one of some traffic.
TEST_P(FaultHostMemory, TheKthGetThatFailsCostsAStartOrAFrame) {
  for (const bool traffic : {false, true}) {
    uint64_t gets = 0;
    for (uint64_t k = 0; k <= gets; ++k) {  // 0: the clean run
      SCOPED_TRACE(std::string(traffic ? "traffic" : "start") + ", get " + std::to_string(k));
      FaultyPort port(kShapes[GetParam()]);
      ASSERT_EQ(port.open(), 0);
      ASSERT_EQ(port.set_up(), 0);
      if (traffic) {
        ASSERT_EQ(port.start(), 0);
      }
      int started = 0;
      uint32_t received = 0;
      {
        const Armed armed(k, 0);
        if (traffic)
          received = port.exchange(48);
        else
          started = port.start();
        if (k == 0) gets = plan.gets;
      }
      if (started != 0) port.expect_empty();
      if (traffic) {
        EXPECT_EQ(received + port.xstat("rx_no_mbuf"), port.xstat("rx_device_frames"));
        EXPECT_LE(port.xstat("rx_no_mbuf"), 1u);
      }
      expect_works(port);
      if (HasFailure()) return;
    }
    EXPECT_GT(gets, 0u);
    std::printf("%s: %s: %" PRIu64 " gets, each failed once\n", kShapes[GetParam()].name,
                traffic ? "traffic" : "start", gets);
  }
}

/// The device cannot make one of the objects that a probe needs.
TEST_P(FaultHostMemory, AProbeThatFailsLeavesNothing) {
  uint64_t k = 1;
  for (; k < 100; ++k) {
    FaultyPort port(kShapes[GetParam()]);
    if (port.open("allocation@" + std::to_string(k)) != 0) {
      EXPECT_EQ(rte_eth_dev_count_avail(), 0);
      continue;
    }
    if (port.plan->hit(sim::FaultClass::kAllocation) == 0) break;
    // survived: what has failed can be done without
    port.plan->disarm();
    expect_works(port);
  }
  EXPECT_GT(k, 1u);
  EXPECT_LT(k, 100u) << "a probe makes no end of objects";
  std::printf("%s: a probe makes %" PRIu64 " objects\n", kShapes[GetParam()].name, k - 1);
  FaultyPort port(kShapes[GetParam()]);
  ASSERT_EQ(port.open(), 0);
  expect_works(port);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FaultHostMemory, testing::Range(size_t{0}, std::size(kShapes)),
                         [](const testing::TestParamInfo<size_t>& shape) {
                           return name_of_shape(shape.param);
                         });

}  // namespace
}  // namespace nicmem::test
