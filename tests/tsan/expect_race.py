#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that ThreadSanitizer must find a data race in: fails when it does not.

usage: expect_race.py PROGRAM ARGUMENTS...
"""
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                      errors="replace", timeout=300)
race = "WARNING: ThreadSanitizer: data race" in done.stdout
if race and done.returncode != 0:
    print("reported, as it must be:")
    print("\n".join(line for line in done.stdout.splitlines() if "SUMMARY" in line))
    sys.exit(0)
print(done.stdout[-4000:])
print(f"no data race was reported (exit status {done.returncode})")
sys.exit(1)
