# SPDX-License-Identifier: BSD-3-Clause
"""Capture files: reading, writing, and what forwarding must make of their frames."""
import os
import pathlib
import struct

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
MAX_FRAME = 9600 + 22  # largest MTU, Ethernet header, two tags


def folder():
    """The captures beside the repository, else the bundled ones."""
    shared = pathlib.Path(os.environ.get("NICMEM_PCAPS", REPO.parent / "shared" / "pcap"))
    return shared if shared.is_dir() else REPO / "tests" / "data"


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


def accepted(frames):
    """What a port takes."""
    return [f for f in frames if 14 <= len(f) <= MAX_FRAME]


def swap_macs(frame):
    return frame[6:12] + frame[0:6] + frame[12:]


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def martian_v4(address):
    return address[0] in (0, 127) or address[0] >= 224


def martian_v6(address):
    return (address[0] == 0xff or (address[0] == 0xfe and address[1] & 0xc0 == 0x80)
            or address[:15] == bytes(15) and address[15] <= 1
            or address[:12] == bytes(10) + b"\xff\xff")


def route_v4(packet, header_bytes):
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    length = (packet[0] & 15) * 4
    total = struct.unpack(">H", packet[2:4])[0]
    if length < 20 or not length <= total <= len(packet) or 14 + length > header_bytes:
        return None
    if checksum(packet[:length]) != 0 or packet[8] <= 1:
        return None
    if martian_v4(packet[12:16]) or martian_v4(packet[16:20]):
        return None
    header = bytearray(packet[:length])
    header[8] -= 1
    header[10:12] = b"\0\0"
    header[10:12] = struct.pack(">H", checksum(bytes(header)))
    return bytes(header) + packet[length:]


def route_v6(packet):
    if len(packet) < 40 or packet[0] >> 4 != 6 or packet[7] <= 1:
        return None
    if struct.unpack(">H", packet[4:6])[0] + 40 > len(packet):
        return None
    if martian_v6(packet[8:24]) or martian_v6(packet[24:40]):
        return None
    return packet[:7] + bytes([packet[7] - 1]) + packet[8:]


def route(frame, own_mac, next_mac, header_bytes):
    """What a router with default routes must send for `frame`, or None. Written from the RFCs, with
    the checksum computed anew. `header_bytes`: of the frame, all that the router can see."""
    if len(frame) < 14 or frame[0] & 1:
        return None
    kind, packet = frame[12:14], frame[14:]
    routed = None
    if kind == b"\x08\x00":
        routed = route_v4(packet, header_bytes)
    elif kind == b"\x86\xdd":
        routed = route_v6(packet)
    return routed and next_mac + own_mac + kind + routed
