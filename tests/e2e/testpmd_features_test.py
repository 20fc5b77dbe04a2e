#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock testpmd on the driver: engines, splits, spill, queues, pairs, and arguments it refuses."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import captures
import engines
import programs

MODES = ["host", "split", "nicmem-noinline", "nicmem"]
APP = ["--total-num-mbufs=16384", "--nb-cores=1"]
RETRY = "set burst tx delay 1 retry 1000000"


def run_until(vdev, app, commands, done, ports=(0,)):
    """Starts testpmd, waits for `done(testpmd)`, stops; returns its statistics and its output."""
    vdevs = [vdev] if isinstance(vdev, str) else vdev
    testpmd = programs.Testpmd(vdevs, [*APP, *app])
    testpmd.say(*commands, "start")
    finished = testpmd.wait_for(lambda: done(testpmd))
    testpmd.say("stop")
    stats = testpmd.quiet_xstats(ports)
    status = testpmd.quit()
    return finished and status == 0, stats, testpmd.output


def forward_capture(test, file, arguments, app, commands=(), done=None):
    """`file`'s frames (None: none) into a port with `arguments`, until `done(testpmd)`. Without
    commands: macswap, all frames must come back; returns statistics and output. With commands:
    returns the frames that were sent."""
    frames = captures.read(file) if file else []
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder, "in.pcap"), pathlib.Path(folder, "out.pcap")
        captures.write(source, frames)
        finished, (x,), output = run_until(
            [f"net_pcap0,rx_pcap={source},tx_pcap={out}",
             f"net_nicmem0,wire=ethdev:net_pcap0,promiscuous=1,{arguments}"],
            ["--no-flush-rx", *app], commands or ["set fwd macswap retry", RETRY],
            done or (lambda t: t.received()[-1:] == [len(frames)]), (1,))
        test.assertTrue(finished, output[-3000:])
        test.assertEqual(programs.problems_of(x, len(frames)), [], output[-3000:])
        got = captures.read(out)
    test.assertEqual(len(got), x["tx_device_frames"])
    if commands:
        return got
    test.assertTrue(got == [captures.swap_macs(f) for f in frames], "other bytes came out")
    return x, output


class Engines(unittest.TestCase):
    def check(self, result, offered=None):
        finished, stats, output = result
        self.assertTrue(finished, output[-3000:])
        for x in stats:
            self.assertEqual(programs.problems_of(x, offered), [], output[-3000:])
        return stats[0]

    def test_rxonly_takes_all_that_is_generated(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                x = self.check(run_until(
                    f"net_nicmem0,mode={mode},split=force,sram=1MiB,guard=1,gen_frames=20000,"
                    "gen_size=imix,promiscuous=1", [], ["set fwd rxonly"],
                    lambda t: t.received() == [20000]))
                self.assertEqual(x["rx_good_packets"], 20000)

    def test_txonly_with_one_and_several_segments(self):
        for sizes in ("64", "64,1000", "20,30,14,500"):
            for mode in MODES:
                with self.subTest(sizes=sizes, mode=mode):
                    x = self.check(run_until(
                        f"net_nicmem0,mode={mode},gen_frames=1", [],
                        ["set fwd txonly", f"set txpkts {sizes}"],
                        lambda t: t.xstats(0)["tx_good_packets"] > 5000))
                    self.assertEqual(x["tx_good_bytes"],
                                     x["tx_good_packets"] * sum(map(int, sizes.split(","))))

    def test_random_segments_of_own_packets(self):
        """`txsplit rand`: one to all of the segments, lengths and sums of the headers fitting."""
        for mode in MODES:
            with self.subTest(mode=mode):
                frames = forward_capture(
                    self, None, f"mode={mode}", [],
                    ["set fwd txonly", "set txpkts 64,20,300,1000", "set txsplit rand"],
                    lambda t: t.xstats(1)["tx_device_frames"] > 3000)
                self.assertEqual({len(frame) for frame in frames}, {64, 84, 384, 1384})
                for frame in frames:
                    self.assertEqual(engines.word(frame, 16), len(frame) - 14)
                    self.assertEqual(engines.word(frame, 38), len(frame) - 34)
                    self.assertEqual(captures.checksum(frame[14:34]), 0)

    def test_flowgen(self):
        """Its flows in turn, 256 of them; what comes in is discarded."""
        for mode in MODES:
            with self.subTest(mode=mode):
                frames = forward_capture(
                    self, captures.REPO / "tests" / "data" / "web-range-download.pcap",
                    f"mode={mode},guard=1", ["--flowgen-flows=256"],
                    ["set fwd flowgen", "set txpkts 200"],
                    lambda t: t.xstats(1)["tx_device_frames"] > 3000
                    and t.received()[-1] == 672)
                for i, frame in enumerate(frames):
                    self.assertEqual(len(frame), 196)  # it takes off the FCS
                    self.assertEqual(frame[:12].hex(), "000102030401" "000102030400")
                    self.assertEqual(frame[30:34], bytes([10, 253, 0, i % 256]))
                    self.assertEqual(captures.checksum(frame[14:34]), 0)

    def test_queues_by_rss(self):
        for queues in (2, 4):
            for mode in MODES:
                with self.subTest(queues=queues, mode=mode):
                    x = self.check(run_until(
                        f"net_nicmem0,mode={mode},split=force,guard=1,gen_frames=20000,"
                        "promiscuous=1", [f"--rxq={queues}", f"--txq={queues}", "--rss-udp"],
                        ["set fwd macswap retry", RETRY], lambda t: t.received() == [20000]))
                    each = [x[f"rx_q{q}_packets"] for q in range(queues)]
                    self.assertEqual(sum(each), 20000)
                    self.assertGreater(min(each), 20000 // queues // 2, each)

    def test_a_loop_plug_keeps_every_frame(self):
        testpmd = programs.Testpmd(["net_nicmem0,wire=loop,split=force,promiscuous=1"], APP)
        testpmd.say("set fwd io retry", RETRY, "start tx_first 4")
        self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > 10000))
        testpmd.say("stop")
        x, = testpmd.quiet_xstats([0])
        self.assertEqual(testpmd.quit(), 0)
        in_the_plug = x["wire_held"]
        self.assertEqual(x["tx_device_frames"], x["rx_device_frames"] + in_the_plug)

    def test_a_pair_carries_from_one_port_to_the_other(self):
        result = run_until(["net_nicmem0,wire=pair:cable,split=force,promiscuous=1",
                            "net_nicmem1,wire=pair:cable,split=force,promiscuous=1"], [],
                           ["set fwd txonly"], lambda t: t.xstats(0)["tx_device_frames"] > 2000,
                           (0, 1))
        finished, (a, b), output = result
        self.assertTrue(finished, output[-2000:])
        for sender, receiver in ((a, b), (b, a)):
            taken = sum(receiver[k] for k in ("rx_device_frames", "rx_no_buffer", "wire_held"))
            self.assertEqual(sender["tx_device_frames"], taken)


