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

  /// Whether `wanted` lies in these bytes; they are taken note of then.
  bool take(void* from, size_t bytes) {
    const auto distance = reinterpret_cast<uintptr_t>(wanted) - reinterpret_cast<uintptr_t>(from);
    if (distance >= bytes) return false;  // unsigned: also what lies before
    start = from;
    length = bytes;
    return true;
  }
};

/// Called for each contiguous piece of DPDK's memory; 1 stops the walk.
int match_chunk(const rte_memseg_list*, const rte_memseg* segment, size_t length, void* argument) {
  return static_cast<Chunk*>(argument)->take(segment->addr, length) ? 1 : 0;
}

void match_pool_memory(rte_mempool*, void* argument, rte_mempool_memhdr* memory, unsigned) {
  static_cast<Chunk*>(argument)->take(memory->addr, memory->len);
}
void match_pool(rte_mempool* pool, void* argument) {
  rte_mempool_mem_iter(pool, match_pool_memory, argument);
}

void forget_pool_memory(rte_mempool*, void* map, rte_mempool_memhdr* memory, unsigned) {
  static_cast<MemoryMap*>(map)->forget_pool(memory->addr, memory->len);
}
void on_pool_event(rte_mempool_event event, rte_mempool* pool, void* map) {
  if (event == RTE_MEMPOOL_EVENT_DESTROY) rte_mempool_mem_iter(pool, forget_pool_memory, map);
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
  pools_watched_ = rte_mempool_event_callback_register(on_pool_event, this) == 0;
}

MemoryMap::~MemoryMap() {
  if (pools_watched_) rte_mempool_event_callback_unregister(on_pool_event, this);
  static_cast<void>(rte_mem_event_callback_unregister(kEventName, this));
}

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

void MemoryMap::forget_pool(const void* start, size_t length) {
  KeyRange range;
  {
    const std::lock_guard lock(mutex_);
    if (!find_known(start, range) || !range.of_pool) return;
  }
  forget(start, length);
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
  {
    const MemoryLock still;
    const std::lock_guard lock(mutex_);
    if (find_known(pointer, out) || register_around(pointer, out)) return true;
  }
  return pools_watched_ && register_pool_around(pointer, out);
}

bool MemoryMap::register_around(const void* pointer, KeyRange& out) {
  Chunk chunk{.wanted = pointer};
  // testpmd's external buffers and rte_extmem_register()ed memory are in the walk too
  if (rte_memseg_contig_walk_thread_unsafe(match_chunk, &chunk) != 1) return false;
  const auto range = add(chunk.start, chunk.length);
  if (range) out = *range;
  return range.has_value();
}

/// Without the lock of DPDK's memory map: pools are made with their list's lock held, and take
/// that one then.
bool MemoryMap::register_pool_around(const void* pointer, KeyRange& out) {
  Chunk chunk{.wanted = pointer};
  rte_mempool_walk(match_pool, &chunk);
  if (chunk.start == nullptr) return false;
  const std::lock_guard lock(mutex_);
  if (find_known(pointer, out)) return true;
  if (!add(chunk.start, chunk.length)) return false;
  ranges_.back().of_pool = true;
  out = ranges_.back();
  return true;
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
