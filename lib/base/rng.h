// SPDX-License-Identifier: BSD-3-Clause
// A small seeded generator (SplitMix64): the same seed gives the same bytes on every machine.
#pragma once

#include <cstdint>

namespace nicmem {

class Rng {
 public:
  explicit constexpr Rng(uint64_t seed) : state_(seed) {}

  constexpr uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound), bound > 0. The bias is below 2^-32 for bounds below 2^32.
  constexpr uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace nicmem
