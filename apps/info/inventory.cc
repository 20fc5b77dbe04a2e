// SPDX-License-Identifier: BSD-3-Clause
#include "inventory.h"

#include "drivers/hca/verbs/loader.h"
#include "sim/nic.h"

namespace nicmem::info {
namespace {

constexpr uint32_t kModelMemoryUnit = 64;  // Hca::allocate_device_memory()

/// What NVIDIA sells under a device number. [Linux, mlx5_core_pci_table]
std::string kind_of(uint32_t part) {
  switch (part) {
    case 4115:
    case 4116:
      return "ConnectX-4";
    case 4117:
    case 4118:
      return "ConnectX-4 Lx";
    case 4119:
    case 4120:
      return "ConnectX-5";
    case 4121:
    case 4122:
      return "ConnectX-5 Ex";
    case 4123:
    case 4124:
      return "ConnectX-6";
    case 4125:
      return "ConnectX-6 Dx";
    case 4126:
      return "ConnectX, virtual function";
    case 4127:
      return "ConnectX-6 Lx";
    case 4129:
      return "ConnectX-7";
    case 41686:
      return "BlueField-2";
    case 41692:
      return "BlueField-3";
    default:
      return "device number " + std::to_string(part);
  }
}

Device describe(hca_verbs::Plugin& plugin, const hca_verbs::DeviceName& name) {
  Device device{.name = name.ibdev,
                .card = true,
                .pci_address = name.pci_address,
                .netdev = name.netdev,
                .numa_node = name.numa_node};
  const auto report = plugin.report(name);
  if (!report) {
    device.refused = report.error().what;
    return device;
  }
  device.kind = kind_of(report->vendor_part_id);
  device.firmware = report->firmware;
  device.board = report->board;
  device.mtu = report->mtu;
  device.link = report->link;
  device.capabilities = report->capabilities;
  device.memory_alignment = report->memory_alignment;
  device.any_mask = report->flow_matchers;
  device.memory_refused = report->memory_refused;
  device.raw_refused = report->raw_refused;
  device.counters_refused = report->counters_refused;
  return device;
}

Result<Device> describe_model() {
  NM_TRY(const auto nic, sim::Nic::create({}));
  return Device{.name = "sim",
                .kind = "software ConnectX",
                .link = {.up = true, .speed_mbps = sim::kLinkMbps},
                .capabilities = nic->capabilities(),
                .memory_alignment = kModelMemoryUnit};
}

Result<std::vector<Device>> describe_cards() {
  NM_TRY(hca_verbs::Plugin* const plugin, hca_verbs::load());
  NM_TRY(const auto names, plugin->list());
  if (names.empty())
    return fail(
        Code::kNotFound,
        "rdma-core lists no ConnectX: lspci -k -d 15b3: shows the cards of this machine, and "
        "whether the kernel's driver mlx5_core has them; verbs also need mlx5_ib");
  std::vector<Device> cards;
  for (const hca_verbs::DeviceName& name : names) cards.push_back(describe(*plugin, name));
  return cards;
}

}  // namespace

Result<Inventory> look_around() {
  Inventory all;
  if (auto cards = describe_cards())
    all.devices = std::move(*cards);
  else
    all.no_cards = cards.error().what;
  NM_TRY(Device model, describe_model());
  all.devices.push_back(std::move(model));
  return all;
}

}  // namespace nicmem::info
