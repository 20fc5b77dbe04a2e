// SPDX-License-Identifier: BSD-3-Clause
// PCIe bytes of the driver's real transactions: a second counter agrees to the byte, and changing
// one thing moves exactly the classes, and by the bytes, that lib/hw's arithmetic says.
#include <rte_eal.h>

#include "driver_rig.h"
#include "support/recording_bus.h"

namespace nicmem::test {
namespace {

using RecordingNic = sim::BasicNic<RecordingBus>;
using hw::PcieClass;

/// A multiple of every ring, burst and completion interval used here.
constexpr uint32_t kFrames = 8192;

/// Class by class, what `frames` in steady state cost.
hw::PcieTally measure(const RigOptions& options) {
  DriverRig<sim::Nic> rig(options);
  rig.forward(kFrames);
  const hw::PcieTally before = rig.tally();
  rig.forward(kFrames);
  hw::PcieTally cost = rig.tally();
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    hw::PcieTransfer& now = cost.by_class[i];
    const hw::PcieTransfer& then = before.by_class[i];
    now = {{now.out.tlps - then.out.tlps, now.out.bytes - then.out.bytes},
           {now.in.tlps - then.in.tlps, now.in.bytes - then.in.bytes}};
  }
  return cost;
}

hw::PcieTransfer sum(hw::PcieTransfer a, const hw::PcieTransfer& b) { return a += b; }

/// What mode split must cost per class, from lib/hw alone.
hw::PcieTally predicted(const RigOptions& o) {
  const uint32_t header = o.header_bytes, payload = o.frame_bytes - header;
  const uint32_t pointers = o.inline_bytes == 0 ? 2 : 1;
  const uint32_t wqe =
      hw::send_wqe_blocks(hw::send_wqe_segments(o.inline_bytes, pointers)) * hw::kWqeBlockBytes;
  // records: the send queue's at each doorbell; the receive queue's and its completion queue's once
  // a lap
  const uint64_t records = kFrames / o.burst + 2 * (kFrames / o.ring);
  hw::PcieTally cost;
  cost[PcieClass::kRxDescriptor] = hw::times(kFrames, hw::dma_read(hw::receive_wqe_stride(2)));
  cost[PcieClass::kTxDescriptor] = hw::times(kFrames, hw::dma_read(wqe));
  cost[PcieClass::kRxCompletion] = hw::times(kFrames, hw::dma_write(sizeof(hw::Cqe)));
  cost[PcieClass::kTxCompletion] =
      hw::times(kFrames / pmd::kSignalPackets, hw::dma_write(sizeof(hw::Cqe)));
  cost[PcieClass::kHeader] = hw::times(kFrames, hw::dma_write(header));
  if (o.inline_bytes == 0)
    cost[PcieClass::kHeader] =
        sum(cost[PcieClass::kHeader], hw::times(kFrames, hw::dma_read(header)));
  cost[PcieClass::kPayload] =
      hw::times(kFrames, sum(hw::dma_write(payload), hw::dma_read(payload)));
  cost[PcieClass::kDoorbell] = hw::times(kFrames / o.burst, hw::mmio_write(8));
  cost[PcieClass::kDoorbellRecord] = hw::times(records, hw::dma_read(4));
  return cost;
}

/// Both runs cost what is predicted, and differ in `moved` classes only.
void expect_moves(const RigOptions& base, const RigOptions& changed,
                  std::initializer_list<PcieClass> moved) {
  const hw::PcieTally costs[] = {measure(base), measure(changed)};
  const hw::PcieTally wanted[] = {predicted(base), predicted(changed)};
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    SCOPED_TRACE(hw::kPcieClassNames[i]);
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(costs[run].by_class[i].out.bytes, wanted[run].by_class[i].out.bytes)
          << "run " << run;
      EXPECT_EQ(costs[run].by_class[i].in.bytes, wanted[run].by_class[i].in.bytes) << "run " << run;
    }
    const bool may_move = std::count(moved.begin(), moved.end(), static_cast<PcieClass>(i)) != 0;
    EXPECT_EQ(!(costs[0].by_class[i] == costs[1].by_class[i]), may_move);
  }
}

TEST(PcieAccounting, HeaderLengthMovesBytesBetweenHeaderAndPayload) {
  expect_moves({.header_bytes = 64}, {.header_bytes = 200},
               {PcieClass::kHeader, PcieClass::kPayload});
}

TEST(PcieAccounting, BurstSizeMovesDoorbells) {
  expect_moves({.burst = 32}, {.burst = 8}, {PcieClass::kDoorbell, PcieClass::kDoorbellRecord});
}

TEST(PcieAccounting, RingSizeMovesRecordReads) {
  expect_moves({.ring = 1024}, {.ring = 256}, {PcieClass::kDoorbellRecord});
}

TEST(PcieAccounting, InliningMovesTheHeaderIntoTheDescriptor) {
  expect_moves({.inline_bytes = 0}, {.inline_bytes = 64},
               {PcieClass::kTxDescriptor, PcieClass::kHeader});
}

TEST(PcieAccounting, ASecondCounterOverBusAndRegistersAgreesInEveryMode) {
  for (const pmd::Mode mode :
       {pmd::Mode::kHost, pmd::Mode::kSplit, pmd::Mode::kNicmemNoInline, pmd::Mode::kNicmem}) {
    for (const uint32_t bytes : {64u, 512u, 1500u}) {
      SCOPED_TRACE(std::string(pmd::name_of(mode)) + ", frames of " + std::to_string(bytes));
      RigOptions options{.mode = mode, .frame_bytes = bytes};
      options.inline_bytes = mode == pmd::Mode::kNicmem ? options.header_bytes : 0;
      DriverRig<RecordingNic> rig(options);
      rig.forward(4096);
      hw::PcieTally again = rig.model().bus().count_again();
      // an MMIO write of 8 bytes: one TLP with 24 bytes around it
      again[PcieClass::kDoorbell].in = {rig.doorbells_seen(), rig.doorbells_seen() * 32};
      EXPECT_TRUE(again == rig.tally());
      EXPECT_EQ(rig.doorbells_seen(), 4096u / 32);
    }
  }
}

}  // namespace
}  // namespace nicmem::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* eal[] = {"pcie_accounting",
                       "--no-huge",
                       "-m",
                       "256",
                       "--no-pci",
                       "--no-telemetry",
                       "-l",
                       "0",
                       "--log-level",
                       "3",
                       "--file-prefix",
                       "pcie_accounting"};
  if (rte_eal_init(static_cast<int>(std::size(eal)), const_cast<char**>(eal)) < 0) return 1;
  const int result = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return result;
}
