#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the READMEs tell to type works, and every statistic is in them."""
import re
import subprocess
import sys
import unittest

import captures
import programs

DRIVER_README = captures.REPO / "drivers" / "net" / "nicmem" / "README.md"
ETHDEV = r"rx_(good|missed|errors|mbuf|q\d)|tx_(good|errors|q\d)"  # not the driver's own


def block_after(title):
    """The first indented block behind a heading."""
    text = (captures.REPO / "README.md").read_text()
    lines = text[text.index(title):].splitlines()[1:]
    first = next(i for i, line in enumerate(lines) if line.startswith("    "))
    end = next(i for i, line in enumerate(lines[first:], first) if not line.startswith("    "))
    return "\n".join(line[4:] for line in lines[first:end])


class Readme(unittest.TestCase):
    def test_trying_the_driver(self):
        block = block_after("## Try the driver").replace(" build/", f" {programs.build()}/")
        script = ("set -e\n" + block).replace(
            "dpdk-testpmd", "stdbuf -oL dpdk-testpmd --file-prefix readme")
        testpmd = programs.Testpmd([], command=["bash", "-c", script])
        self.addCleanup(testpmd.end)
        testpmd.say("start")
        self.assertTrue(testpmd.wait_for(lambda: testpmd.received()[0] > 0), testpmd.output)
        testpmd.say("stop")
        x = testpmd.xstats(0)
        self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])
        self.assertGreater(x["rx_good_packets"], 0)
        self.assertEqual(x["rx_payload_nicmem_permille"], 1000)

    def test_running_the_router(self):
        block = re.sub(r"(^|\s)build/", rf"\1{programs.build()}/", block_after("## Run the router"))
        done = subprocess.run(["bash", "-ec", block], cwd=captures.REPO, text=True,
                              capture_output=True, timeout=programs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        forwarded, _ = map(int, re.search(
            r"= (\d+) \+ (\d+) \+ 0: ok", done.stdout).groups())
        self.assertGreater(forwarded, 0)

    def test_every_statistic_is_explained(self):
        testpmd = programs.Testpmd(["net_nicmem0,split=force"], ["--total-num-mbufs=8192"])
        self.addCleanup(testpmd.end)
        text = DRIVER_README.read_text()
        for name in testpmd.xstats(0):
            if re.match(ETHDEV, name):
                continue
            pcie = re.fullmatch(r"pcie_(\w+?)_(out|in)_(bytes|tlps)", name)
            for part in (pcie.group(1) if pcie else name,):
                part = re.sub(r"^payload_(nicmem|host)_(free|posted)$", r"_\2", part)
                self.assertIn(part, text, name)
        self.assertEqual(testpmd.quit(), 0)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
