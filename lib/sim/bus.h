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

/// read/write: the access as one transfer of `bytes` > 0; returns when it is done, at or after
/// `now`. One bus serves one port.
template <class B>
concept Bus = std::default_initializable<B> &&
    requires(B bus, const B& seen, hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
  { bus.read(c, at, bytes, now) } -> std::same_as<Nanos>;
  { bus.write(c, at, bytes, now) } -> std::same_as<Nanos>;
  { seen.tally() } -> std::convertible_to<hw::PcieTally>;
};

/// Counts and returns at once: the bus of real time.
class CountingBus {
 public:
  Nanos read(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    if (at.kind == Location::Kind::kHost) tally_[c] += hw::dma_read(bytes);
    return now;
  }
  Nanos write(hw::PcieClass c, const Location& at, uint32_t bytes, Nanos now) {
    if (at.kind == Location::Kind::kHost) tally_[c] += hw::dma_write(bytes);
    return now;
  }
  const hw::PcieTally& tally() const { return tally_; }

 private:
  hw::PcieTally tally_;
};
static_assert(Bus<CountingBus>);

}  // namespace nicmem::sim
