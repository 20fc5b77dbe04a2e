# SPDX-License-Identifier: BSD-3-Clause
"""What testpmd's forwarding engines must make of a frame, written from its manual and the RFCs.

Each takes a frame and gives what must be sent for it; None: nothing is. It raises CutShort where
the engine would act on bytes that the frame does not have: what it finds there is nobody's
promise, so such frames are no test of a driver."""
import struct

from captures import checksum, ones_add, swap_macs

VLAN, QINQ, IPV4, IPV6, ARP = 0x8100, 0x88a8, 0x0800, 0x86dd, 0x0806
ICMP, TCP, UDP, SCTP = 1, 6, 17, 132
CHECKSUM_AT = {TCP: 16, UDP: 6}  # in the header of layer 4


class CutShort(Exception):
    """The frame ends within what an engine reads or writes."""


def defined(frames, change):
    """Those of `frames` for which `change` is defined."""

    def is_defined(frame):
        try:
            change(frame)
        except CutShort:
            return False
        return True

    return [frame for frame in frames if is_defined(frame)]


def read(frame, at, size):
    if at + size > len(frame):
        raise CutShort
    return bytes(frame[at:at + size])


def word(frame, at):
    return struct.unpack(">H", read(frame, at, 2))[0]


def put(frame, at, data):
    read(frame, at, len(data))
    frame[at:at + len(data)] = data


def swap(frame, a, b, size):
    first, second = read(frame, a, size), read(frame, b, size)
    put(frame, a, second)
    put(frame, b, first)


def layers(frame, tags=(VLAN, QINQ), most=99):
    """EtherType behind the tags, and where the network header starts."""
    at, kind = 14, word(frame, 12)
    while kind in tags and most:
        at, kind, most = at + 4, word(frame, at + 2), most - 1
    return kind, at


def transport(frame, kind, network):
    """Protocol and where its header starts; IPv6's extension headers are not walked."""
    if kind == IPV4:
        return read(frame, network + 9, 1)[0], network + (read(frame, network, 1)[0] & 15) * 4
    return read(frame, network + 6, 1)[0], network + 40


def spoil_checksums(frame):
    """The frame with other, non-zero checksums where fix_checksums() would set one."""
    fixed, out = fix_checksums(frame), bytearray(frame)
    kind, network = layers(frame)
    fields = []
    if kind in (IPV4, IPV6):
        protocol, at = transport(frame, kind, network)
        fields = [network + 10] * (kind == IPV4)
        if protocol in CHECKSUM_AT and word(frame, at + CHECKSUM_AT[protocol]) != 0:
            fields.append(at + CHECKSUM_AT[protocol])
    for field in fields:
        put(out, field, struct.pack(">H", (word(fixed, field) ^ 0x5555) or 0x1111))
    return bytes(out)


def set_macs(frame, destination, source):
    return destination + source + frame[12:]


def swap_5_tuple(frame):
    """MAC and IP addresses and ports, each with its counterpart. All sums stay right."""
    out = bytearray(swap_macs(frame))
    kind, network = layers(out)
    if kind == IPV4:
        swap(out, network + 12, network + 16, 4)
    elif kind == IPV6:
        swap(out, network + 8, network + 24, 16)
    else:
        return bytes(out)
    protocol, at = transport(out, kind, network)
    if protocol in (TCP, UDP):
        swap(out, at, at + 2, 2)
    return bytes(out)


def transport_sum(frame, kind, network, protocol, at):
    """The checksum of layer 4, its field taken as 0 already. All ones where the frame ends before
    the length in its header: what testpmd writes then."""
    if kind == IPV4:
        length = word(frame, network + 2) - (at - network)
        addresses = read(frame, network + 12, 8)
    else:
        length, addresses = word(frame, network + 4), read(frame, network + 8, 32)
    if length < 0 or at + length > len(frame):
        return 0xffff
    pseudo = addresses + struct.pack(">II", length, protocol)
    found = checksum(pseudo + read(frame, at, length) + bytes(length % 2))
    return 0xffff if found == 0 and protocol == UDP else found


def fix_checksums(frame):
    """Those of IPv4, TCP and UDP computed anew; a UDP sum of 0 means none, and stays."""
    out = bytearray(frame)
    kind, network = layers(out)
    if kind not in (IPV4, IPV6):
        return bytes(out)
    protocol, at = transport(out, kind, network)
    if kind == IPV4:
        put(out, network + 10, b"\0\0")
        put(out, network + 10, struct.pack(">H", checksum(read(out, network, at - network))))
    if protocol == TCP:
        read(out, at, 20)
    if protocol == SCTP:
        put(out, at + 8, bytes(4))  # "not done yet", says its source
    if protocol in CHECKSUM_AT:
        field = at + CHECKSUM_AT[protocol]
        if protocol == TCP or word(out, field) != 0:
            put(out, field, b"\0\0")
            put(out, field, struct.pack(">H", transport_sum(out, kind, network, protocol, at)))
    return bytes(out)


