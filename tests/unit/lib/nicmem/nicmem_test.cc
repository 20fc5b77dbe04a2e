// SPDX-License-Identifier: BSD-3-Clause
// Device memory for programs: how much is got, who may find whose bytes, what copies allow and
// count.
#include "nicmem/nicmem.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "nicmem/copy.h"
#include "nicmem/errno.h"
#include "nicmem/heap.h"
#include "nicmem/memory.h"
#include "support/fake_hca.h"
#include "support/seed.h"

namespace nicmem::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(size_t size, int seed = 1) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 13 + static_cast<size_t>(seed));
  return bytes;
}

std::unique_ptr<Memory> allocate(FakeHca& hca, size_t bytes) {
  auto memory = Memory::allocate(hca, hca::Domain{1}, bytes);
  EXPECT_TRUE(memory.has_value()) << memory.error().what;
  return std::move(*memory);
}

class NicmemTest : public testing::Test {
 protected:
  FakeCard card;
  FakeHca hca{card};
};

using MemoryTest = NicmemTest;

TEST_F(MemoryTest, HalvesUntilItFits) {
  card.capacity_bytes = 100'000;
  const auto memory = allocate(hca, 1_MiB);
  EXPECT_EQ(memory->requested(), 1_MiB);
  EXPECT_EQ(memory->size(), 64_KiB);
}

TEST_F(MemoryTest, GivesUpBelowFourKiBAndSaysWhatWasWanted) {
  card.capacity_bytes = 4095;
  const auto memory = Memory::allocate(hca, hca::Domain{1}, 1_MiB);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::kExhausted);
  EXPECT_NE(memory.error().what.find("1MiB"), std::string::npos) << memory.error().what;
  card.capacity_bytes = 4096;
  EXPECT_EQ(allocate(hca, 1_MiB)->size(), 4_KiB);
}

TEST_F(MemoryTest, DRV_22_ADeviceWithoutMemoryIsUnsupported) {
  hca.change_capabilities().device_memory_bytes = 0;
  const auto memory = Memory::allocate(hca, hca::Domain{1}, 1_MiB);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::kUnsupported);
}

TEST_F(MemoryTest, IsScrubbedForEachOwner) {
  auto memory = allocate(hca, 8_KiB);
  Bytes found(64, std::byte{1});
  ASSERT_TRUE(copy_from_nic(*memory, memory->whole(), 0, found));
  EXPECT_EQ(found, Bytes(64));
  ASSERT_TRUE(copy_to_nic(*memory, memory->whole(), 0, pattern(64)));
  memory.reset();
  EXPECT_EQ(Bytes(card.last_released, card.last_released + 64), Bytes(64));
}

TEST_F(MemoryTest, EachCallThatFailsLeavesNothingBehind) {
  for (int k = 0;; ++k) {
    card.fail_call = k;
    card.calls = 0;
    const auto memory = Memory::allocate(hca, hca::Domain{1}, 8_KiB);
    if (memory) {
      EXPECT_EQ(k, 2);  // allocation, registration
      break;
    }
    EXPECT_EQ(to_errno(memory.error()), EIO);
    EXPECT_EQ(card.live_objects, 0) << "call " << k;
  }
  EXPECT_EQ(card.live_objects, 0);
}

using CopyTest = NicmemTest;

TEST_F(CopyTest, DRV_22_TakesMultiplesOfFourWithinTheRegion) {
  const auto memory = allocate(hca, 8_KiB);
  const Region region{64, 128, memory->key()};
  const struct {
    size_t offset, length;
    bool good;
  } cases[] = {{0, 128, true},        {0, 132, false}, {124, 4, true},  {128, 4, false},
               {128, 0, true},        {2, 4, false},   {4, 6, false},   {0, 3, false},
               {0, 5, false},         {0, 4, true},    {132, 0, false}, {4, ~size_t{3}, false},
               {~size_t{3}, 8, false}};
  for (const auto& [offset, length, good] : cases) {
    SCOPED_TRACE(std::to_string(offset) + ", " + std::to_string(length));
    const std::byte* const none = nullptr;
    const Bytes data = pattern(length <= 4096 ? length : 0);
    const std::span<const std::byte> span(length <= 4096 ? data.data() : none, length);
    const auto done = copy_to_nic(*memory, region, offset, span);
    EXPECT_EQ(done.has_value(), good);
    if (!done) {
      EXPECT_EQ(done.error().code, Code::kInvalidArgument);
    }
  }
}

TEST_F(CopyTest, RefusesARegionOutsideTheMemory) {
  const auto memory = allocate(hca, 8_KiB);
  Bytes four(4);
  EXPECT_FALSE(copy_to_nic(*memory, {8192, 4, 0}, 0, four));
  EXPECT_FALSE(copy_to_nic(*memory, {8188, 8, 0}, 0, four));
  EXPECT_FALSE(copy_to_nic(*memory, {~uint64_t{3}, 8, 0}, 0, four));
  EXPECT_TRUE(copy_to_nic(*memory, {8188, 4, 0}, 0, four));
}

