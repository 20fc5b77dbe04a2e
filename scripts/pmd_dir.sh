#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints a path of the given driver object that EAL's -d accepts. EAL refuses an object below any
# world-writable folder, sticky ones such as /tmp included. Where the object lies below one, it is
# copied to a folder that is safe, belongs to this user and may hold code.
#
# usage: pmd_dir.sh OBJECT.so
set -euo pipefail
fail() { printf 'pmd_dir: %s\n' "$*" >&2; exit 1; }
(($# == 1)) || fail "usage: pmd_dir.sh OBJECT.so"
object=$(readlink -f "$1") || true
[[ -f $object ]] || fail "$1: no such file: build it first"

# EAL's rule (eal_common_options.c, verify_perms), for a folder that exists.
safe() {
  local dir
  dir=$(readlink -f "$1")
  while :; do
    (((8#$(stat -c %a "$dir") & 8#2) == 0)) || return 1
    [[ $dir == / ]] && return 0
    dir=$(dirname "$dir")
  done
}

# /run is often mounted so that nothing in it can be executed or mapped as code.
may_hold_code() { ! findmnt -no OPTIONS -T "$1" | grep -qw noexec; }

if safe "$(dirname "$object")"; then
  echo "$object"
  exit 0
fi

# One folder for each place of origin, so that two trees do not overwrite each other's driver.
origin=$(printf '%s' "$object" | sha256sum | cut -c1-12)
candidates=()
for base in "${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}" /var/lib "${XDG_RUNTIME_DIR-}" /run; do
  if [[ $base == /* ]]; then candidates+=("$base"); fi
done
for base in "${candidates[@]}"; do
  folder=$base/nicmem/$origin
  (umask 022 && mkdir -p "$folder") 2>/dev/null || continue
  [[ -O $folder && -w $folder ]] && safe "$folder" && may_hold_code "$folder" || continue
  verbs=$(dirname "$object")/../../hca/verbs/nicmem_verbs.so  # for hca=verbs: found beside the driver
  for file in "$object" "$verbs"; do
    copy=$folder/$(basename "$file")
    # Never write into a file that a running program has mapped: put a new one in its place.
    if [[ -f $file ]] && ! cmp -s "$file" "$copy"; then
      cp "$file" "$copy.$$" && mv -f "$copy.$$" "$copy"
    fi
  done
  echo "$folder/$(basename "$object")"
  exit 0
done
fail "no safe folder for ${object##*/}: tried ${candidates[*]/%//nicmem}; each is missing, not this user's, \
world-writable somewhere above, or mounted noexec"
