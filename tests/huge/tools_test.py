#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own tools attach to a running testpmd as secondary processes: dpdk-proc-info reads its
statistics, dpdk-dumpcap takes packets. They share memory, so there must be huge pages.

A capture is copied in the primary, by a callback on its queues. With `-s N`, N at most `header`,
that reads header buffers only, and works while payload is barred from the CPU (guard=1). A longer
one, and dumpcap's default is 2,176 bytes, reads payload on the card: in guard mode the primary ends
at the first such byte, without it each packet costs slow reads of device memory. Full captures are
for ports in mode host."""
import contextlib
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPO / "tests" / "e2e"))
import install_test  # noqa: E402
import programs  # noqa: E402

PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
NEEDED_PAGES = 512
HEADER = 64
FRAME = 1000


def why_not():
    """What is missing for these tests, or None."""
    if subprocess.run([REPO / "scripts" / "hugepages.sh", str(2 * NEEDED_PAGES)], text=True,
                      capture_output=True).stdout.strip() != "--in-memory":
        return f"needs {NEEDED_PAGES} free huge pages of 2 MiB"
    return "needs root, to mount hugetlbfs" if os.geteuid() != 0 else None


@contextlib.contextmanager
def huge_folder():
    """A hugetlbfs of this test's own: what a killed process leaves there goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "nicmem-test", folder],
                       check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def packets_of_pcapng(data):
    """(captured bytes, original length) of each packet of a pcapng file."""
    at, found = 0, []
    while at + 12 <= len(data):
        kind, size = struct.unpack("<II", data[at:at + 8])
        if kind == 6:  # enhanced packet block
            captured, original = struct.unpack("<II", data[at + 20:at + 28])
            found.append((data[at + 28:at + 28 + captured], original))
        at += size
    return found


class Secondary(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(huge_folder())
        # dumpcap takes no -d: the driver comes in before main. So does the library of mempools that
        # Debian's testpmd is linked with and its dumpcap is not: both processes must number the
        # handlers of mempools alike.
        mempools = pathlib.Path(install_test.eal_default_folder(), "librte_mempool_dpaa.so")
        self.environment = dict(os.environ, LD_PRELOAD=f"{mempools} {programs.driver()}")
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "out.pcapng")

    def start(self, mode):
        """testpmd forwards a slow, endless stream."""
        self.prefix = f"huge{os.getpid()}-{mode}"
        eal = ["-l", "0,1", "--no-pci", "--huge-dir", self.folder, "-m", "512", "-d",
               programs.driver(), "--file-prefix", self.prefix]
        testpmd = programs.Testpmd(
            [f"net_nicmem0,mode={mode},split=force,header={HEADER},guard=1,promiscuous=1,"
             f"rate=2000,gen_size={FRAME},sram=8MiB"], ["--total-num-mbufs=8192", "--nb-cores=1"],
            eal_arguments=eal)
        self.addCleanup(testpmd.end)
        testpmd.say("set fwd macswap retry", "start")
        self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > 100), testpmd.output)
        return testpmd

    def tool(self, *command):
        done = subprocess.run(command, text=True, env=self.environment, capture_output=True,
                              timeout=programs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def dumpcap(self, *arguments):
        return ["dpdk-dumpcap", f"--file-prefix={self.prefix}", "-i", "net_nicmem0", "-w",
                str(self.out), *arguments]

    def still_forwards(self, testpmd):
        before = testpmd.received()[0]
        self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > before + 1000))

    def finish(self, testpmd):
        testpmd.say("stop", "port stop all")
        x, = testpmd.quiet_xstats([0])
        self.assertEqual(programs.problems_of(x), [])
        self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])

    def test_proc_info_reads_the_statistics(self):
        for mode in ("host", "nicmem"):
            with self.subTest(mode=mode):
                testpmd = self.start(mode)
                for _ in range(3):
                    before = testpmd.received()[0]
                    info = ["dpdk-proc-info", "--no-pci", "--file-prefix", self.prefix, "--"]
                    basic = self.tool(*info, "--stats")
                    xstats = self.tool(*info, "--xstats")
                    after = testpmd.received()[0]
                    for seen in (re.search(r"RX-packets: (\d+)", basic),
                                 re.search(r"rx_good_packets: (\d+)", xstats)):
                        self.assertIsNotNone(seen, basic + xstats)
                        self.assertTrue(before <= int(seen.group(1)) <= after)
                    names = set(re.findall(r"^(\w+): \d+$", xstats, re.M))
                    self.assertLessEqual({"rx_device_frames", "nicmem_reads"}, names)
                    self.still_forwards(testpmd)
                self.finish(testpmd)

    def test_dumpcap_takes_the_headers_while_payload_is_barred(self):
        for mode in ("host", "split", "nicmem-noinline", "nicmem"):
            with self.subTest(mode=mode):
                testpmd = self.start(mode)
                self.tool(*self.dumpcap("-c", "50", "-s", str(HEADER)))
                packets = packets_of_pcapng(self.out.read_bytes())
                self.assertGreaterEqual(len(packets), 50)
                for frame, length in packets:
                    self.assertEqual((len(frame), length), (HEADER, FRAME))
                    self.assertEqual(frame[12:14], b"\x08\0")
                self.still_forwards(testpmd)
                self.finish(testpmd)

    def test_dumpcap_takes_whole_frames_in_mode_host(self):
        testpmd = self.start("host")
        self.tool(*self.dumpcap("-c", "20"))
        packets = packets_of_pcapng(self.out.read_bytes())
        self.assertGreaterEqual(len(packets), 20)
        self.assertEqual({len(frame) for frame, _ in packets}, {FRAME})
        self.still_forwards(testpmd)
        self.finish(testpmd)

    def test_the_guard_ends_a_primary_that_copies_payload(self):
        testpmd = self.start("nicmem")
        capture = subprocess.Popen(self.dumpcap("-c", "20"), env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(capture.wait)
        self.addCleanup(capture.kill)
        self.assertEqual(testpmd.process.wait(programs.PATIENCE_S), -signal.SIGSEGV)


if __name__ == "__main__":
    missing = why_not()
    if missing:
        print(f"SKIP: {missing}")
        sys.exit(77)
    sys.exit(unittest.main(verbosity=2))
