"""Infer from a capture what each subflow of a connection did.

A capture near the sender of data shows what is in flight on each subflow, the shared receive
window, and which data it waits for. It does not show congestion windows, send buffers, schedulers
and applications. Where one of the last three may be the reason, the state is *unknown*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.analyze.analysis import Analysis
from anabranch.errors import InputError
from anabranch.reports.report import Table
from anabranch.results.estimates import number

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

STATES: Mapping[str, str] = {
    "network": "limited by the path or its congestion window",
    "receive_window": "receive window full",
    "recovery": "recovering a loss",
    "silent": "silent after a timeout",
    "standby": "standing by as backup",
    "reinjected": "data that another subflow carried as well",
    "absent": "not there yet",
    "closed": "closed",
    "unknown": "send buffer, scheduler or application",
}
"""The states that a capture can show, in words."""

_BECAUSE = {
    "receive_window": "the receive window was full",
    "recovery": "losses were being repaired",
    "silent": "its retransmission timer had expired",
    "standby": "it was only a backup",
    "reinjected": "other subflows had carried the same data",
    "unknown": "the send buffer, the scheduler or the application held it back",
}
_TIMEOUT_NS = 200_000_000
"""RFC 6298 §2.4 has a minimum of one second; Linux' is 200 ms."""
_SMALL = 0.05
"""Share of the capacity below which a loss is not named first (ours)."""
_BIN_NS = 200_000_000
_TRAIN = 8
"""Acknowledgements over which the rate of a path is measured."""
_PEAK = 0.9
"""A path's rate is this quantile of the rates of trains, which excludes compressed trains."""
_SHOWN = 0.001
"""Share of the time, or of the path's rate, below which a table omits a state."""
_LARGEST_SEGMENT = 1460
_SLOTS = 1 << 32
"""More than the number of a subflow in a capture."""
_ENDED = ("closed", "reset")
_LEAST_SEGMENTS = 20
"""Data segments below which a capture says nothing."""


@dataclass(frozen=True)
class SubflowStates:
    """The states of one subflow: how long each lasted, in seconds, and behind which subflow."""

    subflow: int
    name: str
    seconds: Mapping[tuple[str, int | None], float]
    rate_mbps: float
    """The rate of the path, as the fastest times show it; 0 if it carried nothing."""
    lost_mbps: Mapping[tuple[str, int | None], float]
    """What the path carried less than at this rate, by state, as means over the capture."""


@dataclass(frozen=True)
class CaptureExplanation:
    """What the subflows of one direction of a connection did, as far as the capture shows it."""

    connection: int
    direction: str
    initiator: str
    seconds: float
    goodput_mbps: float
    subflows: tuple[SubflowStates, ...]

    @cached_property
    def losses(self) -> list[tuple[str, int | None, int, float]]:
        """State, blocking subflow, subflow and lost Mbit/s, the largest first."""
        rows = [
            (state, behind, each.subflow, lost)
            for each in self.subflows
            for (state, behind), lost in each.lost_mbps.items()
        ]
        return sorted(rows, key=lambda row: -row[3])

    @property
    def main(self) -> tuple[str, int | None, int, float] | None:
        """The largest loss over all subflows that the network did not cause; `None` without one.

        The subflow and what it waits behind are those of the largest part of the loss.
        """
        sums: dict[str, float] = {}
        for state, _, _, lost in self.losses:
            sums[state] = sums.get(state, 0.0) + lost
        state = max(sums, key=lambda each: sums[each], default="network")
        capacity = sum(each.rate_mbps for each in self.subflows)
        if state in _BECAUSE and sums[state] >= _SMALL * capacity:
            first = next(row for row in self.losses if row[0] == state)
            return (*first[:3], sums[state])
        return self._unused()

    def _unused(self) -> tuple[str, int | None, int, float] | None:
        """A subflow that did nothing most of the time, whose rate the capture cannot show."""
        for each in self.subflows:
            longest = max(each.seconds, key=lambda key: each.seconds[key], default=("", None))
            idle = each.seconds.get(longest, 0.0)
            if longest[0] in ("standby", "unknown", "receive_window") and idle > self.seconds / 2:
                return (*longest, each.subflow, 0.0)
        return None

    def finding(self) -> list[str]:
        """Two sentences: what was carried, and what held it back."""
        names = {each.subflow: each.name for each in self.subflows}
        first = (
            f"Connection {self.connection} delivered {number(self.goodput_mbps)} Mbit/s over "
            f"{len(self.subflows)} subflow{'' if len(self.subflows) == 1 else 's'}."
        )
        if self.main is None:
            return [first, "The paths or the congestion windows limited it nearly all the time."]
        state, behind, subflow, lost = self.main
        words = _BECAUSE[state] + ("" if behind is None else f" behind {names.get(behind, behind)}")
        ends = f": about {number(lost)} Mbit/s lost" if lost else ""
        return [first, f"{names[subflow]} carried less than it could because {words}{ends}."]

    def json(self) -> dict[str, Any]:
        """The explanation as plain values."""
        names = {each.subflow: each.name for each in self.subflows}
        return {
            "connection": self.connection,
            "direction": self.direction,
            "goodput_mbps": self.goodput_mbps,
            "seconds": self.seconds,
            "finding": self.finding(),
            "main_cause": None if self.main is None else self.main[0],
            "states": [
                {
                    "subflow": names[each.subflow],
                    "state": state,
                    "behind": None if behind is None else names.get(behind),
                    "seconds": seconds,
                    "lost_mbps": each.lost_mbps.get((state, behind), 0.0),
                }
                for each in self.subflows
                for (state, behind), seconds in each.seconds.items()
            ],
        }


