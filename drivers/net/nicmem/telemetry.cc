// SPDX-License-Identifier: BSD-3-Clause
// DPDK telemetry: /nicmem/list, and of one port /nicmem/port, /nicmem/memory, /nicmem/pcie.
#include <rte_telemetry.h>

#include <charconv>
#include <cstring>

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

/// Adds dictionaries inside a dictionary.
class Section {
 public:
  Section() : data_(rte_tel_data_alloc()) {
    if (data_ != nullptr) rte_tel_data_start_dict(data_);
  }
  ~Section() { rte_tel_data_free(data_); }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  void number(const char* name, uint64_t value) {
    if (data_ != nullptr) rte_tel_data_add_dict_u64(data_, name, value);
  }
  /// From here on it is part of `parent`.
  void end(rte_tel_data* parent, const char* name) {
    if (data_ != nullptr && rte_tel_data_add_dict_container(parent, name, data_, 0) == 0)
      data_ = nullptr;
  }

 private:
  rte_tel_data* data_;
};

/// The port that a command names, or null.
Port* named_port(const char* parameters) {
  if (parameters == nullptr) return nullptr;
  uint16_t id = 0;
  const char* const end = parameters + std::strlen(parameters);
  const auto [rest, error] = std::from_chars(parameters, end, id);
  return error == std::errc{} && rest == end ? live_port(id) : nullptr;
}

int list(const char* /*command*/, const char* /*parameters*/, rte_tel_data* out) {
  const std::lock_guard lock(control_mutex());
  rte_tel_data_start_array(out, RTE_TEL_INT_VAL);
  for (const Port* port : live_ports())
    rte_tel_data_add_array_int(out, port->ethdev->data->port_id);
  return 0;
}

int describe_port(const char* /*command*/, const char* parameters, rte_tel_data* out) {
  const std::lock_guard lock(control_mutex());
  const Port* const port = named_port(parameters);
  if (port == nullptr) return -ENODEV;
  rte_tel_data_start_dict(out);
  rte_tel_data_add_dict_string(out, "name", port->name.c_str());
  rte_tel_data_add_dict_string(out, "device", port->device ? port->device->name.c_str() : "gone");
  rte_tel_data_add_dict_string(out, "mode", name_of(port->args.mode));
  rte_tel_data_add_dict_u64(out, "header_bytes", port->args.header_bytes);
  rte_tel_data_add_dict_u64(out, "tx_inline_bytes", port->args.tx_inline_bytes);
  rte_tel_data_add_dict_int(out, "guard", port->args.guard ? 1 : 0);
  rte_tel_data_add_dict_int(out, "started", port->ethdev->data->dev_started ? 1 : 0);
  rte_tel_data_add_dict_int(out, "removed", port->events->removed() ? 1 : 0);
  rte_tel_data_add_dict_int(out, "numa_node",
                            port->device ? port->device->hca->capabilities().numa_node : -1);
  return 0;
}

void add_pool(rte_tel_data* out, const char* name, const PayloadPool* pool) {
  Section section;
  section.number("buffers", pool == nullptr ? 0 : pool->buffers());
  section.number("buffer_bytes", pool == nullptr ? 0 : pool->buffer_bytes());
  section.number("free", pool == nullptr ? 0 : rte_mempool_avail_count(pool->pool()));
  section.end(out, name);
}

int describe_memory(const char* /*command*/, const char* parameters, rte_tel_data* out) {
  const std::lock_guard lock(control_mutex());
  const Port* const port = named_port(parameters);
  if (port == nullptr || !port->device) return -ENODEV;
  const Device& device = *port->device;
  const Footprint footprint = footprint_of(*port);
  rte_tel_data_start_dict(out);
  rte_tel_data_add_dict_u64(out, "device_bytes", device.memory ? device.memory->size() : 0);
  rte_tel_data_add_dict_u64(out, "device_free_bytes", device.heap ? device.heap->free_bytes() : 0);
  rte_tel_data_add_dict_u64(out, "registered_host_bytes", device.map->registered().bytes);
  rte_tel_data_add_dict_u64(out, "ring_bytes", footprint.rings);
  rte_tel_data_add_dict_u64(out, "posted_first_bytes", footprint.posted_first);
  rte_tel_data_add_dict_u64(out, "posted_other_bytes", footprint.posted_other);
  add_pool(out, "payload_nicmem", port->card_payload.get());
  add_pool(out, "payload_host", port->host_payload.get());
  return 0;
}

int describe_pcie(const char* /*command*/, const char* parameters, rte_tel_data* out) {
  const std::lock_guard lock(control_mutex());
  const Port* const port = named_port(parameters);
  if (port == nullptr) return -ENODEV;
  const hw::PcieTally tally = pcie_since_reset(*port);
  rte_tel_data_start_dict(out);
  for (size_t i = 0; i < hw::kPcieClasses; ++i) {
    const hw::PcieTransfer& moved = tally.by_class[i];
    Section section;
    section.number("out_bytes", moved.out.bytes);
    section.number("out_tlps", moved.out.tlps);
    section.number("in_bytes", moved.in.bytes);
    section.number("in_tlps", moved.in.tlps);
    section.end(out, hw::kPcieClassNames[i]);
  }
  return 0;
}

}  // namespace
}  // namespace nicmem::pmd

RTE_INIT(nicmem_telemetry) {
  using namespace nicmem::pmd;
  rte_telemetry_register_cmd("/nicmem/list", list, "The ports of net_nicmem. No parameters.");
  rte_telemetry_register_cmd("/nicmem/port", describe_port,
                             "A port's mode and device. Parameter: the port's number.");
  rte_telemetry_register_cmd(
      "/nicmem/memory", describe_memory,
      "A port's memory: the device's, registered, rings, posted, pools. Parameter: its number.");
  rte_telemetry_register_cmd("/nicmem/pcie", describe_pcie,
                             "What a port moved over PCIe, by class. Parameter: its number.");
}
