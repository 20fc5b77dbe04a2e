// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/inventory.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <span>

#include "drivers/hca/verbs/device.h"
#include "drivers/hca/verbs/handles.h"
#include "drivers/hca/verbs/memory.h"
#include "drivers/hca/verbs/port.h"
#include "drivers/hca/verbs/surroundings.h"

namespace nicmem::hca_verbs {
namespace {

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

DeviceName describe(const ibv_device& device) {
  const Surroundings around(device.ibdev_path);
  return {.ibdev = device.name,
          .pci_address = around.pci_address(),
          .netdev = around.netdev(),
          .numa_node = around.numa_node()};
}

/// "ca:00.0" is "0000:ca:00.0".
bool is_called(const DeviceName& device, std::string name) {
  if (name == device.ibdev) return true;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == device.pci_address || "0000:" + name == device.pci_address;
}

std::string names_of(const std::vector<DeviceName>& devices) {
  std::string names;
  for (const DeviceName& device : devices)
    names += (names.empty() ? "" : ", ") + device.ibdev + " (" + device.pci_address + ")";
  return names.empty() ? "none: no ConnectX is here, or mlx5_ib is not loaded" : names;
}

/// Sends nothing and takes no frame that anybody else is sent: to an address that no port has.
hca::RuleOptions harmless_rule(std::span<hca::ReceiveQueue* const> table) {
  hca::RuleOptions rule;
  rule.match.ether.emplace();
  rule.match.ether->value.destination = {{0x02, 0, 0, 0, 0, 0}};
  rule.match.ether->mask.destination = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  rule.rss.table = table;
  return rule;
}

template <class T>
std::string why_not(const Result<T>& result) {
  return result ? std::string() : result.error().what;
}

constexpr uint32_t kTrialBytes = 4096, kTrialDepth = 64;

Result<void> try_memory(VerbsDevice& device, hca::Domain domain) {
  if (device.capabilities().device_memory_bytes == 0)
    return fail(Code::kUnsupported, "the device gives none (firmware setting MEMIC_SIZE_LIMIT)");
  NM_TRY(const auto memory, device.allocate_device_memory(kTrialBytes));
  NM_TRY(const auto region,
         device.register_device_memory(domain, *memory, 0, kTrialBytes, hca::Access::kReadWrite));
  return {};
}

struct RawPackets {
  bool flow_matchers = false;    // rules are made in the device's own format
  std::string counters_refused;  // why no rule counts
};

/// Queues, a rule, and one that counts.
Result<RawPackets> try_raw_packets(VerbsDevice& device, hca::Domain domain) {
  NM_TRY(const auto port, VerbsPort::open(device, {}));
  NM_TRY(const auto cq, port->create_completion_queue({.depth = kTrialDepth}));
  NM_TRY(const auto sends, port->create_send_queue(domain, *cq, kTrialDepth));
  NM_TRY(const auto queue, port->create_receive_queue(domain, *cq, {.depth = kTrialDepth}));
  const std::array<hca::ReceiveQueue*, 1> table = {queue.get()};
  hca::RuleOptions rule = harmless_rule(table);
  NM_TRY_VOID(port->create_rule(rule));
  const bool matchers = port->makes_matchers();
  rule.count = true;
  return RawPackets{.flow_matchers = matchers,
                    .counters_refused = why_not(port->create_rule(rule))};
}

}  // namespace

Result<std::vector<DeviceName>> list_devices() {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  std::vector<DeviceName> devices;
  if (list == nullptr && errno == ENOSYS) return devices;  // a kernel without ib_uverbs
  if (list == nullptr) return verbs_error("list of InfiniBand devices", errno);
  for (ibv_device* const device : std::span(list.get(), static_cast<size_t>(count)))
    if (mlx5dv_is_supported(device)) devices.push_back(describe(*device));
  return devices;
}

Result<DeviceName> find_device(const std::string& ibdev) {
  NM_TRY(const std::vector<DeviceName> devices, list_devices());
  for (const DeviceName& device : devices)
    if (is_called(device, ibdev) || (ibdev.empty() && devices.size() == 1)) return device;
  return fail(Code::kNotFound, "ibdev=" + ibdev + ": accepted: " + names_of(devices));
}

Result<DeviceReport> report_on(const DeviceName& name) {
  NM_TRY(const auto device, VerbsDevice::open(name, false));
  NM_TRY(const hca::Domain domain, device->create_domain());
  const ibv_device_attr& basic = device->attributes().orig_attr;
  DeviceReport report{.firmware = basic.fw_ver,
                      .board = device->surroundings().text("board_id"),
                      .vendor_part_id = basic.vendor_part_id,
                      .capabilities = device->capabilities(),
                      .memory_alignment = kMemoryUnit,
                      .mtu = device->surroundings().mtu()};
  report.memory_refused = why_not(try_memory(*device, domain));
  const Result<RawPackets> raw = try_raw_packets(*device, domain);
  report.raw_packets = raw.has_value();
  report.raw_refused = why_not(raw);
  report.flow_matchers = raw && raw->flow_matchers;
  report.counters_refused = raw ? raw->counters_refused : report.raw_refused;
  if (const auto port = VerbsPort::open(*device, {})) report.link = (*port)->link();
  device->destroy_domain(domain);
  return report;
}

}  // namespace nicmem::hca_verbs
