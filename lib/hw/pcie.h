// SPDX-License-Identifier: BSD-3-Clause
// PCIe link arithmetic: what a transfer costs on the link, in packets (TLPs) and bytes. One set of
// constants for every figure of the project (facts: Neugebauer et al., SIGCOMM'18 "Understanding
// PCIe performance"; fitted to the bytes published in Pismenny et al., ASPLOS'22).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"

namespace nicmem::hw {

struct PcieLink {
  uint32_t max_payload_bytes = 256;       // MPS: largest write TLP
  uint32_t max_read_request_bytes = 512;  // MRRS: largest read request
  uint32_t completion_bytes = 256;        // data per completion TLP
  uint32_t request_overhead_bytes = 24;   // framing, sequence, LCRC and the 64-bit-address header
  uint32_t completion_overhead_bytes = 20;
  double link_layer_factor = 1.04;  // acknowledgements and flow control, for displayed bytes
};
inline constexpr PcieLink kPcieLink{};

/// What an access moves, as the device sees it.
enum class PcieClass : uint8_t {
  kRxDescriptor,    // receive WQE fetch
  kTxDescriptor,    // send WQE fetch, inlined header bytes included
  kRxCompletion,    // CQE write, receive
  kTxCompletion,    // CQE write, send
  kHeader,          // a buffer that starts a frame and is no longer than the header length
  kPayload,         // any other buffer
  kDoorbell,        // MMIO write by the CPU
  kDoorbellRecord,  // read of a record in host memory
};
inline constexpr size_t kPcieClasses = 8;
inline constexpr std::array<const char*, kPcieClasses> kPcieClassNames = {
    "rx_descriptor", "tx_descriptor", "rx_completion", "tx_completion",
    "header",        "payload",       "doorbell",      "doorbell_record"};

/// TLPs and bytes, one direction. Bytes are transaction-layer bytes: exact, without the factor.
struct PcieCost {
  uint64_t tlps = 0;
  uint64_t bytes = 0;

  constexpr PcieCost& operator+=(const PcieCost& other) {
    tlps += other.tlps;
    bytes += other.bytes;
    return *this;
  }
  friend constexpr bool operator==(const PcieCost&, const PcieCost&) = default;
};

/// Both directions: `out` leaves the card, `in` enters it.
struct PcieTransfer {
  PcieCost out;
  PcieCost in;

  constexpr PcieTransfer& operator+=(const PcieTransfer& other) {
    out += other.out;
    in += other.in;
    return *this;
  }
  friend constexpr bool operator==(const PcieTransfer&, const PcieTransfer&) = default;
};

/// A posted write of `bytes` > 0, one direction.
constexpr PcieCost posted_write(uint32_t bytes, const PcieLink& link = kPcieLink) {
  const uint32_t tlps = div_ceil(bytes, link.max_payload_bytes);
  return {tlps, bytes + uint64_t{tlps} * link.request_overhead_bytes};
}

/// The device writes host memory.
constexpr PcieTransfer dma_write(uint32_t bytes, const PcieLink& link = kPcieLink) {
  return {.out = posted_write(bytes, link), .in = {}};
}

/// The device reads host memory: requests go out, completions come in.
constexpr PcieTransfer dma_read(uint32_t bytes, const PcieLink& link = kPcieLink) {
  const uint32_t requests = div_ceil(bytes, link.max_read_request_bytes);
  const uint32_t completions = div_ceil(bytes, link.completion_bytes);
  return {.out = {requests, uint64_t{requests} * link.request_overhead_bytes},
          .in = {completions, bytes + uint64_t{completions} * link.completion_overhead_bytes}};
}

/// The CPU writes a register of the device.
constexpr PcieTransfer mmio_write(uint32_t bytes, const PcieLink& link = kPcieLink) {
  return {.out = {}, .in = posted_write(bytes, link)};
}

/// `count` transfers alike.
constexpr PcieTransfer times(uint64_t count, const PcieTransfer& each) {
  return {.out = {each.out.tlps * count, each.out.bytes * count},
          .in = {each.in.tlps * count, each.in.bytes * count}};
}

/// Sums of transfers of one kind. Adding is all that the data path does; what they cost on the link
/// is worked out when somebody asks.
struct PcieReads {
  uint64_t requests = 0, completions = 0, bytes = 0;

  void add(uint32_t more) {
    requests += div_ceil(more, kPcieLink.max_read_request_bytes);
    completions += div_ceil(more, kPcieLink.completion_bytes);
    bytes += more;
  }
  PcieTransfer cost() const {
    return {.out = {requests, requests * kPcieLink.request_overhead_bytes},
            .in = {completions, bytes + completions * kPcieLink.completion_overhead_bytes}};
  }
};
struct PcieWrites {
  uint64_t tlps = 0, bytes = 0;

  void add(uint32_t more) {
    tlps += div_ceil(more, kPcieLink.max_payload_bytes);
    bytes += more;
  }
  PcieTransfer cost() const {
    return {.out = {tlps, bytes + tlps * kPcieLink.request_overhead_bytes}, .in = {}};
  }
};

static_assert(dma_write(1500).out.bytes == 1500 + 6 * 24);
static_assert(dma_read(1500).out.bytes == 3 * 24 && dma_read(1500).in.bytes == 1500 + 6 * 20);

/// Sums by class. A plain value: whoever counts owns one.
struct PcieTally {
  std::array<PcieTransfer, kPcieClasses> by_class{};

  PcieTransfer& operator[](PcieClass c) { return by_class[static_cast<size_t>(c)]; }
  const PcieTransfer& operator[](PcieClass c) const { return by_class[static_cast<size_t>(c)]; }

  PcieTally& operator+=(const PcieTally& other) {
    for (size_t i = 0; i < kPcieClasses; ++i) by_class[i] += other.by_class[i];
    return *this;
  }

  PcieTransfer total() const {
    PcieTransfer sum;
    for (const PcieTransfer& transfer : by_class) sum += transfer;
    return sum;
  }
  friend bool operator==(const PcieTally&, const PcieTally&) = default;
};

/// Bytes on the link as published figures count them, acknowledgements and flow control included.
constexpr double link_bytes(uint64_t tlp_bytes, const PcieLink& link = kPcieLink) {
  return static_cast<double>(tlp_bytes) * link.link_layer_factor;
}

}  // namespace nicmem::hw
