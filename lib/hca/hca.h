// SPDX-License-Identifier: BSD-3-Clause
// The control-path port to a ConnectX: creates memory, queues and links, and hands out the memory
// that the data path works on (rings, doorbell records and registers). Two implementations:
// drivers/hca/sim (the model) and drivers/hca/verbs (a card). The data path never calls it.
//
// Shape: an Hca is one device context (verbs: ibv_context). It has memory (device memory, memory
// regions, protection domains) and ports. Every object is owned by a unique_ptr; destroying it
// frees it on the device. Order: queues before their completion queues, regions before their
// memory, all before the port, the port before the Hca.
//
// Threads: calls are serialised by the caller; they may come while the data path runs on rings of
// other queues. Errors: kExhausted (device resource), kUnsupported, kInvalidArgument, kSystem.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "hca/steering.h"
#include "hw/cqe.h"
#include "hw/doorbell.h"
#include "hw/pcie.h"

namespace nicmem::hca {

struct Capabilities {
  std::string name;                  // "sim", "mlx5_0"
  std::string pci_address;           // "0000:ca:00.0"; empty: it is no PCI function
  std::array<uint8_t, 6> mac{};      // the port's own address; all zero: it has none
  size_t device_memory_bytes = 0;    // largest device memory that can be asked for; 0: none
  uint32_t max_queue_depth = 0;      // receive WQEs, send blocks, completions
  uint32_t max_scatter_entries = 0;  // per receive WQE
  uint32_t max_queues = 0;           // per port and direction
  uint32_t max_frame_bytes = 0;      // without FCS
  uint32_t max_tso_bytes = 0;        // of a packet that the device cuts up; 0: it does not
  uint32_t rule_priorities = 0;      // RuleOptions::priority is below that; 0: no rules
  bool checksum = false;             // fills checksums on transmit, verifies them on receive
  bool vlan = false;                 // inserts and strips tags
  bool spill = false;                // ReceiveOptions::primary; no card has it today
  bool exact_counters = true;        // PortCounters are of this port's queues, to the last frame
  uint32_t max_receive_inline = 0;   // CompletionOptions::inline_bytes; no card has it today
  int numa_node = -1;                // -1: not known
};

/// A protection domain: keys made in it are valid only for queues made in it.
enum class Domain : uint32_t {};

enum class Access : uint8_t {
  kRead,       // the device may read: transmit only
  kReadWrite,  // the device may also write. verbs: IBV_ACCESS_LOCAL_WRITE
};

/// Memory on the card. verbs: ibv_alloc_dm.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Where applications see it (mbuf addresses lie here). In guard mode no access is allowed:
  /// a load or store ends the program.
  virtual std::span<std::byte> window() = 0;
  /// Where copies go; the same bytes. Write-combining on a card: see nicmem/copy.h for the rules.
  virtual std::span<std::byte> access() = 0;
};

/// A registered range. A WQE's address is `address_of(pointer)`: for host memory the pointer
/// itself, for device memory the offset in the (zero-based) region.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  uint32_t key = 0;    // verbs: lkey
  uintptr_t base = 0;  // what is subtracted from a CPU address to get the WQE's address
  uint64_t address_of(const void* pointer) const {
    return reinterpret_cast<uintptr_t>(pointer) - base;
  }
};

/// Entries are in the ring in the initial state (kOpOwnInitial); both counters start at zero.
/// An entry is `stride` slots: inlined header bytes, then, in the last slot, the completion.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  std::span<hw::Cqe> ring;                 // depth (a power of two) * stride
  uint32_t depth = 0;                      // entries
  uint32_t stride = 1;                     // slots an entry
  hw::DoorbellRecord* consumer = nullptr;  // entries consumed, 24 bits
  uint32_t number = 0;
};

class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;
  /// Brings a queue in error, or in use, back to its first state: counters zero, nothing posted,
  /// nothing completed (its completion queue starts anew too). verbs: RESET, then RDY.
  virtual Result<void> reset() = 0;
  /// Takes no more frames until reset(): those steered here are dropped. verbs: RESET
  virtual Result<void> stop() = 0;
  /// Whether tags are taken off and reported in the completion. kUnsupported: see Capabilities.
  virtual Result<void> strip_vlan(bool strip) = 0;
  std::span<std::byte> ring;               // depth * stride
  uint32_t depth = 0;                      // WQEs, a power of two
  uint32_t stride_bytes = 0;               // hw::receive_wqe_stride(scatter entries)
  hw::DoorbellRecord* producer = nullptr;  // WQEs posted, 16 bits
  uint32_t number = 0;
};

class SendQueue {
 public:
  virtual ~SendQueue() = default;
  virtual Result<void> reset() = 0;        // verbs: RESET, INIT, RTR, RTS
  virtual Result<void> stop() = 0;         // executes nothing until reset(). verbs: RESET
  std::span<std::byte> ring;               // depth * hw::kWqeBlockBytes
  uint32_t depth = 0;                      // blocks, a power of two
  hw::DoorbellRecord* producer = nullptr;  // blocks posted, 16 bits
  hw::DoorbellRegister* doorbell = nullptr;
  uint32_t number = 0;
};

struct CompletionOptions {
  uint32_t depth = 0;         // entries, a power of two
  uint32_t inline_bytes = 0;  // a frame's first bytes come with its completion (receive only)
};

