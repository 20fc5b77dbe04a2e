// SPDX-License-Identifier: BSD-3-Clause
// Pools of payload buffers that the driver makes when the program gives none: one over device
// memory (pinned external buffers), one in host memory for what does not fit there.
#pragma once

#include <memory>
#include <string>

#include "compat.h"
#include "device.h"

namespace nicmem::pmd {

/// Owns a mempool and, for device memory, the region below it. Buffers still held by the program
/// when this goes away are never freed under it: the pool is left behind until they are back.
class PayloadPool {
 public:
  struct Options {
    std::string name;
    uint32_t buffers = 0;
    uint16_t buffer_bytes = 0;   // rounded up to 64
    uint16_t private_bytes = 0;  // of the mbufs, as in the program's own pool
    int socket = 0;
  };

  /// As many of `options.buffers` as fit into `limit_bytes` of the device's memory. Fails with
  /// kExhausted when not one fits.
  static Result<std::unique_ptr<PayloadPool>> on_card(std::shared_ptr<Device> device,
                                                      const Options& options, size_t limit_bytes);
  static Result<std::unique_ptr<PayloadPool>> in_host(const Options& options);
  ~PayloadPool();

  /// Frees pools that were left behind and are whole by now. Control path; calls it by itself where
  /// pools are made.
  static void reap();

  rte_mempool* pool() const { return pool_; }
  uint32_t buffers() const { return pool_->size; }
  uint16_t buffer_bytes() const { return buffer_bytes_; }

 private:
  PayloadPool(rte_mempool* pool, uint16_t buffer_bytes)
      : pool_(pool), buffer_bytes_(buffer_bytes) {}

  rte_mempool* pool_;
  uint16_t buffer_bytes_;
  std::shared_ptr<Device> device_;  // null: host memory
  Region region_{};
};

}  // namespace nicmem::pmd
