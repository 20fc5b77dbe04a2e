// SPDX-License-Identifier: BSD-3-Clause
// DPDK as the driver sees it: the driver-side headers, and every difference between DPDK versions.
// The layout of eth_dev_ops is no stable ABI: the headers must be of the very version that runs.
#pragma once

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow_driver.h>
#include <rte_kvargs.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include <cstddef>
#include <cstdint>

static_assert(RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0) &&
                  RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0),
              "net_nicmem is written for DPDK 22.11");
