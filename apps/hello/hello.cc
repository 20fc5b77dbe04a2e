// SPDX-License-Identifier: BSD-3-Clause
// Device memory from C++: allocate on a running port, write, send, and see what left. Run as
//   nicmem-hello --no-huge -m 128 --no-pci --vdev net_nicmem0 [--vdev net_nicmem1]
// With a second port, the same memory is tried through the other device, which must refuse it.
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "rte_pmd_nicmem.hpp"

namespace {

using nicmem::Code;
using nicmem::fail;
using nicmem::Result;
using nicmem::pmd::PortMemory;

constexpr size_t kBytes = 4096;
constexpr uint16_t kFramePayload = 1024;
constexpr std::string_view kText = "hello from the card's own memory";  // a multiple of 4 bytes
rte_mbuf_ext_shared_info shared = {.free_cb = [](void*, void*) {}};     // PortMemory frees

Result<void> start(uint16_t port, rte_mempool* pool) {
  const rte_eth_conf conf{};
  if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
      rte_eth_rx_queue_setup(port, 0, 64, 0, nullptr, pool) != 0 ||
      rte_eth_tx_queue_setup(port, 0, 64, 0, nullptr) != 0 || rte_eth_dev_start(port) != 0)
    return fail(Code::kSystem, "port " + std::to_string(port) + " does not start");
  return {};
}

/// An Ethernet header in host memory, then the memory's first bytes, where they lie.
Result<void> send(uint16_t port, rte_mempool* pool, const PortMemory& memory) {
  rte_mbuf* header = rte_pktmbuf_alloc(pool);
  rte_mbuf* const payload = rte_pktmbuf_alloc(pool);
  if (header == nullptr || payload == nullptr) return fail(Code::kExhausted, "no mbuf");
  std::memset(rte_pktmbuf_append(header, 14), 0x02, 14);
  rte_mbuf_ext_refcnt_set(&shared, 1);
  rte_pktmbuf_attach_extbuf(payload, memory.pointer(), RTE_BAD_IOVA, kBytes, &shared);
  rte_pktmbuf_append(payload, kFramePayload);
  rte_pktmbuf_chain(header, payload);
  if (rte_eth_tx_burst(port, 0, &header, 1) != 1) return fail(Code::kExhausted, "send queue full");
  return {};
}

/// The frame that left by `port`, once it has: 1 s of patience.
int last_sent(uint16_t port, std::span<char> out) {
  for (int tries = 0; tries < 1000; ++tries) {
    rte_pmd_nicmem_step(port, 32);
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

Result<void> hello(rte_mempool* pool) {
  for (uint16_t port = 0; port < rte_eth_dev_count_avail(); ++port)
    NM_TRY_VOID(start(port, pool));
  NM_TRY(PortMemory memory, PortMemory::allocate(0, kBytes));
  NM_TRY_VOID(memory.write(0, std::as_bytes(std::span(kText))));
  NM_TRY_VOID(send(0, pool, memory));
  std::array<char, 2048> frame{};
  const int length = last_sent(0, frame);
  const std::string_view got(frame.data() + 14, kText.size());
  std::printf("port 0: %d bytes left, from device memory: \"%.*s\"\n", length,
              static_cast<int>(got.size()), got.data());
  if (length != 14 + kFramePayload || got != kText)
    return fail(Code::kDevice, "other bytes left than were written");
  if (rte_eth_dev_count_avail() == 1) return {};

  NM_TRY_VOID(send(1, pool, memory));
  const uint64_t refused = xstat(1, "tx_foreign_memory");
  std::printf("port 1: another device: refused and counted %lu time(s), %d bytes left\n", refused,
              rte_pmd_nicmem_last_sent(1, frame.data(), frame.size()));
  if (refused != 1) return fail(Code::kDevice, "the other device took memory that is not its own");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) return 1;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create("hello", 511, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
  const auto result = pool == nullptr ? fail(Code::kExhausted, "no memory for mbufs") : hello(pool);
  if (!result) std::fprintf(stderr, "error: %s\n", result.error().what.c_str());
  for (uint16_t port = 0; port < rte_eth_dev_count_avail(); ++port) rte_eth_dev_stop(port);
  rte_eal_cleanup();
  return result ? 0 : 1;
}
