# SPDX-License-Identifier: BSD-3-Clause
"""Capture files: reading, writing, and what forwarding must make of their frames."""
import collections
import os
import pathlib
import struct
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
MAX_FRAME = 9600 + 22  # largest MTU, Ethernet header, two tags
VLAN_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")


def files():
    """The captures beside the repository, or where NICMEM_PCAPS says; without either the bundled
    ones."""
    named = os.environ.get("NICMEM_PCAPS")
    shared = pathlib.Path(named or REPO.parent / "shared" / "pcap")
    if named is None and not shared.is_dir():
        print(f"NOTE: needs {shared} or NICMEM_PCAPS for all captures; takes those in tests/data",
              file=sys.stderr)
        shared = REPO / "tests" / "data"
    found = sorted(shared.glob("*.pcap"))
    if not found:
        raise FileNotFoundError(f"{shared}: no captures")
    return found


def read(path):
    """Frames of a pcap file, as libpcap gives them: it stops at a record that the file does not
    hold, or that is longer than it believes possible."""
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    frames, at = [], 24
    while at + 16 <= len(data):
        captured = struct.unpack(order + "4I", data[at:at + 16])[2]
        if at + 16 + captured > len(data) or captured > 262144:
            break
        frames.append(data[at + 16:at + 16 + captured])
        at += 16 + captured
    return frames


def write(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
        for frame in frames:
            file.write(struct.pack("<4I", 0, 0, len(frame), len(frame)) + frame)


def accepted(frames, most=MAX_FRAME):
    """What a port takes."""
    return [f for f in frames if 14 <= len(f) <= most]


def swap_macs(frame):
    return frame[6:12] + frame[0:6] + frame[12:]


def ones_add(*words):
    """Their sum in ones' complement, 16 bits."""
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def checksum(data):
    """RFC 1071, of an even number of bytes."""
    return ones_add(*struct.unpack(f">{len(data) // 2}H", data)) ^ 0xffff


def martian_v4(address):
    return address[0] in (0, 127) or address[0] >= 224


def martian_v6(address):
    return (address[0] == 0xff or (address[0] == 0xfe and address[1] & 0xc0 == 0x80)
            or address[:15] == bytes(15) and address[15] <= 1
            or address[:12] == bytes(10) + b"\xff\xff")


def route_v4(packet, visible):
    """The packet to send, or why there is none."""
    if len(packet) < 20:
        return "truncated"
    length, total = (packet[0] & 15) * 4, struct.unpack(">H", packet[2:4])[0]
    if packet[0] >> 4 != 4 or not 20 <= length <= total:
        return "malformed_header"
    if length > len(packet):
        return "truncated"
    if length > visible:
        return "needs_payload"
    if total > len(packet):
        return "truncated"
    if checksum(packet[:length]) != 0:
        return "bad_checksum"
    for address, reason in ((packet[12:16], "martian_source"),
                            (packet[16:20], "martian_destination")):
        if martian_v4(address):
            return reason
    if packet[8] <= 1:
        return "ttl_expired"
    header = bytearray(packet[:length])
    header[8] -= 1
    header[10:12] = b"\0\0"
    header[10:12] = struct.pack(">H", checksum(bytes(header)))
    return bytes(header) + packet[length:]


def route_v6(packet):
    if len(packet) < 40:
        return "truncated"
    if packet[0] >> 4 != 6:
        return "malformed_header"
    if struct.unpack(">H", packet[4:6])[0] + 40 > len(packet):
        return "truncated"
    for address, reason in ((packet[8:24], "martian_source"),
                            (packet[24:40], "martian_destination")):
        if martian_v6(address):
            return reason
    if packet[7] <= 1:
        return "ttl_expired"
    return packet[:7] + bytes([packet[7] - 1]) + packet[8:]


def route(frame, own_mac, next_mac, header_bytes):
    """What a router with default routes must send for `frame`, as bytes, or why it must not, as
    text. Written from the RFCs, with the checksum computed anew. `header_bytes`: of the frame, all
    that the router can see."""
    if len(frame) < 14:
        return "truncated"
    if frame[0] & 1:
        return "multicast_mac"
    kind, packet = frame[12:14], frame[14:]
    if kind == b"\x08\x00":
        routed = route_v4(packet, header_bytes - 14)
    elif kind == b"\x86\xdd":
        routed = route_v6(packet)
    else:
        return "vlan_unexpected" if kind in VLAN_TAGS else "not_ip"
    return routed if isinstance(routed, str) else next_mac + own_mac + kind + routed


def route_all(frames, own_mac, next_mac, header_bytes):
    """The frames that must leave, in order, and how many must not, by reason."""
    routed = [route(f, own_mac, next_mac, header_bytes) for f in frames]
    return ([r for r in routed if not isinstance(r, str)],
            collections.Counter(r for r in routed if isinstance(r, str)))
