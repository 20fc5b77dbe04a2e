// SPDX-License-Identifier: BSD-3-Clause
#include "memory_map.h"

#include <rte_eal_memconfig.h>
#include <rte_memory.h>

#include <algorithm>

#include "compat.h"

namespace nicmem::pmd {
namespace {

struct Chunk {
  const void* wanted;
  void* start = nullptr;
  size_t length = 0;
};

/// Called for each contiguous piece of DPDK's memory; 1 stops the walk.
int match_chunk(const rte_memseg_list*, const rte_memseg* segment, size_t length, void* argument) {
  auto& chunk = *static_cast<Chunk*>(argument);
  const auto start = reinterpret_cast<uintptr_t>(segment->addr);
  const auto wanted = reinterpret_cast<uintptr_t>(chunk.wanted);
  if (wanted < start || wanted - start >= length) return 0;
  chunk.start = segment->addr;
  chunk.length = length;
  return 1;
}

/// DPDK calls it before it unmaps memory, with the lock of its memory map held.
void on_memory_event(rte_mem_event event, const void* start, size_t length, void* map) {
  if (event == RTE_MEM_EVENT_FREE) static_cast<MemoryMap*>(map)->forget(start, length);
}
constexpr const char* kEventName = "net_nicmem";

/// Holds DPDK's memory map still.
class MemoryLock {
 public:
  MemoryLock() { rte_mcfg_mem_read_lock(); }
  ~MemoryLock() { rte_mcfg_mem_read_unlock(); }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
};

}  // namespace

MemoryMap::MemoryMap(hca::Hca& hca, hca::Domain domain) : hca_(hca), domain_(domain) {
  // refused where memory never goes (--legacy-mem, --no-huge): then there is nothing to forget
  static_cast<void>(rte_mem_event_callback_register(kEventName, on_memory_event, this));
}

MemoryMap::~MemoryMap() { static_cast<void>(rte_mem_event_callback_unregister(kEventName, this)); }

void MemoryMap::add_device_memory(std::span<std::byte> window, uint32_t key) {
  const auto start = reinterpret_cast<uintptr_t>(window.data());
  const std::lock_guard lock(mutex_);
  ranges_.push_back({start, window.size(), start, be32(key), true});
}

KeyRange MemoryMap::device_memory() const {
  const std::lock_guard lock(mutex_);
  for (const KeyRange& range : ranges_)
    if (range.on_card) return range;
  return {};
}

Result<void> MemoryMap::add_host_memory(void* start, size_t length) {
  const MemoryLock still;
  const std::lock_guard lock(mutex_);
  KeyRange range;
  if (find_known(start, range) && range.contains(static_cast<char*>(start) + length - 1)) return {};
  NM_TRY(range, add(start, length));
  return {};
}

bool MemoryMap::forget(const void* start, size_t length) {
  const auto from = reinterpret_cast<uintptr_t>(start), to = from + length;
  const std::lock_guard lock(mutex_);
  std::vector<KeyRange> kept;
  bool known = false;
  for (const KeyRange& range : ranges_) {
    if (range.on_card || range.start >= to || from >= range.start + range.size) {
      kept.push_back(range);
      continue;
    }
    known = true;
    const uintptr_t end = range.start + range.size;
    KeyRange before = range, after = range;
    before.size = from - range.start;
    after.start = to;
    after.size = end - to;
    if (range.start < from) kept.push_back(before);
    if (to < end) kept.push_back(after);
  }
  if (!known) return false;
  ranges_ = std::move(kept);
  generation_.fetch_add(1, std::memory_order_relaxed);
  std::erase_if(regions_, [this](const auto& region) {
    return std::ranges::none_of(
        ranges_, [&region](const KeyRange& range) { return range.key == be32(region->key); });
  });
  return true;
}

MemoryMap::Total MemoryMap::registered() const {
  const std::lock_guard lock(mutex_);
  Total total;
  for (const KeyRange& range : ranges_) {
    if (range.on_card) continue;
    ++total.ranges;
    total.bytes += range.size;
  }
  return total;
}

bool MemoryMap::find_known(const void* pointer, KeyRange& out) const {
  const auto at =
      std::ranges::find_if(ranges_, [pointer](const KeyRange& r) { return r.contains(pointer); });
  if (at == ranges_.end()) return false;
  out = *at;
  return true;
}

bool MemoryMap::find(const void* pointer, KeyRange& out) {
  {
    const std::lock_guard lock(mutex_);
    if (find_known(pointer, out)) return true;
  }
  const MemoryLock still;
  const std::lock_guard lock(mutex_);
  return find_known(pointer, out) || register_around(pointer, out);
}

bool MemoryMap::register_around(const void* pointer, KeyRange& out) {
  Chunk chunk{.wanted = pointer};
  // testpmd's external buffers and rte_extmem_register()ed memory are in the walk too
  if (rte_memseg_contig_walk_thread_unsafe(match_chunk, &chunk) != 1) return false;
  const auto range = add(chunk.start, chunk.length);
  if (range) out = *range;
  return range.has_value();
}

Result<KeyRange> MemoryMap::add(void* start, size_t length) {
  NM_TRY(auto region, hca_.register_host_memory(domain_, start, length, hca::Access::kReadWrite));
  const auto from = reinterpret_cast<uintptr_t>(start);
  ranges_.push_back({from, length, region->base, be32(region->key), false});
  regions_.push_back(std::move(region));
  return ranges_.back();
}

const KeyRange* KeyCache::miss(const void* pointer) {
  KeyRange found;
  if (map_ == nullptr || !map_->find(pointer, found)) return nullptr;
  KeyRange& victim = ranges_[next_++ % ranges_.size()];
  victim = found;
  return &victim;
}

void KeyCache::forget_all() {
  generation_ = map_->generation().load(std::memory_order_relaxed);
  ranges_ = {};
}

}  // namespace nicmem::pmd
