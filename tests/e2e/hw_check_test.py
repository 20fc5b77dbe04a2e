#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/hw-check against the fake libibverbs: that it asks everything, and notices what is wrong.
The fake card's cable is a pair of interfaces, in a namespace of its own."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import programs
from captures import REPO

sys.path[:0] = [str(REPO / "tests" / "fake_verbs"), str(REPO / "scripts")]
import hw_check_wire  # noqa: E402
import make_sysfs  # noqa: E402

HW_CHECK = REPO / "scripts" / "hw-check"
FAKE = programs.build() / "tests" / "fake_verbs" / "libfake_verbs.so"
INSIDE = "NM_IN_NAMESPACE"
OURS = {"info", "host", "split", "noinline", "nicmem", "guard", "rules", "rss", "restart", "close"}
PATIENCE_S = 200
LINKS = """
link add nmcard type veth peer name nmother
link add nmwire type veth peer name nmpeer
link set nmcard up mtu 9600
link set nmother up
link set nmwire up
link set nmpeer up
"""


def run(*arguments, peer="nmpeer", card="sram=256KiB", **environment):
    """hw-check: what was printed, and its lines by the check's name, each with its word."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_sysfs.make(folder / "sys", {"mlx5_0": "nmcard"})
        info = folder / "info"  # outside DPDK there is no such wire
        info.write_text("#!/bin/sh\nexport NM_FAKE_VERBS=mlx5_0," + card + "\nexec "
                        f"{programs.build() / 'apps' / 'info' / 'nicmem-info'} \"$@\"\n")
        info.chmod(0o755)
        fake = {"NM_FAKE_VERBS": f"mlx5_0,{card},wire=ethdev:net_af_packet0",
                "NM_FAKE_VERBS_SYSFS": str(folder / "sys"), "RUNTIME_DIRECTORY": str(folder),
                "LD_PRELOAD": str(FAKE)}
        done = subprocess.run(
            [HW_CHECK, "--build", programs.build(), "--info", info, "--device", "mlx5_0", "--peer",
             peer, "--eal=--vdev", "--eal=net_af_packet0,iface=nmwire", *arguments],
            text=True, capture_output=True, env=os.environ | fake | environment,
            timeout=PATIENCE_S)
    words = {}
    for line in done.stdout.splitlines():
        if not line.startswith("#"):
            words[line[15:28].strip()] = line[:14].strip()
    return done, words


class Compare(unittest.TestCase):
    def compare(self, came, expected, numbers=(1, 2)):
        wire = object.__new__(hw_check_wire.Wire)
        wire.received = lambda until: iter(came)
        wire.compare(expected, set(numbers))

    def test_frames_that_come_back(self):
        frames = hw_check_wire.Frames(bytes(6), bytes(range(6)))
        first, second = frames.plain(60), frames.udp(1514)
        stranger = bytes(60)
        self.compare([stranger, second, first], [first, second])
        self.compare([first], [first, None])
        for came, expected, words in (
                ([first], [first, second], "1 of 2 frames did not come back"),
                ([first, first], [first, second], "must not, or twice"),
                ([second], [first, None], "must not, or twice"),
                ([first[:20] + b"??" + first[22:]], [first], "with 2 wrong ones, the first at 20"),
                ([first[:20] + first[21:]], [first], "of 60 bytes came back with 59")):
            with self.subTest(words=words):
                with self.assertRaisesRegex(hw_check_wire.Failed, words):
                    self.compare(came, expected)

    def test_sums_of_frames(self):
        frames = hw_check_wire.Frames(bytes(6), bytes(6))
        for size in (60, 61, 1514):
            frame = frames.udp(size)
            self.assertEqual(hw_check_wire.checksum(frame[14:34]), 0)
            bad, good = frames.udp(size, sums=False)
            self.assertNotEqual(hw_check_wire.checksum(bad[14:34]), 0)
            self.assertEqual((bad[:24], bad[26:40], bad[42:]), (good[:24], good[26:40], good[42:]))


class HwCheck(unittest.TestCase):
    def test_the_whole_list(self):
        done, words = run("--frames", "128")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({name for name, word in words.items() if word == "PASS"}, OURS)
        self.assertEqual(set(words.values()), {"PASS", "needs silicon"})
        self.assertIn("nothing here is about silicon", done.stdout)
        document = (REPO / "docs" / "connectx.md").read_text()
        for name in words:
            self.assertIn(f"`{name}`", document)

    def test_bytes_that_are_lost_on_the_way(self):
        done, words = run("--only", "nicmem", "--frames", "64", card="sram=256KiB,fault=dma@150")
        self.assertEqual((done.returncode, words["nicmem"]), (1, "FAIL"), done.stdout)

    def test_what_info_finds(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report"
            done, words = run("--report", report, NM_FAKE_VERBS_RAW="0")
            self.assertEqual(report.read_text(), done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertIn("CAP_NET_RAW", done.stdout)
        self.assertEqual(set(words.values()), {"FAIL", "needs silicon"})

    def test_a_driver_that_does_not_start(self):
        done, words = run("--only", "host", "--only", "write-send", "--eal=--no-such-thing")
        self.assertEqual((words["host"], words["write-send"]), ("FAIL", "FAIL"), done.stdout)
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_an_interface_that_is_down(self):
        subprocess.run(["ip", "link", "set", "nmpeer", "down"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "set", "nmpeer", "up"], check=True)
        done, words = run("--only", "host")
        self.assertEqual((done.returncode, words["host"]), (1, "FAIL"), done.stdout)
        self.assertIn("Network is down", done.stdout)

    def test_usage(self):
        self.assertEqual(run("--frames", "3")[0].returncode, 2)
        self.assertEqual(run("--only", "all")[0].returncode, 2)
        done, _ = run(peer="nmnone")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such device", done.stdout)
        self.assertIn("mixed-keys", run("--list")[0].stdout)


def enter_namespace():
    if why := programs.no_namespaces():
        print(f"SKIP: needs {why}")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-Urn", sys.executable, *sys.argv])


if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter_namespace()
    subprocess.run(["ip", "-batch", "-"], input=LINKS, text=True, check=True)
    sys.exit(unittest.main(verbosity=2))
