/* SPDX-License-Identifier: BSD-3-Clause
 * Exports what the router looks up in the PMD, so that the lookup is tested without the PMD. */
#include <stdint.h>

int rte_pmd_nicmem_same_device(uint16_t port_a, uint16_t port_b);
int rte_pmd_nicmem_set_mode_host_payload(uint16_t port);

int rte_pmd_nicmem_same_device(uint16_t port_a, uint16_t port_b) { return port_a == port_b; }
int rte_pmd_nicmem_set_mode_host_payload(uint16_t port) {
  (void)port;
  return 0;
}
