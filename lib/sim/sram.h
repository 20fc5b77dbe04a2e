// SPDX-License-Identifier: BSD-3-Clause
// The memory on the modelled card: one memfd, mapped once by the model, handed out in pages. A
// piece's bytes are the same wherever it is mapped; in guard mode applications get a mapping of it
// that allows no access, so that whoever touches payload is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "base/result.h"

namespace nicmem::sim {

class Sram {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kGranuleBytes = 64;
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  /// A piece: `bytes` of memory at `offset`, and where applications see it.
  struct Piece {
    uint64_t offset = 0;
    size_t bytes = 0;
    std::byte* window = nullptr;
  };

  /// `bytes` > 0, at most kMaxBytes. kSystem when the kernel gives no memory.
  static Result<Sram> create(size_t bytes, bool guard);
  Sram(Sram&& other) noexcept;
  Sram& operator=(Sram&&) = delete;
  ~Sram();

  /// First fit, in pages. kInvalidArgument for 0, kExhausted names what is left.
  Result<Piece> allocate(size_t bytes);
  /// `piece` came from allocate().
  void release(const Piece& piece);

  size_t size() const { return size_; }
  std::byte* memory() const { return memory_; }
  /// Nothing is allocated.
  bool whole() const;

 private:
  Sram(int fd, std::byte* memory, size_t size, bool guard);
  Result<std::byte*> map_window(uint64_t offset, size_t bytes) const;

  int fd_;
  std::byte* memory_;  // the model's own mapping of all of it
  size_t size_;
  bool guard_;
  std::map<uint64_t, size_t> free_;  // offset -> bytes, in pages, no two adjacent
};

}  // namespace nicmem::sim
