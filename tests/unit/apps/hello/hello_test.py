#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The smallest programs on device memory, in C and C++: the sink sees the bytes; another device
refuses the memory."""
import os
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]


def run(program, *vdevs):
    command = [program, "--no-huge", "-m", "128", "--no-pci", "--no-telemetry", "-l", "0",
               "--log-level", "4", "--file-prefix", f"hello{os.getpid()}"]
    for vdev in vdevs:
        command += ["--vdev", vdev]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


class Hello(unittest.TestCase):
    def test_the_sink_sees_what_was_written(self):
        for program in PROGRAMS:
            for cpu in ("none", "any"):
                with self.subTest(program=program, cpu=cpu):
                    done = run(program, f"net_nicmem0,cpu={cpu},guard=1")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("hello from the card's own memory", done.stdout)

    def test_another_device_refuses_the_memory(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program, "net_nicmem0,cpu=none", "net_nicmem1,cpu=none")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("refused and counted 1 time(s), 0 bytes left", done.stdout)

    def test_ports_of_one_device_share_it(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program, "net_nicmem0,cpu=none,device=card",
                           "net_nicmem1,cpu=none,device=card")
                self.assertEqual(done.returncode, 1)  # the second port takes it: nothing is refused

    def test_without_a_port_it_says_so(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = run(program)
                self.assertEqual(done.returncode, 1)
                self.assertIn("error: ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
