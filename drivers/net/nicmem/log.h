// SPDX-License-Identifier: BSD-3-Clause
// The driver's log: control path only.
#pragma once

#include "compat.h"

namespace nicmem::pmd {
extern int log_type;
}

#define NM_LOG(level, format, ...)                  \
  rte_log(RTE_LOG_##level, ::nicmem::pmd::log_type, \
          "net_nicmem: " format "\n" __VA_OPT__(, ) __VA_ARGS__)
