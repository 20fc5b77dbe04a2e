// SPDX-License-Identifier: BSD-3-Clause
// Packet counts of one interface of arrival: one writer (its core), any number of readers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "nf/verdict.h"

namespace nicmem::nf {

/// A number that one thread adds to and others may read at any time: no locked instruction, since
/// only one thread writes.
class Counter {
 public:
  void add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// A copy of the counts at one moment. Between bursts received == accounted().
struct CountsSnapshot {
  uint64_t received = 0;
  uint64_t received_bytes = 0;
  uint64_t forwarded = 0;  // accepted by the egress device
  uint64_t punted = 0;
  std::array<uint64_t, kDropReasons> dropped{};

  uint64_t dropped_total() const {
    uint64_t total = 0;
    for (const uint64_t n : dropped) total += n;
    return total;
  }
  uint64_t drops(DropReason reason) const { return dropped[static_cast<size_t>(reason)]; }
  uint64_t accounted() const { return forwarded + punted + dropped_total(); }
};

struct Counts {
  Counter received;
  Counter received_bytes;
  Counter forwarded;
  Counter punted;
  std::array<Counter, kDropReasons> dropped;

  void drop(DropReason reason, uint64_t n = 1) { dropped[static_cast<size_t>(reason)].add(n); }

  CountsSnapshot snapshot() const {
    CountsSnapshot copy{.received = received.get(),
                        .received_bytes = received_bytes.get(),
                        .forwarded = forwarded.get(),
                        .punted = punted.get(),
                        .dropped = {}};
    for (size_t i = 0; i < kDropReasons; ++i) copy.dropped[i] = dropped[i].get();
    return copy;
  }
};

}  // namespace nicmem::nf
