// SPDX-License-Identifier: BSD-3-Clause
// The memory-key table: what stands between a work request and memory. Every address of every work
// request is looked up here: key, generation, protection domain, bounds, right to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "hca/hca.h"
#include "sim/bus.h"
#include "sim/mr_bounds.h"

namespace nicmem::sim {

/// A key is [31:8] the index of its entry, [7:0] the generation of it, so that a key dies with its
/// region although the entry is used again. Generations go 1..255: no key is 0 or kInvalidKey.
struct Key {
  using Index = Bits<uint32_t, 31, 8>;
  using Generation = Bits<uint32_t, 7, 0>;
};

/// Memory that a check has allowed; null memory: it has not.
struct Allowed {
  std::byte* memory = nullptr;
  Location at;
};

struct Region {
  std::byte* memory = nullptr;  // where the model finds the region's first byte
  uint64_t base = 0;            // the region's first address as a WQE gives it
  uint64_t length = 0;          // 0: no such region
  uint64_t sram_offset = 0;     // of the first byte, kSram only
  hca::Domain domain{};
  Location::Kind kind = Location::Kind::kHost;
  bool writable = false;

  /// [address, address + bytes), if that lies in it.
  Allowed at(uint64_t address, uint32_t bytes) const {
    const uint64_t offset = address - base;  // wraps when below: then above any length
    if (!within_region(offset, bytes, length)) return {};
    std::byte* const start = memory + offset;
    return {start, kind == Location::Kind::kHost ? Location::host(start)
                                                 : Location::sram(sram_offset + offset)};
  }
};

/// Changed under the gate by control calls, read under it by the engines.
class MrTable {
 public:
  /// kExhausted when all 2^24 entries are taken. `region.length` > 0.
  Result<uint32_t> add(const Region& region) {
    uint32_t index = static_cast<uint32_t>(entries_.size());
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (index > Key::Index::kMax) {
      return fail(Code::kExhausted, "memory region: all keys are in use");
    } else {
      entries_.emplace_back();
    }
    Entry& entry = entries_[index];
    entry.region = region;
    return Key::Generation::set(Key::Index::set(0, index), entry.generation);
  }

  /// `key` came from add() and has not been removed.
  void remove(uint32_t key) {
    const uint32_t index = Key::Index::get(key);
    Entry& entry = entries_[index];
    NM_CHECK(entry.region.length > 0 && entry.generation == Key::Generation::get(key));
    entry.region = Region{};
    entry.generation = static_cast<uint8_t>(entry.generation % Key::Generation::kMax + 1);
    free_.push_back(index);
  }

  /// Whether a queue of `domain` may access [address, address + bytes), and where that is.
  Allowed resolve(uint32_t key, hca::Domain domain, uint64_t address, uint32_t bytes,
                  hca::Access access) const {
    const Region* const region = find(key, domain);
    if (region == nullptr || !(region->writable || access == hca::Access::kRead)) return {};
    return region->at(address, bytes);
  }

  /// The region that `key` names for a queue of `domain`, or null. Until the gate is given up.
  const Region* find(uint32_t key, hca::Domain domain) const {
    const uint32_t index = Key::Index::get(key);
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    const bool good = entry.generation == Key::Generation::get(key) &&
                      entry.region.domain == domain && entry.region.length > 0;
    return good ? &entry.region : nullptr;
  }

  bool empty() const { return free_.size() == entries_.size(); }

 private:
  struct Entry {
    Region region;
    uint8_t generation = 1;
  };
  static_assert(sizeof(Entry) <= 64);
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

/// Lookups for one queue: the region of the last key is kept at hand. Lives no longer than the gate
/// is held.
class KeyCache {
 public:
  KeyCache(const MrTable& table, hca::Domain domain) : table_(&table), domain_(domain) {}

  hca::Domain domain() const { return domain_; }

  /// `bytes` > 0. No region has key 0: to that the empty region answers.
  Allowed resolve(uint32_t key, uint64_t address, uint32_t bytes,
                  hca::Access access = hca::Access::kRead) {
    if (key != key_) {
      const Region* const found = table_->find(key, domain_);
      if (found == nullptr) return {};
      key_ = key;
      region_ = *found;
    }
    if (access != hca::Access::kRead && !region_.writable) return {};
    return region_.at(address, bytes);
  }

 private:
  const MrTable* table_;
  hca::Domain domain_;
  uint32_t key_ = 0;
  Region region_;
};

}  // namespace nicmem::sim
