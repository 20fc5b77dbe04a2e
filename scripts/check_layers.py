#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the layers: which folder may include which.

The tables below are those of ARCHITECTURE.md; a new edge is a change of one line here, to be
reviewed as such. Only direct includes count. Exit status 1, with one line each, on a breach.
"""
import pathlib
import re
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".cc", ".c"}
ANY = ["lib/*", "drivers/*", "kvs/*"]

# folder -> folders it may include, itself apart. The longest matching folder counts.
LAYERS = {
    "lib/base": [],
    "lib/hw": ["lib/base"],
    "lib/hca": ["lib/base", "lib/hw"],
    "lib/nicmem": ["lib/base", "lib/hw", "lib/hca"],
    "lib/sim": ["lib/base", "lib/hw", "lib/hca"],
    "lib/dpdk": ["lib/*"],
    "lib/nf": ["lib/base", "lib/hw"],
    "lib/zram": ["lib/base"],
    "lib/wave": ["lib/base", "lib/nicmem"],
    "lib/perf": ["lib/base", "lib/hw", "lib/sim"],
    "drivers/net/nicmem": ["lib/base", "lib/hw", "lib/hca", "lib/nicmem", "lib/dpdk"],
    "drivers/hca/sim": ["lib/base", "lib/hw", "lib/hca", "lib/sim", "lib/dpdk"],
    "drivers/hca/verbs": ["lib/base", "lib/hw", "lib/hca"],
    "kvs/store": ["lib/base", "lib/nicmem"],
    "kvs/proto": ["lib/base"],
    "kvs/server": ["lib/*", "kvs/store", "kvs/proto"],
    "kvs/client": ["lib/*", "kvs/proto"],
    "apps": ANY,
    "bench": ANY + ["apps/*", "tests/support"],
    "tests": ANY + ["apps/*", "bench/*"],
}

# file -> what it may include beyond its folder's line: the only joint of driver and devices.
JOINTS = {"drivers/net/nicmem/attach.cc": ["drivers/hca/*"]}

# system headers -> where they may be included.
EXTERNAL = [
    (re.compile(r"rte_"), ["lib/dpdk", "drivers", "kvs/server", "apps", "bench", "tests"]),
    (re.compile(r"(ethdev_(driver|vdev)|bus_vdev_driver|dev_driver)\.h"), ["drivers"]),
    (re.compile(r"infiniband/"),
     ["drivers/hca/verbs", "tests/fake_verbs", "tests/layout", "tests/verbs"]),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def under(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path):
    found = [folder for folder in LAYERS if under(path, folder)]
    return max(found, key=len, default=None)


def matches(layer, pattern):
    return layer == pattern or (pattern.endswith("/*") and under(layer, pattern[:-2]))


def resolve(path, name, exists):
    """The file of the tree that `path` means by #include "name", or None."""
    here = path.rsplit("/", 1)[0]
    mirrored = here.removeprefix("tests/unit/")  # tests/unit mirrors the tree
    for root in (here, "lib", "", "drivers", "tests", mirrored):
        parts = []
        for part in f"{root}/{name}".split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        candidate = "/".join(parts)
        if exists(candidate):
            return candidate
    return None


def check(path, text, exists):
    """What is wrong with the includes of one file, as printable lines."""
    layer = layer_of(path)
    if layer is None:
        return [f"{path}:1: its folder is in no layer: give it a line in check_layers.py"]
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, system = match.groups()
        name = quoted or system
        place = f"{path}:{number}: "
        for pattern, folders in EXTERNAL:
            if pattern.match(name) and not (quoted and resolve(path, name, exists)):
                if not any(under(path, folder) for folder in folders):
                    wrong.append(f"{place}<{name}> belongs only under {', '.join(folders)}")
                break
        else:
            target = resolve(path, name, exists)
            if target is None:
                if quoted:
                    wrong.append(f'{place}"{name}" is no file of this tree: use <> for others')
                continue
            if system:
                wrong.append(f'{place}<{name}> is a file of this tree: use ""')
            to = layer_of(target)
            allowed = LAYERS[layer] + JOINTS.get(path, [])
            if to == layer or (to and any(matches(to, pattern) for pattern in allowed)):
                continue
            if to is None and any(matches(target, pattern) for pattern in allowed):
                continue
            wrong.append(f"{place}{layer} may not include {to or target}"
                         f" (allowed: {', '.join(allowed) or 'nothing'})")
    return wrong


