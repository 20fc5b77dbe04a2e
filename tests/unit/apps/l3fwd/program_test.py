#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs nicmem-l3fwd as its user does: capture files in and out, exit statuses, signals, telemetry.

usage: program_test.py PATH_OF_nicmem-l3fwd [unittest options]
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
ROUTER, SENDER, NEXT = (bytes.fromhex(x) for x in ("020000000094", "020000000011", "020000000102"))
CONFIG = """
interfaces:
  - {port: net_pcap0, mac: 02:00:00:00:00:94, addresses: [198.18.0.1/24], mtu: 1500}
neighbours:
  - {address: 198.18.0.2, mac: 02:00:00:00:01:02, interface: net_pcap0}
routes:
  - {prefix: 198.18.1.0/24, via: 198.18.0.2}
"""


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF ^ total


def ipv4(destination=(198, 18, 1, 1), ttl=64, payload=26, total=None, mac=ROUTER, options=b""):
    """An Ethernet frame; `total` overrides the total length field."""
    size = 20 + len(options)
    header = bytearray(struct.pack(">BBHHHBBH4s4s", 0x40 | size // 4, 0,
                                   size + payload if total is None else total, 1, 0, ttl, 17, 0,
                                   bytes((198, 18, 0, 9)), bytes(destination)) + options)
    header[10:12] = struct.pack(">H", checksum(bytes(header)))
    return mac + SENDER + b"\x08\x00" + bytes(header) + bytes(i & 0xFF for i in range(payload))


