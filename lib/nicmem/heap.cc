// SPDX-License-Identifier: BSD-3-Clause
#include "nicmem/heap.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

#include "base/bits.h"
#include "nicmem/copy.h"

namespace nicmem {

Heap::Heap(Memory& memory) : memory_(memory) { free_[0] = memory.size() / kUnit * kUnit; }

Result<Region> Heap::allocate(size_t bytes, size_t align) {
  if (bytes == 0)
    return fail(Code::kInvalidArgument, "device memory: 0 bytes asked for: accepted: 1 and more");
  if (!std::has_single_bit(align) || align < kUnit)
    return fail(Code::kInvalidArgument,
                "alignment " + std::to_string(align) + ": accepted: 64, 128, 256 ...");
  const std::lock_guard lock(mutex_);
  for (auto piece = free_.begin(); bytes <= memory_.size() && piece != free_.end(); ++piece) {
    const auto [start, size] = *piece;
    const uint64_t offset = round_up<uint64_t>(start, align);
    const size_t take = round_up(bytes, kUnit);
    if (offset - start > size || take > size - (offset - start)) continue;
    free_.erase(piece);
    if (offset > start) free_[start] = offset - start;
    if (const size_t rest = size - (offset - start) - take; rest > 0) free_[offset + take] = rest;
    used_[offset] = take;
    return Region{offset, take, memory_.key()};
  }
  size_t largest = 0;
  for (const auto& [start, size] : free_) largest = std::max(largest, size);
  return fail(Code::kExhausted, "device memory: " + std::to_string(bytes) +
                                    " bytes asked for, the largest free piece has " +
                                    std::to_string(largest) + " of " +
                                    std::to_string(memory_.size()));
}

Result<void> Heap::free(const Region& region) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(region.offset);
  if (found == used_.end() || found->second != region.size || region.key != memory_.key())
    return fail(Code::kInvalidArgument, "device memory: no allocation of " +
                                            std::to_string(region.size) + " bytes at " +
                                            std::to_string(region.offset) + " to free");
  NM_TRY_VOID(scrub(memory_, region));
  used_.erase(found);
  auto piece = free_.emplace(region.offset, region.size).first;
  if (const auto after = std::next(piece);
      after != free_.end() && piece->first + piece->second == after->first) {
    piece->second += after->second;
    free_.erase(after);
  }
  if (piece == free_.begin()) return {};
  if (const auto before = std::prev(piece); before->first + before->second == piece->first) {
    before->second += piece->second;
    free_.erase(piece);
  }
  return {};
}

size_t Heap::free_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [start, size] : free_) sum += size;
  return sum;
}

size_t Heap::largest_free() const {
  const std::lock_guard lock(mutex_);
  size_t largest = 0;
  for (const auto& [start, size] : free_) largest = std::max(largest, size);
  return largest;
}

size_t Heap::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [start, size] : used_) sum += size;
  return sum;
}

}  // namespace nicmem
