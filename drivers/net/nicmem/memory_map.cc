// SPDX-License-Identifier: BSD-3-Clause
#include "memory_map.h"

#include <rte_memory.h>

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

}  // namespace

void MemoryMap::add_device_memory(std::span<std::byte> window, uint32_t key) {
  const auto start = reinterpret_cast<uintptr_t>(window.data());
  const std::lock_guard lock(mutex_);
  ranges_.push_back({start, window.size(), start, be32(key), true});
}

KeyRange MemoryMap::device_memory() const {
  for (const KeyRange& range : ranges_)
    if (range.on_card) return range;
  return {};
}

bool MemoryMap::find(const void* pointer, KeyRange& out) {
  const std::lock_guard lock(mutex_);
  for (const KeyRange& range : ranges_) {
    if (!range.contains(pointer)) continue;
    out = range;
    return true;
  }
  return register_around(pointer, out);
}

bool MemoryMap::register_around(const void* pointer, KeyRange& out) {
  Chunk chunk{.wanted = pointer};
  // testpmd's external buffers and rte_extmem_register()ed memory are in the walk too
  if (rte_memseg_contig_walk(match_chunk, &chunk) != 1) return false;
  auto region =
      hca_.register_host_memory(domain_, chunk.start, chunk.length, hca::Access::kReadWrite);
  if (!region) return false;
  const auto start = reinterpret_cast<uintptr_t>(chunk.start);
  out = {start, chunk.length, (*region)->base, be32((*region)->key), false};
  ranges_.push_back(out);
  regions_.push_back(std::move(*region));
  return true;
}

const KeyRange* KeyCache::miss(const void* pointer) {
  KeyRange found;
  if (map_ == nullptr || !map_->find(pointer, found)) return nullptr;
  KeyRange& victim = ranges_[next_++ % ranges_.size()];
  victim = found;
  return &victim;
}

}  // namespace nicmem::pmd