def write_capture(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for frame in frames:
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def read_capture(path):
    data, at, frames = pathlib.Path(path).read_bytes(), 24, []
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = lambda name: os.path.join(self.folder.name, name)
        pathlib.Path(self.at("c.yaml")).write_text(CONFIG)
        self.prefix = f"l3fwd_test_{os.getpid()}"

    def command(self, *own, vdev=None, eal=("--no-telemetry",)):
        vdev = vdev or f"net_pcap0,rx_pcap={self.at('in')},tx_pcap={self.at('out')}"
        return [PROGRAM, "-l", "0", "--no-huge", "-m", "256", "--no-pci", "--file-prefix",
                self.prefix, *eal, "--vdev", vdev, "--", "--config", self.at("c.yaml"), *own]

    def forward(self, frames):
        """The frames that left, and the final statistics."""
        write_capture(self.at("in"), frames)
        done = subprocess.run(self.command("--idle-exit", "100", "--json", self.at("json")),
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        stats = json.loads(pathlib.Path(self.at("json")).read_text())
        self.assertTrue(stats["conserved"])
        self.assertEqual(stats["total"]["received"], len(frames))
        return read_capture(self.at("out")), stats["total"]

    def test_forwards_with_new_macs_ttl_and_checksum_and_leaves_the_rest(self):
        sent = [ipv4(payload=n) for n in (0, 1, 26, 1480)] + [ipv4(options=b"\1" * 40)]
        got, total = self.forward(sent)
        self.assertEqual(total["dropped"], 0)
        self.assertEqual(len(got), len(sent))
        for before, after in zip(sent, got):
            end = 14 + (before[14] & 15) * 4
            want = bytearray(NEXT + ROUTER + before[12:])
            want[22] -= 1
            want[24:26] = b"\0\0"
            want[24:26] = struct.pack(">H", checksum(bytes(want[14:end])))
            self.assertEqual(after, bytes(want))

    def test_counts_each_drop_by_its_reason(self):
        bad = bytearray(ipv4())
        bad[25] ^= 1
        vlan = ipv4()[:12] + b"\x81\x00\x00\x64" + ipv4()[12:]
        got, total = self.forward([
            ipv4(ttl=1), ipv4(ttl=0), ipv4(destination=(9, 9, 9, 9)), ipv4(payload=1481),
            ipv4(total=1500), ipv4(total=0), bytes(bad), vlan, ipv4(mac=b"\xff" * 6),
            ipv4(mac=SENDER), ipv4(destination=(198, 18, 0, 1)), ipv4(destination=(198, 18, 0, 7)),
            ipv4(destination=(198, 18, 0, 255)), ipv4()])
        self.assertEqual(len(got), 1)
        drops = {name: n for name, n in total["drops"].items() if n}
        self.assertEqual(drops, {
            "ttl_expired": 2, "no_route": 1, "mtu_exceeded": 1, "truncated": 1,
            "malformed_header": 1, "bad_checksum": 1, "vlan_unexpected": 1, "multicast_mac": 1,
            "dmac_mismatch": 1, "local_destination": 1, "no_neighbour": 1,
            "martian_destination": 1})

    def test_a_frame_beyond_65535_bytes_is_refused_and_harms_nothing(self):
        got, total = self.forward([ipv4(), ipv4(payload=80000, total=0), ipv4()])
        self.assertEqual(len(got), 2)
        self.assertEqual(total["dropped"], 1)
        self.assertEqual(total["drops"]["length_mismatch"], 1)

    def test_stops_after_frames(self):
        write_capture(self.at("in"), [ipv4()] * 64)
        done = subprocess.run(
            self.command("--frames", "1000",
                         vdev=f"net_pcap0,rx_pcap={self.at('in')},infinite_rx=1"),
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("port 0 (net_pcap0): not a nicmem device", done.stdout)
        self.assertIn(": ok\n", done.stdout)

    def run_until(self, number, eal):
        write_capture(self.at("in"), [ipv4()])
        running = subprocess.Popen(self.command("--stats", "1", eal=eal), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        for line in running.stdout:  # a table with the packet in it, then the program may stop
            if line.startswith("net_pcap0") and line.split()[1] == "1":
                break
        try:
            return self.ask_telemetry() if eal == () else None
        finally:
            running.send_signal(number)
            rest = running.communicate(timeout=30)[0]
            self.assertEqual(running.returncode, 0)
            self.assertIn("received = forwarded + dropped + punted: 1 = 1 + 0 + 0: ok", rest)

    def test_signals_stop_it_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.run_until(number, ("--no-telemetry",))

    def ask_telemetry(self):
        folder = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
        path = f"{folder}/dpdk/{self.prefix}/dpdk_telemetry.v2"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(10)
            client.connect(path)
            client.recv(16384)
            client.send(b"/nicmem/l3fwd/stats")
            return json.loads(client.recv(65536))["/nicmem/l3fwd/stats"]

    def test_telemetry_answers_while_it_runs(self):
        answer = self.run_until(signal.SIGTERM, ())
        self.assertEqual(answer["received"], 1)
        self.assertEqual(answer["port_0"]["name"], "net_pcap0")
        self.assertEqual(answer["port_0"]["transmitted"], 1)
        self.assertEqual(answer["port_0"]["drop_no_route"], 0)

    def check(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30,
                              check=False)

    def test_check_starts_no_port_and_tells_the_first_error(self):
        good = self.check("--config", self.at("c.yaml"), "--check")
        self.assertEqual(good.returncode, 0)
        self.assertIn("route 198.18.1.0/24 to 02:00:00:00:01:02 on net_pcap0\n", good.stdout)
        self.assertEqual(good.stderr, "")
        pathlib.Path(self.at("c.yaml")).write_text(CONFIG.replace("mtu: 1500", "mtu: 15"))
        bad = self.check("--config", self.at("c.yaml"), "--check")
        self.assertEqual(bad.returncode, 1)
        self.assertEqual(bad.stderr,
                         f"error: {self.at('c.yaml')}:3: mtu '15'; accepted: 68..16384\n")

    def test_exit_statuses(self):
        self.assertEqual(self.check("--help").returncode, 0)
        self.assertEqual(self.check().returncode, 2)
        self.assertEqual(self.check("--config", "x", "--bogus").returncode, 2)
        self.assertEqual(self.check("--config", self.at("absent")).returncode, 1)
        pathlib.Path(self.at("c.yaml")).write_text(CONFIG.replace("net_pcap0", "net_other0"))
        write_capture(self.at("in"), [])
        done = subprocess.run(self.command(), capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: port 'net_other0': no such ethdev; accepted: net_pcap0\n",
                      done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
