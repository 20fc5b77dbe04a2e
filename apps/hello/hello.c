/* SPDX-License-Identifier: BSD-3-Clause
 * Device memory from C: allocate on a running port, write, send, and see what left. Run as
 *   nicmem-hello-c --no-huge -m 128 --no-pci --vdev net_nicmem0 [--vdev net_nicmem1]
 * With a port of another device, the same memory is tried there too, and must be refused.
 */
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <string.h>

#include "rte_pmd_nicmem.h"

enum { kBytes = 4096, kHeader = 14, kPayload = 1024, kNoPort = RTE_MAX_ETHPORTS };
static const char kText[] = "hello from the card's own memory";

static int failed(const char* what) {
  fprintf(stderr, "error: %s\n", what);
  return -1;
}

static uint16_t first_port(void) {
  struct rte_pmd_nicmem_caps caps;
  for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port)
    if (rte_pmd_nicmem_caps_get(port, &caps) == 0) return port;
  return kNoPort;
}

static uint16_t port_of_another_device(uint16_t first) {
  for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port)
    if (rte_pmd_nicmem_same_device(first, port) == 0) return port;
  return kNoPort;
}

static int start(uint16_t port, struct rte_mempool* pool) {
  struct rte_eth_conf conf;
  memset(&conf, 0, sizeof conf);
  if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
      rte_eth_rx_queue_setup(port, 0, 64, 0, NULL, pool) != 0 ||
      rte_eth_tx_queue_setup(port, 0, 64, 0, NULL) != 0 || rte_eth_dev_start(port) != 0)
    return failed("the port does not start");
  return 0;
}

/* The program keeps one reference and frees the memory itself: the callback is never the last. */
static void keep(void* address, void* opaque) { (void)address, (void)opaque; }
static struct rte_mbuf_ext_shared_info references = {.free_cb = keep, .refcnt = 1};

/* An Ethernet header in host memory, then the region's first bytes, where they lie. */
static int send_region(uint16_t port, struct rte_mempool* pool,
                       const struct nicmem_region* region) {
  struct rte_mbuf *header = rte_pktmbuf_alloc(pool), *payload = rte_pktmbuf_alloc(pool);
  if (header == NULL || payload == NULL) return failed("no mbuf");
  memset(rte_pktmbuf_append(header, kHeader), 0x02, kHeader);
  rte_mbuf_ext_refcnt_update(&references, 1);
  rte_pktmbuf_attach_extbuf(payload, nicmem_pointer(region), RTE_BAD_IOVA, kBytes, &references);
  rte_pktmbuf_append(payload, kPayload);
  rte_pktmbuf_chain(header, payload);
  return rte_eth_tx_burst(port, 0, &header, 1) == 1 ? 0 : failed("the send queue is full");
}

/* The frame that left by `port`, once it has: 1 s of patience. */
static int wait_for_frame(uint16_t port, char* out, size_t size) {
  for (int tries = 0; tries < 1000; ++tries) {
    rte_pmd_nicmem_step(port, 32); /* with cpu=none; else the device runs by itself */
    const int length = rte_pmd_nicmem_last_sent(port, out, size);
    if (length != 0) return length;
    rte_delay_us_sleep(1000);
  }
  return 0;
}

static uint64_t xstat(uint16_t port, const char* name) {
  uint64_t id = 0, value = 0;
  if (rte_eth_xstats_get_id_by_name(port, name, &id) == 0)
    rte_eth_xstats_get_by_id(port, &id, &value, 1);
  return value;
}

static int hello(uint16_t port, struct rte_mempool* pool, const struct nicmem_region* region) {
  char text[RTE_ALIGN(sizeof kText, 4)] = "", frame[2048] = ""; /* the card takes whole words */
  strcpy(text, kText);
  if (nicmem_copy_to(region, 0, text, sizeof text) != 0) return failed("cannot write");
  if (send_region(port, pool, region) != 0) return -1;
  const int length = wait_for_frame(port, frame, sizeof frame);
  printf("port %u: %d bytes left, from device memory: \"%.32s\"\n", port, length, frame + kHeader);
  if (length != kHeader + kPayload || memcmp(frame + kHeader, text, sizeof text) != 0)
    return failed("other bytes left than were written");
  return 0;
}

static int try_elsewhere(uint16_t port, struct rte_mempool* pool,
                         const struct nicmem_region* region) {
  char frame[2048];
  if (send_region(port, pool, region) != 0) return -1;
  rte_pmd_nicmem_step(port, 32);
  const uint64_t refused = xstat(port, "tx_foreign_memory");
  const int left = rte_pmd_nicmem_last_sent(port, frame, sizeof frame);
  printf("port %u: another device: refused and counted %" PRIu64 " time(s), %d bytes left\n", port,
         refused, left);
  return refused == 1 && left == 0 ? 0 : failed("another device took memory that is not its own");
}

static int run(struct rte_mempool* pool) {
  const uint16_t port = first_port(), other = port_of_another_device(port);
  if (port == kNoPort) return failed("no port of net_nicmem: give --vdev net_nicmem0");
  if (start(port, pool) != 0 || (other != kNoPort && start(other, pool) != 0)) return -1;
  struct nicmem_region region;
  if (rte_pmd_nicmem_alloc(port, kBytes, &region) != 0) return failed("no device memory");
  int result = hello(port, pool, &region);
  if (result == 0 && other != kNoPort) result = try_elsewhere(other, pool, &region);

  /* Stopped ports have freed the packets that pointed to the memory: now it may go. */
  rte_eth_dev_stop(port);
  if (other != kNoPort) rte_eth_dev_stop(other);
  if (rte_mbuf_ext_refcnt_read(&references) != 1) result = failed("a packet was not freed");
  if (rte_pmd_nicmem_free(port, &region) != 0) result = failed("cannot free the memory");
  return result;
}

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) return 1;
  struct rte_mempool* pool =
      rte_pktmbuf_pool_create("hello", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
  const int result = pool != NULL ? run(pool) : failed("no memory for mbufs");
  rte_eal_cleanup();
  return result == 0 ? 0 : 1;
}
