// SPDX-License-Identifier: BSD-3-Clause
// The memory on the modelled card: see sram.h.
#include "sim/sram.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/units.h"

namespace nicmem::sim {

Result<Sram> Sram::create(size_t bytes, bool guard) {
  if (bytes == 0 || bytes > kMaxBytes) {
    return fail(Code::kInvalidArgument,
                "sram: " + format_size(bytes) + ", accepted: 1B to " + format_size(kMaxBytes));
  }
  const size_t size = round_up(bytes, kGranuleBytes);
  const size_t mapped = round_up(size, kPageBytes);
  const int fd = memfd_create("nicmem-sram", MFD_CLOEXEC);
  if (fd < 0) return fail(Code::kSystem, "sram: memfd_create", errno);
  if (ftruncate(fd, static_cast<off_t>(mapped)) != 0) {
    const int error = errno;
    close(fd);
    return fail(Code::kSystem, "sram: ftruncate to " + format_size(mapped), error);
  }
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return fail(Code::kSystem, "sram: mmap of " + format_size(mapped), error);
  }
  return Sram(fd, static_cast<std::byte*>(at), size, guard);
}

Sram::Sram(int fd, std::byte* memory, size_t size, bool guard)
    : fd_(fd), memory_(memory), size_(size), guard_(guard) {
  free_[0] = round_up(size, kPageBytes);
}

Sram::Sram(Sram&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(other.size_),
      guard_(other.guard_),
      free_(std::move(other.free_)) {}

Sram::~Sram() {
  if (memory_ == nullptr) return;
  munmap(memory_, round_up(size_, kPageBytes));
  close(fd_);
}

bool Sram::whole() const {
  return free_.size() == 1 && free_.begin()->second == round_up(size_, kPageBytes);
}

Result<std::byte*> Sram::map_window(uint64_t offset, size_t bytes) const {
  if (!guard_) return memory_ + offset;
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (at == MAP_FAILED) {
    return fail(Code::kSystem, "sram: mmap of a guarded window of " + format_size(bytes), errno);
  }
  return static_cast<std::byte*>(at);
}

Result<Sram::Piece> Sram::allocate(size_t bytes) {
  if (bytes == 0) return fail(Code::kInvalidArgument, "device memory: 0 bytes asked for");
  const size_t length = bytes > size_ ? bytes : round_up(bytes, kGranuleBytes);
  const size_t pages = bytes > size_ ? bytes : round_up(length, kPageBytes);
  const auto fits = [&](const auto& hole) { return hole.second >= pages; };
  const auto hole = std::find_if(free_.begin(), free_.end(), fits);
  if (hole == free_.end() || length > size_) {
    size_t largest = 0;
    for (const auto& [at, free] : free_) largest = std::max(largest, std::min(free, size_));
    return fail(Code::kExhausted, "device memory: " + format_size(bytes) +
                                      " asked for, the largest free piece is " +
                                      format_size(largest));
  }
  const uint64_t offset = hole->first;
  NM_TRY(std::byte * window, map_window(offset, pages));
  const size_t left = hole->second - pages;
  free_.erase(hole);
  if (left > 0) free_[offset + pages] = left;
  return Piece{offset, length, window};
}

void Sram::release(const Piece& piece) {
  const size_t pages = round_up(piece.bytes, kPageBytes);
  if (guard_) munmap(piece.window, pages);
  auto [hole, fresh] = free_.emplace(piece.offset, pages);
  NM_CHECK(fresh);
  if (const auto next = std::next(hole);
      next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole != free_.begin()) {
    const auto before = std::prev(hole);
    if (before->first + before->second == hole->first) {
      before->second += hole->second;
      free_.erase(hole);
    }
  }
}

}  // namespace nicmem::sim
