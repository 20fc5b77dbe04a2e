#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints the EAL argument for memory: --in-memory where MIB (default 1024) of 2 MiB huge pages are
# free, or could be reserved just now (root), else --no-huge. DPDK 22.11 takes only one of them.
set -euo pipefail
mib=${1:-1024}
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
wanted=$((mib / 2))

if [[ -r $pages/free_hugepages ]]; then
  free=$(<"$pages/free_hugepages")
  available_kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  if ((free < wanted && available_kib / 1024 > 2 * mib)) && [[ -w $pages/nr_hugepages ]]; then
    # Only ever more than there are: somebody may use them. The kernel gives what it has.
    total=$(<"$pages/nr_hugepages")
    { echo "$((total + wanted - free))" >"$pages/nr_hugepages"; } 2>/dev/null || true
    if (($(<"$pages/free_hugepages") < wanted)); then
      { echo "$total" >"$pages/nr_hugepages"; } 2>/dev/null || true  # too few are of no use
    fi
    free=$(<"$pages/free_hugepages")
    if ((free >= wanted)); then
      echo "hugepages: the kernel keeps $(<"$pages/nr_hugepages") pages of 2 MiB now; to give them back:" \
        "echo $total >$pages/nr_hugepages" >&2
    fi
  fi
  if ((free >= wanted)); then
    echo --in-memory
    exit 0
  fi
fi
echo --no-huge
