/* SPDX-License-Identifier: BSD-3-Clause
 * What net_nicmem offers beyond ethdev: device memory of a port's own device, and, where the device
 * is the model, running it by hand. Link librte_net_nicmem.so dynamically: a second copy of the
 * driver would not know the ports of the first.
 *
 * Every function returns 0 (or what it says) or a negative errno value; -ENODEV: `port_id` is no
 * port of this driver. Why something failed goes to DPDK's log. Control path: not for per-packet
 * use.
 */
#ifndef RTE_PMD_NICMEM_H
#define RTE_PMD_NICMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nicmem/nicmem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;

struct rte_pmd_nicmem_caps {
  size_t requested_bytes; /* device memory asked for */
  size_t memory_bytes;    /* got */
  size_t free_bytes;      /* not allocated now */
  size_t largest_free_bytes;
  uint32_t payload_buffers_nic; /* of the port's receive path; 0 before the first start */
  uint32_t payload_buffers_host;
  uint32_t header_bytes;
  bool guard;       /* the CPU's mapping of device memory allows no access */
  const char* mode; /* "host", "split", "nicmem-noinline", "nicmem" */
};

int rte_pmd_nicmem_caps_get(uint16_t port_id, struct rte_pmd_nicmem_caps* out);

/* Allocates `size` bytes (rounded up to 64) of the port's device. The memory is zero, and at once
 * known to the transmit path of every port of that device. -ENOMEM: not that much is free;
 * -ENOTSUP: the device has no memory. */
int rte_pmd_nicmem_alloc(uint16_t port_id, size_t size, struct nicmem_region* out);

/* Frees what rte_pmd_nicmem_alloc() gave, and scrubs it. No mbuf may point there any more.
 * -EINVAL: no such allocation. */
int rte_pmd_nicmem_free(uint16_t port_id, const struct nicmem_region* region);

/* The first piece of a received packet that lies in its device's memory. -ENOENT: none does. */
int rte_pmd_nicmem_region_of(const struct rte_mbuf* packet, struct nicmem_region* out);

/* Copies `length` bytes at `offset` of a received packet, from wherever they lie. Counted, and
 * limited to 10,000 a second where the card must be read: -ENOMEM above. -EINVAL: beyond the end.
 */
int rte_pmd_nicmem_slow_read(const struct rte_mbuf* packet, uint32_t offset, uint32_t length,
                             void* out);

/* 1 if both ports are of one device, so that a payload received by one may leave by the other; else
 * 0. -ENODEV if either is not ours. */
int rte_pmd_nicmem_same_device(uint16_t a, uint16_t b);

/* From now on the port's payloads lie in host memory (mode split): for a port whose packets leave
 * by other devices. Before the port is configured; -EBUSY after. */
int rte_pmd_nicmem_set_mode_host_payload(uint16_t port_id);

/* Runs a model opened with cpu=none for at most `budget` frames per port and direction; returns how
 * many frames it moved. -ENOTSUP: the device runs by itself. */
int rte_pmd_nicmem_step(uint16_t port_id, uint32_t budget);

/* Copies up to `size` bytes of the newest frame that left by the port; returns the frame's length,
 * 0 if there is none. Model only: hardware keeps none. */
int rte_pmd_nicmem_last_sent(uint16_t port_id, void* out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
