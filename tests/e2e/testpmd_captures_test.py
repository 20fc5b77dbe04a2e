#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every capture through unmodified testpmd, in every mode: the same bytes come out."""
import pathlib
import sys
import tempfile
import unittest

import captures
import programs

MODES = ["host", "split", "nicmem-noinline", "nicmem"]
HEADER = 64
AT_ONCE = 7  # captures a testpmd: two ethdevs and some memory each
APP = ["--total-num-mbufs=24576", "--mbuf-size=10240", "--max-pkt-len=9618", "--no-flush-rx",
       "--rxd=256", "--txd=1024", "--port-topology=loop", "--nb-cores=1"]


def vdevs(files, out, mode):
    for i, file in enumerate(files):
        yield f"net_pcap{i},rx_pcap={file},tx_pcap={out}/{i}.pcap"
        yield (f"net_nicmem{i},wire=ethdev:net_pcap{i},promiscuous=1,mode={mode},split=force,"
               f"header={HEADER},sram=4MiB")


class TestpmdCaptures(unittest.TestCase):
    def forward(self, files, mode, engine, change):
        """All of `files` at once; checks bytes and sums. `change`: what the engine makes of a
        frame; None: it sends nothing."""
        frames = [captures.read(f) for f in files]
        expected = [captures.accepted(f) for f in frames]
        with tempfile.TemporaryDirectory() as out:
            testpmd = programs.Testpmd(vdevs(files, out, mode), APP, memory=2048)
            ports = [2 * i + 1 for i in range(len(files))]
            testpmd.say(f"set fwd {engine}{' retry' if change else ''}",
                        "set burst tx delay 1 retry 1000000", "start")
            wanted = [len(f) for f in expected]
            arrived = testpmd.wait_for(lambda: testpmd.received()[-len(files):] == wanted)
            testpmd.say("stop")
            stats = testpmd.quiet_xstats(ports)
            self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])
            self.assertTrue(arrived, f"{mode} {engine}: {testpmd.output[-3000:]}")
            for i, file in enumerate(files):
                with self.subTest(mode=mode, engine=engine, capture=file.name):
                    self.assertEqual(programs.problems_of(stats[i], len(frames[i])), [])
                    self.check_share(mode, expected[i], stats[i])
                    self.assertEqual(stats[i]["rx_oversize"],
                                     sum(len(f) > captures.MAX_FRAME for f in frames[i]))
                    got = captures.read(pathlib.Path(out, f"{i}.pcap"))
                    wanted = [change(f) for f in expected[i]] if change else []
                    self.assertEqual(len(got), len(wanted))
                    self.assertTrue(got == wanted, "other bytes came out")

    def check_share(self, mode, frames, x):
        payload = any(len(f) > HEADER for f in frames)
        on_card = mode.startswith("nicmem") and payload
        self.assertEqual(x["rx_payload_nicmem_permille"] > 0, on_card)

    def all_captures(self, engine, change):
        files = sorted(captures.folder().glob("*.pcap"))
        self.assertGreater(len(files), 0)
        for mode in MODES:
            for first in range(0, len(files), AT_ONCE):
                self.forward(files[first:first + AT_ONCE], mode, engine, change)

    def test_io(self):
        self.all_captures("io", lambda frame: frame)

    def test_rxonly(self):
        self.all_captures("rxonly", None)

    def test_macswap(self):
        self.all_captures("macswap", captures.swap_macs)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
