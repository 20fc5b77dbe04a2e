// SPDX-License-Identifier: BSD-3-Clause
// Device memory from C++: allocate on a running port, write, send, and see what left. Run as
//   nicmem-hello --no-huge -m 128 --no-pci --vdev net_nicmem0 [--vdev net_nicmem1]
// With a port of another device, the same memory is tried there too, and must be refused.
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "rte_pmd_nicmem.hpp"

namespace {

using nicmem::Code;
using nicmem::fail;
using nicmem::Result;
using nicmem::pmd::PortMemory;

constexpr size_t kBytes = 4096;
constexpr uint16_t kHeader = 14, kPayload = 1024;
constexpr std::string_view kText = "hello from the card's own memory";  // whole words of 4 bytes

std::optional<uint16_t> first_port() {
  rte_pmd_nicmem_caps caps;
  for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port)
    if (rte_pmd_nicmem_caps_get(port, &caps) == 0) return port;
  return std::nullopt;
}

std::optional<uint16_t> port_of_another_device(uint16_t first) {
  for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port)
    if (rte_pmd_nicmem_same_device(first, port) == 0) return port;
  return std::nullopt;
}

Result<void> start(uint16_t port, rte_mempool* pool) {
  const rte_eth_conf conf{};
  if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
      rte_eth_rx_queue_setup(port, 0, 64, 0, nullptr, pool) != 0 ||
      rte_eth_tx_queue_setup(port, 0, 64, 0, nullptr) != 0 || rte_eth_dev_start(port) != 0)
    return fail(Code::kSystem, "port " + std::to_string(port) + " does not start");
  return {};
}

// PortMemory keeps one reference and frees: the callback is never the last.
rte_mbuf_ext_shared_info references = {
    .free_cb = [](void*, void*) {}, .fcb_opaque = nullptr, .refcnt = 1};

/// An Ethernet header in host memory, then the memory's first bytes, where they lie.
Result<void> send(uint16_t port, rte_mempool* pool, const PortMemory& memory) {
  rte_mbuf* header = rte_pktmbuf_alloc(pool);
  rte_mbuf* const payload = rte_pktmbuf_alloc(pool);
  if (header == nullptr || payload == nullptr) return fail(Code::kExhausted, "no mbuf");
  std::memset(rte_pktmbuf_append(header, kHeader), 0x02, kHeader);
  rte_mbuf_ext_refcnt_update(&references, 1);
  rte_pktmbuf_attach_extbuf(payload, memory.pointer(), RTE_BAD_IOVA, kBytes, &references);
  rte_pktmbuf_append(payload, kPayload);
  rte_pktmbuf_chain(header, payload);
  if (rte_eth_tx_burst(port, 0, &header, 1) != 1) return fail(Code::kExhausted, "send queue full");
  return {};
}

/// The frame that left by `port`, once it has: 1 s of patience.
int wait_for_frame(uint16_t port, std::span<char> out) {
  for (int tries = 0; tries < 1000; ++tries) {
    rte_pmd_nicmem_step(port, 32);  // with cpu=none; else the device runs by itself
    if (const int length = rte_pmd_nicmem_last_sent(port, out.data(), out.size()); length != 0)
      return length;
    rte_delay_us_sleep(1000);
  }
  return 0;
}

uint64_t xstat(uint16_t port, const char* name) {
  uint64_t id = 0, value = 0;
  if (rte_eth_xstats_get_id_by_name(port, name, &id) == 0)
    rte_eth_xstats_get_by_id(port, &id, &value, 1);
  return value;
}

Result<void> hello(uint16_t port, rte_mempool* pool, PortMemory& memory) {
  NM_TRY_VOID(memory.write(0, std::as_bytes(std::span(kText))));
  NM_TRY_VOID(send(port, pool, memory));
  std::array<char, 2048> frame{};
  const int length = wait_for_frame(port, frame);
  const std::string_view got(frame.data() + kHeader, kText.size());
  std::printf("port %u: %d bytes left, from device memory: \"%.*s\"\n", port, length,
              static_cast<int>(got.size()), got.data());
  if (length != kHeader + kPayload || got != kText)
    return fail(Code::kDevice, "other bytes left than were written");
  return {};
}

Result<void> try_elsewhere(uint16_t port, rte_mempool* pool, const PortMemory& memory) {
  NM_TRY_VOID(send(port, pool, memory));
  rte_pmd_nicmem_step(port, 32);
  const uint64_t refused = xstat(port, "tx_foreign_memory");
  std::array<char, 2048> frame;
  const int left = rte_pmd_nicmem_last_sent(port, frame.data(), frame.size());
  std::printf("port %u: another device: refused and counted %" PRIu64 " time(s), %d bytes left\n",
              port, refused, left);
  if (refused != 1 || left != 0)
    return fail(Code::kDevice, "another device took memory that is not its own");
  return {};
}

Result<void> run(rte_mempool* pool) {
  const auto port = first_port();
  if (!port) return fail(Code::kNotFound, "no port of net_nicmem: give --vdev net_nicmem0");
  const auto other = port_of_another_device(*port);
  NM_TRY_VOID(start(*port, pool));
  if (other) NM_TRY_VOID(start(*other, pool));
  NM_TRY(PortMemory memory, PortMemory::allocate(*port, kBytes));
  Result<void> result = hello(*port, pool, memory);
  if (result && other) result = try_elsewhere(*other, pool, memory);

  // Stopped ports have freed the packets that pointed to the memory: now it may go.
  rte_eth_dev_stop(*port);
  if (other) rte_eth_dev_stop(*other);
  if (result && rte_mbuf_ext_refcnt_read(&references) != 1)
    return fail(Code::kDevice, "a packet was not freed");
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) return 1;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create("hello", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
  const auto result = pool != nullptr ? run(pool) : fail(Code::kExhausted, "no memory for mbufs");
  if (!result) std::fprintf(stderr, "error: %s\n", result.error().what.c_str());
  rte_eal_cleanup();
  return result ? 0 : 1;
}
