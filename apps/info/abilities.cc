// SPDX-License-Identifier: BSD-3-Clause
#include "abilities.h"

namespace nicmem::info {
namespace {

constexpr uint32_t kSplitPieces = 2;  // header, payload

std::string either(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

std::string unless(bool has, const char* why_not) { return has ? "" : why_not; }

/// Where the firmware gives no memory, or what it has is in use.
std::string no_memory(const Device& device) {
  if (device.capabilities.device_memory_bytes != 0) return device.memory_refused;
  return "the device gives no memory: see firmware setting MEMIC_SIZE_LIMIT (mlxconfig -d " +
         either(device.pci_address, "ADDRESS") +
         " query MEMIC_SIZE_LIMIT; 0 is none, 1 is 256KiB; takes a reset of the card); virtual "
         "functions may get none";
}

}  // namespace

std::vector<Ability> abilities_of(const Device& device) {
  const hca::Capabilities& has = device.capabilities;
  const std::string queues = either(device.refused, device.raw_refused);
  const std::string split = either(
      queues, unless(has.max_scatter_entries >= kSplitPieces, "a receive request has one piece"));
  const std::string memory =
      either(queues, device.refused.empty() ? no_memory(device) : std::string());
  const auto with_queues = [&](bool there, const char* why_not) {
    return either(queues, unless(there, why_not));
  };
  const std::string rules = with_queues(has.rule_priorities != 0, "the device takes no rules");
  return {
      {"payload", "received payload stays on the card (mode=nicmem, nicmem-noinline)",
       either(split, memory)},
      {"transmit", "frames go out from the card's memory", memory},
      {"split", "header and payload in buffers of their own (mode=split)", split},
      {"spill_sw", "host memory takes what the card's does not hold (spill=sw)", split},
      {"spill_hw", "the card chooses between the two as a frame comes (spill=hw)",
       either(split, unless(has.spill, "no card has it today, the model does"))},
      {"tx_inline", "header bytes go in the send request (tx_inline)", queues},
      {"rx_inline", "header bytes come with the completion",
       with_queues(has.max_receive_inline != 0, "no card has it today")},
      {"checksums", "checksums filled and verified",
       with_queues(has.checksum, "the device has no raw-packet checksums")},
      {"vlan", "VLAN tags taken off and put in",
       with_queues(has.vlan, "the device does not strip tags")},
      {"tso", "long TCP packets cut up",
       with_queues(has.max_tso_bytes != 0, "the device cuts up no raw packets")},
      {"flow_rules", "rte_flow: queue, RSS, drop, mark", rules},
      {"flow_masks", "rules that compare any bits of a field",
       either(rules, unless(device.any_mask,
                            "no matchers in the device's format: rules take whole fields only"))},
      {"flow_counters", "rules that count", either(rules, device.counters_refused)},
      {"own_statistics", "port statistics are of this port alone",
       either(device.refused,
              unless(has.exact_counters,
                     "the card's count all that its link carries, the kernel's frames too"))},
      {"pcie_statistics", "PCIe bytes by class",
       unless(!device.card, "a card does not tell; see lib/hw/pcie.h for the arithmetic")},
  };
}

std::vector<std::string> problems_of(const Device& device) {
  if (!device.refused.empty()) return {device.refused};
  std::vector<std::string> found;
  if (!device.raw_refused.empty()) found.push_back(device.raw_refused);
  if (const std::string why = no_memory(device); !why.empty()) found.push_back(why);
  if (!device.link.up)
    found.push_back(
        "the link is down" +
        (device.netdev.empty()
             ? std::string(", and its network interface is not in this namespace")
             : ": see the cable and the other end, and ip link set " + device.netdev + " up"));
  return found;
}

}  // namespace nicmem::info
