"""Captures of version 0 of Multipath TCP (RFC 6824), made from those of version 1."""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

import captures
from captures import Packet

_MPTCP, _END, _NOP = 30, 0, 1
_SYN, _ACK = 0x02, 0x10


def version_0(packets: Sequence[Packet]) -> list[Packet]:
    """The packets of a download in version 0: the SYN has a key, digests are those of SHA-1."""
    older = _Older(packets)
    return [older.rewritten(packet) for packet in packets]


def _options(packet: Packet) -> Iterator[bytes]:
    """The TCP options, each with its kind and length."""
    header = packet.data[40 : 20 + (packet.data[32] >> 4) * 4]
    at = 0
    while at < len(header) and header[at] != _END:
        length = 1 if header[at] == _NOP else header[at + 1]
        if length > 1:
            yield header[at : at + length]
        at += length


def _digest(name: str, key: bytes) -> tuple[bytes, int]:
    """The token and the initial data sequence number of a key."""
    digest = hashlib.new(name, key).digest()
    return digest[:4], int.from_bytes(digest[-8:], "big")


class _Older:
    """Rewrites packets of one connection in their order."""

    def __init__(self, packets: Sequence[Packet]) -> None:
        self.server_port = packets[0].data[22:24]
        bodies = (body for packet in packets for body in _options(packet) if body[0] == _MPTCP)
        full = next(each for each in bodies if each[2] >> 4 == 0 and len(each) == 20)
        # By whether the server sends.
        self.keys = {False: full[4:12], True: full[12:20]}
        self.shifts = {
            side: _digest("sha1", key)[1] - _digest("sha256", key)[1]
            for side, key in self.keys.items()
        }
        self.nonces: dict[tuple[bytes, bool], bytes] = {}

    def rewritten(self, packet: Packet) -> Packet:
        by_server = packet.data[20:22] == self.server_port
        port = packet.data[22:24] if by_server else packet.data[20:22]
        options = b"".join(
            self._option(each, by_server, port, packet.data[33]) if each[0] == _MPTCP else each
            for each in _options(packet)
        )
        options += bytes([_NOP]) * (-len(options) % 4)
        old = 20 + (packet.data[32] >> 4) * 4
        data = bytearray(packet.data[:40] + options + packet.data[old:])
        data[2:4] = struct.pack(">H", len(data))
        changed = replace(packet, data=bytes(data), length=len(data))
        return captures.rewritten(changed, 32, bytes([(20 + len(options)) << 2]))

    def _option(self, option: bytes, by_server: bool, port: bytes, flags: int) -> bytes:
        body = option[3:]
        match option[2] >> 4:
            case 0:  # MP_CAPABLE
                key = self.keys[False] if flags & (_SYN | _ACK) == _SYN else b""
                return _sized(0x00, body + key)
            case 1:  # MP_JOIN
                return _sized(option[2], self._join(body, by_server, port, flags))
            case 2:  # DSS
                return _sized(option[2], self._dss(body, by_server))
            case 3:  # ADD_ADDR, whose HMAC version 0 does not have
                return b""
        return option

    def _join(self, body: bytes, by_server: bool, port: bytes, flags: int) -> bytes:
        if flags & _SYN:
            self.nonces[port, by_server] = body[-4:]
        if flags & _SYN and not by_server:
            return body[:1] + _digest("sha1", self.keys[True])[0] + body[5:]
        sides = (by_server, not by_server)
        key = b"".join(self.keys[side] for side in sides)
        message = b"".join(self.nonces[port, side] for side in sides)
        code = hmac.digest(key, message, "sha1")
        return body[:1] + (code[:8] + body[9:] if flags & _SYN else code)

    def _dss(self, body: bytes, by_server: bool) -> bytes:
        flags, rest = body[0], body[1:]
        found = body[:1]
        for has, is_wide, side in ((0x01, 0x02, not by_server), (0x04, 0x08, by_server)):
            if flags & has:
                size = 8 if flags & is_wide else 4
                number = int.from_bytes(rest[:size], "big") + self.shifts[side]
                found += (number % 2 ** (8 * size)).to_bytes(size, "big")
                rest = rest[size:]
        return found + rest


def _sized(head: int, body: bytes) -> bytes:
    """An option of Multipath TCP with its third byte and what follows."""
    return bytes([_MPTCP, len(body) + 3, head]) + body
