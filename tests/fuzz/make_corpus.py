#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the corpora that the fuzzers start from: one valid work request of every opcode and flag,
every device argument. Run it by hand after a format or an argument has come; the files are kept."""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"

# As in wqe_fuzz.cc.
HOST_KEY, CARD_KEY, CONSTANT_KEY, FOREIGN_KEY = 0x001, 0x101, 0x201, 0x301
HOST, CONSTANT, PAGE = 0x10000000, 0x10004000, 4096
REPAIR, LOSSLESS, SMALL_ROOM = 1, 2, 4
NOP, SEND, TSO, ENHANCED = 0x00, 0x0A, 0x0E, 0x29
L3, L4 = 0x40, 0x80


def pointer(key, address, length):
    return struct.pack(">IIQ", length, key, address)


def inline_segment(data):
    raw = struct.pack(">I", len(data) | 1 << 31) + data
    return raw + bytes(-len(raw) % 16)


def wqe(opcode, body, mode=2):
    """A control segment and what follows, in whole blocks. Index and queue number: repaired."""
    raw = struct.pack(">IIBBBBI", opcode, 1 + len(body) // 16, 0, 0, 0, mode << 2, 0) + body
    return raw + bytes(-len(raw) % 64)


def eth(inlined=b"", flags=0, mss=0, tag=None):
    word = len(inlined) if tag is None else 1 << 15
    start = inlined if tag is None else struct.pack(">H", tag)
    raw = struct.pack(">IBBHIH", 0, flags, 0, mss, 0, word) + start.ljust(2, b"\0")
    return raw + bytes(-len(raw) % 16)


MACS = bytes(range(12))


def ipv4(protocol, length):
    return struct.pack(">BBHHHBBH8s", 0x45, 0, 20 + length, 7, 0, 64, protocol, 0, bytes(8))


def ipv6(protocol, length):
    return struct.pack(">IHBB", 0x60000000, length, protocol, 64) + bytes(32)


def tcp(flags=0x99):
    return struct.pack(">HHIIHHHH", 1, 2, 3, 4, 0x5000 | flags, 0, 0, 0)


def udp(length):
    return struct.pack(">HHHH", 1, 2, 8 + length, 0)


def v4_tcp(payload):
    return MACS + b"\x08\x00" + ipv4(6, 20 + payload) + tcp()


def v6_tcp(payload):
    return MACS + b"\x86\xdd" + ipv6(6, 20 + payload) + tcp()


def v4_udp(payload):
    return MACS + b"\x08\x00" + ipv4(17, 8 + payload) + udp(payload)


def tagged_v6_udp(payload):
    options = bytes([17, 0]) + bytes(6)  # one extension header
    return MACS + b"\x81\x00\x00\x05\x86\xdd" + ipv6(60, 16 + payload) + options + udp(payload)


def case(send=(), receive=(), flags=REPAIR, budget=31, frame_bytes=300, consumed=0):
    ring = b"".join(send)
    head = struct.pack(">BBBBHH", len(ring) // 64, len(receive), budget, flags, frame_bytes,
                       consumed)
    if not receive:
        return head + ring
    return head + ring.ljust(1024, b"\0") + b"".join(list_.ljust(64, b"\0") for list_ in receive)


def work_requests():
    host, card = pointer(HOST_KEY, HOST, 200), pointer(CARD_KEY, 0, 200)
    end = pointer(0x100, 0, 0)
    sends = {
        "nop": wqe(NOP, b""),
        "send-host": wqe(SEND, eth() + host),
        "send-card": wqe(SEND, eth() + card),
        "send-constant": wqe(SEND, eth() + pointer(CONSTANT_KEY, CONSTANT, PAGE // 4)),
        "send-foreign": wqe(SEND, eth() + pointer(FOREIGN_KEY, HOST, 200)),
        "send-last-byte": wqe(SEND, eth() + pointer(HOST_KEY, HOST + PAGE - 100, 100)),
        "send-inline-2": wqe(SEND, eth(bytes(2)) + host),
        "send-inline-18": wqe(SEND, eth(bytes(18)) + card),
        "send-inline-64": wqe(SEND, eth(bytes(64)) + card),
        "send-inline-only": wqe(SEND, eth(bytes(82))),
        "send-inline-segment": wqe(SEND, eth() + inline_segment(bytes(60)) + card),
        "send-many": wqe(SEND, eth(bytes(64)) + 20 * pointer(HOST_KEY, HOST, 9)),
        "send-l3": wqe(SEND, eth(v4_tcp(200), L3) + host),
        "send-l4": wqe(SEND, eth(v4_udp(200), L4) + card),
        "send-l3-l4": wqe(SEND, eth(v6_tcp(200), L3 | L4) + host),
        "send-l4-extension": wqe(SEND, eth(tagged_v6_udp(200), L4) + host),
        "send-vlan": wqe(SEND, eth(tag=0x6ABC) + host),
        "send-vlan-l3-l4": wqe(SEND, eth(tag=5, flags=L3 | L4) + inline_segment(v4_udp(8)) +
                               pointer(CARD_KEY, 64, 8)),
        "tso-v4": wqe(TSO, eth(v4_tcp(0), L3 | L4, mss=150) + pointer(HOST_KEY, HOST, PAGE)),
        "tso-v6": wqe(TSO, eth(v6_tcp(0), L4, mss=1400) + 4 * pointer(CARD_KEY, 0, PAGE)),
        "tso-one-segment": wqe(TSO, eth(v4_tcp(0), mss=1400) + host),
        "enhanced-multi-packet": wqe(ENHANCED, eth() + host),
    }
    cases = {name: case([one]) for name, one in sends.items()}
    for mode in range(4):
        cases[f"completion-mode-{mode}"] = case([wqe(SEND, eth() + host, mode),
                                                 wqe(NOP, b"", mode)])
        cases[f"error-mode-{mode}"] = case([wqe(SEND, eth() + pointer(0x55501, 0, 60), mode),
                                            wqe(SEND, eth() + host, mode)])
    cases["no-repair"] = case([sends["send-host"]], flags=0)
    cases["small-room"] = case([sends["tso-v4"], sends["send-card"]], flags=REPAIR | SMALL_ROOM)
    cases["full-completions"] = case([sends["nop"]], consumed=64)
    cases["overrun"] = bytes([31]) + case([sends["nop"]])[1:]
    receives = {
        "receive-1": pointer(HOST_KEY, HOST, 2048),
        "receive-2": pointer(HOST_KEY, HOST, 128) + pointer(CARD_KEY, 0, 2048),
        "receive-4": 4 * pointer(CARD_KEY, 64, 75),
        "receive-end": pointer(HOST_KEY, HOST, 128) + end,
        "receive-zero-length": pointer(HOST_KEY, HOST, 0) + pointer(HOST_KEY, HOST, 400),
        "receive-constant": pointer(CONSTANT_KEY, CONSTANT, 2048),
        "receive-foreign": pointer(FOREIGN_KEY, HOST, 2048),
        "receive-last-byte": pointer(HOST_KEY, HOST + PAGE - 300, 300),
    }
    cases |= {name: case(receive=4 * [one]) for name, one in receives.items()}
    cases["receive-lossless"] = case(receive=[receives["receive-2"]], flags=LOSSLESS)
    cases["both"] = case([sends["send-card"]], 2 * [receives["receive-2"]], frame_bytes=1514)
    return cases


def device_arguments():
    lines = [
        "hca=sim", "hca=verbs", "ibdev=mlx5_0",
        "mode=host", "mode=split", "mode=nicmem-noinline", "mode=nicmem", "split=auto",
        "split=force", "split=off", "header=18", "header=512", "tx_inline=0", "tx_inline=64",
        "spill=sw", "guard=1", "promiscuous=1", "device=a", "mac=02:00:00:00:00:01", "sram=128K",
        "sram=4M", "cpu=3", "cpu=any", "cpu=none", "wire=gen", "wire=loop", "wire=pair:net_nicmem1",
        "wire=ethdev:net_pcap0", "gen_size=60", "gen_size=imix", "gen_flows=1024", "gen_frames=7",
        "gen_dst=198.18.1.0/24", "gen_dst=10.0.0.1", "gen_check=1", "rate=1000000", "seed=42",
        "mode=nicmem,header=64,wire=loop,cpu=none,sram=256K,guard=1,mac=02:aa:bb:cc:dd:ee",
        "header=17", "mode=", "=x", ",,,", "mode=host,mode=host", "header=99999999999999999999",
        "spill=hw", "min_posted=auto", "min_posted=64", "min_posted=7",
    ]
    return {f"{i:02}": line.encode() for i, line in enumerate(lines)}


def main():
    for target, cases in (("wqe_fuzz", work_requests()), ("devargs_fuzz", device_arguments())):
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        for name, data in cases.items():
            (folder / name).write_bytes(data)
        print(f"{target}: {len(cases)} files, {sum(map(len, cases.values()))} bytes")


if __name__ == "__main__":
    main()
