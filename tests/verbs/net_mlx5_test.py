#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A driver that is not ours on our model: Debian's net_mlx5, unmodified, through the fake verbs. It
settles how the formats are read: where the two disagree the model is wrong, until shown otherwise.

Two wirings: `looped`, frames of a capture go pcap -> net_mlx5 -> wire -> net_mlx5 -> pcap; and
`forwarded`, they come to net_mlx5 by the wire and leave by it."""
import os
import random
import re
import struct
import sys
import unittest

import net_mlx5

net_mlx5.enter_namespace()

import captures  # noqa: E402
import engines  # noqa: E402
import programs  # noqa: E402

SINK = "wire=gen,gen_frames=1"  # takes all, and makes next to nothing
PEER = bytes.fromhex("020000000099")
# How net_mlx5 is told to send and receive: name -> arguments of the port, of testpmd.
WAYS = {
    "packets that are pointed to, many in one WQE": ("txq_inline_max=0,txq_inline_mpw=0", ()),
    "packets inlined, many in one WQE": ("txq_inline_mpw=960,txqs_min_inline=1", ()),
    "one pointer a WQE": ("txq_mpw_en=0,txq_inline_max=0", ()),
    "packets inlined, one a WQE": ("txq_mpw_en=0,txq_inline_max=900,txqs_min_inline=1", ()),
    "a header of 82 bytes inlined": ("txq_inline_min=82", ()),
    "received one by one": ("rx_vec_en=0", ()),
}


def random_frames(count, longest, seed):
    """Of an EtherType that is nobody's, each with its number."""
    print(f"seed {seed}")
    source = random.Random(seed)
    for i in range(count):
        size = source.randint(60, longest)
        yield (b"\xff" * 6 + b"\x02\0\0\0\0\x01\x88\xb5" + struct.pack(">I", i)
               + source.randbytes(size - 18))


def flow_frames(count):
    """UDP over IPv4, every one of another flow, to an address that is not the port's: they wait in
    the wire until the port is promiscuous."""
    for i in range(count):
        udp = struct.pack(">HHHH", 1000 + i, 2000 + 7 * i % 999, 8 + 26, 0) + bytes(26)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), i, 0, 64, 17, 0,
                         bytes([10, 0, i >> 8, i & 255]), bytes([198, 18, 0, i % 251]))
        ip = ip[:10] + struct.pack(">H", captures.checksum(ip)) + ip[12:]
        yield b"\x02\0\0\0\0\x55\x02\0\0\0\0\x01\x08\0" + ip + udp


def toeplitz(key, data):
    """[Microsoft, Verifying the RSS Hash Calculation]"""
    bits = int.from_bytes(key, "big")
    total = 0
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1:
            total ^= bits >> (8 * len(key) - 32 - i) & 0xffffffff
    return total


def said(testpmd):
    """The start of what it said, and the end."""
    return testpmd.output[:3000] + "\n...\n" + testpmd.output[-1500:]