def whole(frame):
    """The frame, if a device can be asked for its sums: no fragment, of the length that its header
    says, a transport header within."""
    kind, network = layers(frame)
    if kind in (IPV4, IPV6):
        protocol, at = transport(frame, kind, network)
        length = word(frame, network + 2) if kind == IPV4 else 40 + word(frame, network + 4)
        fragment = kind == IPV4 and word(frame, network + 6) & 0x3fff
        if fragment or (kind == IPV4 and read(frame, network, 1)[0] < 0x45):
            raise CutShort
        if network + length > len(frame) or protocol == SCTP:
            raise CutShort
        if protocol in CHECKSUM_AT:
            read(frame, at, 20 if protocol == TCP else 8)
    return frame


def segments(frame, most):
    """What TCP segmentation offload makes of a frame with more than `most` bytes of TCP payload:
    identification and sequence numbers go on, FIN and PSH are the last segment's."""
    whole(frame)
    kind, network = layers(frame)
    if kind not in (IPV4, IPV6) or transport(frame, kind, network)[0] != TCP:
        return [fix_checksums(frame)]
    at = transport(frame, kind, network)[1]
    headers = at + (read(frame, at + 12, 1)[0] >> 4) * 4
    end = network + (word(frame, network + 2) if kind == IPV4 else 40 + word(frame, network + 4))
    if len(frame) <= headers + most:
        return [fix_checksums(frame)]
    if end != len(frame):
        raise CutShort  # padding behind the packet: nobody's promise
    out = []
    for i, start in enumerate(range(headers, end, most)):
        payload = frame[start:min(start + most, end)]
        one = bytearray(frame[:headers] + payload)
        if kind == IPV4:
            put(one, network + 2, struct.pack(">H", len(one) - network))
            identification = (word(frame, network + 4) + i) & 0xffff
            put(one, network + 4, struct.pack(">H", identification))
        else:
            put(one, network + 4, struct.pack(">H", len(one) - network - 40))
        sequence = struct.unpack(">I", frame[at + 4:at + 8])[0] + i * most
        put(one, at + 4, struct.pack(">I", sequence & 0xffffffff))
        if start + most < end:
            one[at + 13] &= 0xff & ~0x09
        out.append(fix_checksums(bytes(one)))
    return out


def answer_arp(frame, at, mac):
    if read(frame, at, 6) != struct.pack(">HHBB", 1, IPV4, 6, 4) or word(frame, at + 6) != 1:
        return None
    sender, sender_ip = read(frame, at + 8, 6), read(frame, at + 14, 4)
    out = bytearray(set_macs(frame, frame[6:12], mac))
    put(out, at + 6, struct.pack(">H", 2) + mac + read(frame, at + 24, 4) + sender + sender_ip)
    return bytes(out)


def answer_ping(frame, at):
    if read(frame, at + 9, 1)[0] != ICMP or read(frame, at + 20, 2) != b"\x08\0":
        return None
    out = bytearray(swap_macs(frame))
    source, destination = read(frame, at + 12, 4), read(frame, at + 16, 4)
    if destination[0] == 224:  # multicast: a neighbour's address, so that it differs
        low = source[3] & 0xfc | (2 if source[3] & 3 == 1 else 1)
        put(out, at + 12, source[:3] + bytes([low]) + source)
        put(out, at + 10, b"\0\0")
        put(out, at + 10, struct.pack(">H", checksum(read(out, at, 20))))
    else:
        put(out, at + 12, destination + source)
    put(out, at + 20, b"\0")
    old = word(frame, at + 22)  # RFC 1624, equation 3: the word that held the type went to 0
    new = ones_add(ones_add(old ^ 0xffff, 0x0800 ^ 0xffff), 0) ^ 0xffff
    put(out, at + 22, struct.pack(">H", new))
    return bytes(out)


def echo(frame, mac):
    """The answer to an ARP request or a ping; nothing else is answered."""
    kind, at = layers(frame, tags=(VLAN,), most=1)
    if kind == ARP:
        return answer_arp(frame, at, mac)
    return answer_ping(frame, at) if kind == IPV4 else None