def table(found: CaptureExplanation) -> Table:
    """A row for each state of each subflow, the largest loss first."""
    rows = []
    for each in found.subflows:
        for key in dict.fromkeys((*each.seconds, *each.lost_mbps)):
            lasted, lost = each.seconds.get(key, 0.0), each.lost_mbps.get(key, 0.0)
            words = STATES[key[0]]
            if key[1] is not None:
                words += f" behind {key[1]}"
            if lasted >= _SHOWN * found.seconds or lost >= _SHOWN * each.rate_mbps > 0:
                share = f"{lasted / found.seconds * 100:.1f} %" if lasted else "–"
                rows.append((lost, lasted, (words, str(each.subflow), share, number(lost))))
    rows.sort(key=lambda row: (-row[0], -row[1]))
    return Table(("state", "subflow", "of the time", "lost Mbit/s"), tuple(row for *_, row in rows))


def explanations(analysis: Analysis) -> Iterator[CaptureExplanation]:
    """The explanation of the larger direction of each Multipath TCP connection with data.

    Raises:
        InputError: if no connection can be explained. The message says why.
    """
    reasons = []
    found = False
    for row in analysis.connections.iter_rows(named=True):
        direction = "out" if row["bytes_out"] >= row["bytes_in"] else "in"
        try:
            explained = _explain(analysis, row, direction)
        except _Hidden as hidden:
            reasons.append(f"connection {row['connection']}: {hidden}")
            continue
        found = True
        yield explained
    if not found:
        files = ", ".join(Path(name).name for name in analysis.files["file"])
        raise InputError(f"{files}: {reasons[0] if reasons else 'no TCP connection'}")


class _Hidden(Exception):
    """The capture does not show why a connection was slow."""


def _explain(analysis: Analysis, about: Mapping[str, Any], direction: str) -> CaptureExplanation:
    connection = about["connection"]
    if about["protocol"] != "MPTCP":
        fallback = f", fallen back ({about['fallback']})" if about["fallback"] else ""
        raise _Hidden(f"plain TCP{fallback}; only Multipath TCP can be explained")
    rows = _Rows(analysis, connection, direction, about[f"base_{direction}"])
    if rows.is_data.sum() < _LEAST_SEGMENTS:
        raise _Hidden(f"{rows.is_data.sum()} data segments; too few to explain")
    if not (rows.is_ack & (rows.data_ack >= 0)).any():
        raise _Hidden("no acknowledgements; capture both directions")
    if not rows.is_near_sender():
        raise _Hidden(
            "captured near the receiver of the data, where the reasons of the sender do not show; "
            "capture at the sender"
        )
    lasted = int(rows.time[-1] - rows.time[0]) / 1e9
    known = analysis.subflows.filter(pl.col("connection") == connection)
    return CaptureExplanation(
        connection=connection,
        direction=direction,
        initiator=about["initiator"],
        seconds=lasted,
        goodput_mbps=float(rows.una[-1]) * 8e-6 / lasted if lasted else 0.0,
        subflows=tuple(rows.states(each) for each in known.iter_rows(named=True)),
    )


