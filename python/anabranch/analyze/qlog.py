"""Captures as qlog, for qvis and other readers of QUIC logs.

The file follows draft-ietf-quic-qlog-main-schema (version 0.3, which qvis reads) as contained JSON.
Each subflow is a trace from the side of the host that sent most of its data, because qvis draws one
trace as one connection. Events have the names of the nearest QUIC events.

TCP has no packet numbers. The number of a segment that this host sends on the subflow, counted from
0, stands in their place: a retransmission has a new number. An acknowledgement acknowledges the
numbers whose last byte it covers for the first time. A segment is lost when the host retransmits
its bytes.

As a program (``python -m anabranch.analyze.qlog``), this module converts a capture from the
standard input to qlog on the standard output. The proxy runs it as a user without privileges.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from anabranch._core import __version__
from anabranch.analyze.analysis import Analysis, analyze
from anabranch.errors import InputError
from anabranch.files import whole

Event = dict[str, Any]

SNAP = 128
"""Bytes of a packet that a capture must keep for its qlog: all headers."""

_FLAGS = {1: "FIN", 2: "SYN", 4: "RST", 8: "PSH", 16: "ACK", 32: "URG", 64: "ECE", 128: "CWR"}
_SYN, _FIN, _ACK = 2, 1, 16
_SEQUENCE_NUMBERS = 2**32
_PACKET_TYPE = "1RTT"
"""QUIC's type of packets with application data; qvis pairs packets by type and number."""


def save(analysis: Analysis, file: Path) -> None:
    """Write the Multipath TCP subflows of captures to a qlog file: the whole file, or none.

    Raises:
        InputError: if the file cannot be written, or there is no such subflow.
    """
    subflows = _subflows(analysis, f"--qlog {file}")
    with whole(file) as part, part.open("w", encoding="utf-8") as out:
        _write(analysis, subflows, out)


def _subflows(analysis: Analysis, option: str) -> pl.DataFrame:
    subflows = analysis.subflows.filter(pl.col("connection").is_not_null())
    seen = analysis.segments["subflow"].unique().implode()
    subflows = subflows.filter(pl.col("subflow").is_in(seen))
    if subflows.is_empty():
        raise InputError(
            f"{option}: the capture has no Multipath TCP subflow; capture its handshake"
        )
    return subflows


def _write(analysis: Analysis, subflows: pl.DataFrame, out: TextIO) -> None:
    """Write the file with one event in a line, which keeps large files readable."""
    head = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": ", ".join(Path(name).name for name in analysis.files["file"]),
        "description": f"Subflows of Multipath TCP, by anabranch {__version__}",
    }
    begin = int(analysis.segments["time_ns"].to_numpy().min())
    out.write(f'{_json(head)[:-1]},"traces":[')
    for number, row in enumerate(subflows.iter_rows(named=True)):
        out.write(f'{"," if number else ""}\n{_json(_about(row, begin))[:-1]},"events":[')
        for count, event in enumerate(_Trace(analysis, row, begin).events()):
            out.write(f"{',' if count else ''}\n{_json(event)}")
        out.write("]}")
    out.write("]}\n")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _sender(subflow: dict[str, Any]) -> str:
    """Direction of most of the subflow's data."""
    return "in" if (subflow["bytes_in"] or 0) >= (subflow["bytes_out"] or 0) else "out"


def _about(subflow: dict[str, Any], begin: int) -> dict[str, Any]:
    """The fields of a trace without its events."""
    ends = f"{subflow['initiator']} to {subflow['listener']}"
    return {
        "title": f"connection {subflow['connection']}, subflow {subflow['subflow']}: {ends}",
        "vantage_point": {
            "name": subflow["seen_at"] or "capture",
            "type": "client" if _is_client(subflow) else "server",
        },
        "common_fields": {
            "time_format": "relative",
            "reference_time": begin / 1e6,
            "protocol_type": ["TCP", "MPTCP"],
            "group_id": f"connection {subflow['connection']}",
            "path_id": str(subflow["subflow"]),
        },
    }