struct ReceiveOptions {
  uint32_t depth = 0;               // WQEs, a power of two
  uint32_t scatter_entries = 1;     // per WQE
  uint32_t user_index = 0;          // reported in the completion's user_index, 24 bits
  ReceiveQueue* primary = nullptr;  // takes the frames for which that one has nothing posted; both
                                    // complete into one queue, in the order of arrival
};

struct LinkState {
  bool up = false;
  uint32_t speed_mbps = 0;
};

/// Since the port was opened. What the wire offered = received + every rx_ drop. Without
/// Capabilities::exact_counters they are of all who use the interface, late, and some stay zero.
struct PortCounters {
  uint64_t rx_frames = 0, rx_bytes = 0;  // delivered to a receive queue
  uint64_t rx_no_buffer = 0;             // nothing posted
  uint64_t rx_oversize = 0;              // longer than the port takes
  uint64_t rx_filtered = 0;              // no rule takes it: another MAC, another VLAN
  uint64_t rx_dropped_by_rule = 0;       // RuleOptions::drop, or a rule without queues
  uint64_t rx_error = 0;                 // the WQE failed: bad key, too short
  uint64_t rx_malformed = 0;             // shorter than an Ethernet header
  uint64_t tx_frames = 0, tx_bytes = 0;  // handed to the wire
  uint64_t tx_error = 0;                 // WQEs that failed
  uint64_t tx_wire_drops = 0;            // the wire did not take them
  uint64_t generated = 0;                // by the port's own generator
  uint64_t wire_held = 0;                // frames between wire and queue now
};

/// One Ethernet port. Rings are idle until start().
class Port {
 public:
  virtual ~Port() = default;

  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(
      const CompletionOptions& options) = 0;
  virtual Result<std::unique_ptr<ReceiveQueue>> create_receive_queue(
      Domain domain, CompletionQueue& cq, const ReceiveOptions& options) = 0;
  virtual Result<std::unique_ptr<SendQueue>> create_send_queue(Domain domain, CompletionQueue& cq,
                                                               uint32_t depth_blocks) = 0;

  /// Replaces all default rules at once; an empty table: what no Rule takes is rx_filtered.
  virtual Result<void> steer(const SteeringOptions& options) = 0;
  /// Puts a rule before the default ones. kUnsupported names what the device cannot match or do.
  virtual Result<std::unique_ptr<Rule>> create_rule(const RuleOptions& options) = 0;
  /// Largest frame taken, without FCS.
  virtual Result<void> set_max_frame(uint32_t bytes) = 0;

  /// Lets frames in and out; stop() lets what is on the way finish or drop, and is idempotent.
  virtual Result<void> start() = 0;
  virtual void stop() = 0;

  /// Asks for the link to be up or down; it starts up. While it is down nothing comes in or leaves.
  virtual Result<void> set_link(bool up) = 0;
  virtual LinkState link() const = 0;
  virtual PortCounters counters() const = 0;
  /// What the device moved over PCIe for this port. Its class kDoorbell is zero: the CPU's MMIO
  /// writes are counted by who makes them. Hardware without such counters: all zero.
  virtual hw::PcieTally pcie() const = 0;

  /// Copies the newest frame that left by this port; returns its length, 0 if there was none or the
  /// device keeps none (hardware).
  virtual size_t last_sent(std::span<std::byte> out) const = 0;
};

/// What happens to a port by itself.
enum class PortEvent : uint8_t {
  kLinkChanged,  // see Port::link(). verbs: IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR
  kDeviceReset,  // all queues are in error and stay so: close and open again
  kRemoved,      // the device is gone. verbs: IBV_EVENT_DEVICE_FATAL, after which no call works
};

struct PortOptions {
  std::string name;             // the ethdev's name: how `pair:` and log lines find it
  uint32_t header_bytes = 128;  // frames' header part, for PcieClass::kHeader
  std::array<uint8_t, 6> mac{};
  /// Called by a thread of the device's, with no lock held; not after the port is gone. May be
  /// empty.
  std::function<void(PortEvent)> on_event = {};
};

class Hca {
 public:
  virtual ~Hca() = default;
  virtual const Capabilities& capabilities() const = 0;

  virtual Result<Domain> create_domain() = 0;
  virtual void destroy_domain(Domain domain) = 0;

  /// `bytes` is rounded up to 64. Content is undefined. kExhausted when the card has less.
  virtual Result<std::unique_ptr<DeviceMemory>> allocate_device_memory(size_t bytes) = 0;
  /// Zero-based: address 0 of the region is byte `offset` of the memory.
  virtual Result<std::unique_ptr<MemoryRegion>> register_device_memory(Domain domain,
                                                                       DeviceMemory& memory,
                                                                       size_t offset, size_t length,
                                                                       Access access) = 0;
  virtual Result<std::unique_ptr<MemoryRegion>> register_host_memory(Domain domain, void* start,
                                                                     size_t length,
                                                                     Access access) = 0;

  virtual Result<std::unique_ptr<Port>> open_port(const PortOptions& options) = 0;

  /// Runs a device that has no clock of its own for at most `budget` frames per port and direction;
  /// returns how many it moved. Hardware, and a model with a thread: 0.
  virtual size_t step(uint32_t budget) = 0;
};

}  // namespace nicmem::hca
