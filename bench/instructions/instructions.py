#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that a packet costs the host in net_nicmem, by mode: receive and transmit at bursts
of 32, mbuf allocation and free included, counted by callgrind. The model is single-stepped and not
counted. Needs no hardware counters, no huge pages, no root, and gives the same figures each time.

usage: instructions.py PROGRAM [--limit N]     --limit: exit 1 if mode nicmem needs more
"""
import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile

MODES = ("host", "split", "nicmem-noinline", "nicmem")
ROUNDS = 500


def count(program, mode, header, frame_bytes):
    """(instructions a packet, packets)"""
    vdev = (f"net_nicmem0,cpu=none,mode={mode},split=force,header={header},sram=8MiB,"
            f"gen_size={frame_bytes}")
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "callgrind.out")
        output = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={profile}", program, "--no-huge", "-m", "512",
             "--no-pci", "--no-telemetry", "-l", "0",
             "--log-level", "4", "--file-prefix", f"instructions{os.getpid()}",
             "--vdev", vdev, "--", str(ROUNDS)],
            capture_output=True, text=True, timeout=600)
        packets = re.search(r"^packets (\d+)$", output.stdout, re.M)
        if output.returncode != 0 or not packets:
            sys.exit(f"{program}, mode={mode}: failed\n{output.stdout}{output.stderr}")
        with open(profile, encoding="ascii") as file:
            totals = re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)
    return int(totals.group(1)) / int(packets.group(1)), int(packets.group(1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--header", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--modes", choices=MODES, nargs="+", default=MODES)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 1500])
    options = parser.parse_args()
    worst = 0.0
    print(f"{'mode':<16} {'header':>6} {'bytes':>6} {'instructions a packet':>22}")
    for mode, header, size in itertools.product(options.modes, options.header, options.sizes):
        instructions, packets = count(options.program, mode, header, size)
        print(f"{mode:<16} {header:>6} {size:>6} {instructions:>22.1f}", flush=True)
        if packets < ROUNDS * 31:
            sys.exit(f"only {packets} packets in {ROUNDS} rounds: bursts were not full")
        if mode == "nicmem":
            worst = max(worst, instructions)
    if options.limit and worst > options.limit:
        sys.exit(f"mode nicmem: {worst:.1f} instructions a packet, the limit is {options.limit:g}")


if __name__ == "__main__":
    main()