class _Rows:
    """The segments of one connection in the order of time, and the sender's state after each."""

    def __init__(self, analysis: Analysis, connection: int, direction: str, base: int) -> None:
        mine = analysis.segments.filter(pl.col("connection") == connection)
        self.table = mine.sort("time_ns", "file", "packet")
        self.events = analysis.events
        known = analysis.subflows.drop_nulls("rtt_ns").select("subflow", "rtt_ns")
        self.first_rtt_ns: dict[int, int] = dict(known.rows())
        self.time = self.table["time_ns"].to_numpy().astype(np.int64)
        self.subflow = self.table["subflow"].to_numpy().astype(np.int64)
        self.length = self.table["len"].to_numpy().astype(np.int64)
        outbound = (self.table["direction"] == direction).to_numpy()
        has_dsn = self.table["dsn"].is_not_null().to_numpy()
        self.is_data: Mask = outbound & (self.length > 0) & has_dsn
        self.is_ack: Mask = ~outbound
        dsn = _relative(self.table["dsn"], base)
        data_ack = _relative(self.table["data_ack"], base)
        self.data_ack = np.where(self.is_ack, data_ack, -1)
        window = self.table["window"].fill_null(0).to_numpy().astype(np.int64)
        self.dsn = np.where(self.is_data, dsn, -1)
        self.una = np.maximum.accumulate(np.maximum(self.data_ack, 0))
        edges = np.where(self.is_ack & (self.data_ack >= 0), self.data_ack + window, 0)
        self.edge = np.maximum.accumulate(edges)
        self.nxt = np.maximum.accumulate(np.where(self.is_data, dsn + self.length, 0))
        self.mss = _usual(self.length[self.is_data])
        self.until = np.append(self.time[1:], self.time[-1:])

    def is_near_sender(self) -> bool:
        """Whether data is answered a round-trip time after it passes, and not at once.

        At the sender, some data follows an acknowledgement at once, or no answer is much quicker
        than that of the handshake. At the receiver, some acknowledgement follows data at once.
        """
        for subflow in np.unique(self.subflow[self.is_data]):
            flight = _Flight(self, int(subflow))
            answer, reaction = flight.answer_ns(), flight.reaction_ns()
            if answer is not None:
                least = self.first_rtt_ns.get(int(subflow), 0) // 2
                return reaction is None or answer > reaction or answer > least > 0
        return False

    def carrier(self) -> Numbers:
        """The subflow that carried the oldest unacknowledged data, after each row."""
        new = self.is_data & (self.table["kind"] == "new").to_numpy()
        order = np.argsort(self.dsn[new], kind="stable")
        starts, carriers = self.dsn[new][order], self.subflow[new][order]
        if not starts.size:
            return np.full(self.time.shape, -1)
        places = np.clip(np.searchsorted(starts, self.una, side="right") - 1, 0, None)
        found: Numbers = carriers[places]
        return found

    def backup(self, subflow: int, *, is_backup: bool) -> Mask:
        """Whether the subflow was a backup, after each row: by MP_JOIN, and later by MP_PRIO."""
        found = np.full(self.time.shape, is_backup)
        signals = self.events.filter(pl.col("subflow") == subflow, pl.col("event") == "mp_prio")
        for row in signals.iter_rows(named=True):
            found[self.time >= row["time_ns"]] = row["detail"] == "backup"
        return found

    def states(self, about: Mapping[str, Any]) -> SubflowStates:
        """How long each state of a subflow lasted."""
        subflow = int(about["subflow"])
        flight = _Flight(self, subflow)
        full = (self.edge - self.nxt < self.mss) & (self.nxt > self.una)
        waits = flight.has_room
        begin = int(about["begin_ns"])
        ended = about["state"].startswith(_ENDED)
        end = int(about["end_ns"]) if ended else int(self.time[-1]) + 1
        backup = self.backup(subflow, is_backup=bool(about["is_backup"]))
        rules: list[tuple[str, Mask]] = [
            ("absent", self.time < begin),
            ("closed", (self.time >= end) & (flight.outstanding == 0)),
            ("silent", flight.silent()),
            ("standby", backup & (flight.outstanding == 0)),
            ("recovery", flight.recovering()),
            ("receive_window", waits & full),
            ("unknown", waits),
        ]
        names = ["network", *(name for name, _ in rules)]
        state = np.select([mask for _, mask in rules], range(1, len(names)), default=0)
        blocked = state == names.index("receive_window")
        slots = np.where(blocked, self.carrier() + 1, 0)
        codes, index = np.unique(state * _SLOTS + slots, return_inverse=True)
        lasted = np.bincount(index, weights=self.until - self.time, minlength=len(codes)) / 1e9
        named: list[tuple[str, int | None]] = []
        for code in codes.tolist():
            which, slot = divmod(code, _SLOTS)
            named.append((names[which], slot - 1 if slot > 0 else None))
        rate, lost = self._lost(flight, index, named)
        name = f"subflow {subflow} ({about['initiator']} – {about['listener']})"
        return SubflowStates(
            subflow, name, dict(zip(named, lasted.tolist(), strict=True)), rate, lost
        )

    def _lost(
        self, flight: _Flight, index: Numbers, named: list[tuple[str, int | None]]
    ) -> tuple[float, dict[tuple[str, int | None], float]]:
        """The rate of the path in Mbit/s, and what it carried less than that by state."""
        whole = int(self.time[-1] - self.time[0])
        count = max(1, whole // _BIN_NS)
        edges = np.linspace(0, whole, count + 1)
        acked = np.diff(np.interp(edges, self.time - self.time[0], flight.una))
        if not flight.any_data or whole == 0:
            return 0.0, {}
        peak = flight.path_rate() * whole / count
        repeated = self._repeated(flight)
        per_second = 8e3 / whole
        lost: dict[tuple[str, int | None], float] = {}
        missing = np.maximum(peak - acked, 0)
        held = [key[0] in _BECAUSE for key in named]
        parts = np.stack([self._covered(index == each, edges) for each in range(len(named))])
        weights = parts * np.array(held, dtype=float)[:, None]
        total = weights.sum(axis=0)
        # What is missing while nothing held the subflow back is due to the network.
        by_network = np.where(total == 0, missing, 0)
        shared = weights / np.where(total == 0, 1, total) * missing
        for key, each in zip(named, shared, strict=True):
            if each.sum() > 0:
                lost[key] = float(each.sum()) * per_second
        lost["network", None] = float(by_network.sum()) * per_second
        lost["reinjected", None] = repeated * per_second
        return peak * count * per_second, {key: each for key, each in lost.items() if each > 0}

    def _repeated(self, flight: _Flight) -> float:
        """Bytes of the subflow that another subflow had carried before."""
        again = flight.data & (self.table["kind"] == "reinjection").to_numpy()
        return float(self.length[again].sum())

    def _covered(self, mask: Mask, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How long the rows of the mask last in each bin, in ns."""
        lasted = np.where(mask, self.until - self.time, 0)
        sums = np.concatenate([[0], np.cumsum(lasted)])
        times = np.append(self.time, self.until[-1]) - self.time[0]
        return np.diff(np.interp(edges, times, sums))


class _Flight:
    """What is in flight on one subflow, after each row of the connection."""

    def __init__(self, rows: _Rows, subflow: int) -> None:
        self.rows = rows
        mine = rows.subflow == subflow
        self.data: Mask = mine & rows.is_data
        self.acks: Mask = mine & rows.is_ack
        self.any_data = bool(self.data.any())
        seq = _unwrapped(rows.table["seq"], self.data)
        origin = int(rows.table["seq"].to_numpy()[self.data][0]) if self.any_data else 0
        self.end = np.where(self.data, seq + rows.length, 0)
        self.nxt = np.maximum.accumulate(self.end)
        acked = rows.table["ack"].to_numpy().astype(np.int64) - origin
        # Acknowledgements lie within half the number space below the end of the data.
        distance = (acked - self.nxt) % (1 << 32)
        behind = np.where(distance == 0, 0, (1 << 32) - distance)
        acknowledged = np.where(self.acks & (behind < 1 << 31), self.nxt - behind, 0)
        self.una = np.maximum.accumulate(np.maximum(acknowledged, 0))
        self.outstanding = self.nxt - self.una
        again = (rows.table["kind"] == "retransmission").to_numpy()
        self.again: Mask = self.data & again
        self.has_room = self._has_room()

    def _has_room(self) -> Mask:
        """Whether less is in flight than after the last transmission, by a segment or more."""
        places = np.where(self.data, np.arange(self.data.size), -1)
        last = np.maximum.accumulate(places)
        level = np.where(last >= 0, self.outstanding[np.clip(last, 0, None)], 0)
        room: Mask = (self.outstanding + self.rows.mss <= level) | (last < 0)
        return room

    def recovering(self) -> Mask:
        """From a retransmission until everything sent before it was acknowledged."""
        point = np.maximum.accumulate(np.where(self.again, self.nxt, 0))
        found: Mask = self.una < point
        return found

    def silent(self) -> Mask:
        """Before retransmissions that follow a pause as long as a timeout."""
        found = np.zeros(self.data.shape, dtype=bool)
        rows = np.flatnonzero(self.data | self.acks)
        if rows.size < 2:
            return found
        before, after = rows[:-1], rows[1:]
        pause = self.rows.time[after] - self.rows.time[before] >= _TIMEOUT_NS
        timed_out = pause & self.again[after] & (self.outstanding[before] > 0)
        for start, stop in zip(before[timed_out], after[timed_out], strict=True):
            found[start:stop] = True
        return found

    def path_rate(self) -> float:
        """The rate of the path in bytes per ns, from the spacing of acknowledgements.

        Acknowledgements of data that left the bottleneck back to back arrive at its rate.
        """
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        time, una = self.rows.time[acked], self.una[acked]
        train = min(_TRAIN, acked.size - 1)
        if train < 1:
            return 0.0
        lasted = time[train:] - time[:-train]
        rates = (una[train:] - una[:-train])[lasted > 0] / lasted[lasted > 0]
        return float(np.quantile(rates, _PEAK)) if rates.size else 0.0

    def answer_ns(self) -> int | None:
        """The shortest time from data to the acknowledgement that covers it."""
        sent = np.flatnonzero(self.data & ~self.again)
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        if not sent.size or not acked.size:
            return None
        places = np.searchsorted(self.end[sent], self.una[acked], side="left")
        known = places < sent.size
        gaps = self.rows.time[acked[known]] - self.rows.time[sent[places[known]]]
        gaps = gaps[gaps >= 0]
        return int(gaps.min()) if gaps.size else None

    def reaction_ns(self) -> int | None:
        """The shortest time from an acknowledgement to the next data of the subflow."""
        sent = np.flatnonzero(self.data)
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        places = np.searchsorted(sent, acked)
        known = places < sent.size
        if not known.any():
            return None
        gaps = self.rows.time[sent[places[known]]] - self.rows.time[acked[known]]
        return int(gaps.min())


def _usual(lengths: Numbers) -> int:
    """The usual length of a full segment. Offloading shows several segments as one."""
    if not lengths.size:
        return 1
    values, counts = np.unique(lengths, return_counts=True)
    return min(int(values[np.argmax(counts)]), _LARGEST_SEGMENT)


def _relative(numbers: pl.Series, base: int) -> Numbers:
    """Data sequence numbers as bytes from the beginning of the data; -1 if there is none."""
    missing = numbers.is_null().to_numpy()
    values = numbers.fill_null(0).to_numpy().astype(np.uint64) - np.uint64(base)
    return np.where(missing, -1, values.astype(np.int64))


def _unwrapped(numbers: pl.Series, wanted: Mask) -> Numbers:
    """32-bit sequence numbers of the wanted rows as distances from the first of them."""
    values = numbers.to_numpy().astype(np.int64)
    found = np.zeros(values.shape, dtype=np.int64)
    mine = values[wanted]
    if mine.size:
        steps = (np.diff(mine) + (1 << 31)) % (1 << 32) - (1 << 31)
        found[wanted] = np.concatenate([[0], np.cumsum(steps)])
    return found
