#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own examples, unpatched, with captures over two ports of one card: every frame leaves by
the right port with the right bytes. They read headers only, so payload is barred from the CPU."""
import ipaddress
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import captures
import engines
import programs

MODES = ["host", "nicmem"]
HEADER = 64
MAX_FRAME = 1500 + 22  # of the MTU that they leave as it is
MAX_FRAMES = 1000  # of a capture: their rings of 1,024 hold it, and none of them retries
PORTS = [2, 3]  # behind the two pcap ports that serve as wires
MACS = {2: bytes.fromhex("020000000102"), 3: bytes.fromhex("020000000103")}


class Program:
    """An example from its start to its end; its ports' wires are the captures `files`."""

    def __init__(self, name, folder, files, mode, arguments=(), more_vdevs=()):
        self.prefix = f"{name}-{mode}"
        command = programs.stock(programs.build() / "tests" / "e2e" / f"dpdk-{name}",
                                 *programs.eal(self.prefix, 512, "0"))
        vdevs = [f"net_pcap{i},rx_pcap={file},tx_pcap={folder}/{PORTS[i]}.pcap"
                 for i, file in enumerate(files)]
        vdevs += [f"net_nicmem{i},wire=ethdev:net_pcap{i},promiscuous=1,device=card,guard=1,"
                  f"mode={mode},split=force,header={HEADER},sram=8MiB,mac={MACS[port].hex(':')}"
                  for i, port in enumerate(PORTS)]
        for vdev in [*vdevs, *more_vdevs]:
            command += ["--vdev", vdev]
        self.said = pathlib.Path(folder, "said")
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen([*command, "--", *arguments], stdout=said,
                                            stderr=subprocess.STDOUT)

    def xstats(self):
        """By port; None before all are up."""
        try:
            found = [programs.telemetry(f"{self.prefix}{os.getpid()}",
                                        f"/ethdev/xstats,{port}")["/ethdev/xstats"]
                     for port in PORTS]
        except (OSError, KeyError):
            return None
        return found if all(found) else None

    def wait_for(self, received, sent):
        """Statistics when the program has received, and each port's device sent, that many frames
        and nothing moves any more, or patience has ended."""
        end = time.monotonic() + programs.PATIENCE_S
        x = None
        while time.monotonic() < end and self.process.poll() is None:
            # the ports are read one after the other: only what stands still is one moment
            before, x = x, self.xstats() or x
            if x and (x == before
                      and [port["rx_good_packets"] for port in x] == received
                      and [port["tx_device_frames"] for port in x] == sent):
                break
            time.sleep(0.05)
        return x

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(programs.PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.process.wait(), self.said.read_text(errors="replace")


class Examples(unittest.TestCase):
    def through(self, name, forward, arguments=(), more_vdevs=(), status=0):
        """Captures, two at a time, in each mode. `forward(frame, port)`: where a frame that came by
        `port` goes and as what, or None. `arguments`: of the program, from the test's folder."""
        files = [f for f in captures.files() if len(captures.read(f)) <= MAX_FRAMES]
        for mode in MODES:
            for first in range(0, len(files), 2):
                pair = files[first:first + 2] if first + 1 < len(files) else files[first:] * 2
                with self.subTest(mode=mode, captures=[f.name for f in pair]):
                    with tempfile.TemporaryDirectory() as folder:
                        self.run_pair(name, forward, arguments, more_vdevs, status, pair, mode,
                                      pathlib.Path(folder))

    def run_pair(self, name, forward, arguments, more_vdevs, status, files, mode, folder):
        offered, expected, drops = {}, {port: [] for port in PORTS}, dict.fromkeys(PORTS, 0)
        for port, file in zip(PORTS, files):
            offered[port] = engines.defined(captures.read(file), lambda f: forward(f, port))
            captures.write(folder / f"in{port}.pcap", offered[port])
            for frame in captures.accepted(offered[port], MAX_FRAME):
                sent = forward(frame, port)
                if sent is None:
                    drops[port] += 1
                else:
                    expected[sent[0]].append(sent[1])
        program = Program(name, folder, [folder / f"in{port}.pcap" for port in PORTS], mode,
                          arguments(folder) if callable(arguments) else arguments, more_vdevs)
        taken = [len(captures.accepted(offered[port], MAX_FRAME)) for port in PORTS]
        stats = program.wait_for(taken, [len(expected[port]) for port in PORTS])
        ended, output = program.stop()
        self.assertEqual(ended, status, output)
        in_flight = sum(x["tx_in_flight"] for x in stats)
        for port, x in zip(PORTS, stats):
            self.assertEqual(programs.problems_of(x, len(offered[port]), in_flight=in_flight), [],
                             output)
            payload = any(len(f) > HEADER for f in captures.accepted(offered[port], MAX_FRAME))
            self.assertEqual(x["rx_payload_nicmem_permille"] > 0, mode == "nicmem" and payload)
            got = captures.read(folder / f"{port}.pcap")
            self.assertEqual(len(got), len(expected[port]), output)
            # frames of both ports may leave by one: in order each, but mixed
            self.assertTrue(sorted(got) == sorted(expected[port]), "other bytes came out")
        self.assertEqual(sum(x["rx_good_packets"] for x in stats),
                         sum(programs.given(x) for x in stats) + sum(drops.values()))

    def test_skeleton_sends_out_of_the_other_port(self):
        self.through("skeleton", lambda frame, port: (port ^ 1, frame), status=-signal.SIGINT)

    def test_l2fwd_rewrites_the_macs(self):
        def forward(frame, port):
            destination = bytes([2, 0, 0, 0, 0, port ^ 1])
            return port ^ 1, engines.set_macs(frame, destination, MACS[port ^ 1])

        # it takes a mask of as many ports as there are, from port 0 on: two more to reach 3
        self.through("l2fwd", forward, ["-p", "0xc", "-q", "2", "-T", "0"],
                     ["net_null0", "net_null1"])

    def test_l3fwd_routes_by_longest_prefix(self):
        def arguments(folder):
            for version, routes in ((4, ROUTES_V4), (6, ROUTES_V6)):
                (folder / f"rules{version}").write_text("".join(
                    f"R{net.network_address.exploded}/{net.prefixlen} {port}\n"
                    for net, port in routes))
            return ["-p", "0xc", "--config=(2,0,0),(3,0,0)", "--parse-ptype", "--lookup=lpm",
                    f"--rule_ipv4={folder}/rules4", f"--rule_ipv6={folder}/rules6",
                    "--tx-queue-size=4096", "--eth-dest=3,02:00:00:00:09:03"]

        self.through("l3fwd", route, arguments)


ROUTES_V4 = [(ipaddress.ip_network(net), port) for net, port in
             [("0.0.0.0/1", 2), ("128.0.0.0/1", 3), ("10.0.0.0/8", 3), ("192.168.0.0/16", 2),
              ("172.16.0.0/12", 2), ("198.18.0.0/24", 3), ("192.168.1.0/24", 3)]]
ROUTES_V6 = [(ipaddress.ip_network(net), port) for net, port in
             [("::/1", 2), ("8000::/1", 3), ("2001::/16", 3), ("2001:470::/32", 2)]]
NEXT_MACS = {2: bytes.fromhex("020000000002"), 3: bytes.fromhex("020000000903")}


def longest_prefix(address, routes, default):
    matches = [(net.prefixlen, port) for net, port in routes if address in net]
    return max(matches)[1] if matches else default


def route(frame, port):
    """What DPDK's l3fwd makes of a frame: no martians, no look at checksums or a TTL of 0; what is
    no IP goes back out of its port; IPv4 with an impossible header is dropped."""
    out = bytearray(frame)
    kind = engines.word(out, 12)
    if kind == engines.IPV4:
        port = longest_prefix(ipaddress.ip_address(engines.read(out, 30, 4)), ROUTES_V4, port)
        out[22] = (out[22] - 1) & 255
        # RFC 1141: what the word with the TTL loses, the sum gains
        total = captures.ones_add(engines.word(out, 24), 0x0100)
        out[24:26] = total.to_bytes(2, "big")
        if not 0x45 <= out[14] <= 0x4f or engines.word(out, 16) < 20:
            return None
    elif kind == engines.IPV6:
        port = longest_prefix(ipaddress.ip_address(engines.read(out, 38, 16)), ROUTES_V6, port)
    return port, engines.set_macs(bytes(out), NEXT_MACS[port], MACS[port])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
