// SPDX-License-Identifier: BSD-3-Clause
// The seed of a random test: a new one each run, printed, so that a failure can be repeated.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace nicmem::test {

/// The value of NM_SEED (decimal, or hexadecimal with 0x), else a random one. Prints it once.
inline uint64_t test_seed() {
  static const uint64_t seed = [] {
    uint64_t value = 0;
    if (const char* text = std::getenv("NM_SEED")) {
      char* end = nullptr;
      value = std::strtoull(text, &end, 0);
      if (end == text || *end != '\0') {
        std::fprintf(stderr, "NM_SEED '%s': a number is accepted\n", text);
        std::exit(2);
      }
    } else {
      std::random_device device;
      value = (uint64_t{device()} << 32) | device();
    }
    std::printf("NM_SEED=%" PRIu64 " repeats this run\n", value);
    std::fflush(stdout);
    return value;
  }();
  return seed;
}

}  // namespace nicmem::test