class Placement(unittest.TestCase):
    """Where payload goes, by what the program and the arguments ask."""

    def through_pcap(self, arguments, app):
        file = captures.REPO / "tests" / "data" / "web-range-download.pcap"
        return forward_capture(self, file, f"header=64,{arguments}", app)

    def test_little_memory_spills_to_the_host_and_loses_nothing(self):
        shares = []
        for size in ("4KiB", "8KiB", "16KiB", "64KiB", "128KiB", "256KiB", "8MiB"):
            with self.subTest(sram=size):
                x, _ = self.through_pcap(f"mode=nicmem,split=force,sram={size},spill=sw,guard=1",
                                         ["--rxd=1024"])
                shares.append(x["rx_payload_nicmem_permille"])
        self.assertEqual(shares, sorted(shares), "more memory, more payload on the card")
        self.assertEqual([shares[0], shares[-1]], [0, 1000])
        self.assertTrue(0 < shares[4] < 1000, shares)

    def test_two_rings_lose_nothing_and_keep_no_less_on_the_card_than_one(self):
        shares = {}
        for form in ("sw", "hw"):
            x, _ = self.through_pcap(
                f"mode=nicmem,split=force,sram=128KiB,spill={form},guard=1", ["--rxd=1024"])
            shares[form] = x["rx_payload_nicmem_permille"]
            if form == "hw":
                self.assertEqual(x["rx_primary_frames"] + x["rx_secondary_frames"],
                                 x["rx_good_packets"])
                self.assertGreater(x["rx_primary_frames"], 0)
        self.assertGreaterEqual(shares["hw"], shares["sw"])

    def test_auto_without_buffer_split_gives_whole_frames_and_one_warning(self):
        x, output = self.through_pcap("mode=nicmem", [])
        self.assertEqual(x["rx_payload_nicmem_bytes"] + x["rx_payload_host_bytes"], 0)
        self.assertEqual(output.count("split=force"), 1)

    def test_the_programs_own_split_is_used_as_given(self):
        x, _ = self.through_pcap("mode=nicmem", ["--mbuf-size=256,2176", "--rxpkts=64,1984",
                                                 "--rx-offloads=0x102000", "--mp-alloc=xbuf"])
        self.assertGreater(x["rx_payload_host_bytes"], 0)
        self.assertEqual(x["payload_host_buffers"] + x["payload_nicmem_buffers"], 0)


class Refused(unittest.TestCase):
    CASES = {
        "colour=blue": ["unknown argument 'colour'", "mode", "sram"],
        "mode=fast": ["mode=fast", "host, split, nicmem-noinline, nicmem"],
        "hca=card": ["hca=card", "sim, verbs"],
        "header=17": ["header=17", "18..512"],
        "header=513": ["header=513", "18..512"],
        "tx_inline=5": ["tx_inline=5", "18..512"],
        "split=maybe": ["split=maybe", "auto, force, off"],
        "spill=card": ["spill=card", "sw, hw"],
        "guard=2": ["guard=2", "0, 1"],
        "sram=1": ["sram=1", "4KiB..128MiB"],
        "sram=129MiB": ["sram=129MiB", "4KiB..128MiB"],
        "sram=many": ["sram=many", "4KiB..128MiB"],
        "cpu=99": ["cpu=99", "any, none"],
        "wire=foo": ["wire=foo", "gen, loop, pair:NAME, ethdev:NAME"],
        "wire=ethdev:none": ["ethdev:none", "no such ethdev"],
        "mac=01:00:00:00:00:01": ["mac=01:00:00:00:00:01", "unicast"],
        "mac=02:00": ["mac=02:00", "unicast"],
        "gen_size=59": ["gen_size=59", "60..16384"],
        "rate=0": ["rate=0", "1.."],
        "mode=host,mode=split": ["given twice"],
        "mode": ["'mode'", "key=value"],
    }

    def test_each_with_one_line_that_says_what_is_accepted(self):
        for arguments, words in self.CASES.items():
            with self.subTest(arguments=arguments):
                done = subprocess.run(
                    programs.stock("dpdk-testpmd", *programs.eal("bad", 64, "0"), "--vdev",
                                   f"net_nicmem0,{arguments}", "--", "--tx-first"),
                    input="\n", text=True,
                    capture_output=True, timeout=programs.PATIENCE_S)
                said = [line for line in (done.stdout + done.stderr).splitlines()
                        if line.startswith("net_nicmem: ")]
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(said), 1, done.stdout + done.stderr)
                for word in words:
                    self.assertIn(word, said[0])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
