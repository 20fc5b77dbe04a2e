#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Puts the four DPDK headers that an out-of-tree driver needs and Debian's libdpdk-dev lacks into
# .sdk/dpdk-<version>/ of the source tree. They come from the Debian source package of exactly the
# installed version: the structures they describe may change from one release to the next. The
# machine's apt configuration stays as it is: sources, lists and cache are private and go away.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)

headers=(
  lib/ethdev/ethdev_driver.h
  lib/ethdev/ethdev_vdev.h
  lib/eal/include/dev_driver.h
  drivers/bus/vdev/bus_vdev_driver.h
)
# Installed headers that describe the same structures: equal in source and machine, or no match.
witnesses=(lib/ethdev/rte_ethdev.h lib/ethdev/rte_ethdev_core.h lib/eal/include/rte_dev.h lib/mbuf/rte_mbuf_core.h)

fail() { printf 'dpdk_sdk: %s\n' "$*" >&2; exit 1; }

version=$(pkg-config --modversion libdpdk 2>/dev/null) || fail "pkg-config finds no libdpdk: run scripts/setup"
include_dirs=()
for flag in $(pkg-config --cflags-only-I libdpdk); do include_dirs+=("${flag#-I}"); done
for dir in "${include_dirs[@]}"; do
  if [[ -e $dir/ethdev_driver.h ]]; then exit 0; fi  # built with enable_driver_sdk: nothing lacks
done

sdk=$repo/.sdk/dpdk-$version  # drivers/meson.build looks there
package_version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev 2>/dev/null) ||
  fail "libdpdk $version is not Debian's and has no driver headers: build it with -Denable_driver_sdk=true"
complete() {
  [[ -e $sdk/VERSION && $(<"$sdk/VERSION") == "$package_version" ]] || return 1
  local header
  for header in "${headers[@]}"; do [[ -s $sdk/${header##*/} ]] || return 1; done
}
if complete; then exit 0; fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/sources" "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/unpacked"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
python3 "$repo/scripts/apt_sources.py" "$codename" "$tmp/sources"

apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$tmp/sources"
  -o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp/cache" -o "APT::Sandbox::User=$(id -un)"
  -o Acquire::Retries=3)
echo "dpdk_sdk: fetching the driver headers of dpdk $package_version"
"${apt[@]}" update >"$tmp/log" 2>&1 || true  # a source that fails matters only if it had the package
if ! (cd "$tmp" && "${apt[@]}" source --download-only --tar-only "dpdk=$package_version") >>"$tmp/log" 2>&1; then
  tail -n 15 "$tmp/log" >&2
  fail "the package sources of this machine do not offer the source of dpdk $package_version"
fi

# Archive names differ by revision; the first folder of the archive is not needed.
tar -xf "$tmp"/dpdk_*.orig.tar.* -C "$tmp/unpacked" --strip-components=1
source_version=$(<"$tmp/unpacked/VERSION")
[[ $source_version == "$version" ]] ||
  fail "the source package holds dpdk $source_version, installed is $version"
for witness in "${witnesses[@]}"; do
  installed=
  for dir in "${include_dirs[@]}"; do
    if [[ -e $dir/${witness##*/} ]]; then installed=$dir/${witness##*/}; break; fi
  done
  [[ -n $installed ]] || fail "${witness##*/} is not installed: is libdpdk-dev complete?"
  cmp -s "$installed" "$tmp/unpacked/$witness" ||
    fail "$installed differs from the source of $package_version: the driver headers would not fit"
done

rm -rf "$sdk"
mkdir -p "$sdk"
for header in "${headers[@]}"; do cp "$tmp/unpacked/$header" "$sdk/"; done
echo "$package_version" >"$sdk/VERSION"
echo "dpdk_sdk: ${#headers[@]} headers in .sdk/${sdk##*/}"
