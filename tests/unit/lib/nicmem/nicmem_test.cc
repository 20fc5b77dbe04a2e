// SPDX-License-Identifier: BSD-3-Clause
// Device memory for programs: how much is got, who may find whose bytes, what copies allow and
// count.
#include "nicmem/nicmem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
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

TEST_F(MemoryTest, GetsAllOfItWhereItFits) {
  for (const auto& [capacity, got] :
       {std::pair{64_KiB - 1, 32_KiB}, {64_KiB, 64_KiB}, {64_KiB + 1, 64_KiB}}) {
    card.capacity_bytes = capacity;
    EXPECT_EQ(allocate(hca, 64_KiB)->size(), got) << capacity;
  }
}

TEST_F(MemoryTest, HalvesInUnitsOfTheCard) {
  card.capacity_bytes = 50'000;
  EXPECT_EQ(allocate(hca, 100'000)->size(), 49'984u);  // 50,000 down to a multiple of 64
}

TEST_F(MemoryTest, TakesAnySizeInUnitsOfTheCard) {
  hca.change_capabilities().device_memory_bytes = 100'001;  // 100,032 is too much for it
  card.capacity_bytes = 100'001;
  for (const auto& [want, got] : {std::pair<size_t, size_t>{4096, 4096},
                                  {4097, 4160},
                                  {4159, 4160},
                                  {4160, 4160},
                                  {4161, 4224},
                                  {99'968, 99'968},
                                  {99'969, 99'968},
                                  {~size_t{0}, 99'968}})
    EXPECT_EQ(allocate(hca, want)->size(), got) << want;
}

TEST_F(MemoryTest, AsksForNoMoreThanTheDeviceHas) {
  hca.change_capabilities().device_memory_bytes = 100'032;
  card.capacity_bytes = 100'032;
  const auto memory = allocate(hca, 1024_MiB);
  EXPECT_EQ(memory->requested(), 1024_MiB);
  EXPECT_EQ(memory->size(), 100'032u);
}

TEST_F(MemoryTest, GivesUpBelowFourKiBAndSaysWhatWasWanted) {
  card.capacity_bytes = 4095;
  const auto memory = Memory::allocate(hca, hca::Domain{1}, 2_MiB);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::kExhausted);
  EXPECT_EQ(memory.error().what,
            "device memory: asked for 2MiB, the device offers 1MiB at most and gave not even 4KiB");
  card.capacity_bytes = 4096;
  EXPECT_EQ(allocate(hca, 1_MiB)->size(), 4_KiB);
}

TEST_F(MemoryTest, TakesFourKiBAndMore) {
  const auto memory = Memory::allocate(hca, hca::Domain{1}, 4095);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::kInvalidArgument);
  EXPECT_EQ(memory.error().what, "device memory: 4095B asked for: accepted: 4KiB and more");
  EXPECT_EQ(card.calls, 0);
  EXPECT_EQ(allocate(hca, 4096)->size(), 4096u);
}

TEST_F(MemoryTest, DRV_22_ADeviceWithoutMemoryIsUnsupported) {
  hca.change_capabilities().device_memory_bytes = 0;
  const auto memory = Memory::allocate(hca, hca::Domain{1}, 1_MiB);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Code::kUnsupported);
  EXPECT_EQ(memory.error().what, "fake has no device memory to give");
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

/// A copy within a region of 128 bytes at 64. `words`: allowed for copies in units of 4 bytes;
/// `bytes`: for slow reads, which take any range.
struct CopyCase {
  size_t offset, length;
  bool words, bytes;
};
constexpr CopyCase kCopyCases[] = {
    {0, 0, true, true},
    {0, 3, false, true},
    {0, 4, true, true},
    {0, 5, false, true},
    {3, 4, false, true},
    {4, 4, true, true},
    {5, 4, false, true},
    {0, 124, true, true},
    {0, 127, false, true},
    {0, 128, true, true},
    {0, 129, false, false},
    {0, 132, false, false},
    {120, 4, true, true},
    {124, 4, true, true},
    {125, 3, false, true},
    {125, 4, false, false},
    {128, 4, false, false},
    {128, 0, true, true},
    {129, 0, false, false},
    {132, 0, false, false},
    {4, ~size_t{3}, false, false},
    {~size_t{3}, 8, false, false},
    {~size_t{3}, 0, false, false},
};

TEST_F(CopyTest, DRV_22_StaysWithinTheRegionAndCopiesWholeWords) {
  const auto memory = allocate(hca, 8_KiB);
  memory->set_slow_read_rate(1'000'000);
  const Region region{64, 128, memory->key()};
  Bytes bytes(128);
  for (const auto& [offset, length, words_good, bytes_good] : kCopyCases) {
    SCOPED_TRACE(std::to_string(offset) + ", " + std::to_string(length));
    const std::span<std::byte> span(bytes.data(), length);  // of a bad length: never looked at
    const auto before = memory->stats();
    for (const auto& done : {copy_to_nic(*memory, region, offset, span),
                             copy_from_nic(*memory, region, offset, span)}) {
      EXPECT_EQ(done.has_value(), words_good);
      EXPECT_TRUE(done || done.error().code == Code::kInvalidArgument);
    }
    EXPECT_EQ(slow_read(*memory, region, offset, span, 0).has_value(), bytes_good);
    const auto after = memory->stats();
    EXPECT_EQ(after.writes - before.writes, words_good ? 1u : 0u);
    EXPECT_EQ(after.bytes_written - before.bytes_written, words_good ? length : 0u);
    const uint64_t reads = (words_good ? 1u : 0u) + (bytes_good ? 1u : 0u);
    EXPECT_EQ(after.reads - before.reads, reads);
    EXPECT_EQ(after.bytes_read - before.bytes_read, reads == 0 ? 0u : reads * length);
    EXPECT_EQ(after.slow_reads - before.slow_reads, bytes_good ? 1u : 0u);
  }
}

TEST_F(CopyTest, ErrorsSayWhatWasAskedForAndWhatIsAccepted) {
  const auto memory = allocate(hca, 8_KiB);
  const Region region{64, 128, memory->key()};
  Bytes bytes(8);
  EXPECT_EQ(copy_to_nic(*memory, region, 124, bytes).error().what,
            "copy of 8 bytes at 124: the region has 128 bytes at 64 of 8192");
  EXPECT_EQ(copy_to_nic(*memory, region, 2, bytes).error().what,
            "copy of 8 bytes at 2 of a region at 64: accepted: multiples of 4 for the length and "
            "for the place in device memory");
  memory->set_slow_read_rate(0);
  EXPECT_EQ(slow_read(*memory, region, 1, bytes, 0).error().what,
            "slow read of 8 bytes: refused: accepted: 0 reads a second");
}

TEST_F(CopyTest, WritesNothingBesideTheRange) {
  const auto memory = allocate(hca, 8_KiB);
  const Bytes background = pattern(256, 9), data = pattern(64, 77);
  for (const size_t length : {4u, 60u, 64u}) {
    ASSERT_TRUE(copy_to_nic(*memory, memory->whole(), 0, background));
    ASSERT_TRUE(copy_to_nic(*memory, {64, 128, memory->key()}, 4, std::span(data).first(length)));
    Bytes expected = background, found(256);
    std::copy_n(data.begin(), length, expected.begin() + 68);
    ASSERT_TRUE(copy_from_nic(*memory, memory->whole(), 0, found));
    EXPECT_EQ(found, expected) << length;
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

TEST_F(CopyTest, SlowReadsStartWithATenthOfASecondsWorth) {
  const auto memory = allocate(hca, 8_KiB);
  Bytes one(1);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(slow_read(*memory, memory->whole(), 0, one, 5)) << i;
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 5));
  for (uint64_t i = 0; i < 1000; ++i) {  // a year later: no more than that
    ASSERT_TRUE(slow_read(*memory, memory->whole(), 0, one, 31'536'000'000'000'000)) << i;
  }
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 31'536'000'000'000'000));
}

TEST_F(CopyTest, AClockThatIsReadTooEarlyBringsNoSlowReads) {
  const auto memory = allocate(hca, 8_KiB);
  memory->set_slow_read_rate(10);  // the bucket holds one
  Bytes one(1);
  ASSERT_TRUE(slow_read(*memory, memory->whole(), 0, one, 1'000'000));
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 999'999));
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 1'000'000));
}

TEST_F(CopyTest, TwoClocksThatDifferDoNotRaiseTheRate) {
  const auto memory = allocate(hca, 8_KiB);
  memory->set_slow_read_rate(10'000);  // the bucket holds 1,000
  Bytes one(1);
  uint64_t taken = 0;
  for (Nanos now = 1'000'000'000; now <= 1'100'000'000; now += 10'000)  // 100 ms
    for (const Nanos late : {0, 10'000})
      for (int i = 0; i < 3; ++i)
        taken += slow_read(*memory, memory->whole(), 0, one, now - late).has_value();
  EXPECT_LE(taken, 2000u);
  EXPECT_GE(taken, 1999u);  // a fraction of a read may be left over
}

TEST_F(CopyTest, SlowReadsTakeAnyRange) {
  const auto memory = allocate(hca, 4_KiB);
  memory->set_slow_read_rate(1'000'000);
  const Bytes data = pattern(4096, 5);
  ASSERT_TRUE(copy_to_nic(*memory, memory->whole(), 0, data));
  for (const size_t end : {size_t{64}, data.size()}) {  // within the memory and to its last byte
    for (size_t length = 0; length <= 13; ++length) {
      Bytes found(length);
      const size_t offset = end - length;
      ASSERT_TRUE(slow_read(*memory, memory->whole(), offset, found, 0));
      EXPECT_TRUE(std::equal(found.begin(), found.end(),
                             data.begin() + static_cast<std::ptrdiff_t>(offset)))
          << length << " bytes to " << end;
    }
  }
}

TEST_F(CopyTest, ARateOfZeroAllowsNoSlowRead) {
  const auto memory = allocate(hca, 8_KiB);
  memory->set_slow_read_rate(0);
  Bytes one(1);
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 0));
  EXPECT_FALSE(slow_read(*memory, memory->whole(), 0, one, 10'000'000'000));
  EXPECT_EQ(memory->stats().slow_reads_refused, 2u);
  EXPECT_EQ(memory->stats().reads, 0u);
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
  EXPECT_EQ(heap.allocate(1).error().what,
            "device memory: 1 bytes asked for, the largest free piece has 0 of 8192");
  EXPECT_TRUE(heap.free(*all));
  EXPECT_EQ(heap.free(*all).error().code, Code::kInvalidArgument);
  EXPECT_EQ(heap.largest_free(), 8192u);
}

TEST_F(HeapTest, TakesBackOnlyWhatItGave) {
  const auto memory = allocate(hca, 8_KiB);
  Heap heap(*memory);
  const Region given = *heap.allocate(128);
  for (const Region& other : {Region{given.offset + 64, 64, given.key},
                              {given.offset, 64, given.key},
                              {given.offset, 192, given.key},
                              {given.offset, 128, given.key + 1}}) {
    EXPECT_EQ(heap.free(other).error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(heap.allocated_bytes(), 128u);
  EXPECT_TRUE(heap.free(given));
}

TEST_F(HeapTest, RoundsUpToUnits) {
  const auto memory = allocate(hca, 8_KiB);
  Heap heap(*memory);
  for (const auto& [bytes, size] : {std::pair{1u, 64u}, {63u, 64u}, {64u, 64u}, {65u, 128u}})
    EXPECT_EQ(heap.allocate(bytes)->size, size) << bytes;
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
    ASSERT_TRUE(copy_from_nic(*memory, *region, 0, found));  // gone before the next owner comes
    EXPECT_EQ(found, Bytes(1000));
  }
}

/// Whether `units` free units follow each other from a multiple of `align` units on.
bool fits(const std::vector<bool>& used, size_t units, size_t align) {
  for (size_t start = 0; start + units <= used.size(); start += align) {
    const auto from = used.begin() + static_cast<std::ptrdiff_t>(start);
    if (std::find(from, from + static_cast<std::ptrdiff_t>(units), true) ==
        from + static_cast<std::ptrdiff_t>(units))
      return true;
  }
  return false;
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
      ASSERT_EQ(region.has_value(), fits(used, (bytes + 63) / 64, align / 64)) << "step " << step;
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

  memory->set_slow_read_rate(10);  // the bucket holds one
  EXPECT_EQ(nicmem_slow_read(&region, 250, back.data(), 7, 1), -EINVAL);
  EXPECT_EQ(nicmem_slow_read(&region, 250, back.data(), 6, 1), 0);
  EXPECT_EQ(std::memcmp(back.data(), data.data() + 250, 6), 0);
  EXPECT_EQ(nicmem_slow_read(&region, 0, back.data(), 1, 99'000'000), -ENOMEM);
  EXPECT_EQ(nicmem_slow_read(&region, 0, back.data(), 1, 200'000'001), 0);
}

TEST(CApi, RefusesARegionWithoutMemory) {
  const nicmem_region none{};
  uint32_t word = 0;
  EXPECT_EQ(nicmem_copy_to(&none, 0, &word, 4), -EINVAL);
  EXPECT_EQ(nicmem_copy_from(&none, 0, &word, 4), -EINVAL);
  EXPECT_EQ(nicmem_slow_read(&none, 0, &word, 4, 0), -EINVAL);
  EXPECT_EQ(nicmem_pointer(&none), nullptr);
}

TEST(Errno, EachCodeHasOne) {
  const auto of = [](Code code, int detail = 0) { return to_errno(Error{code, "", detail}); };
  EXPECT_EQ(of(Code::kInvalidArgument), EINVAL);
  EXPECT_EQ(of(Code::kNotFound), ENOENT);
  EXPECT_EQ(of(Code::kExhausted), ENOMEM);
  EXPECT_EQ(of(Code::kUnsupported), ENOTSUP);
  EXPECT_EQ(of(Code::kDevice, 0x13), EIO);
  EXPECT_EQ(of(Code::kSystem, EPERM), EPERM);
  EXPECT_EQ(of(Code::kSystem), EIO);
}

}  // namespace
}  // namespace nicmem::test
