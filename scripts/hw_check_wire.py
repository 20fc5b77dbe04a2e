# SPDX-License-Identifier: BSD-3-Clause
"""The other end of the card's cable, for hw-check: sends frames that tell themselves apart, and
compares every byte of what comes back."""
import fcntl
import random
import socket
import struct
import time

ETH_P_ALL = 3
SIOCGIFHWADDR = 0x8927
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1
EXPERIMENTAL = 0x88b5  # an EtherType for tests [IEEE 802, local experiments]
MAGIC = b"NMHW"        # then the frame's number: the last 8 bytes of each
WINDOW = 32            # frames on the way: fewer than any ring has
PATIENCE_S = 3         # for a window to come back
LINK_PATIENCE_S = 15   # for the first frame, while links come up


class Failed(Exception):
    """What a check has found wrong, in a sentence."""


def later(seconds=LINK_PATIENCE_S):
    return time.monotonic() + seconds


def checksum(data):
    """RFC 1071, of data of even length."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def swapped(frame):
    return frame[6:12] + frame[:6] + frame[12:]


def number_of(frame):
    """None: not one of ours."""
    return struct.unpack(">I", frame[-4:])[0] if frame[-8:-4] == MAGIC else None


class Frames:
    """Makes frames from the wire's end (`source`) to the card (`target`), MAC addresses as bytes.
    No two have the same number, nor, but for the shortest, the same content."""

    def __init__(self, target, source, seed=1):
        self.addresses = target + source
        self.random = random.Random(seed)
        self.count = 0

    def tail(self, size):
        self.count += 1
        return self.random.randbytes(size - 8) + MAGIC + struct.pack(">I", self.count)

    def plain(self, size):
        """`size`: without FCS, 60 at least."""
        return self.addresses + struct.pack(">H", EXPERIMENTAL) + self.tail(size - 14)

    def udp(self, size, flow=0, port=9, sums=True):
        """`flow` chooses the source address. `sums`: right ones; else wrong ones, and the frame
        that a card must make of it."""
        payload = self.tail(size - 42)
        source, target = struct.pack(">4B", 198, 18, 0, flow), struct.pack(">4B", 198, 18, 1, 1)

        def frame(ip_sum, udp_sum):
            ip = struct.pack(">BBHHHBBH", 0x45, 0, size - 14, 0, 0, 64, 17, ip_sum)
            udp = struct.pack(">HHHH", 4000 + flow, port, size - 34, udp_sum)
            return ip + source + target, udp + payload

        ip, udp = frame(0, 0)
        pseudo = source + target + struct.pack(">HH", 17, len(udp)) + udp + bytes(len(udp) % 2)
        good = frame(checksum(ip), checksum(pseudo) or 0xffff)
        head = self.addresses + b"\x08\x00"
        right = head + good[0] + good[1]
        if sums:
            return right
        bad = frame(checksum(ip) ^ 0x5555, 0x1234)
        return head + bad[0] + bad[1], right


class Wire:
    def __init__(self, interface):
        """Needs CAP_NET_RAW."""
        self.interface = interface
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.bind((interface, 0))
        request = fcntl.ioctl(self.socket, SIOCGIFHWADDR, struct.pack("256s", interface.encode()))
        self.mac = request[18:24]
        membership = struct.pack("iHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0,
                                 bytes(8))
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)

    def received(self, until):
        """Frames that come in up to the time `until`."""
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                frame, address = self.socket.recvfrom(1 << 16)
            except TimeoutError:
                return
            if address[2] != socket.PACKET_OUTGOING:
                yield frame

    def wait(self, frames):
        """Until a frame comes back."""
        end = later()
        while time.monotonic() < end:
            probe = frames.plain(60)
            self.socket.send(probe)
            if any(frame == swapped(probe) for frame in self.received(later(0.2))):
                return
        raise Failed(f"no frame came back to {self.interface} in {LINK_PATIENCE_S} s: is it the "
                     "other end of the card's cable, and up?")

    def exchange(self, sent, expected=None):
        """Sends frames; `expected` (else the same with addresses swapped) must come back. None:
        that one must not, and is followed by one that must."""
        expected = [swapped(frame) for frame in sent] if expected is None else expected
        for first in range(0, len(sent), WINDOW):
            part = slice(first, first + WINDOW)
            for frame in sent[part]:
                self.socket.send(frame)
            self.compare(expected[part], {number_of(frame) for frame in sent[part]})

    def compare(self, expected, numbers):
        missing = {number_of(frame): frame for frame in expected if frame is not None}
        for frame in self.received(later(PATIENCE_S)):
            number = number_of(frame)
            if number not in numbers:
                continue
            want = missing.pop(number, None)
            if want is None:
                raise Failed(f"a frame of {len(frame)} bytes came back that must not, or twice")
            if frame != want:
                raise Failed(difference(frame, want))
            if not missing:
                return
        raise Failed(f"{len(missing)} of {len(expected)} frames did not come back whole")


def difference(got, want):
    if len(got) != len(want):
        return f"a frame of {len(want)} bytes came back with {len(got)}"
    at = next(i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1])
    wrong = sum(a != b for a, b in zip(got, want))
    return f"a frame of {len(want)} bytes came back with {wrong} wrong ones, the first at {at}"
