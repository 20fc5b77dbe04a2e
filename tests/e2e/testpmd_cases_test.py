#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases from public bug reports, on stock testpmd; DRV numbers are the catalogue's. And a port that
is configured anew again and again while traffic comes."""
import os
import random
import re
import subprocess
import sys
import unittest

import captures
import engines
import programs
from testpmd_features_test import APP, RETRY, forward_capture

SEED = int(os.environ.get("NM_SEED", random.SystemRandom().getrandbits(32)))
MODES = ["host", "split", "nicmem-noinline", "nicmem"]


def pool_counts(testpmd):
    """Size of the program's pool of mbufs, and how many are in it."""
    said = testpmd.say("dump_mempool mb_pool_0")

    def value(name):  # a pool without caches says nothing of them
        return sum(map(int, re.findall(rf"^\s*{name}=(\d+)$", said, re.M)))

    return value("size"), value("common_pool_count") + value("total_cache_count")


class OnePort(unittest.TestCase):
    """Tests with one port, its generator as the wire."""

    def start(self, arguments, app):
        testpmd = programs.Testpmd([f"net_nicmem0,split=force,guard=1,promiscuous=1,{arguments}"],
                                   app)
        self.addCleanup(testpmd.end)
        return testpmd

    def configure_anew(self, testpmd, rng):
        """Stops, changes queues and perhaps rings and MTU, starts; the generator goes on."""
        queues = rng.choice((1, 2, 4))
        changes = rng.sample([f"port config all rxd {rng.choice((64, 100, 256, 1024))}",
                              f"port config all txd {rng.choice((64, 200, 512, 1024))}",
                              f"port config mtu 0 {rng.choice((1500, 2000, 9000))}"],
                             rng.randint(0, 3))
        changes += [f"port config all rxq {queues}", f"port config all txq {queues}"]
        said = testpmd.say("stop", "port stop all", *changes, "port start all", "start")
        self.assertNotIn("ail", said, changes)  # "Fail...", "failed"

    def pass_more(self, testpmd, packets):
        """Waits until the program has received so many more; returns how many it were."""
        before = testpmd.received()[0]
        self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] >= before + packets),
                        testpmd.output[-3000:])
        return testpmd.received()[0] - before

    def stop_and_check(self, testpmd, count_dropped=False):
        """Stops forwarding and the port: then nothing moves, all adds up, every mbuf is back."""
        said = testpmd.say("stop", "port stop all")
        x, = testpmd.quiet_xstats([0])
        dropped = programs.dropped_by_program(said).get(0, 0) if count_dropped else None
        self.assertEqual(programs.problems_of(x, dropped=dropped), [], testpmd.output[-3000:])
        size, count = pool_counts(testpmd)
        self.assertEqual(count, size, "mbufs that did not come back, or came back twice")
        self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])
        return x, dropped