class NetMlx5(unittest.TestCase):
    def end(self, testpmd):
        self.assertEqual(testpmd.quit(), 0, said(testpmd))
        report = testpmd.report()
        self.assertEqual((report["leaked"], report["live"]), ("0", "0"), report)
        return report

    def looped(self, frames, arguments="", app=()):
        with net_mlx5.machine(["wire=loop"]) as folder:
            captures.write(folder / "in.pcap", frames)
            testpmd = net_mlx5.Testpmd(
                folder, arguments=arguments,
                vdevs=[f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap"],
                app=["--no-flush-rx", "--burst=64", *app])
            testpmd.say("set fwd io retry", "set burst tx delay 1 retry 1000000", "start")
            arrived = testpmd.wait_for(lambda: testpmd.received()[0] >= len(frames))
            self.assertTrue(arrived, said(testpmd))
            testpmd.say("stop")
            self.end(testpmd)
            self.assertEqual(captures.read(folder / "out.pcap"), frames)

    def test_payload_comes_through_in_every_way_of_sending_and_receiving(self):
        for way, (arguments, app) in WAYS.items():
            with self.subTest(way=way):
                self.looped(list(random_frames(4000, 1514, seed=len(way))), arguments, app)

    def forwarded(self, frames, engine, change, arguments="", app=(), configure=(), device=""):
        """`change(frame, mac)`: what must leave for it, as a list. net_mlx5 is port 1: the wire's
        other end was there first."""
        wire = f"wire=ethdev:net_pcap0,unmatched=wait{device}"
        with net_mlx5.machine([wire]) as folder:
            captures.write(folder / "in.pcap", frames)
            own = net_mlx5.mac(0)
            stopped = ["--disable-device-start"] * bool(configure)
            testpmd = net_mlx5.Testpmd(
                folder, arguments=arguments,
                vdevs=[f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap"],
                app=["--no-flush-rx", "--port-topology=loop", "--max-pkt-len=9618",
                     "--mbuf-size=10240", *app, *stopped])
            testpmd.say(f"set fwd {engine} retry", "set burst tx delay 1 retry 1000000",
                        f"set eth-peer 1 {PEER.hex(':')}", *configure,
                        *["port start all"] * bool(configure), "start")
            arrived = testpmd.wait_for(lambda: testpmd.received()[0] >= len(frames))
            self.assertTrue(arrived, said(testpmd))
            testpmd.say("stop")
            wanted = [g for f in frames for g in change(f, own)]
            testpmd.wait_for(lambda: len(captures.read(folder / "out.pcap")) >= len(wanted))
            self.end(testpmd)
            got = captures.read(folder / "out.pcap")
            self.assertEqual(len(got), len(wanted))
            self.assertEqual([j for j, f in enumerate(got) if f != wanted[j]], [])


    def captured(self, prepare=lambda frame: frame, change=lambda frame: frame, most=9600):
        """Frames of all captures for which `change` is defined, as `prepare` makes them."""
        frames = [f for file in captures.files() for f in captures.read(file)]
        return [prepare(f) for f in captures.accepted(engines.defined(frames, change), most)
                if len(f) >= 18]  # net_mlx5 sends none below that once it has offloads

    def test_captures(self):
        self.forwarded(self.captured(), "macswap", lambda f, mac: [captures.swap_macs(f)])

    def test_buffer_split_into_two_pools(self):
        app = ["--mbuf-size=512,2176", "--rxpkts=64,1984", "--rx-offloads=0x102000",
               "--tx-offloads=0x8000", "--max-pkt-len=1518"]
        frames = [*random_frames(3000, 1514, seed=1), *self.captured(most=1514)]
        self.forwarded(frames, "macswap", lambda f, mac: [captures.swap_macs(f)], app=app)

    def test_chains_received_and_sent(self):
        app = ["--mbuf-size=640", "--rx-offloads=0x2000", "--tx-offloads=0x8000",
               "--max-pkt-len=9618", "--txd=512"]
        frames = [*random_frames(3000, 3000, seed=2), *self.captured(most=3000)]
        self.forwarded(frames, "macswap", lambda f, mac: [captures.swap_macs(f)], app=app)

    def test_checksums_by_the_device(self):
        def change(frame, mac=bytes(6)):
            return [engines.set_macs(engines.fix_checksums(engines.whole(frame)), PEER, mac)]

        self.forwarded(self.captured(engines.spoil_checksums, change), "csum", change,
                       configure=BY_DEVICE)

    def test_tso(self):
        def change(frame, mac=bytes(6)):
            return [engines.set_macs(f, PEER, mac) for f in engines.segments(frame, 800)]

        self.forwarded(self.captured(engines.spoil_checksums, change), "csum", change,
                       configure=[*BY_DEVICE, "tso set 800 1"])

    def test_tags_are_inserted_and_stripped_by_the_device(self):
        frames = list(random_frames(1000, 1400, seed=3))
        tag = b"\x81\0\0\x2a"

        def tagged(frame):
            return frame[:12] + tag + frame[12:]

        self.forwarded(frames, "macswap", lambda f, mac: [tagged(captures.swap_macs(f))],
                       app=["--tx-offloads=0x1"], configure=["tx_vlan set 1 42"])
        self.forwarded([tagged(f) for f in frames], "macswap",
                       lambda f, mac: [captures.swap_macs(f[:12] + f[16:])],
                       app=["--rx-offloads=0x1"])

    def test_what_the_device_says_of_a_frame(self):
        """Checksums found good or not, and a flow's mark."""
        good = next(flow_frames(1))
        udp = bytearray(good)
        udp[40:42] = b"\x12\x34"
        ip = bytearray(good)
        ip[24:26] = b"\x12\x34"
        frames = [engines.fix_checksums(good), bytes(udp), bytes(ip)]
        with net_mlx5.machine(["wire=ethdev:net_pcap0,unmatched=wait"]) as folder:
            captures.write(folder / "in.pcap", frames)
            testpmd = net_mlx5.Testpmd(
                folder, vdevs=[f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap"],
                app=["--no-flush-rx", "--enable-rx-cksum", "--disable-device-start"])
            testpmd.say("set promisc all off", "port start all", "set verbose 1",
                        "set fwd rxonly", "start",
                        "flow create 1 ingress pattern eth / ipv4 / udp / end"
                        " actions mark id 77 / queue index 0 / end", "set promisc 1 on")
            testpmd.wait_for(lambda: testpmd.received()[0] >= len(frames))
            testpmd.say("stop")
            self.end(testpmd)
        flags = re.findall(r"ol_flags: (.*)", testpmd.output)
        self.assertEqual(["IP_CKSUM_GOOD" in f for f in flags], [True, True, False], flags)
        self.assertEqual(["L4_CKSUM_GOOD" in f for f in flags], [True, False, True], flags)
        self.assertEqual(testpmd.output.count("FDIR matched ID=0x4d"), 3, testpmd.output)

    def test_two_devices_on_one_cable(self):
        with net_mlx5.machine(["wire=pair:x", "wire=pair:x"]) as folder:
            testpmd = net_mlx5.Testpmd(folder, devices=2)
            testpmd.say("set fwd macswap", "start tx_first")
            for port in (0, 1):
                self.assertTrue(testpmd.wait_for(
                    lambda: testpmd.xstats(port)["rx_good_packets"] > 10000), said(testpmd))
            testpmd.say("stop")
            self.end(testpmd)

    def test_rss_spreads_over_four_queues_as_the_hash_says(self):
        key = bytes(range(7, 47))
        frames = list(flow_frames(1000))
        queues = [0] * 4
        for f in frames:
            queues[toeplitz(key, f[26:38]) & 3] += 1
        with net_mlx5.machine(["wire=ethdev:net_pcap0,unmatched=wait"]) as folder:
            captures.write(folder / "in.pcap", frames)
            testpmd = net_mlx5.Testpmd(
                folder, vdevs=[f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap"],
                app=["--no-flush-rx", "--rxq=4", "--txq=4", "--disable-device-start"])
            testpmd.say("set promisc all off", "port start all", "port config all rss udp",
                        f"port config 1 rss-hash-key ipv4-udp {key.hex()}", "port stop all",
                        "port start all", "set fwd rxonly", "start", "set promisc 1 on")
            testpmd.wait_for(lambda: testpmd.received()[0] >= len(frames))
            testpmd.say("stop")
            found = testpmd.xstats(1)
            self.end(testpmd)
        self.assertEqual([found[f"rx_q{i}_packets"] for i in range(4)], queues)

    def test_flows_to_a_queue_to_several_dropped_and_counted(self):
        flows = ["ingress pattern eth / ipv4 src is 10.0.0.1 / udp / end actions queue index 2"
                 " / end",
                 "ingress pattern eth / ipv4 src is 10.0.0.2 / end actions drop / end",
                 "ingress pattern eth / ipv4 / udp dst is 2021 / end actions count / queue index"
                 " 3 / end",
                 "ingress pattern eth / ipv4 src spec 10.0.1.0 src mask 255.255.255.0 / udp / end"
                 " actions rss queues 1 3 end types ipv4-udp end / end"]
        frames = list(flow_frames(600))
        source = [f[26:30] for f in frames]
        port = [struct.unpack(">H", f[36:38])[0] for f in frames]
        dropped = source.count(bytes([10, 0, 0, 2]))
        counted = sum(p == 2021 and s != bytes([10, 0, 0, 2]) for s, p in zip(source, port))
        self.assertGreater(dropped * counted, 0)
        with net_mlx5.machine(["wire=ethdev:net_pcap0,unmatched=wait"]) as folder:
            captures.write(folder / "in.pcap", frames)
            testpmd = net_mlx5.Testpmd(
                folder, vdevs=[f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap"],
                app=["--no-flush-rx", "--rxq=4", "--txq=4", "--disable-device-start"])
            made = testpmd.say("set promisc all off", "port start all",
                               *(f"flow create 1 {flow}" for flow in flows), "set fwd rxonly",
                               "start", "set promisc 1 on")
            self.assertEqual(made.count("created"), len(flows), made)
            testpmd.wait_for(lambda: testpmd.received()[0] >= len(frames) - dropped)
            asked = testpmd.say("stop", "flow query 1 2 count")
            found = testpmd.xstats(1)
            testpmd.say("flow flush 1")
            self.end(testpmd)
        self.assertEqual(sum(found[f"rx_q{i}_packets"] for i in range(4)), len(frames) - dropped)
        self.assertGreaterEqual(found["rx_q2_packets"], source.count(bytes([10, 0, 0, 1])))
        self.assertIn(f"hits: {counted}", asked)

    def exchange(self, device, app, commands, arguments=""):
        """Runs testpmd on a device of that description; what it said to each of `commands`."""
        with net_mlx5.machine([device]) as folder:
            testpmd = net_mlx5.Testpmd(folder, arguments=arguments, app=app)
            answers = [command(testpmd) if callable(command) else testpmd.say(command)
                       for command in commands]
            self.end(testpmd)
        return answers

    def moves(self, counter, more=10000):
        """A command that waits until `counter` of port 0 has grown by so much."""
        def wait(testpmd):
            start = testpmd.xstats(0)[counter]
            moved = testpmd.wait_for(lambda: testpmd.xstats(0)[counter] >= start + more)
            self.assertTrue(moved, f"{counter} stands still\n{said(testpmd)}")
            return testpmd.xstats(0)
        return wait

    def test_txonly_rxonly_and_macswap(self):
        # net_mlx5 keeps 16 bits of its completion queue's counter: 65,536 completions and beyond.
        self.exchange(SINK, [], ["set fwd txonly", "start",
                                 self.moves("tx_good_packets", 5_000_000), "stop"])
        self.exchange("wire=gen", [], [
            "set fwd rxonly", "start", self.moves("rx_good_packets"), "stop",
            "set fwd macswap", "start", self.moves("tx_good_packets"), "stop"])

    def test_segments_of_the_programs_own(self):
        self.exchange(SINK, ["--tx-offloads=0x8000"], [
            "set fwd txonly", "set txpkts 64,200,300,1000", "start",
            self.moves("tx_good_packets"), "stop"])

    def test_ports_and_queues_stop_and_start_again(self):
        again = [command for _ in range(3) for command in (
            "port stop 0", "port start 0", "start", self.moves("rx_good_packets"), "stop")]
        self.exchange("wire=gen", ["--rxq=2", "--txq=2"], [
            "set fwd macswap", "start", self.moves("rx_good_packets"), "stop", *again,
            "port 0 rxq 1 stop", "port 0 txq 1 stop", "port 0 rxq 1 start", "port 0 txq 1 start",
            "start", self.moves("rx_good_packets"), "stop", "port config mtu 0 3000",
            "set allmulti all on", "mac_addr add 0 02:00:00:00:00:77", "start",
            self.moves("rx_good_packets"), "stop"])

    def test_what_finds_no_buffer_is_counted_as_missed(self):
        missed = self.exchange("wire=gen,rate=1000000", [], [
            "set fwd rxonly",
            lambda testpmd: testpmd.wait_for(
                lambda: int(re.search(r"RX-missed: (\d+)",
                                      testpmd.say("show port stats 0"))[1]) > 1000)])[1]
        self.assertTrue(missed)

    def test_the_link_follows_the_interface(self):
        def link(state):
            def wait(testpmd):
                net_mlx5.run("ip", "link", "set", "nmv0", state)
                self.assertTrue(testpmd.wait_for(
                    lambda: f"Link status: {state}" in testpmd.say("show port info 0")))
            return wait

        self.exchange("wire=gen", [], ["set fwd rxonly", "start", link("down"), link("up"),
                                       self.moves("rx_good_packets"), "stop"])

    def test_every_verbs_call_fails_once(self):
        """net_mlx5 says so and goes on, or ends; what it made it destroys. But for one: the error
        path of its send queue destroys the completion queue before the queue pair: EBUSY."""
        k, failed = 0, ""
        while failed != "-":
            k += 1
            with self.subTest(k=k), net_mlx5.machine(["wire=gen"]) as folder:
                os.environ["NM_FAKE_VERBS_FAIL"] = str(k)
                testpmd = net_mlx5.Testpmd(folder)
                said_all, _ = testpmd.process.communicate(
                    "start\nstop\nport stop 0\nport start 0\nquit\n", programs.PATIENCE_S)
                del os.environ["NM_FAKE_VERBS_FAIL"]
                self.assertGreaterEqual(testpmd.process.returncode, 0, said_all[-3000:])
                report = testpmd.report()
                failed = report["failed"]
                kept = "1" if failed in ("ibv_modify_qp", "mlx5dv_init_obj") else "0"
                self.assertIn(report["leaked"], ("0", kept), failed)
                self.assertEqual(report["live"], "0")
        self.assertGreater(k, 100)

    def test_a_send_queue_recovers_from_errors(self):
        """The k-th access to a packet fails: the queue is in error, and net_mlx5 resets it."""
        for k in (100, 1001, 20002):
            with self.subTest(k=k):
                stats = self.exchange(
                    f"{SINK},fault=dma@{k}", [],
                    ["set fwd txonly", "start", self.moves("tx_good_packets", 100000),
                     "stop"])[2]
                self.assertGreater(stats["tx_errors"], 0)

    def test_a_receive_queue_recovers_from_errors(self):
        """Only net_mlx5's scalar receive function does: see the fake's README."""
        for k in (100, 1001, 20002):
            with self.subTest(k=k):
                stats = self.exchange(
                    f"wire=gen,fault=dma@{k}", [],
                    ["set fwd rxonly", "start", self.moves("rx_good_packets", 100000), "stop"],
                    arguments="rx_vec_en=0")[2]
                self.assertGreater(stats["rx_errors"], 0)


BY_DEVICE = [f"csum set {what} hw 1" for what in ("ip", "udp", "tcp")]


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