TEST_F(CopyTest, RoundTripIsCountedAndWorksUnderGuard) {
  card.guard = true;
  const auto memory = allocate(hca, 8_KiB);
  const Bytes data = pattern(1000);
  ASSERT_TRUE(copy_to_nic(*memory, memory->whole(), 200, data));
  EXPECT_EQ(memory->stats().reads, 0u);
  Bytes back(1000);
  ASSERT_TRUE(copy_from_nic(*memory, memory->whole(), 200, back));
  EXPECT_EQ(back, data);
  EXPECT_EQ(memory->stats().writes, 1u);
  EXPECT_EQ(memory->stats().bytes_read, 1000u);
  const auto* const window = reinterpret_cast<volatile uint8_t*>(memory->window().data());
  EXPECT_DEATH(static_cast<void>(*window + 0), "");
}

TEST_F(CopyTest, SlowReadsAreLimitedInRate) {
  const auto memory = allocate(hca, 8_KiB);
  memory->set_slow_read_rate(100);  // the bucket holds ten
  Bytes three(3);
  Nanos now = 1'000'000'000;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(slow_read(*memory, memory->whole(), 5, three, now)) << i;
  const auto refused = slow_read(*memory, memory->whole(), 5, three, now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 5, three, now + 9'000'000));
  EXPECT_TRUE(slow_read(*memory, memory->whole(), 5, three, now + 19'000'000));
  EXPECT_EQ(memory->stats().slow_reads, 11u);
  EXPECT_EQ(memory->stats().slow_reads_refused, 2u);
}

using HeapTest = NicmemTest;

TEST_F(HeapTest, ArgumentsAndErrorsNameWhatIsAccepted) {
  const auto memory = allocate(hca, 8_KiB);
  Heap heap(*memory);
  EXPECT_EQ(heap.allocate(0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(heap.allocate(64, 96).error().code, Code::kInvalidArgument);
  EXPECT_EQ(heap.allocate(64, 32).error().code, Code::kInvalidArgument);
  EXPECT_EQ(heap.allocate(8193).error().code, Code::kExhausted);
  EXPECT_EQ(heap.allocate(~size_t{0}).error().code, Code::kExhausted);
  const auto all = heap.allocate(8192);
  ASSERT_TRUE(all);
  const auto none = heap.allocate(1);
  EXPECT_NE(none.error().what.find("largest free piece has 0"), std::string::npos)
      << none.error().what;
  EXPECT_TRUE(heap.free(*all));
  EXPECT_EQ(heap.free(*all).error().code, Code::kInvalidArgument);
  EXPECT_EQ(heap.largest_free(), 8192u);
}

TEST_F(HeapTest, NoOwnerFindsAnothersBytes) {
  const auto memory = allocate(hca, 8_KiB);
  Heap heap(*memory);
  for (int round = 0; round < 3; ++round) {
    const auto region = heap.allocate(1000);
    ASSERT_TRUE(region);
    Bytes found(1000);
    ASSERT_TRUE(copy_from_nic(*memory, *region, 0, found));
    EXPECT_EQ(found, Bytes(1000));
    ASSERT_TRUE(copy_to_nic(*memory, *region, 0, pattern(1000, round)));
    ASSERT_TRUE(heap.free(*region));
  }
}

TEST_F(HeapTest, AgreesWithAnObviousModel) {
  Rng rng(test_seed());
  const auto memory = allocate(hca, 64_KiB);
  Heap heap(*memory);
  std::vector<Region> live;
  std::vector<bool> used(64_KiB / Heap::kUnit);
  for (int step = 0; step < 5000; ++step) {
    if (rng.below(2) == 0 && !live.empty()) {
      const size_t victim = rng.below(live.size());
      ASSERT_TRUE(heap.free(live[victim]));
      for (size_t u = 0; u < live[victim].size / 64; ++u)
        used[live[victim].offset / 64 + u] = false;
      live.erase(live.begin() + static_cast<long>(victim));
    } else {
      const size_t bytes = 1 + rng.below(6000), align = size_t{64} << rng.below(4);
      const auto region = heap.allocate(bytes, align);
      if (!region) continue;
      ASSERT_EQ(region->offset % align, 0u);
      ASSERT_GE(region->size, bytes);
      for (size_t u = 0; u < region->size / 64; ++u) {
        ASSERT_FALSE(used[region->offset / 64 + u]) << "step " << step;
        used[region->offset / 64 + u] = true;
      }
      live.push_back(*region);
    }
    size_t free = 0, run = 0, largest = 0;
    for (const bool taken : used) {
      run = taken ? 0 : run + 64;
      free += taken ? 0 : 64;
      largest = std::max(largest, run);
    }
    ASSERT_EQ(heap.free_bytes(), free) << "step " << step;
    ASSERT_EQ(heap.largest_free(), largest) << "step " << step;
    ASSERT_EQ(heap.allocated_bytes(), 64_KiB - free);
  }
}

TEST_F(NicmemTest, TheCApiCopiesAndReportsErrno) {
  const auto memory = allocate(hca, 8_KiB);
  const nicmem_region region{64, 256, memory->key(),
                             reinterpret_cast<nicmem_memory*>(memory.get())};
  const Bytes data = pattern(256);
  Bytes back(256);
  EXPECT_EQ(nicmem_copy_to(&region, 0, data.data(), data.size()), 0);
  EXPECT_EQ(nicmem_copy_from(&region, 0, back.data(), back.size()), 0);
  EXPECT_EQ(back, data);
  EXPECT_EQ(nicmem_copy_to(&region, 2, data.data(), 4), -EINVAL);
  EXPECT_EQ(nicmem_copy_from(&region, 256, back.data(), 4), -EINVAL);
  EXPECT_EQ(nicmem_pointer(&region), memory->window().data() + 64);
}

}  // namespace
}  // namespace nicmem::test
