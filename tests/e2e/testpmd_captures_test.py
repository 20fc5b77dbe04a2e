#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every capture through unmodified testpmd: each forwarding engine in every mode, against oracles
of their own (engines.py). Which cells may read payload by the CPU, and so run without guard:

    io, rxonly, mac, macswap    the first 12 bytes, or nothing: guarded
    5tswap, icmpecho            headers (an echo's sum is updated, not computed): guarded
    csum                        computes TCP's and UDP's sums in software over all bytes: not
                                guarded, where payload lies on the card it reads device memory
    csum with hw, TSO           the device computes the sums and cuts segments: guarded
    csum with txsplit           copies each packet into new segments, of one segment only: run
                                with whole frames
    --rxpkts                    the program's own segments, in host memory: nothing to guard"""
import dataclasses
import functools
import pathlib
import struct
import sys
import tempfile
import typing
import unittest

import captures
import engines
import programs

MODES = ["host", "split", "nicmem-noinline", "nicmem"]
AT_ONCE = 10  # captures a testpmd: two ethdevs and some memory each
APP = ["--max-pkt-len=9618", "--no-flush-rx", "--rxd=256", "--txd=1024", "--port-topology=loop",
       "--nb-cores=1"]
WHOLE_FRAMES = ["--total-num-mbufs=16384", "--mbuf-size=10240"]
PEER_MAC = bytes.fromhex("020000000099")


@dataclasses.dataclass
class Cell:
    """One engine and how it is run. `change(frame, mac)`: what it makes of a frame on a port with
    that MAC address, or a list of frames; None: nothing is sent."""
    engine: str
    change: typing.Callable
    header: int = 128  # holds all that any engine parses
    guard: int = 1
    commands: tuple = ()
    app: tuple = tuple(WHOLE_FRAMES)
    modes: tuple = tuple(MODES)
    configure: tuple = ()  # commands before the port starts; PORT is its number
    prepare: typing.Callable = lambda frame: frame
    in_host: bool = False  # payload, whatever the mode says


def own_mac(port):
    return bytes([2, 0, 0, 0, 1, port])


def vdevs(folder, count, mode, cell):
    for i in range(count):
        yield f"net_pcap{i},rx_pcap={folder}/in{i}.pcap,tx_pcap={folder}/out{i}.pcap"
        yield (f"net_nicmem{i},wire=ethdev:net_pcap{i},promiscuous=1,mode={mode},split=force,"
               f"header={cell.header},sram=4MiB,guard={cell.guard},mac={own_mac(i).hex(':')}")


def pings():
    """Echo and ARP requests that must be answered, and what looks like them."""
    a, b, all_hosts = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 7]), bytes([224, 0, 0, 1])
    macs = bytes.fromhex("020000000101") + bytes.fromhex("020000000002")

    def icmp(size, kind=8, code=0, source=a, destination=b, ether=b"\x08\0"):
        echo = struct.pack(">BBHHH", kind, code, 0, 77, size) + bytes(i & 255 for i in range(size))
        total = captures.checksum(echo + bytes(size % 2))
        echo = echo[:2] + struct.pack(">H", total) + echo[4:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(echo), size, 0, 64, 1, 0)
        ip += source + destination
        total = captures.checksum(ip)
        return macs + ether + ip[:10] + struct.pack(">H", total) + ip[12:] + echo

    def arp(operation, hardware=1):
        body = struct.pack(">HHBBH", hardware, 0x0800, 6, 4, operation) + macs[6:] + a
        return macs + b"\x08\x06" + body + bytes(6) + b + bytes(18)

    vlan = b"\x81\0\0\x05\x08\0"
    return ([icmp(size) for size in (0, 1, 18, 86, 87, 88, 1472, 4000, 9566)] * 8
            + [icmp(56, ether=vlan), icmp(56, destination=all_hosts), icmp(9, kind=0),
               icmp(9, code=1), icmp(9, source=bytes([192, 0, 2, 5]), destination=all_hosts),
               arp(1), arp(2), arp(1, hardware=6), macs + b"\x88\xb5" + bytes(46)])


