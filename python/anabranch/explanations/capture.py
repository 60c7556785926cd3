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
from anabranch.analyze.flights import Flight, Hidden, Mask, Numbers, Rows, seen
from anabranch.errors import InputError
from anabranch.reports.table import Table
from anabranch.results.estimates import Sample, number

STATES: Mapping[str, str] = {
    "network": "limited by the path or its congestion window",
    "receive_window": "receive window full",
    "recovery": "recovering a loss",
    "silent": "silent after a timeout",
    "standby": "standing by as backup",
    "reinjected": "data that another subflow carried as well",
    "absent": "not there yet",
    "opening": "handshake not answered",
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
    "opening": "its handshake was not answered",
    "unknown": "the send buffer, the scheduler or the application held it back",
}
_SMALL = 0.05
"""Share of the capacity below which a loss is not named first (ours)."""
_BIN_NS = 200_000_000
_TIMES = 1_000
"""Times at which a figure shows the window."""
_SHOWN = 0.001
"""Share of the time, or of the path's rate, below which a table omits a state."""
_SLOTS = 1 << 32
"""More than the number of a subflow in a capture."""
_ENDED = ("closed", "reset")
_UNANSWERED = "not answered"
"""The state of a subflow whose SYNs had no answer, as the analyser says it."""


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
    """What the subflows of one direction of a connection did, as far as the capture shows it.

    Attributes:
        intervals: ``subflow``, ``state``, ``behind``, and ``from_ns`` and ``until_ns`` since the
            first packet of the connection.
        times_ns: Times since then, for which the next three state bytes.
        in_flight: Data in flight on each subflow.
        waiting: Data that a subflow has delivered and the receiver has not acknowledged as a whole.
        room: What the receive window still admits.
    """

    connection: int
    direction: str
    initiator: str
    seconds: float
    goodput_mbps: float
    subflows: tuple[SubflowStates, ...]
    intervals: pl.DataFrame
    times_ns: Sample
    in_flight: Mapping[int, Sample]
    waiting: Sample
    room: Sample

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
            if (
                longest[0] in ("standby", "opening", "unknown", "receive_window")
                and idle > self.seconds / 2
            ):
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
        except Hidden as hidden:
            reasons.append(f"connection {row['connection']}: {hidden}")
            continue
        found = True
        yield explained
    if not found:
        files = ", ".join(Path(name).name for name in analysis.files["file"])
        raise InputError(f"{files}: {reasons[0] if reasons else 'no TCP connection'}")


def _explain(analysis: Analysis, about: Mapping[str, Any], direction: str) -> CaptureExplanation:
    connection = about["connection"]
    rows = seen(analysis, about, direction)
    lasted = int(rows.time[-1] - rows.time[0]) / 1e9
    known = analysis.subflows.filter(pl.col("connection") == connection)
    flights = {int(subflow): Flight(rows, int(subflow)) for subflow in known["subflow"]}
    found = [_states(rows, flights[each["subflow"]], each) for each in known.iter_rows(named=True)]
    times = np.linspace(rows.time[0], rows.time[-1], _TIMES).astype(np.int64)
    places = np.searchsorted(rows.time, times, side="right") - 1
    in_flight = {
        subflow: flight.outstanding[places].astype(np.float64)
        for subflow, flight in flights.items()
    }
    waiting = np.maximum(rows.nxt - rows.una, 0)[places] - sum(in_flight.values())
    return CaptureExplanation(
        connection=connection,
        direction=direction,
        initiator=about["initiator"],
        seconds=lasted,
        goodput_mbps=float(rows.una[-1]) * 8e-6 / lasted if lasted else 0.0,
        subflows=tuple(states for states, _ in found),
        intervals=pl.concat([intervals for _, intervals in found]),
        times_ns=(times - rows.time[0]).astype(np.float64),
        in_flight=in_flight,
        waiting=np.maximum(waiting, 0),
        room=np.maximum(rows.edge - rows.nxt, 0)[places].astype(np.float64),
    )


