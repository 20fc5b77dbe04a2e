#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What testpmd's prompt can change on a port with traffic: which queue gets which flow, and all of
it by a reset."""
import random
import re
import sys
import unittest

from testpmd_cases_test import SEED, OnePort
from testpmd_features_test import APP, RETRY

QUEUES = 4
MODES = ["host", "nicmem"]
KEY_BYTES = 40


class Rss(OnePort):
    def start_queues(self, mode):
        testpmd = self.start(f"mode={mode},gen_size=imix",
                             [*APP, f"--rxq={QUEUES}", f"--txq={QUEUES}", "--rss-udp"])
        testpmd.say("set fwd macswap retry", RETRY)
        return testpmd

    def share(self, testpmd):
        """Packets that each queue gets from now on; what the rings held before is not counted."""
        self.run_for(testpmd, QUEUES * 1024 + 1000)
        before = testpmd.xstats(0)
        self.run_for(testpmd, 5000)
        after = testpmd.xstats(0)
        names = [f"rx_q{queue}_packets" for queue in range(QUEUES)]
        return [after[name] - before[name] for name in names]

    def run_for(self, testpmd, packets):
        testpmd.say("start")
        self.pass_more(testpmd, packets)
        testpmd.say("stop")

    def test_the_redirection_table(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                testpmd = self.start_queues(mode)
                size = int(re.search(r"Redirection table size: (\d+)",
                                     testpmd.say("show port info 0")).group(1))
                self.assertGreater(min(self.share(testpmd)), 0)
                for queues in ((2,), (0, 3)):
                    for entry in range(size):  # one a command: its line has a limit
                        queue = queues[entry % len(queues)]
                        testpmd.say(f"port config 0 rss reta ({entry},{queue})")
                    share = self.share(testpmd)
                    self.assertEqual([q for q in range(QUEUES) if share[q]], list(queues), share)
                self.stop_and_check(testpmd)

    def test_the_hash_key(self):
        """A key of zeros hashes all to 0, and so to the queue of the table's first entry."""
        rng = random.Random(SEED)
        print(f"NM_SEED={SEED}", file=sys.stderr)
        for mode in MODES:
            with self.subTest(mode=mode, seed=SEED):
                testpmd = self.start_queues(mode)
                testpmd.say(f"port config 0 rss-hash-key ipv4-udp {'00' * KEY_BYTES}")
                share = self.share(testpmd)
                self.assertEqual([q for q in range(QUEUES) if share[q]], [0], share)
                testpmd.say(f"port config 0 rss-hash-key ipv4-udp {rng.randbytes(KEY_BYTES).hex()}")
                self.assertGreater(min(self.share(testpmd)), 0)
                self.stop_and_check(testpmd)


class Reset(OnePort):
    TIMES = 20

    def test_reset_and_start_again(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                testpmd = self.start(f"mode={mode},gen_size=imix", APP)
                testpmd.say("set fwd macswap retry", RETRY)
                for _ in range(self.TIMES):
                    said = testpmd.say("stop", "port stop 0", "port reset 0", "port start 0",
                                       "start")
                    self.assertNotRegex(said, "ail|Can not")  # "Fail...", "failed"
                    self.pass_more(testpmd, 500)
                self.stop_and_check(testpmd)


class UnderTraffic(OnePort):
    ROUNDS = 30

    def test_vlan_and_mtu_change_while_packets_pass(self):
        """What is accepted on a running port loses nothing unseen; what a program must stop for is
        refused with a word and leaves the port as it was."""
        rng = random.Random(SEED)
        print(f"NM_SEED={SEED}", file=sys.stderr)
        switches = [f"vlan set {what} {state} 0" for what in ("strip", "filter")
                    for state in ("on", "off")]
        switches += [f"rx_vlan {verb} {tag} 0" for verb in ("add", "rm") for tag in (1, 5, 4094)]
        switches += [f"set {what} 0 {state}" for what in ("promisc", "allmulti")
                     for state in ("on", "off")]
        for mode in MODES:
            with self.subTest(mode=mode, seed=SEED):
                testpmd = self.start(f"mode={mode},gen_size=imix",
                                     [*APP, "--rx-offloads=0x201"])  # VLAN strip and filter
                testpmd.say("set fwd macswap retry", RETRY, "start")
                for _ in range(self.ROUNDS):
                    said = testpmd.say(*rng.sample(switches, 3))
                    # ethdev itself takes no tags while the filter is off
                    self.assertNotRegex(said.replace("failed diag=-38", ""), "ail|rror")
                # a tag is no part of these frames and they are none of the port's MAC: all pass
                testpmd.say("vlan set filter off 0", "set promisc 0 on")
                self.pass_more(testpmd, 2000)
                self.assertRegex(testpmd.say("port config mtu 0 9000"), "ail|stop")
                self.assertIn("MTU: 1500", testpmd.say("show port info 0"))
                self.pass_more(testpmd, 2000)
                self.stop_and_check(testpmd)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