def _is_client(subflow: dict[str, Any]) -> bool:
    """Whether the host that sent most data is the one that opened the connection."""
    return _sender(subflow) == "out"


@dataclass
class _Sent:
    """A segment in flight."""

    number: int
    start: int
    end: int
    time_ns: int
    is_first: bool
    """Whether its bytes were not sent before, so that its acknowledgement measures the RTT."""


_END = attrgetter("end")


@dataclass
class _Unwrapped:
    """Sequence numbers of one direction, counted from the first one."""

    last: int | None = None
    position: int = 0

    def of(self, number: int) -> int:
        if self.last is not None:
            distance = (number - self.last) % _SEQUENCE_NUMBERS
            if distance >= _SEQUENCE_NUMBERS // 2:
                distance -= _SEQUENCE_NUMBERS
            self.position += distance
        self.last = number
        return self.position


@dataclass
class _Trace:
    """The events of a subflow, in the order of time."""

    analysis: Analysis
    subflow: dict[str, Any]
    begin: int
    in_flight: list[_Sent] = field(default_factory=list)
    """In the order of the bytes. They do not overlap: a retransmission removes those it covers."""
    count: int = 0
    received: int = 0
    flight: int = 0
    min_rtt_ms: float = float("inf")
    sequence: _Unwrapped = field(default_factory=_Unwrapped)

    def events(self) -> Iterator[Event]:
        sends = _sender(self.subflow)
        mine = pl.col("subflow") == self.subflow["subflow"]
        rows = self.analysis.segments.filter(mine)
        signals = deque(self.analysis.events.filter(mine).iter_rows(named=True))
        yield self._event(int(rows["time_ns"][0]), "connectivity:connection_started", self._ends())
        for row in rows.iter_rows(named=True):
            while signals and signals[0]["time_ns"] < row["time_ns"]:
                yield self._signal(signals.popleft())
            yield from self._sent(row) if row["direction"] == sends else self._received(row)
        for signal in signals:
            yield self._signal(signal)

    def _ends(self) -> dict[str, Any]:
        ends = [self.subflow["initiator"], self.subflow["listener"]]
        if not _is_client(self.subflow):
            ends.reverse()
        (source, source_port), (target, target_port) = (each.rsplit(":", 1) for each in ends)
        return {
            "ip_version": "ipv6" if ":" in source else "ipv4",
            "src_ip": source.strip("[]"), "src_port": int(source_port),
            "dst_ip": target.strip("[]"), "dst_port": int(target_port),
        }  # fmt: skip

    def _event(self, time_ns: int, name: str, data: dict[str, Any]) -> Event:
        return {"time": round((time_ns - self.begin) / 1e6, 6), "name": name, "data": data}

    def _signal(self, row: dict[str, Any]) -> Event:
        data = {"direction": row["direction"], "detail": row["detail"]}
        return self._event(row["time_ns"], f"mptcp:{row['event']}", data)

    def _sent(self, row: dict[str, Any]) -> Iterator[Event]:
        start = self.sequence.of(row["seq"])
        end = start + row["len"] + bool(row["flags"] & _SYN) + bool(row["flags"] & _FIN)
        is_again = row["kind"] == "retransmission"
        if is_again:
            yield from self._lost(start, end, row["time_ns"])
        yield self._event(row["time_ns"], "transport:packet_sent", self._packet(row, self.count))
        if end > start:
            sent = _Sent(self.count, start, end, row["time_ns"], not is_again)
            insort(self.in_flight, sent, key=_END)
            self.flight += end - start
        self.count += 1

    def _lost(self, start: int, end: int, time_ns: int) -> Iterator[Event]:
        """The losses that a retransmission of these bytes reveals."""
        first = bisect_right(self.in_flight, start, key=_END)
        last = first
        while last < len(self.in_flight) and self.in_flight[last].start < end:
            last += 1
        for each in self._taken(first, last):
            header = {"packet_type": _PACKET_TYPE, "packet_number": each.number}
            yield self._event(time_ns, "recovery:packet_lost", {"header": header})

    def _taken(self, first: int, last: int) -> list[_Sent]:
        """Remove a part of the segments in flight, and return it in the order of sending."""
        taken = self.in_flight[first:last]
        del self.in_flight[first:last]
        self.flight -= sum(each.end - each.start for each in taken)
        return sorted(taken, key=attrgetter("number"))

    def _received(self, row: dict[str, Any]) -> Iterator[Event]:
        packet = self._packet(row, self.received)
        self.received += 1
        acked = self._acked(row)
        if acked:
            ranges = _ranges([each.number for each in acked])
            packet["frames"].append({"frame_type": "ack", "acked_ranges": ranges})
        yield self._event(row["time_ns"], "transport:packet_received", packet)
        if acked:
            yield self._event(row["time_ns"], "recovery:metrics_updated", self._metrics(acked, row))

    def _acked(self, row: dict[str, Any]) -> list[_Sent]:
        """The segments that the acknowledgement covers for the first time."""
        if not row["flags"] & _ACK or self.sequence.last is None:
            return []
        distance = (row["ack"] - self.sequence.last) % _SEQUENCE_NUMBERS
        if distance >= _SEQUENCE_NUMBERS // 2:
            distance -= _SEQUENCE_NUMBERS
        edge = self.sequence.position + distance
        return self._taken(0, bisect_right(self.in_flight, edge, key=_END))

    def _metrics(self, acked: list[_Sent], row: dict[str, Any]) -> dict[str, Any]:
        metrics: dict[str, Any] = {"bytes_in_flight": self.flight}
        if acked[-1].is_first:  # RFC 6298 §3: no samples of retransmissions
            rtt_ms = (row["time_ns"] - acked[-1].time_ns) / 1e6
            self.min_rtt_ms = min(self.min_rtt_ms, rtt_ms)
            metrics |= {"latest_rtt": rtt_ms, "min_rtt": self.min_rtt_ms}
        return metrics

    def _packet(self, row: dict[str, Any], number: int) -> dict[str, Any]:
        way = row["direction"]
        connection = self.analysis.connections.row(self.subflow["connection"], named=True)
        other = "in" if way == "out" else "out"
        offset = _distance(row["dsn"], connection[f"base_{way}"])
        frames = []
        if row["len"]:
            stream = {"frame_type": "stream", "stream_id": 0, "length": row["len"]}
            frames.append(stream | ({} if offset is None else {"offset": offset}))
        return {
            "header": {"packet_type": _PACKET_TYPE, "packet_number": number},
            "raw": {"length": row["len"], "payload_length": row["len"]},
            "frames": frames,
            "tcp": {
                "seq": row["seq"],
                "ack": row["ack"],
                "flags": [name for bit, name in _FLAGS.items() if row["flags"] & bit],
                "window": row["window"],
            },
            "mptcp": {
                "kind": row["kind"],
                "data_ack": _distance(row["data_ack"], connection[f"base_{other}"]),
            },
        }


def _distance(number: int | None, base: int | None) -> int | None:
    """A data sequence number, counted from the first byte of the data; `None` if unknown.

    64-bit numbers do not fit into the numbers of JSON readers.
    """
    if number is None or base is None:
        return None
    distance = (number - base) % 2**64
    return distance - 2**64 if distance >= 2**63 else distance


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Ascending numbers as ranges, with both ends included."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


if __name__ == "__main__":
    try:
        found = analyze("-")
        _write(found, _subflows(found, "--qlog"), sys.stdout)
    except InputError as error:
        sys.exit(f"anabranch proxy: {error}")