def check_tree(repo):
    wrong, count = [], 0
    for top in ("lib", "drivers", "apps", "kvs", "bench", "tests"):
        for file in sorted((repo / top).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                path = file.relative_to(repo).as_posix()
                text = file.read_text(encoding="utf-8", errors="replace")
                wrong += check(path, text, lambda name: name != "" and (repo / name).is_file())
                count += 1
    return wrong, count


def self_test():
    tree = {"lib/base/a.h", "lib/hw/w.h", "lib/sim/s.h", "lib/dpdk/port.h", "lib/nf/l3.h",
            "drivers/hca/sim/open.h", "drivers/net/nicmem/rx.h", "apps/l3fwd/run.h",
            "drivers/net/nicmem/rte_pmd_nicmem.h", "tests/support/seed.h"}

    def wrong(path, *includes):
        text = "\n".join(f"#include {name}" for name in includes)
        return check(path, text, tree.__contains__)

    accepted = [
        ("lib/hw/x.h", '"base/a.h"', "<vector>", '"hw/w.h"'),
        ("lib/dpdk/x.cc", '"nf/l3.h"', "<rte_mbuf.h>"),
        ("drivers/net/nicmem/x.cc", '"rx.h"', "<ethdev_driver.h>"),
        ("drivers/net/nicmem/attach.cc", '"drivers/hca/sim/open.h"', '"hca/sim/open.h"'),
        ("drivers/hca/sim/x.cc", '"sim/s.h"', '"open.h"'),
        ("apps/l3fwd/main.cc", '"run.h"', '"dpdk/port.h"', "<rte_eal.h>",
         '"drivers/net/nicmem/rte_pmd_nicmem.h"'),
        ("tests/unit/x.cc", '"support/seed.h"', '"sim/s.h"'),
        ("tests/unit/apps/l3fwd/run_test.cc", '"run.h"'),
        ("tests/layout/x.cc", "<infiniband/mlx5dv.h>"),
    ]
    refused = [
        ("lib/base/x.h", '"hw/w.h"'),
        ("lib/hw/x.h", '"sim/s.h"'),
        ("lib/nf/x.h", "<rte_mbuf.h>"),
        ("lib/sim/x.cc", '"dpdk/port.h"'),
        ("lib/sim/x.cc", '"../../drivers/net/nicmem/rx.h"'),
        ("drivers/net/nicmem/rx.cc", '"sim/s.h"'),
        ("drivers/net/nicmem/rx.cc", '"hca/sim/open.h"'),
        ("drivers/net/nicmem/rx.cc", "<infiniband/mlx5dv.h>"),
        ("lib/dpdk/x.cc", "<ethdev_driver.h>"),
        ("lib/dpdk/x.cc", '"drivers/net/nicmem/rx.h"'),
        ("apps/l3fwd/x.cc", '"tests/support/seed.h"'),
        ("lib/hw/x.h", '"gone.h"'),
        ("lib/hw/x.h", "<base/a.h>"),
        ("lib/unknown/x.h", "<vector>"),
    ]
    for path, *includes in accepted:
        assert not wrong(path, *includes), (path, includes, wrong(path, *includes))
    for path, *includes in refused:
        assert wrong(path, *includes), (path, includes)
    print(f"check_layers: self-test passed ({len(accepted)} accepted, {len(refused)} refused)")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    wrong, count = check_tree(REPO)
    print("\n".join(wrong + [f"check_layers: {count} files, {len(wrong)} breaches"]))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
