#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds one of DPDK's own example programs, unpatched, by its own Makefile, against the installed
# libdpdk. The sources come from Debian's package dpdk-doc.
#
# usage: dpdk_example.sh NAME OUTPUT
set -euo pipefail
fail() { printf 'dpdk_example: %s\n' "$*" >&2; exit 1; }
(($# == 2)) || fail "usage: dpdk_example.sh NAME OUTPUT"
name=$1 output=$(realpath "$2")
sources=${DPDK_EXAMPLES:-/usr/share/dpdk/examples}
[[ -f $sources/$name/Makefile ]] ||
  fail "$sources has no $name: run scripts/setup (Debian package dpdk-doc), or let DPDK_EXAMPLES name the folder"

# The Makefiles build beside their sources, and some take headers of ../common.
work=$output.build
rm -rf "$work"
mkdir -p "$work"
cp -r "$sources/$name" "$sources/common" "$work/"
make -s -C "$work/$name" shared >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "$name does not build"; }
cp "$work/$name/build/"*-shared "$output"
