// SPDX-License-Identifier: BSD-3-Clause
// The memory that driver and device share for one queue, and who gives it: the model itself, or
// whoever drives it by calls that let the caller place rings (verbs:
// MLX5DV_CTX_ATTR_BUF_ALLOCATORS).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/result.h"
#include "hw/doorbell.h"
#include "sim/memory.h"

namespace nicmem::sim {

enum class QueueKind : uint8_t { kCompletion, kReceive, kSend };

/// Zeroed, for as long as `owner` lives.
struct QueueMemory {
  std::shared_ptr<void> owner;
  std::byte* ring = nullptr;
  hw::DoorbellRecord* record = nullptr;
  hw::DoorbellRegister* doorbell = nullptr;  // kSend only
};

/// Makes the memory of a queue that is being created; called under the device's gate.
using QueueMemoryFactory = std::function<Result<QueueMemory>(QueueKind kind, size_t ring_bytes)>;

/// The model's own: rings in pages, records and registers in cache lines of their own.
inline Result<QueueMemory> make_queue_memory(QueueKind, size_t ring_bytes) {
  struct Own {
    explicit Own(size_t bytes) : ring(bytes, kRingAlignment) {}
    AlignedBytes ring;
    OwnLine<hw::DoorbellRecord> record;
    OwnLine<hw::DoorbellRegister> doorbell;
  };
  auto own = std::make_shared<Own>(ring_bytes);
  QueueMemory memory{
      .ring = own->ring.data(), .record = own->record.get(), .doorbell = own->doorbell.get()};
  memory.owner = std::move(own);
  return memory;
}

}  // namespace nicmem::sim