def _states(
    rows: Rows, flight: Flight, about: Mapping[str, Any]
) -> tuple[SubflowStates, pl.DataFrame]:
    """How long each state of a subflow lasted, and when."""
    subflow = int(about["subflow"])
    full = (rows.edge - rows.nxt < rows.mss) & (rows.nxt > rows.una)
    waits = flight.has_room
    begin = int(about["begin_ns"])
    ended = about["state"].startswith(_ENDED)
    end = int(about["end_ns"]) if ended else int(rows.time[-1]) + 1
    backup = rows.backup(subflow, is_backup=bool(about["is_backup"]))
    unanswered = about["state"] == _UNANSWERED
    rules: list[tuple[str, Mask]] = [
        ("absent", rows.time < begin),
        ("opening", (rows.time >= begin) & unanswered),
        ("closed", (rows.time >= end) & (flight.outstanding == 0)),
        ("silent", flight.silent()),
        ("standby", backup & (flight.outstanding == 0)),
        ("recovery", flight.recovering()),
        ("receive_window", waits & full),
        ("unknown", waits),
    ]
    names = ["network", *(name for name, _ in rules)]
    state = np.select([mask for _, mask in rules], range(1, len(names)), default=0)
    blocked = state == names.index("receive_window")
    slots = np.where(blocked, rows.carrier() + 1, 0)
    codes, index = np.unique(state * _SLOTS + slots, return_inverse=True)
    lasted = np.bincount(index, weights=rows.until - rows.time, minlength=len(codes)) / 1e9
    named: list[tuple[str, int | None]] = []
    for code in codes.tolist():
        which, slot = divmod(code, _SLOTS)
        named.append((names[which], slot - 1 if slot > 0 else None))
    rate, lost = _lost(rows, flight, index, named)
    name = f"subflow {subflow} ({about['initiator']} – {about['listener']})"
    seconds = dict(zip(named, lasted.tolist(), strict=True))
    return SubflowStates(subflow, name, seconds, rate, lost), _intervals(
        rows, subflow, index, named
    )


def _intervals(
    rows: Rows, subflow: int, index: Numbers, named: list[tuple[str, int | None]]
) -> pl.DataFrame:
    """Each interval of the subflow in one state; `index` is the state after each row."""
    begins = np.flatnonzero(np.append(True, np.diff(index) != 0))
    since = rows.time[begins] - rows.time[0]
    states = [named[each] for each in index[begins]]
    return pl.DataFrame(
        {
            "subflow": np.full(begins.size, subflow),
            "state": [state for state, _ in states],
            "behind": pl.Series([behind for _, behind in states], dtype=pl.Int64),
            "from_ns": since,
            "until_ns": np.append(since[1:], rows.time[-1] - rows.time[0]),
        }
    )


def _lost(
    rows: Rows, flight: Flight, index: Numbers, named: list[tuple[str, int | None]]
) -> tuple[float, dict[tuple[str, int | None], float]]:
    """The rate of the path in Mbit/s, and what it carried less than that by state."""
    whole = int(rows.time[-1] - rows.time[0])
    count = max(1, whole // _BIN_NS)
    edges = np.linspace(0, whole, count + 1)
    acked = np.diff(np.interp(edges, rows.time - rows.time[0], flight.una))
    if not flight.any_data or whole == 0:
        return 0.0, {}
    peak = flight.path_rate() * whole / count
    repeated = _repeated(rows, flight)
    per_second = 8e3 / whole
    lost: dict[tuple[str, int | None], float] = {}
    missing = np.maximum(peak - acked, 0)
    held = [key[0] in _BECAUSE for key in named]
    parts = np.stack([_covered(rows, index == each, edges) for each in range(len(named))])
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


def _repeated(rows: Rows, flight: Flight) -> float:
    """Bytes of the subflow that another subflow had carried before."""
    again = flight.data & (rows.table["kind"] == "reinjection").to_numpy()
    return float(rows.length[again].sum())


def _covered(rows: Rows, mask: Mask, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How long the rows of the mask last in each bin, in ns."""
    lasted = np.where(mask, rows.until - rows.time, 0)
    sums = np.concatenate([[0], np.cumsum(lasted)])
    times = np.append(rows.time, rows.until[-1]) - rows.time[0]
    return np.diff(np.interp(edges, times, sums))