class TestpmdCaptures(unittest.TestCase):
    def forward(self, inputs, mode, cell):
        """All of `inputs` ({name: frames}) at once; checks bytes and sums."""
        frames = list(inputs.values())
        expected = [captures.accepted(f) for f in frames]
        with tempfile.TemporaryDirectory() as folder:
            for i, these in enumerate(frames):
                captures.write(pathlib.Path(folder, f"in{i}.pcap"), these)
            stopped = ["--disable-device-start"] * bool(cell.configure)
            testpmd = programs.Testpmd(vdevs(folder, len(inputs), mode, cell),
                                       [*cell.app, *APP, *stopped], memory=1024)
            ports = [2 * i + 1 for i in range(len(inputs))]
            sends = cell.engine != "rxonly"
            if cell.configure:
                each = [c.replace("PORT", str(port)) for port in ports for c in cell.configure]
                testpmd.say(*each, "port start all")
            testpmd.say(f"set fwd {cell.engine}{' retry' if sends else ''}", *cell.commands,
                        *(f"set eth-peer {port} {PEER_MAC.hex(':')}" for port in ports),
                        "set burst tx delay 1 retry 1000000", "start")
            wanted = [len(f) for f in expected]
            arrived = testpmd.wait_for(lambda: testpmd.received()[-len(inputs):] == wanted)
            testpmd.say("stop")
            sent = [[cell.change(f, own_mac(i)) for f in these] for i, these in enumerate(expected)]
            cut = [sum(len(f) - 1 for f in these if isinstance(f, list)) for these in sent]
            stats = testpmd.quiet_xstats(ports, cut)
            self.assertEqual(testpmd.quit(), 0, testpmd.output[-3000:])
            self.assertTrue(arrived, f"{mode} {cell.engine}: {testpmd.output[-3000:]}")
            for i, name in enumerate(inputs):
                with self.subTest(mode=mode, engine=cell.engine, capture=name):
                    self.check(frames[i], expected[i], stats[i], mode, cell)
                    wanted = [g for f in sent[i] for g in (f if isinstance(f, list) else [f])
                              if g is not None]
                    got = captures.read(pathlib.Path(folder, f"out{i}.pcap"))
                    self.assertEqual(len(got), len(wanted))
                    self.assertEqual([j for j, f in enumerate(got) if f != wanted[j]], [],
                                     "frames with other bytes than they should have")

    def check(self, frames, expected, x, mode, cell):
        dropped = sum(cell.change(f, PEER_MAC) is None for f in expected)
        self.assertEqual(programs.problems_of(x, len(frames), dropped), [])
        payload = any(len(f) > cell.header for f in expected)
        on_card = mode.startswith("nicmem") and payload and not cell.in_host
        self.assertEqual(x["rx_payload_nicmem_permille"] > 0, on_card)
        self.assertEqual(x["rx_oversize"], sum(len(f) > captures.MAX_FRAME for f in frames))

    def run_cell(self, cell, more=None):
        """Every capture, and the frames of `more`, of which the engine's result is defined."""
        change = functools.partial(cell.change, mac=PEER_MAC)
        inputs = {file.name: captures.read(file) for file in captures.files()} | (more or {})
        for name, frames in inputs.items():
            inputs[name] = [cell.prepare(f) for f in engines.defined(frames, change)]
        inputs = [item for item in inputs.items() if item[1]]
        for mode in cell.modes:
            for first in range(0, len(inputs), AT_ONCE):
                self.forward(dict(inputs[first:first + AT_ONCE]), mode, cell)

    def test_io(self):
        self.run_cell(Cell("io", lambda frame, mac: frame, header=64))

    def test_rxonly(self):
        self.run_cell(Cell("rxonly", lambda frame, mac: None, header=64))

    def test_macswap(self):
        self.run_cell(Cell("macswap", lambda frame, mac: captures.swap_macs(frame), header=64))

    def test_mac(self):
        self.run_cell(Cell("mac", lambda frame, mac: engines.set_macs(frame, PEER_MAC, mac),
                           header=64))

    def test_5tswap(self):
        self.run_cell(Cell("5tswap", lambda frame, mac: engines.swap_5_tuple(frame)))

    def test_icmpecho(self):
        self.run_cell(Cell("icmpecho", engines.echo), {"pings": pings()})

    def test_csum_in_software_repairs_spoilt_checksums(self):
        repaired = [f for file in captures.files()
                    for f in engines.defined(captures.read(file), engines.spoil_checksums)
                    if engines.fix_checksums(engines.spoil_checksums(f)) == f]
        self.assertGreater(len(repaired), 100, "the oracle must agree with who made the captures")
        self.run_cell(Cell("csum", fix_with_macs, guard=0, prepare=engines.spoil_checksums))

    def test_csum_by_the_device(self):
        self.run_cell(Cell("csum", lambda frame, mac: fix_with_macs(engines.whole(frame), mac),
                           configure=BY_DEVICE, prepare=engines.spoil_checksums))

    def test_tso(self):
        """Longer TCP packets leave as several; the rest as they are."""
        def change(frame, mac):
            return [engines.set_macs(f, PEER_MAC, mac) for f in engines.segments(frame, 800)]

        self.run_cell(Cell("csum", change, configure=(*BY_DEVICE, "tso set 800 PORT"),
                           prepare=engines.spoil_checksums))

    def test_csum_copied_into_random_segments(self):
        self.run_cell(Cell("csum", fix_with_macs, modes=("host",),
                           commands=("set txpkts 60,20,200,40", "set txsplit rand")))

    def test_the_programs_own_segments(self):
        app = ("--mbuf-size=256,2176", "--rxpkts=64,1984", "--rx-offloads=0x102000",
               "--mp-alloc=xbuf", "--total-num-mbufs=16384")
        self.run_cell(Cell("macswap", lambda frame, mac: captures.swap_macs(frame), app=app,
                           modes=("host", "nicmem"), in_host=True))


BY_DEVICE = tuple(f"csum set {what} hw PORT" for what in ("ip", "udp", "tcp"))


def fix_with_macs(frame, mac):
    return engines.set_macs(engines.fix_checksums(frame), PEER_MAC, mac)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
