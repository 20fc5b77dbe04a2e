// SPDX-License-Identifier: BSD-3-Clause
// A control path with memory and nothing else, which fails when told to.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "hca/hca.h"

namespace nicmem::test {

/// What the device has left, what lives on it, and which call fails.
struct FakeCard {
  size_t capacity_bytes = 256 << 10;  // what allocate_device_memory() gives at most
  bool guard = false;
  int fail_call = -1;  // the call of this number, from 0, fails
  int calls = 0;
  int live_objects = 0;
  std::byte last_released[64] = {};  // the first bytes of the memory that went last

  bool fails() { return calls++ == fail_call; }
};

class FakeHca final : public hca::Hca {
 public:
  explicit FakeHca(FakeCard& card) : card_(card) {
    capabilities_.name = "fake";
    capabilities_.device_memory_bytes = 1 << 20;
  }
  hca::Capabilities& change_capabilities() { return capabilities_; }

  const hca::Capabilities& capabilities() const override { return capabilities_; }
  Result<hca::Domain> create_domain() override { return hca::Domain{1}; }
  void destroy_domain(hca::Domain) override {}
  Result<std::unique_ptr<hca::DeviceMemory>> allocate_device_memory(size_t bytes) override {
    if (card_.fails()) return fail(Code::kSystem, "told to fail", EIO);
    if (bytes > card_.capacity_bytes) return fail(Code::kExhausted, "too much");
    return std::make_unique<Memory>(card_, bytes);
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_device_memory(hca::Domain, hca::DeviceMemory&,
                                                                    size_t, size_t,
                                                                    hca::Access) override {
    if (card_.fails()) return fail(Code::kSystem, "told to fail", EIO);
    auto region = std::make_unique<Region>(card_);
    region->key = 0x1234;
    return region;
  }
  Result<std::unique_ptr<hca::MemoryRegion>> register_host_memory(hca::Domain, void*, size_t,
                                                                  hca::Access) override {
    return fail(Code::kUnsupported, "device memory only");
  }
  Result<std::unique_ptr<hca::Port>> open_port(const hca::PortOptions&) override {
    return fail(Code::kUnsupported, "no ports");
  }
  size_t step(uint32_t) override { return 0; }

 private:
  /// Two mappings of the same bytes, as the model has; the window bars the CPU in guard mode.
  class Memory final : public hca::DeviceMemory {
   public:
    Memory(FakeCard& card, size_t bytes) : card_(card), bytes_(bytes) {
      const int fd = memfd_create("fake_card", 0);
      if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::abort();
      access_ = map(fd, PROT_READ | PROT_WRITE);
      window_ = map(fd, card.guard ? PROT_NONE : PROT_READ | PROT_WRITE);
      close(fd);
      std::memset(access_, 0xee, bytes);  // content is undefined
      ++card_.live_objects;
    }
    ~Memory() override {
      std::memcpy(card_.last_released, access_, sizeof card_.last_released);
      munmap(access_, bytes_);
      munmap(window_, bytes_);
      --card_.live_objects;
    }
    std::span<std::byte> window() override { return {window_, bytes_}; }
    std::span<std::byte> access() override { return {access_, bytes_}; }

   private:
    std::byte* map(int fd, int rights) const {
      return static_cast<std::byte*>(mmap(nullptr, bytes_, rights, MAP_SHARED, fd, 0));
    }
    FakeCard& card_;
    size_t bytes_;
    std::byte* access_;
    std::byte* window_;
  };

  class Region final : public hca::MemoryRegion {
   public:
    explicit Region(FakeCard& card) : card_(card) { ++card_.live_objects; }
    ~Region() override { --card_.live_objects; }

   private:
    FakeCard& card_;
  };

  FakeCard& card_;
  hca::Capabilities capabilities_;
};

}  // namespace nicmem::test
