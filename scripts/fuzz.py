#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzzers of a build folder: the corpus once, then new work for a while, each; then the
build with a planted bounds error, in which they must find it. Exit status 1 if anything is wrong.

usage: fuzz.py BUILD_FOLDER SECONDS
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parent.parent
CORPUS = REPO / "tests" / "fuzz" / "corpus"
TARGETS = ["wqe_fuzz", "devargs_fuzz"]
PLANTED, PLANTED_SECONDS = "wqe_fuzz_planted", 60


def fuzz(build, target, corpus, seconds, seed):
    """(exit status, output) of new work; found inputs and failures stay in the build folder."""
    work = build / "fuzz-work" / target
    work.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [build / "tests" / "fuzz" / target, f"-max_total_time={seconds}", f"-seed={seed}",
         "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1",
         f"-artifact_prefix={work}/", work, corpus],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        check=False)


def statistic(output, name):
    match = re.search(rf"stat::{name}: *(\d+)", output)
    return int(match.group(1)) if match else 0


def run_target(build, target, seconds, seed):
    corpus = CORPUS / target
    files = sorted(corpus.iterdir())
    once = subprocess.run([build / "tests" / "fuzz" / target, *files], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if once.returncode != 0 or not files:
        print(once.stdout[-6000:])
        print(f"fuzz: {target}: FAILED on its corpus of {len(files)} files")
        return False
    done = fuzz(build, target, corpus, seconds, seed)
    runs = statistic(done.stdout, "number_of_executed_units")
    rate = statistic(done.stdout, "average_exec_per_sec")
    print(f"fuzz: {target}: corpus of {len(files)} files, then {runs:,} runs in {seconds} s,"
          f" {rate:,} a second, seed {seed}", flush=True)
    if done.returncode != 0 or runs == 0:
        print(done.stdout[-6000:])
        print(f"fuzz: {target}: FAILED; the input is in {build / 'fuzz-work' / target}")
        return False
    return True


def find_planted(build, seed):
    """A fuzzer that finds nothing proves nothing: it must find this."""
    start = time.monotonic()
    done = fuzz(build, PLANTED, CORPUS / "wqe_fuzz", PLANTED_SECONDS, seed)
    found = done.returncode != 0 and "ERROR: AddressSanitizer" in done.stdout
    print(f"fuzz: {PLANTED}: the planted error was {'found' if found else 'NOT found'} after"
          f" {time.monotonic() - start:.1f} s, seed {seed}", flush=True)
    if not found:
        print(done.stdout[-3000:])
    return found


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal() or int(sys.argv[2]) == 0:
        print(__doc__, file=sys.stderr)
        return 2
    build, seconds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    seed = int(os.environ.get("NM_SEED") or str(random.randrange(1, 1 << 31)), 0) % (1 << 32) or 1
    results = [run_target(build, target, seconds, seed) for target in TARGETS]
    results.append(find_planted(build, seed))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
