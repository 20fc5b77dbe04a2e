// SPDX-License-Identifier: BSD-3-Clause
#include "nicmem/copy.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "hw/doorbell.h"

namespace nicmem {

/// The one user of Memory's access view.
class Copier {
 public:
  static Result<std::byte*> range(Memory& memory, const Region& region, size_t offset,
                                  size_t length) {
    const bool in_region = offset <= region.size && length <= region.size - offset;
    const bool in_memory =
        region.offset <= memory.size() && region.size <= memory.size() - region.offset;
    if (!in_region || !in_memory)
      return fail(Code::kInvalidArgument,
                  "copy of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                      ": the region has " + std::to_string(region.size) + " bytes at " +
                      std::to_string(region.offset) + " of " + std::to_string(memory.size()));
    return memory.access_.data() + region.offset + offset;
  }

  static void count_write(Memory& memory, size_t bytes) {
    memory.writes_.fetch_add(1, std::memory_order_relaxed);
    memory.bytes_written_.fetch_add(bytes, std::memory_order_relaxed);
  }
  static void count_read(Memory& memory, size_t bytes) {
    memory.reads_.fetch_add(1, std::memory_order_relaxed);
    memory.bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
  }
  static bool take_slow_read(Memory& memory, Nanos now) {
    const bool taken = memory.take_slow_read(now);
    (taken ? memory.slow_reads_ : memory.slow_reads_refused_)
        .fetch_add(1, std::memory_order_relaxed);
    return taken;
  }
};

namespace {

/// The card counts from the start of its memory, so a region's own start matters too.
Result<void> check_units(const Region& region, size_t offset, size_t length) {
  if ((region.offset + offset) % 4 == 0 && length % 4 == 0) return {};
  return fail(Code::kInvalidArgument,
              "copy of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                  " of a region at " + std::to_string(region.offset) +
                  ": accepted: multiples of 4 for the length and for the place in device memory");
}

/// Stores in 4-byte units, ascending, never loading from `to`: neighbouring stores combine into
/// whole lines. `fetch(i)` is the i-th word.
template <class Fetch>
void store_words(std::byte* to, size_t length, Fetch&& fetch) {
  for (size_t i = 0; i < length; i += 4) {
    const uint32_t word = fetch(i);
    *reinterpret_cast<volatile uint32_t*>(to + i) = word;
  }
  hw::flush_wc();
}

/// Loads aligned 4-byte words only, each once: all that the card promises for reads too
/// [rdma-core mlx5_access_dm], where memcpy() may load bytes or across words. The first and last
/// word may reach 3 bytes beyond the range, never beyond the memory: its ends are multiples of 64.
void load_words(const std::byte* from, std::span<std::byte> out) {
  size_t skip = reinterpret_cast<uintptr_t>(from) % 4;
  for (size_t done = 0; done < out.size(); skip = 0) {
    const uint32_t word = *reinterpret_cast<const volatile uint32_t*>(from + done - skip);
    const size_t take = std::min(4 - skip, out.size() - done);
    if (take == 4) {  // a constant: no call
      std::memcpy(out.data() + done, &word, 4);
    } else {
      std::memcpy(out.data() + done, reinterpret_cast<const std::byte*>(&word) + skip, take);
    }
    done += take;
  }
}

}  // namespace

Result<void> copy_to_nic(Memory& memory, const Region& region, size_t offset,
                         std::span<const std::byte> data) {
  NM_TRY_VOID(check_units(region, offset, data.size()));
  NM_TRY(std::byte* const to, Copier::range(memory, region, offset, data.size()));
  store_words(to, data.size(), [&data](size_t i) {
    uint32_t word;
    std::memcpy(&word, data.data() + i, sizeof word);
    return word;
  });
  Copier::count_write(memory, data.size());
  return {};
}

Result<void> copy_from_nic(Memory& memory, const Region& region, size_t offset,
                           std::span<std::byte> out) {
  NM_TRY_VOID(check_units(region, offset, out.size()));
  NM_TRY(const std::byte* const from, Copier::range(memory, region, offset, out.size()));
  load_words(from, out);
  Copier::count_read(memory, out.size());
  return {};
}

Result<void> slow_read(Memory& memory, const Region& region, size_t offset,
                       std::span<std::byte> out, Nanos now) {
  NM_TRY(const std::byte* const from, Copier::range(memory, region, offset, out.size()));
  if (!Copier::take_slow_read(memory, now))
    return fail(Code::kExhausted, "slow read of " + std::to_string(out.size()) +
                                      " bytes: refused: accepted: " +
                                      std::to_string(memory.slow_read_rate()) + " reads a second");
  load_words(from, out);
  Copier::count_read(memory, out.size());
  return {};
}

Result<void> scrub(Memory& memory, const Region& region) {
  NM_TRY_VOID(check_units(region, 0, region.size));
  NM_TRY(std::byte* const to, Copier::range(memory, region, 0, region.size));
  store_words(to, region.size, [](size_t) { return uint32_t{0}; });
  return {};
}

}  // namespace nicmem
