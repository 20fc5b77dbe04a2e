// SPDX-License-Identifier: BSD-3-Clause
// What a model did last, for a person who reads a failed test: a bounded ring of events. Only a bus
// that records writes here; the bus of real time does not know it.
#pragma once

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

#include "base/core.h"
#include "hw/pcie.h"
#include "sim/bus.h"

namespace nicmem::sim {

enum class EventKind : uint8_t { kRead, kWrite, kCompletion, kControl, kDevice };
enum class EventFate : uint8_t { kDone, kFailure, kLate };

/// One step of the model. What is not known of it is 0 or null.
struct Event {
  Nanos now = 0;
  EventKind kind = EventKind::kControl;
  EventFate fate = EventFate::kDone;
  hw::PcieClass c = hw::PcieClass::kDoorbell;  // kRead, kWrite
  uint8_t opcode = 0, syndrome = 0;            // kCompletion
  uint32_t bytes = 0;                          // kRead, kWrite
  const char* what = nullptr;                  // kControl, kDevice: a literal
  const char* ring = nullptr;                  // "rq", "sq", "cq": whose memory it was
  uint32_t queue = 0;                          // its number
  uint32_t index = 0;                          // slot of that ring; kCompletion: WQE, 16 bits
  Location at;
};

/// A ring and its record, as the log needs them to name a place in host memory.
struct WatchedRing {
  const char* kind = "";
  uint32_t number = 0;
  const void* start = nullptr;
  size_t bytes = 0;
  uint32_t stride_bytes = 1;
  const void* record = nullptr;
};

class EventLog {
 public:
  static constexpr size_t kEvents = 256;
  static constexpr size_t kRings = 512;  // that are known by name: the newest ones

  void watch(const WatchedRing& ring) {
    if (rings_.size() == kRings) rings_.pop_back();
    rings_.push_front(ring);
  }

  void add(Event event) {
    if ((event.kind == EventKind::kRead || event.kind == EventKind::kWrite) &&
        event.at.kind == Location::Kind::kHost)
      name(event);
    events_[count_++ % kEvents] = event;
  }

  uint64_t count() const { return count_; }

  /// The newest events, oldest first, one line each.
  std::string text() const {
    std::string all;
    for (uint64_t i = count_ < kEvents ? 0 : count_ - kEvents; i < count_; ++i)
      all += line(i, events_[i % kEvents]) + '\n';
    return all;
  }

 private:
  void name(Event& event) const {
    for (const WatchedRing& ring : rings_) {
      const auto start = reinterpret_cast<uintptr_t>(ring.start);
      const bool record = event.at.address == reinterpret_cast<uintptr_t>(ring.record);
      const bool inside = event.at.address >= start && event.at.address - start < ring.bytes;
      if (!record && !inside) continue;
      event.ring = ring.kind;
      event.queue = ring.number;
      event.index =
          inside ? static_cast<uint32_t>((event.at.address - start) / ring.stride_bytes) : 0;
      return;
    }
  }

  static std::string line(uint64_t number, const Event& event) {
    constexpr const char* kFates[] = {"", " FAILED", " late"};
    char text[160];
    int used = std::snprintf(text, sizeof text, "#%" PRIu64 " t=%" PRIu64 " ", number, event.now);
    const auto rest = [&] { return sizeof text - static_cast<size_t>(used); };
    const auto put = [&](const char* format, auto... values) {
      used += std::snprintf(text + used, rest(), format, values...);
    };
    if (event.ring != nullptr) put("%s %u [%u] ", event.ring, event.queue, event.index);
    switch (event.kind) {
      case EventKind::kRead:
      case EventKind::kWrite:
        put("%s %s %u B", event.kind == EventKind::kRead ? "read" : "write",
            hw::kPcieClassNames[static_cast<size_t>(event.c)], event.bytes);
        if (event.ring == nullptr)
          put(" at %s 0x%" PRIx64, event.at.kind == Location::Kind::kSram ? "sram" : "host",
              event.at.address);
        break;
      case EventKind::kCompletion:
        put("completes WQE %u: opcode 0x%x", event.index, event.opcode);
        if (event.syndrome != 0) put(", syndrome 0x%02x", event.syndrome);
        break;
      case EventKind::kControl:
      case EventKind::kDevice:
        put("%s", event.what);
        break;
    }
    put("%s", kFates[static_cast<size_t>(event.fate)]);
    return text;
  }

  std::array<Event, kEvents> events_{};
  uint64_t count_ = 0;
  std::deque<WatchedRing> rings_;
};

}  // namespace nicmem::sim
