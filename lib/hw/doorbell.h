// SPDX-License-Identifier: BSD-3-Clause
// Words that driver and device share live: aligned, each written by one store.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "hw/order.h"

namespace nicmem::hw {

/// A 32-bit big-endian counter in host memory that one side publishes and the other polls.
/// mlx5dv.h: dbrec. Receive queue: WQEs posted, 16 bits. Send queue: blocks posted, 16 bits.
/// Completion queue: entries consumed, 24 bits.
class alignas(4) DoorbellRecord {
 public:
  /// Publishes `value` after all earlier accesses of this thread that `order` covers.
  template <std::memory_order order>  // not an argument: unless inlined, that would become seq_cst
  void publish(uint32_t value) {
    std::atomic_ref(raw_).store(__builtin_bswap32(value), order);
  }
  /// The other side's view; what was written before publish() may be read after this.
  uint32_t read() const {
    return __builtin_bswap32(
        std::atomic_ref(const_cast<uint32_t&>(raw_)).load(std::memory_order_acquire));
  }

 private:
  uint32_t raw_ = 0;
};
static_assert(sizeof(DoorbellRecord) == 4);

/// The 64-bit MMIO register of a send queue: takes the first eight bytes of the last WQE's control
/// segment, as they lie in memory. mlx5dv.h: bf.reg
class alignas(8) DoorbellRegister {
 public:
  /// The record must have been published, and flush_wc() called, before.
  void ring(const void* control_segment) {
    uint64_t qword;
    std::memcpy(&qword, control_segment, sizeof qword);
    std::atomic_ref(raw_).store(qword, std::memory_order_relaxed);
  }
  /// The device's view. It orders nothing: the record does.
  uint64_t peek() const {
    return std::atomic_ref(const_cast<uint64_t&>(raw_)).load(std::memory_order_relaxed);
  }

 private:
  uint64_t raw_ = 0;
};
static_assert(sizeof(DoorbellRegister) == 8);

/// Drains write-combining buffers: stores to device memory and to host memory made before this
/// reach the device before MMIO stores made after it. A release store does not do that.
inline void flush_wc() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#else
#error "flush_wc: which instruction orders write-combined stores before MMIO on this machine?"
#endif
}

}  // namespace nicmem::hw
