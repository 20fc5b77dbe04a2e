/* SPDX-License-Identifier: BSD-3-Clause
 * Device memory for C programs. Regions come from a running port: rte_pmd_nicmem_alloc().
 *
 * Functions that return int return 0 or a negative errno value: -EINVAL (a range outside the
 * region, or an offset or length that is no multiple of 4 where that is asked for), -ENOMEM (slow
 * reads above the allowed rate). A region without memory (all zero) is -EINVAL.
 */
#ifndef NICMEM_H
#define NICMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nicmem_memory; /* one device's memory */

/* A piece of device memory. `offset` is what a work request carries, never a pointer. */
struct nicmem_region {
  uint64_t offset;
  size_t size; /* bytes */
  uint32_t key;
  struct nicmem_memory* memory;
};

/* Writes `length` bytes at `offset` of the region, fenced. Multiples of 4. */
int nicmem_copy_to(const struct nicmem_region* region, size_t offset, const void* data,
                   size_t length);

/* Reads; slow (50 to 528 times a DRAM read on a card) and counted. Multiples of 4. */
int nicmem_copy_from(const struct nicmem_region* region, size_t offset, void* out, size_t length);

/* Reads any range, for the rare payload that must be looked at; counted, and limited to 10,000
 * calls a second over all users of that device's memory. `now_ns`: of one monotonic clock in all
 * calls, nanoseconds; in programs that also call rte_pmd_nicmem_slow_read() that of
 * rte_get_timer_cycles(), converted by rte_get_timer_hz(). */
int nicmem_slow_read(const struct nicmem_region* region, size_t offset, void* out, size_t length,
                     uint64_t now_ns);

/* The address that an mbuf takes (rte_pktmbuf_attach_extbuf). Do not load from it. NULL for a
 * region without memory. */
void* nicmem_pointer(const struct nicmem_region* region);

#ifdef __cplusplus
}
#endif
#endif
