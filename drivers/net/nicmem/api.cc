// SPDX-License-Identifier: BSD-3-Clause
// What the PMD exports to programs: rte_pmd_nicmem.h.
#include <algorithm>
#include <cstring>

#include "log.h"
#include "nicmem/copy.h"
#include "nicmem/errno.h"
#include "port.h"
#include "rte_pmd_nicmem.h"

#define NM_EXPORT extern "C" __attribute__((visibility("default")))

namespace nicmem::pmd {
namespace {

/// The port, or null when that number is no port of this driver.
Port* find_port(uint16_t port_id) {
  if (!rte_eth_dev_is_valid_port(port_id)) return nullptr;
  rte_eth_dev& dev = rte_eth_devices[port_id];
  return dev.dev_ops == &kOps && port_of(dev).device ? &port_of(dev) : nullptr;
}

nicmem_memory* handle(const Port& port) {
  return reinterpret_cast<nicmem_memory*>(port.device->memory.get());
}

nicmem_region to_c(const Port& port, const Region& region) {
  return {.offset = region.offset, .size = region.size, .key = region.key, .memory = handle(port)};
}

int report(const Port& port, const Error& error) {
  NM_LOG(ERR, "%s: %s", port.name.c_str(), error.what.c_str());
  return -to_errno(error);
}

Nanos now() {
  return static_cast<Nanos>(static_cast<double>(rte_get_timer_cycles()) * 1e9 /
                            static_cast<double>(rte_get_timer_hz()));
}

/// Reads one segment's bytes: by the CPU from host memory, by a counted copy from the card.
int read_segment(Port& port, const rte_mbuf& segment, uint32_t offset, std::span<std::byte> out) {
  const char* const data = rte_pktmbuf_mtod_offset(&segment, const char*, offset);
  if (!port.device->memory || !port.device->memory->contains(data)) {
    std::memcpy(out.data(), data, out.size());
    return 0;
  }
  Memory& memory = *port.device->memory;
  const auto read = slow_read(memory, memory.whole(), memory.offset_of(data), out, now());
  return read ? 0 : report(port, read.error());
}

}  // namespace
}  // namespace nicmem::pmd

using namespace nicmem;  // the C functions below are this file's whole purpose
using namespace nicmem::pmd;

NM_EXPORT int rte_pmd_nicmem_alloc(uint16_t port_id, size_t size, nicmem_region* out) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  if (!port->device->heap) return -ENOTSUP;
  const auto region = port->device->heap->allocate(size);
  if (!region) return report(*port, region.error());
  *out = to_c(*port, *region);
  return 0;
}

NM_EXPORT int rte_pmd_nicmem_free(uint16_t port_id, const nicmem_region* region) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  if (!port->device->heap || region->memory != handle(*port)) return -EINVAL;
  const auto freed = port->device->heap->free({region->offset, region->size, region->key});
  return freed ? 0 : report(*port, freed.error());
}

NM_EXPORT int rte_pmd_nicmem_caps_get(uint16_t port_id, rte_pmd_nicmem_caps* out) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  *out = {};
  out->mode = name_of(port->args.mode);
  out->header_bytes = port->args.header_bytes;
  out->guard = port->args.guard;
  if (port->card_payload) out->payload_buffers_nic = port->card_payload->buffers();
  if (port->host_payload) out->payload_buffers_host = port->host_payload->buffers();
  if (!port->device->memory) return 0;
  out->requested_bytes = port->device->memory->requested();
  out->memory_bytes = port->device->memory->size();
  out->free_bytes = port->device->heap->free_bytes();
  out->largest_free_bytes = port->device->heap->largest_free();
  return 0;
}

NM_EXPORT int rte_pmd_nicmem_region_of(const rte_mbuf* packet, nicmem_region* out) {
  Port* const port = find_port(packet->port);
  if (port == nullptr) return -ENODEV;
  if (!port->device->memory) return -ENOENT;
  Memory& memory = *port->device->memory;
  for (const rte_mbuf* segment = packet; segment != nullptr; segment = segment->next) {
    const void* const data = rte_pktmbuf_mtod(segment, const void*);
    if (!memory.contains(data)) continue;
    *out = to_c(*port, {memory.offset_of(data), segment->data_len, memory.key()});
    return 0;
  }
  return -ENOENT;
}

NM_EXPORT int rte_pmd_nicmem_slow_read(const rte_mbuf* packet, uint32_t offset, uint32_t length,
                                       void* out) {
  Port* const port = find_port(packet->port);
  if (port == nullptr) return -ENODEV;
  if (uint64_t{offset} + length > packet->pkt_len) return -EINVAL;
  auto* bytes = static_cast<std::byte*>(out);
  for (const rte_mbuf* segment = packet; segment != nullptr && length > 0;
       segment = segment->next) {
    if (offset >= segment->data_len) {
      offset -= segment->data_len;
      continue;
    }
    const uint32_t here = std::min<uint32_t>(length, segment->data_len - offset);
    if (const int error = read_segment(*port, *segment, offset, {bytes, here}); error != 0)
      return error;
    bytes += here;
    length -= here;
    offset = 0;
  }
  return 0;
}

NM_EXPORT int rte_pmd_nicmem_step(uint16_t port_id, uint32_t budget) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  if (!port->device->stepped) return -ENOTSUP;
  return static_cast<int>(port->device->hca->step(budget));
}

NM_EXPORT int rte_pmd_nicmem_same_device(uint16_t a, uint16_t b) {
  const Port* const first = find_port(a);
  const Port* const second = find_port(b);
  if (first == nullptr || second == nullptr) return -ENODEV;
  return first->device == second->device ? 1 : 0;
}

NM_EXPORT int rte_pmd_nicmem_set_mode_host_payload(uint16_t port_id) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  if (port->ethdev->data->dev_configured != 0) return -EBUSY;
  if (port->args.mode == Mode::kNicmem || port->args.mode == Mode::kNicmemNoInline)
    port->args.mode = Mode::kSplit;
  return 0;
}

NM_EXPORT int rte_pmd_nicmem_last_sent(uint16_t port_id, void* out, size_t size) {
  Port* const port = find_port(port_id);
  if (port == nullptr) return -ENODEV;
  return static_cast<int>(port->hca->last_sent({static_cast<std::byte*>(out), size}));
}
