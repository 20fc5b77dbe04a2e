#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every capture through nicmem-l3fwd on the driver, in every mode, payload barred from the CPU:
byte for byte what the RFCs say must come out."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import captures
import programs

MODES = ["host", "split", "nicmem-noinline", "nicmem"]
HEADER = 64
OWN_MAC, NEXT_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000201")

ONE_PORT = """
interfaces:
  - {port: PORT, addresses: [192.0.2.1/24, "2001:db8:ffff::1/64"], mtu: 9600, accept_any_mac: true}
routes:
  - {prefix: 0.0.0.0/0, interface: PORT, mac: "02:00:00:00:02:01"}
  - {prefix: "::/0", interface: PORT, mac: "02:00:00:00:02:01"}
"""


class Router:
    """nicmem-l3fwd from its start to SIGTERM."""

    def __init__(self, folder, config, vdevs, memory=768):
        path = pathlib.Path(folder, "router.yaml")
        path.write_text(config)
        self.prefix = f"l3e2e{os.getpid()}"
        command = [programs.build() / "apps" / "l3fwd" / "nicmem-l3fwd",
                   *programs.eal("l3e2e", memory, "0")]
        for vdev in vdevs:
            command += ["--vdev", vdev]
        self.process = subprocess.Popen([*command, "--", "--config", path], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("forwarding"):
                break

    def xstats(self, port):
        return programs.telemetry(self.prefix, f"/ethdev/xstats,{port}")["/ethdev/xstats"]

    def quiet_xstats(self, port, offered):
        """Statistics once all frames offered are dealt with and sent."""
        end = time.monotonic() + programs.PATIENCE_S
        while time.monotonic() < end:
            x = self.xstats(port)
            done = sum(x[k] for k in ("rx_good_packets", "rx_oversize", "rx_malformed"))
            if done == offered and programs.unsent(x) == 0:
                break
            time.sleep(0.02)
        return x

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=programs.PATIENCE_S)
        return self.process.returncode, "".join(self.lines) + output


def drops_said(output):
    """Packets by the reason to drop them, from the program's last words."""
    return {reason: int(count) for reason, count in
            re.findall(r"^  drop (\w+) +(\d+)$", output, re.M)}


class L3fwdCaptures(unittest.TestCase):
    def test_every_capture_in_every_mode(self):
        for file in captures.files():
            for mode in MODES:
                with self.subTest(capture=file.name, mode=mode):
                    self.route(file, mode)

    def route(self, file, mode):
        frames = captures.read(file)
        accepted = captures.accepted(frames)
        visible = HEADER if mode != "host" else captures.MAX_FRAME
        expected, drops = captures.route_all(accepted, OWN_MAC, NEXT_MAC, visible)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.pcap")
            router = Router(folder, ONE_PORT.replace("PORT", "net_nicmem0"), [
                f"net_pcap0,rx_pcap={file},tx_pcap={out}",
                f"net_nicmem0,wire=ethdev:net_pcap0,promiscuous=1,mac=02:00:00:00:00:01,"
                f"mode={mode},split=force,header={HEADER},sram=4MiB,guard=1"])
            x = router.quiet_xstats(1, len(frames))
            status, output = router.stop()
            self.assertEqual(status, 0, output)
            self.assertEqual(programs.problems_of(x, len(frames), sum(drops.values())), [], output)
            self.assertIn(": ok\n", output)
            self.assertEqual(drops_said(output), drops, output)
            got = captures.read(out)
            self.assertEqual(len(got), len(expected), output)
            self.assertTrue(got == expected, "other bytes came out")

    def test_straight_over_net_pcap(self):
        for file in captures.files():
            if file.name not in ("bigtcp-80k.pcap", "web-range-download.pcap"):
                continue
            with self.subTest(capture=file.name), tempfile.TemporaryDirectory() as folder:
                router = Router(folder, ONE_PORT.replace("PORT", "net_pcap0"), [
                    f"net_pcap0,rx_pcap={file},tx_pcap={pathlib.Path(folder, 'out.pcap')}"])
                time.sleep(0.3)
                status, output = router.stop()
                self.assertEqual(status, 0, output)
                self.assertIn(": ok\n", output)


class DeviceRule(unittest.TestCase):
    """Payload on the card may leave only by a port of that card."""

    CONFIG = """
interfaces:
  - {port: net_nicmem0, addresses: [192.0.2.1/26]}
  - {port: net_nicmem1, addresses: [192.0.2.65/26]}
routes:
  - {prefix: 198.18.1.0/24, interface: net_nicmem1, mac: "02:00:00:00:02:01"}
  - {prefix: 198.18.2.0/24, interface: net_nicmem0, mac: "02:00:00:00:02:02"}
"""

    def cross(self, more):
        frames = 5000
        with tempfile.TemporaryDirectory() as folder:
            router = Router(folder, self.CONFIG, [
                f"net_nicmem{i},split=force,sram=16MiB,guard=1,gen_size=1500,gen_frames={frames},"
                f"gen_dst=198.18.{i + 1}.0/24{more}" for i in range(2)])
            stats = [router.quiet_xstats(port, frames) for port in range(2)]
            end = time.monotonic() + programs.PATIENCE_S
            while time.monotonic() < end and any(programs.unsent(x) for x in stats):
                stats = [router.xstats(port) for port in range(2)]
            status, output = router.stop()
        self.assertEqual(status, 0, output)
        for x in stats:
            self.assertEqual(x["rx_good_packets"], frames)
            self.assertEqual(x["tx_device_frames"], frames, output)
            self.assertEqual(x["tx_foreign_memory"], 0)
            self.assertEqual(x["nicmem_reads"], 0)
        return stats, output

    def test_ports_of_one_device_keep_payload_on_the_card(self):
        stats, output = self.cross(",device=card")
        self.assertEqual(output.count("payload stays on the card"), 2, output)
        self.assertEqual([x["rx_payload_nicmem_permille"] for x in stats], [1000, 1000])

    def test_ports_of_two_devices_keep_it_in_host_memory(self):
        stats, output = self.cross("")
        self.assertEqual(output.count("payload in host memory"), 2, output)
        self.assertEqual([x["rx_payload_nicmem_bytes"] for x in stats], [0, 0])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
