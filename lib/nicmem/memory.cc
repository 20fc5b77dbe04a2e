// SPDX-License-Identifier: BSD-3-Clause
#include "nicmem/memory.h"

#include <algorithm>

#include "base/units.h"
#include "nicmem/copy.h"

namespace nicmem {
namespace {

/// The largest piece that the device gives, halving from `want` or from all that it has.
Result<std::unique_ptr<hca::DeviceMemory>> allocate_what_fits(hca::Hca& hca, size_t want) {
  constexpr size_t kUnit = 64;  // [mlx5] device memory comes in units of 64 bytes
  const size_t most = hca.capabilities().device_memory_bytes;
  const size_t units = std::min(want / kUnit + (want % kUnit != 0 ? 1 : 0), most / kUnit);
  for (size_t bytes = units * kUnit; bytes >= Memory::kMinBytes;
       bytes = bytes / 2 / kUnit * kUnit) {
    auto memory = hca.allocate_device_memory(bytes);
    if (memory || memory.error().code != Code::kExhausted) return memory;
  }
  return fail(Code::kExhausted, "device memory: asked for " + format_size(want) +
                                    ", the device offers " + format_size(most) +
                                    " at most and gave not even " + format_size(Memory::kMinBytes));
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::allocate(hca::Hca& hca, hca::Domain domain,
                                                 size_t want_bytes) {
  if (hca.capabilities().device_memory_bytes == 0)
    return fail(Code::kUnsupported, hca.capabilities().name + " has no device memory to give");
  if (want_bytes < kMinBytes)
    return fail(Code::kInvalidArgument, "device memory: " + format_size(want_bytes) +
                                            " asked for: accepted: " + format_size(kMinBytes) +
                                            " and more");
  std::unique_ptr<Memory> memory(new Memory);
  memory->requested_ = want_bytes;
  NM_TRY(memory->memory_, allocate_what_fits(hca, want_bytes));
  memory->window_ = memory->memory_->window();
  memory->access_ = memory->memory_->access();
  NM_TRY(memory->region_, hca.register_device_memory(domain, *memory->memory_, 0, memory->size(),
                                                     hca::Access::kReadWrite));
  NM_TRY_VOID(scrub(*memory, memory->whole()));
  return memory;
}

Memory::~Memory() {
  if (region_) static_cast<void>(scrub(*this, whole()));
}

MemoryStats Memory::stats() const {
  const auto get = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {get(writes_),     get(bytes_written_), get(reads_),
          get(bytes_read_), get(slow_reads_),    get(slow_reads_refused_)};
}

void Memory::set_slow_read_rate(uint64_t per_second) {
  const std::lock_guard lock(rate_mutex_);
  slow_reads_per_second_ = per_second;
  first_slow_read_ = true;
}

uint64_t Memory::slow_read_rate() const {
  const std::lock_guard lock(rate_mutex_);
  return slow_reads_per_second_;
}

/// A token bucket that holds a tenth of a second's reads, at least one if any are allowed.
bool Memory::take_slow_read(Nanos now) {
  const std::lock_guard lock(rate_mutex_);
  if (slow_reads_per_second_ == 0) return false;
  const auto rate = static_cast<double>(slow_reads_per_second_);
  const double capacity = std::max(1.0, rate / 10);
  if (first_slow_read_) {
    slow_read_tokens_ = capacity;
  } else if (now > last_slow_read_) {  // callers read the clock before they get the lock
    slow_read_tokens_ = std::min(
        capacity, slow_read_tokens_ + static_cast<double>(now - last_slow_read_) * 1e-9 * rate);
  }
  // Never back: time that has been paid for must not be paid for again.
  last_slow_read_ = first_slow_read_ ? now : std::max(last_slow_read_, now);
  first_slow_read_ = false;
  if (slow_read_tokens_ < 1) return false;
  slow_read_tokens_ -= 1;
  return true;
}

}  // namespace nicmem
