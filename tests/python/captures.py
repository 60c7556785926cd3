"""Captures as lists of packets, cut and damaged at random, for tests that read them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anabranch

_NANOSECONDS, _RAW_IP = 0xA1B23C4D, 101
_ENHANCED_PACKET = 6
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class Packet:
    """An IPv4 packet; `length` is that on the wire."""

    time_ns: int
    data: bytes
    length: int

    @property
    def addresses(self) -> frozenset[bytes]:
        """Both addresses, whatever the direction."""
        return frozenset((self.data[12:16], self.data[16:20]))

    @property
    def source(self) -> bytes:
        """The address of the sender."""
        return self.data[12:16]


Packets = Sequence[Packet]


def of_run(folder: Path, scenario: anabranch.Scenario, seed: int = 1) -> list[Packet]:
    """Packets that the server of a run captures, on all its interfaces."""
    file = folder / "whole.pcapng"
    anabranch.run(scenario, seed=seed, pcap=file, pcap_at="server")
    return read_pcapng(file.read_bytes())


def read_pcapng(data: bytes) -> list[Packet]:
    """The packets of a capture that this package wrote."""
    found, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == _ENHANCED_PACKET:
            high, low, kept, whole = struct.unpack_from("<IIII", data, at + 12)
            found.append(Packet((high << 32) + low, data[at + 28 : at + 28 + kept], whole))
        at += length
    return found


def pcap(packets: Packets) -> bytes:
    """The packets as a file (pcap with nanoseconds, raw IP). Times wrap like its 32-bit seconds."""
    head = struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 262_144, _RAW_IP)
    records = [
        struct.pack(
            "<IIII", (each.time_ns // 10**9) % 2**32, each.time_ns % 10**9, len(each.data),
            each.length,
        ) + each.data
        for each in packets
    ]  # fmt: skip
    return head + b"".join(records)


def rewritten(packet: Packet, at: int, field: bytes) -> Packet:
    """A whole packet with other bytes in its TCP header, and the checksum that they need."""
    data = bytearray(packet.data)
    data[at : at + len(field)] = field
    data[36:38] = bytes(2)
    tcp = bytes(data[20:])
    summed = bytes(data[12:20]) + struct.pack(">HH", 6, len(tcp)) + tcp + bytes(len(tcp) % 2)
    total = sum(struct.unpack(f">{len(summed) // 2}H", summed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    data[36:38] = struct.pack(">H", ~total & 0xFFFF)
    return replace(packet, data=bytes(data))


def snapped(packets: Packets, length: int) -> list[Packet]:
    """The packets as a capture with this snap length has them."""
    return [replace(each, data=each.data[:length]) for each in packets]


def _end(draw: random.Random, packets: Packets) -> Packets:
    return packets[: draw.randrange(len(packets)) + 1]


def _begin(draw: random.Random, packets: Packets) -> Packets:
    return packets[draw.randrange(len(packets)) :]


def _one_path(draw: random.Random, packets: Packets) -> Packets:
    chosen = draw.choice(sorted({each.addresses for each in packets}, key=sorted))
    return [each for each in packets if each.addresses == chosen]


def _one_direction(draw: random.Random, packets: Packets) -> Packets:
    source = draw.choice(packets).source
    return [each for each in packets if each.source == source]


def _snap(draw: random.Random, packets: Packets) -> Packets:
    return snapped(packets, draw.randint(40, 128))


def _every_nth(draw: random.Random, packets: Packets) -> Packets:
    step = draw.randint(2, 12)
    return packets[draw.randrange(step) :: step] or packets


Change = Callable[[random.Random, Packets], Packets]
CUTS: Sequence[Change] = (_begin, _end, _one_path, _one_direction, _snap, _every_nth)


def cut(draw: random.Random, packets: Packets) -> list[Packet]:
    """A part of a good capture, as other tools and places record it."""
    for change in draw.sample(CUTS, draw.choice((1, 1, 2, 3))):
        packets = change(draw, packets)
    return [*packets]


def _clock_step(draw: random.Random, packets: Packets) -> Packets:
    at = draw.randrange(len(packets))
    step = draw.choice((30, 56 * 365, -1, 1 / 24, 1 / 86_400, -1 / 86_400))
    later = [
        replace(each, time_ns=max(0, each.time_ns + int(step * DAY_NS))) for each in packets[at:]
    ]
    return [*packets[:at], *later]


def _one_clock(draw: random.Random, packets: Packets) -> Packets:
    return [replace(each, time_ns=packets[0].time_ns) for each in packets]


def _wrong_times(draw: random.Random, packets: Packets) -> Packets:
    changed = [*packets]
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(changed))
        changed[at] = replace(changed[at], time_ns=draw.randrange(2**62))
    return changed


def _wrong_bytes(draw: random.Random, packets: Packets) -> Packets:
    # Without the end of a packet, its checksum cannot be checked.
    changed = snapped(packets, draw.choice((96, 128)))
    for _ in range(draw.choice((1, 10, 100))):
        at = draw.randrange(len(changed))
        data = bytearray(changed[at].data)
        data[draw.randrange(20, len(data))] = draw.randrange(256)
        changed[at] = replace(changed[at], data=bytes(data))
    return changed


def _same_wrong_byte(draw: random.Random, packets: Packets) -> Packets:
    """The same byte of every packet, such as a part of all windows or data sequence numbers."""
    at, value = draw.randrange(20, 96), draw.choice((0, 1, 255, draw.randrange(256)))

    def changed(data: bytes) -> bytes:
        return data[:at] + bytes([value]) + data[at + 1 :] if len(data) > at else data

    return [replace(each, data=changed(each.data)) for each in snapped(packets, 96)]


def _shuffled(draw: random.Random, packets: Packets) -> Packets:
    mixed = [*packets]
    draw.shuffle(mixed)
    return mixed


def _shuffled_in_time(draw: random.Random, packets: Packets) -> Packets:
    return [
        replace(each, time_ns=other.time_ns)
        for each, other in zip(_shuffled(draw, packets), packets, strict=True)
    ]


def _twice(draw: random.Random, packets: Packets) -> Packets:
    return [each for each in packets for _ in range(draw.choice((1, 1, 2)))]


DAMAGES: Sequence[Change] = (
    _clock_step, _one_clock, _wrong_times, _wrong_bytes, _wrong_bytes, _same_wrong_byte,
    _shuffled, _shuffled_in_time, _twice,
)  # fmt: skip


def damaged(draw: random.Random, packets: Packets) -> bytes:
    """A file with damage: in times, bytes, order, or in the file itself."""
    if draw.random() < 0.3:
        packets = cut(draw, packets)
    for change in draw.sample(DAMAGES, draw.choice((1, 1, 2))):
        packets = change(draw, packets)
    data = bytearray(pcap(packets))
    if draw.random() < 0.2:
        for _ in range(draw.choice((1, 5))):
            data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)
