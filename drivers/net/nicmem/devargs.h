// SPDX-License-Identifier: BSD-3-Clause
// Device arguments: `--vdev net_nicmem0,key=value,...`. What the PMD itself understands; the rest
// is handed to the control path named by `hca`, which lists its own keys (drivers/hca/*/options.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace nicmem::pmd {

/// What drives the device.
enum class Control : uint8_t {
  kSim,    // the model
  kVerbs,  // rdma-core: a ConnectX
};

/// Where a received frame is placed, and whether transmit inlines the header. The published
/// configurations: host, split, nmNFV- and nmNFV. [Pismenny, ASPLOS'22, section 6]
enum class Mode : uint8_t {
  kHost,            // whole frames in host memory
  kSplit,           // header and payload apart, both in host memory
  kNicmemNoInline,  // payload on the card
  kNicmem,          // payload on the card, header inlined on transmit
};

/// When a program gets chains (header mbuf, payload mbuf).
enum class Split : uint8_t {
  kAuto,   // from queues set up with ethdev's buffer split
  kForce,  // from every queue: for programs that read only the first segment
  kOff,    // never
};

/// Who chooses between the card's payload buffers and those in host memory.
enum class Spill : uint8_t {
  kSoftware,  // the driver, when it arms a WQE: one ring, each WQE with what there is
  kHardware,  // the device, when a frame comes: two rings; Capabilities::spill
};

inline constexpr uint32_t kMinHeader = 18;  // Ethernet header and a VLAN tag
inline constexpr uint32_t kMaxHeader = 512;
inline constexpr uint32_t kLeastPosted = 8;  // as the shortest ring
inline constexpr uint32_t kMostPosted = 32768;

struct Devargs {
  Control hca = Control::kSim;
  Mode mode = Mode::kNicmem;
  Split split = Split::kAuto;
  Spill spill = Spill::kSoftware;
  std::optional<uint32_t> min_posted;  // WQEs that a ring keeps posted, 0: auto; none: all
  uint32_t header_bytes = 128;
  uint32_t tx_inline_bytes = 0;  // resolved: the header in mode nicmem, else 0, unless given
  bool guard = false;            // the CPU's mapping of payload memory allows no access
  bool promiscuous = false;      // from the first frame on, before the program can ask for it
  std::string device;            // ports with the same name share one device; empty: own device
  std::optional<std::array<uint8_t, 6>> mac;
  std::vector<std::pair<std::string, std::string>> rest;  // for the control path
};

/// Parses `text` as EAL hands it over. An unknown value of a known key is an error that names the
/// accepted ones; a key given twice too. Unknown keys end up in `rest`.
Result<Devargs> parse_devargs(std::string_view text);

/// The keys of parse_devargs, for the error about an unknown key.
inline constexpr std::string_view kDevargKeys =
    "hca, mode, split, header, tx_inline, spill, min_posted, guard, promiscuous, device, mac";

const char* name_of(Mode mode);

}  // namespace nicmem::pmd
