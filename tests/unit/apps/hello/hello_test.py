#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The smallest programs on device memory, in C and C++: the sink sees the bytes; another device
refuses the memory.

usage: hello_test.py DRIVER.so PROGRAM..."""
import itertools
import os
import pathlib
import subprocess
import sys
import unittest

DRIVER, *PROGRAMS = sys.argv[1:]
PMD_DIR = pathlib.Path(__file__).resolve().parents[4] / "scripts" / "pmd_dir.sh"

SEEN = "1038 bytes left, from device memory: \"hello from the card's own memory\""
REFUSED = "another device: refused and counted 1 time(s), 0 bytes left"


def run(program, *vdevs, options=()):
    command = [program, "--no-huge", "-m", "128", "--no-pci", "--no-telemetry", "-l", "0",
               "--log-level", "4", "--file-prefix", f"hello{os.getpid()}", *options]
    for vdev in vdevs:
        command += ["--vdev", vdev]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


class Hello(unittest.TestCase):
    def check(self, done, *lines):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines(), list(lines))

    def test_the_sink_sees_what_was_written(self):
        for program, cpu, guard in itertools.product(PROGRAMS, ("none", "any"), (0, 1)):
            with self.subTest(program=program, cpu=cpu, guard=guard):
                self.check(run(program, f"net_nicmem0,cpu={cpu},guard={guard}"), f"port 0: {SEEN}")

    def test_another_device_refuses_the_memory(self):
        for program, cpu, guard in itertools.product(PROGRAMS, ("none", "any"), (0, 1)):
            with self.subTest(program=program, cpu=cpu, guard=guard):
                done = run(program, f"net_nicmem0,cpu={cpu},guard={guard}",
                           f"net_nicmem1,cpu={cpu},guard={guard}")
                self.check(done, f"port 0: {SEEN}", f"port 1: {REFUSED}")

    def test_a_port_of_the_same_device_is_not_another_device(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program, "net_nicmem0,cpu=none,device=card",
                           "net_nicmem1,cpu=none,device=card", "net_nicmem2,cpu=none")
                self.check(done, f"port 0: {SEEN}", f"port 2: {REFUSED}")

    def test_ports_of_other_drivers_are_left_alone(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program, "net_null0", "net_nicmem0", "net_null1", "net_nicmem1")
                self.check(done, f"port 1: {SEEN}", f"port 3: {REFUSED}")

    def test_a_driver_that_is_linked_may_be_given_by_d_too(self):
        path = subprocess.run([PMD_DIR, DRIVER], check=True, text=True,
                              capture_output=True).stdout.strip()
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program, "net_nicmem0", "net_nicmem1", options=("-d", path))
                self.check(done, f"port 0: {SEEN}", f"port 1: {REFUSED}")

    def test_without_a_port_it_says_so(self):
        for program, vdevs in itertools.product(PROGRAMS, ((), ("net_null0",))):
            with self.subTest(program=program, vdevs=vdevs):
                done = run(program, *vdevs)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, "")
                self.assertIn("error: no port of net_nicmem: give --vdev net_nicmem0", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
