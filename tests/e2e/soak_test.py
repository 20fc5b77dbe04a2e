#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many packets through testpmd in every mode, configured anew under traffic; all must add up.

usage: soak_test.py [PACKETS]

A million by default; by hand, before a release, 100 million: soak_test.py 100000000. Frame sizes,
header, memory, spill, rings and queues are drawn anew for each part; NM_SEED=N repeats a run.
Prints the packets a second of the whole, waiting included: a measure of progress, not of the
driver."""
import random
import sys
import time
import unittest

from testpmd_cases_test import MODES, SEED, OnePort
from testpmd_features_test import APP, RETRY

PACKETS = 1_000_000
PART = 2_000_000  # packets between new programs, at most
STEP = 50_000  # packets between new configurations, at most


class Soak(OnePort):
    def test_soak(self):
        rng = random.Random(SEED)
        parts = max(len(MODES), -(-PACKETS // PART))
        print(f"NM_SEED={SEED}: {PACKETS} packets in {parts} parts", file=sys.stderr)
        start, done = time.monotonic(), 0
        for i in range(parts):
            done += self.part(rng, MODES[i % len(MODES)], -(-PACKETS // parts))
        seconds = time.monotonic() - start
        print(f"soak: {done} packets, {done / seconds:.0f} a second", file=sys.stderr)
        self.assertGreaterEqual(done, PACKETS)

    def part(self, rng, mode, packets):
        size = rng.choice(("imix", rng.randint(60, 1514), rng.randint(60, 1514)))
        sram = rng.choice(("4KiB", "64KiB", "256KiB", "1MiB", "8MiB"))
        arguments = f"mode={mode},gen_size={size},header={rng.randint(64, 256)},sram={sram}"
        if mode.startswith("nicmem"):
            arguments += rng.choice(("", ",spill=hw", ",min_posted=auto", ",min_posted=64"))
        done = 0
        with self.subTest(arguments=arguments, seed=SEED):
            testpmd = self.start(arguments, [*APP, "--rss-udp", "--mbuf-size=10240"])
            testpmd.say("set fwd macswap retry", RETRY, "start")
            while done < packets:
                done += self.pass_more(testpmd, min(STEP, packets - done))
                self.configure_anew(testpmd, rng)
            x, _ = self.stop_and_check(testpmd)
            self.assertGreaterEqual(x["rx_good_packets"], done)
        return done


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[-1].isdigit():
        PACKETS = int(sys.argv.pop())
    sys.exit(unittest.main(verbosity=2))