class Cases(OnePort):
    def test_DRV_10_a_full_transmit_ring_leaves_packets_to_their_owner(self):
        for mode in ("host", "nicmem"):
            for retry in ("", " retry"):
                with self.subTest(mode=mode, retry=retry):
                    testpmd = self.start(f"mode={mode},gen_size=imix",
                                         [*APP, "--txd=64", "--burst=512", "--no-flush-rx"])
                    testpmd.say(f"set fwd macswap{retry}", RETRY, "start")
                    self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > 100000))
                    _, dropped = self.stop_and_check(testpmd, count_dropped=True)
                    self.assertEqual(dropped == 0, retry != "")

    def test_DRV_32_each_frame_that_finds_no_buffer_is_counted(self):
        for mode in ("host", "nicmem"):
            with self.subTest(mode=mode):
                testpmd = self.start(
                    f"mode={mode},rate=20000000,gen_frames=500000",
                    ["--nb-cores=1", "--total-num-mbufs=1025", "--mbcache=0", "--rxd=512",
                     "--txd=1024", "--no-flush-rx"])
                testpmd.say("set fwd macswap", "start")
                self.assertTrue(testpmd.wait_for(
                    lambda: testpmd.xstats(0)["wire_generated"] == 500000))
                said = testpmd.say("show port stats 0")
                x, _ = self.stop_and_check(testpmd, count_dropped=True)
                self.assertGreater(x["rx_no_buffer"] + x["rx_no_mbuf"], 0)
                self.assertEqual(re.findall(r"RX-missed: (\d+)", said), [str(x["rx_no_buffer"])])
                self.assertEqual(re.findall(r"RX-nombuf: +(\d+)", said), [str(x["rx_no_mbuf"])])

    def test_DRV_38_an_offload_that_is_not_there_is_refused_at_start(self):
        for argument, name in (("--tx-offloads=0x2000", "Tx offloads 0x2000"),  # MACsec insertion
                               ("--tx-offloads=0x20000", "Tx offloads 0x20000"),  # IPsec
                               ("--rx-offloads=0x80", "Rx offloads 0x80"),
                               ("--rx-offloads=0x8000", "Rx offloads 0x8000")):
            with self.subTest(argument=argument):
                done = subprocess.run(
                    programs.stock("dpdk-testpmd", *programs.eal("bad", 128), "--vdev",
                                   "net_nicmem0", "--", "--total-num-mbufs=2048", argument),
                    input="\n", text=True,
                    capture_output=True, timeout=programs.PATIENCE_S)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(name, done.stdout + done.stderr)

    def test_DRV_40_short_segments_are_copied_exactly(self):
        file = captures.REPO / "tests" / "data" / "udp-small.pcap"
        for mode in MODES:
            with self.subTest(mode=mode):
                sent = forward_capture(self, file, f"mode={mode}", [
                    "--mbuf-size=256,256,256,2176", "--rxpkts=10,20,30,1984", "--mp-alloc=xbuf",
                    "--rx-offloads=0x102000"], ["set fwd io retry", RETRY])
                self.assertTrue(sent == captures.read(file), "other bytes came out")

    def test_DRV_40_segments_of_10_20_30_bytes_from_the_program(self):
        for mode in ("host", "nicmem"):
            frames = transmitted(self, f"mode={mode}", ["set fwd txonly", "set txpkts 10,20,30"])
            with self.subTest(mode=mode):
                self.assertEqual({len(frame) for frame in frames}, {60})
                self.assertEqual({engines.word(frame, 16) for frame in frames}, {46})
                self.assertTrue(all(captures.checksum(frame[14:34]) == 0 for frame in frames))

    def test_buffers_in_any_memory(self):
        """Of DPDK's own, registered by testpmd, or known to the pool alone (anon)."""
        for allocation in ("native", "anon", "xmem", "xbuf"):
            for mode in ("host", "nicmem"):
                with self.subTest(allocation=allocation, mode=mode):
                    testpmd = self.start(f"mode={mode},gen_size=imix",
                                         [*APP, f"--mp-alloc={allocation}"])
                    testpmd.say("set fwd macswap retry", RETRY, "start")
                    self.pass_more(testpmd, 5000)
                    self.stop_and_check(testpmd)

    def test_DRV_49_bursts_of_any_size(self):
        for mode in ("host", "nicmem"):
            with self.subTest(mode=mode):
                testpmd = self.start(f"mode={mode},gen_size=imix", APP)
                testpmd.say("set fwd macswap retry", RETRY)
                for burst in (1, 2, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 511, 512):
                    before = testpmd.received()[0]
                    testpmd.say(f"set burst {burst}", "start")
                    self.assertTrue(testpmd.wait_for(
                        lambda: testpmd.received()[0] > before + 3 * 512), f"burst of {burst}")
                    testpmd.say("stop")
                self.stop_and_check(testpmd)


def transmitted(test, arguments, commands, least=3000):
    """What testpmd sends until it is at least so many frames; checks that all adds up."""
    return forward_capture(test, None, arguments, [], commands,
                           lambda t: t.xstats(1)["tx_device_frames"] >= least)


class Reconfigure(OnePort):
    TIMES = 20

    def test_anew_under_traffic(self):
        print(f"NM_SEED={SEED}", file=sys.stderr)
        rng = random.Random(SEED)
        for mode in MODES:
            with self.subTest(mode=mode, seed=SEED):
                testpmd = self.start(f"mode={mode},gen_size=imix,sram=1MiB",
                                     [*APP, "--rss-udp", "--mbuf-size=10240"])
                testpmd.say("set fwd macswap retry", RETRY)
                for _ in range(self.TIMES):
                    self.configure_anew(testpmd, rng)
                    self.pass_more(testpmd, 500)
                self.stop_and_check(testpmd)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
