#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether every verb that an object calls is one that the fake has: check_symbols.py OBJECT FAKE.

A call that reaches the real library with an object of the fake's crashes it."""
import re
import subprocess
import sys

VERB = re.compile(r"^_?(ibv|mlx5dv)_")


def symbols(path, *which):
    said = subprocess.run(["nm", "-D", *which, str(path)], check=True, text=True,
                          capture_output=True).stdout
    names = [line.split()[-1].split("@")[0] for line in said.splitlines()]
    return {name for name in names if VERB.match(name)}


def missing(path, fake):
    return sorted(symbols(path, "--undefined-only") - symbols(fake, "--defined-only"))


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    lacks = missing(*sys.argv[1:])
    print("\n".join([f"the fake lacks {name}" for name in lacks]
                    + [f"check_symbols: {len(symbols(sys.argv[1], '--undefined-only'))} verbs, "
                       f"{len(lacks)} missing"]))
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
