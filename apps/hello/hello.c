/* SPDX-License-Identifier: BSD-3-Clause
 * Device memory from C: allocate on a running port, write, send, and see what left. Run as
 *   nicmem-hello-c --no-huge -m 128 --no-pci --vdev net_nicmem0 [--vdev net_nicmem1]
 * With a second port, the same memory is tried through the other device, which must refuse it.
 */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <string.h>

#include "rte_pmd_nicmem.h"

enum { kBytes = 4096, kFramePayload = 1024 };
static const char kText[] = "hello from the card's own memory";

static void keep(void* address, void* opaque) {
  (void)address, (void)opaque;
} /* freed at the end */
static struct rte_mbuf_ext_shared_info shared = {.free_cb = keep};

static int start(uint16_t port, struct rte_mempool* pool) {
  struct rte_eth_conf conf;
  memset(&conf, 0, sizeof conf);
  if (rte_eth_dev_configure(port, 1, 1, &conf) ||
      rte_eth_rx_queue_setup(port, 0, 64, 0, NULL, pool) ||
      rte_eth_tx_queue_setup(port, 0, 64, 0, NULL))
    return -1;
  return rte_eth_dev_start(port);
}

/* An Ethernet header in host memory, then the region's first bytes, where they lie. */
static int send_region(uint16_t port, struct rte_mempool* pool,
                       const struct nicmem_region* region) {
  struct rte_mbuf *header = rte_pktmbuf_alloc(pool), *payload = rte_pktmbuf_alloc(pool);
  if (header == NULL || payload == NULL) return -1;
  memset(rte_pktmbuf_append(header, 14), 0x02, 14);
  rte_mbuf_ext_refcnt_set(&shared, 1);
  rte_pktmbuf_attach_extbuf(payload, nicmem_pointer(region), RTE_BAD_IOVA, kBytes, &shared);
  rte_pktmbuf_append(payload, kFramePayload);
  if (rte_pktmbuf_chain(header, payload) != 0) return -1;
  return rte_eth_tx_burst(port, 0, &header, 1) == 1 ? 0 : -1;
}

/* The frame that left by `port`, once it has: 1 s of patience. */
static int last_sent(uint16_t port, char* out, size_t size) {
  for (int tries = 0; tries < 1000; ++tries) {
    rte_pmd_nicmem_step(port, 32);
    const int length = rte_pmd_nicmem_last_sent(port, out, size);
    if (length != 0) return length;
    rte_delay_us_sleep(1000);
  }
  return 0;
}

static uint64_t xstat(uint16_t port, const char* name) {
  uint64_t id, value;
  if (rte_eth_xstats_get_id_by_name(port, name, &id) ||
      rte_eth_xstats_get_by_id(port, &id, &value, 1) != 1)
    return 0;
  return value;
}

static int hello(uint16_t first, uint16_t count, struct rte_mempool* pool) {
  struct nicmem_region region;
  if (rte_pmd_nicmem_alloc(first, kBytes, &region) != 0 ||
      nicmem_copy_to(&region, 0, kText, (sizeof kText + 3) / 4 * 4) != 0 ||
      send_region(first, pool, &region) != 0)
    return -1;
  char frame[2048];
  const int length = last_sent(first, frame, sizeof frame);
  const int same = length == 14 + kFramePayload && memcmp(frame + 14, kText, sizeof kText) == 0;
  printf("port %u: %d bytes left, from device memory: \"%.32s\"\n", first, length,
         same ? frame + 14 : "something else");
  if (!same || count == 1) return rte_pmd_nicmem_free(first, &region) + (same ? 0 : -1);

  const uint16_t other = first + 1;
  if (send_region(other, pool, &region) != 0) return -1;
  const uint64_t refused = xstat(other, "tx_foreign_memory");
  printf("port %u: another device: refused and counted %lu time(s), %d bytes left\n", other,
         refused, rte_pmd_nicmem_last_sent(other, frame, sizeof frame));
  return rte_pmd_nicmem_free(first, &region) + (refused == 1 ? 0 : -1);
}

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) return 1;
  const uint16_t count = rte_eth_dev_count_avail();
  struct rte_mempool* pool =
      rte_pktmbuf_pool_create("hello", 511, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
  int result = count == 0 || pool == NULL ? -1 : 0;
  for (uint16_t port = 0; port < count && result == 0; ++port) result = start(port, pool);
  if (result == 0) result = hello(0, count, pool);
  if (result != 0)
    fprintf(stderr, "error: hello failed; a port of net_nicmem is wanted: --vdev net_nicmem0\n");
  for (uint16_t port = 0; port < count; ++port) rte_eth_dev_stop(port);
  rte_eal_cleanup();
  return result == 0 ? 0 : 1;
}
