#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock testpmd with `hca=verbs` on the fake: frames go round, nothing is left over."""
import subprocess
import sys
import unittest

import check_symbols
import net_mlx5  # noqa: F401  (finds the modules of the other folders)
import programs

programs.ON_CARD = True
BUILD = programs.build()
PLUGIN = BUILD / "drivers" / "hca" / "verbs" / "nicmem_verbs.so"
FAKE = BUILD / "tests" / "fake_verbs" / "libfake_verbs.so"
MODES = ["host", "split", "nicmem-noinline", "nicmem"]


class Driver(unittest.TestCase):
    def test_the_fake_has_every_verb_that_the_driver_calls(self):
        self.assertEqual(check_symbols.missing(PLUGIN, FAKE), [])

    def test_the_driver_itself_needs_no_rdma_core(self):
        needed = subprocess.run(["readelf", "-d", programs.driver_object()], check=True, text=True,
                                capture_output=True).stdout
        self.assertNotIn("libibverbs", needed)
        self.assertNotIn("libmlx5", needed)

    def test_macswap_in_every_mode(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                testpmd = programs.Testpmd(
                    [f"net_nicmem0,mode={mode},split=force,wire=gen,sram=1MiB,gen_size=1500"],
                    ["--total-num-mbufs=16384", "--no-flush-rx"])
                self.addCleanup(testpmd.end)
                testpmd.say("set fwd macswap", "start")
                self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > 20000),
                                testpmd.output)
                said = testpmd.say("stop")
                dropped = programs.dropped_by_program(said).get(0, 0)
                x = testpmd.quiet_xstats([0])[0]
                self.assertEqual(programs.unsent(x), 0)
                self.assertEqual(x["rx_payload_nicmem_bytes"] > 0, mode.startswith("nicmem"))
                self.assertEqual(x["rx_payload_host_bytes"] > 0, mode != "host")
                self.assertEqual(x["rx_good_packets"], programs.given(x) + dropped)
                for name in programs.NEVER:
                    self.assertEqual(x[name], 0, name)
                self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])

    def test_what_a_card_cannot_do_is_refused_with_a_word(self):
        for arguments, word in {"ibdev=mlx5_9": "mlx5_9", "colour=blue": "ibdev, sram",
                                "sram=none": "sram=none"}.items():
            with self.subTest(arguments=arguments):
                cards = programs.FakeCards(["net_nicmem0,sram=1MiB,wire=loop"])
                self.addCleanup(cards.folder.cleanup)
                done = subprocess.run(
                    programs.stock("dpdk-testpmd", *programs.eal("bad", 64, "0"), "--vdev",
                                   f"net_nicmem0,hca=verbs,{arguments}", "--", "--tx-first"),
                    input="\n", text=True, capture_output=True, timeout=programs.PATIENCE_S,
                    env=programs.os.environ | cards.environment)
                said = [line for line in (done.stdout + done.stderr).splitlines()
                        if line.startswith("net_nicmem: ")]
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(said), 1, done.stdout + done.stderr)
                self.assertIn(word, said[0])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
