// SPDX-License-Identifier: BSD-3-Clause
// The joint between the engines and the link: every access that the model makes, to host memory or
// to its SRAM, is announced to a Bus before the bytes move. A bus counts, records or delays; the
// engines take it as a template argument so that counting costs no call.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/core.h"
#include "hw/pcie.h"

namespace nicmem::sim {

/// Where an access goes. Only host memory is across the link.
struct Location {
  enum class Kind : uint8_t { kHost, kSram };
  Kind kind = Kind::kHost;
  uint64_t address = 0;  // kHost: of the process, kSram: offset

  static Location host(const void* at) { return {Kind::kHost, reinterpret_cast<uintptr_t>(at)}; }
  static Location sram(uint64_t offset) { return {Kind::kSram, offset}; }
};

/// What a bus returns for an access that failed: no byte moves. The engines then do as a card does:
/// a descriptor or data access ends the WQE with kLocalQpOperation or kLocalProtection; a
/// completion's write leaves its slot as it was, and the entry is lost; a record's read shows
/// nothing new until the next look.
inline constexpr Nanos kFailed = ~Nanos{0};

/// read/write: the access as one transfer of `bytes` > 0; returns when it is done, at or after
/// `now`, or kFailed. Where kCanFail is false the checks cost nothing. One bus serves one port.
template <class B>
concept Bus = std::default_initializable<B> &&
    requires(B bus, const B& seen, hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
  { bus.read(c, at, bytes, now) } -> std::same_as<Nanos>;
  { bus.write(c, at, bytes, now) } -> std::same_as<Nanos>;
  { seen.tally() } -> std::convertible_to<hw::PcieTally>;
  { B::kCanFail } -> std::convertible_to<bool>;
};

/// Whether `done`, which a B has returned, is no time but a failure.
template <Bus B>
bool failed(Nanos done) {
  if constexpr (B::kCanFail) return done == kFailed;
  return false;
}

/// Counts and returns at once: the bus of real time.
class CountingBus {
 public:
  static constexpr bool kCanFail = false;

  Nanos read(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    if (at.kind == Location::Kind::kHost) reads_[static_cast<size_t>(c)].add(bytes);
    return now;
  }
  Nanos write(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    if (at.kind == Location::Kind::kHost) writes_[static_cast<size_t>(c)].add(bytes);
    return now;
  }
  hw::PcieTally tally() const {
    hw::PcieTally tally;
    for (size_t c = 0; c < hw::kPcieClasses; ++c) {
      tally.by_class[c] += reads_[c].cost();
      tally.by_class[c] += writes_[c].cost();
    }
    return tally;
  }

 private:
  hw::PcieReads reads_[hw::kPcieClasses];
  hw::PcieWrites writes_[hw::kPcieClasses];
};
static_assert(Bus<CountingBus>);

}  // namespace nicmem::sim
