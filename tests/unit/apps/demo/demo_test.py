#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: a row for each configuration, the figures in it, and its errors."""
import json
import subprocess
import sys
import tempfile
import unittest

DEMO, CAPTURE = sys.argv[1], sys.argv[2]
PUBLISHED_OUT = {"host": (1904, 1944), "split": (1984, 1997), "nicmem-noinline": (259, 270),
                 "nicmem": (225, 234)}
PUBLISHED_IN = {"host": (1721, 1794), "nicmem": (217, 221)}
KEYS = ["frame_bytes", "sram_bytes", "packets", "lost", "mpps", "host_cycles_per_packet",
        "pcie_in_bytes", "pcie_out_bytes", "pcie_payload_bytes", "nicmem_payload_share"]
MIB = 1 << 20


def run(*arguments):
    return subprocess.run([DEMO, "--no-huge", *arguments], capture_output=True, text=True,
                          timeout=300)


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            cls.done = run("--quick", "--capture", CAPTURE, "--json", file.name)
            cls.rows = json.load(file) if cls.done.returncode == 0 else []

    def test_succeeds(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def test_every_row_is_there_with_numbers_only(self):
        self.assertEqual(len(self.rows), 19)
        for row in self.rows:
            for key in KEYS:
                self.assertIsInstance(row[key], (int, float), f"{key} of {row}")
            self.assertEqual(row["sram_bytes"], row["sram_bytes"] // 1024 * 1024)
            self.assertGreater(row["packets"], 0)
            self.assertEqual(row["lost"], 0, row)

    def test_large_frames_agree_with_the_published_bytes_within_a_tenth(self):
        rows = [r for r in self.rows if r["frame_bytes"] == 1500 and r["sram_bytes"] == 8 * MIB]
        self.assertEqual(len(rows), 5)
        for row in rows:
            for table, key in ((PUBLISHED_OUT, "pcie_out_bytes"), (PUBLISHED_IN, "pcie_in_bytes")):
                if row["mode"] in table:
                    low, high = table[row["mode"]]
                    self.assertGreaterEqual(row[key], low * 0.9, row)
                    self.assertLessEqual(row[key], high * 1.1, row)

    def test_payload_leaves_the_card_only_where_it_must(self):
        for row in self.rows:
            on_card = row["mode"].startswith("nicmem") and row["sram_bytes"] == 8 * MIB
            if on_card:
                self.assertEqual(row["pcie_payload_bytes"], 0, row)
            if on_card and row["frame_bytes"] > 64:
                self.assertEqual(row["nicmem_payload_share"], 1, row)
        spilling = [r for r in self.rows if r["sram_bytes"] < MIB]
        self.assertEqual(len(spilling), 2)
        for row in spilling:
            self.assertGreater(row["nicmem_payload_share"], 0)
            self.assertLess(row["nicmem_payload_share"], 1)

    def test_with_huge_pages(self):
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) for line in file if line.startswith("HugePages_Free"))
        if free < 512:
            self.skipTest("needs 512 free huge pages of 2 MiB")
        done = subprocess.run([DEMO, "--quick", "--capture", CAPTURE], capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_bad_capture_is_one_clear_error(self):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            file.write(b"this is no capture, and it is long enough to have a header")
            file.flush()
            done = run("--quick", "--capture", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ", done.stderr)
        self.assertIn(file.name, done.stderr)

    def test_bad_usage(self):
        self.assertEqual(run("--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
