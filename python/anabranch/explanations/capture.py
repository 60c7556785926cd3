"""Infer from a capture what each subflow of a connection did.

A capture near the sender of data shows what is in flight on each subflow, the shared receive
window, and which data it waits for. It does not show congestion windows, send buffers, schedulers
and applications. Where one of the last three may be the reason, the state is *unknown*. The state
is also *unknown* where the receive window may be the reason and the capture does not show it:
without the handshakes, which have its scale, or without some of the subflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.analyze import records
from anabranch.analyze.analysis import Analysis
from anabranch.analyze.flights import Flight, Hidden, Rows, seen
from anabranch.analyze.records import ConnectionRecord, Mask, Numbers, Subflow
from anabranch.errors import InputError
from anabranch.explanations.main_parts import NAMED, grouped
from anabranch.reports.table import Table
from anabranch.results.estimates import Sample, number, percent
from anabranch.words import counted, listed

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
    "silent": "the retransmission timer had expired",
    "standby": "a backup carries nothing while a regular subflow works",
    "reinjected": "other subflows had carried the same data",
    "opening": "the handshake was not answered",
    "unknown": "the send buffer, the scheduler or the application held back the data",
}
_SMALL = 0.05
"""Share of the capacity below which a loss is not named first (this project)."""
_BIN_NS = 200_000_000
_TIMES = 1_000
"""Times at which a figure shows the window."""
_SHOWN = 0.001
"""Share of the time, or of the path's rate, below which a table omits a state."""
_SLOTS = 1 << 32
"""More than the number of a subflow in a capture."""
_ENDED = ("closed", "reset")
_NEVER_SENT = ("absent", "closed")
"""States in which a subflow cannot send, whatever the sender wants."""
_UNANSWERED = "not answered"
"""The state of a subflow whose SYNs had no answer, as the analyser says it."""


State = tuple[str, int | None]
"""A state, and the number of the subflow behind which it waits."""


_Loss = tuple[str, int | None, int, float]
"""State, blocking subflow, subflow and lost Mbit/s."""


@dataclass(frozen=True)
class SubflowStates:
    """The states of one subflow: how long each lasted, in seconds, and behind which subflow."""

    subflow: int
    name: str
    seconds: Mapping[State, float]
    rate_mbps: float
    """The rate of the path, as the fastest times show it; 0 if it carried nothing."""
    shows_rate: bool
    """Whether its acknowledgements show that rate."""
    lost_mbps: Mapping[State, float]
    """Shortfall of the path from this rate, by state, as means over the capture."""


@dataclass(frozen=True)
class CaptureExplanation:
    """States of the subflows of one direction of a connection, as far as the capture shows them.

    Attributes:
        goodput_mbps: As every command shows it; `None` if no data was acknowledged.
        knows_window: Whether the capture shows when the receive window was full.
        elsewhere: Share of the data that no subflow in the capture carried, if some of the subflows
            are missing in it.
        fallback: Why the connection fell back to TCP, if it did.
        left_out: Number of subflows that are not explained, because they carried little.
        intervals: ``subflow``, ``state``, ``behind``, and ``from_ns`` and ``until_ns`` since the
            first packet of the connection.
        times_ns: Times since then, for which the next three state bytes.
        in_flight: Data in flight on each subflow.
        waiting: Data that a subflow has delivered and the receiver has not acknowledged as a whole.
        room: Data that the receive window still admits.
    """

    connection: int
    direction: str
    initiator: str
    seconds: float
    goodput_mbps: float | None
    knows_window: bool
    elsewhere: float | None
    fallback: str | None
    left_out: int
    subflows: tuple[SubflowStates, ...]
    intervals: pl.DataFrame
    times_ns: Sample
    in_flight: Mapping[int, Sample]
    waiting: Sample
    room: Sample

    @cached_property
    def losses(self) -> list[_Loss]:
        """State, blocking subflow, subflow and lost Mbit/s, the largest first."""
        rows = [
            (state, behind, each.subflow, lost)
            for each in self.subflows
            for (state, behind), lost in each.lost_mbps.items()
        ]
        return sorted(rows, key=lambda row: -row[3])

    @property
    def main(self) -> tuple[str, list[int], list[int], float] | None:
        """The largest loss over all subflows that the network did not cause; `None` without one.

        State, the subflows behind which others waited, the subflows that have most of the loss, and
        lost Mbit/s. It is the sum of the losses that it names.
        """
        sums: dict[str, float] = {}
        for state, _, _, lost in self.losses:
            sums[state] = sums.get(state, 0.0) + lost
        state = max(sums, key=lambda each: sums[each], default="network")
        capacity = sum(each.rate_mbps for each in self.subflows)
        if state in _BECAUSE and sums[state] >= _SMALL * capacity:
            return self._as_one([row for row in self.losses if row[0] == state])
        return self._unused()

    @staticmethod
    def _as_one(losses: list[_Loss]) -> tuple[str, list[int], list[int], float]:
        """The losses of one state as one, without the subflows that have little of it."""
        least = NAMED * sum(map(_lost_mbps, losses))
        subflows = grouped(losses, lambda loss: loss[2], _lost_mbps, least)
        named = [loss for loss in losses if loss[2] in subflows]
        behind = grouped(named, lambda loss: loss[1], _lost_mbps, least)
        lost = sum(_lost_mbps(loss) for loss in named if loss[1] in behind)
        return losses[0][0], [each for each in behind if each is not None], subflows, lost

    def _unused(self) -> tuple[str, list[int], list[int], float] | None:
        """A subflow that did nothing most of the time, whose rate the capture cannot show."""
        for each in self.subflows:
            if each.shows_rate and ("receive_window", None) in each.seconds:
                continue
            longest = max(each.seconds, key=lambda key: each.seconds[key], default=("", None))
            idle = each.seconds.get(longest, 0.0)
            if (
                longest[0] in ("standby", "opening", "unknown", "receive_window")
                and idle > self.seconds / 2
            ):
                state, behind = longest
                return state, [] if behind is None else [behind], [each.subflow], 0.0
        return None

    def finding(self) -> list[str]:
        """Sentences: the goodput, gaps of the capture, and the cause that held the sender back."""
        fallback = [] if self.fallback is None else [f"It fell back to TCP: {self.fallback}."]
        return [*self._delivered(), *fallback, self._cause()]

    def _delivered(self) -> list[str]:
        rate = None if self.goodput_mbps is None else f"{number(self.goodput_mbps)} Mbit/s"
        first = f"Connection {self.connection} delivered {rate or 'no acknowledged data'}"
        shown = len(self.subflows)
        if self.elsewhere is None:
            more = f" ({self.left_out:,} more carried less)" if self.left_out else ""
            return [f"{first} over {counted(shown, 'subflow')}{more}."]
        return [
            f"{first}.",
            f"{shown} of at least {shown + 1} subflows {'is' if shown == 1 else 'are'} in the "
            f"capture: {percent(self.elsewhere)} of the data came over others, so it does not show "
            "what the sender waited for.",
        ]

    def _cause(self) -> str:
        if self.main is None and self.elsewhere is not None:
            return "The part in the capture was limited by its paths or congestion windows."
        if self.main is None:
            return "The paths or the congestion windows limited it nearly all the time."
        names = {each.subflow: each.name for each in self.subflows}
        state, behind, subflows, lost = self.main
        words = self.because(state)
        if behind:
            words += f" behind {listed(f'subflow {each}' for each in behind)}"
        ends = f": about {number(lost)} Mbit/s lost" if lost else ""
        who = listed(names[each] for each in subflows)
        they = "they" if len(subflows) > 1 else "it"
        return f"{who[0].upper()}{who[1:]} carried less than {they} could because {words}{ends}."

    def words(self, state: str) -> str:
        """A state in words, with what it may be in this capture."""
        return f"receive window, {STATES[state]}" if self._may_be_window(state) else STATES[state]

    def because(self, state: str) -> str:
        """The end of a sentence about a state that held a subflow back."""
        if self._may_be_window(state):
            return (
                "the receive window, the send buffer, the scheduler or the application held back "
                "the data"
            )
        return _BECAUSE[state]

    def _may_be_window(self, state: str) -> bool:
        return state == "unknown" and not self.knows_window

    def json(self) -> dict[str, Any]:
        """The explanation as plain values."""
        names = {each.subflow: each.name for each in self.subflows}
        return {
            "connection": self.connection,
            "direction": self.direction,
            "goodput_mbps": self.goodput_mbps,
            "fallback": self.fallback,
            "knows_window": self.knows_window,
            "carried_elsewhere": self.elsewhere,
            "subflows_left_out": self.left_out,
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


def _lost_mbps(loss: _Loss) -> float:
    return loss[3]


def table(found: CaptureExplanation) -> Table:
    """A row for each state of each subflow, the largest loss first."""
    rows = []
    for each in found.subflows:
        for key in dict.fromkeys((*each.seconds, *each.lost_mbps)):
            lasted, lost = each.seconds.get(key, 0.0), each.lost_mbps.get(key, 0.0)
            words = found.words(key[0])
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
    for about in records.connections(analysis):
        try:
            explained = _explain(analysis, about)
        except Hidden as hidden:
            reasons.append(f"connection {about.number}: {hidden}")
            continue
        found = True
        yield explained
    if not found:
        files = ", ".join(Path(name).name for name in analysis.files["file"])
        raise InputError(f"{files}: {reasons[0] if reasons else 'no TCP connection'}")


def _explain(analysis: Analysis, about: ConnectionRecord) -> CaptureExplanation:
    direction = about.larger
    rows = seen(analysis, about, direction)
    times = np.linspace(0, rows.time[-1], _TIMES).astype(np.int64)
    places = np.searchsorted(rows.time, times, side="right") - 1
    states, intervals = [], []
    in_flight: dict[int, Sample] = {}
    for subflow in rows.subflows:  # one after the other: each has arrays as long as the capture
        flight = Flight(rows, subflow.number)
        found, lasted = _states(rows, flight, subflow)
        states.append(found)
        intervals.append(lasted)
        in_flight[subflow.number] = flight.outstanding[places].astype(np.float64)
    waiting = np.maximum(rows.nxt - rows.una, 0)[places] - sum(in_flight.values())
    return CaptureExplanation(
        connection=about.number,
        direction=direction,
        initiator=about.initiator,
        seconds=int(rows.time[-1]) / 1e9,
        goodput_mbps=about.ways[direction].goodput_mbps,
        knows_window=rows.knows_window,
        elsewhere=rows.elsewhere if rows.hides_subflows else None,
        fallback=about.fallback,
        left_out=rows.left_out,
        subflows=tuple(states),
        intervals=pl.concat(intervals),
        times_ns=times.astype(np.float64),
        in_flight=in_flight,
        waiting=np.maximum(waiting, 0),
        room=np.maximum(rows.edge - rows.nxt, 0)[places].astype(np.float64),
    )


def _states(rows: Rows, flight: Flight, about: Subflow) -> tuple[SubflowStates, pl.DataFrame]:
    """Durations and times of each state of a subflow."""
    subflow = about.number
    full = (rows.edge - rows.nxt < rows.mss) & (rows.nxt > rows.una)
    waits = flight.has_room
    begin = rows.since(about.begin_ns)
    end = rows.since(about.end_ns) if about.state.startswith(_ENDED) else int(rows.time[-1]) + 1
    backup = rows.backup(about)
    unanswered = about.state == _UNANSWERED
    # Alone, a subflow sends at each acknowledgement up to the edge of the window, or of the buffer.
    fills = flight.is_alone & full
    level = flight.is_alone & flight.is_level(about.rtt_ns or flight.answer_ns() or 0)
    rules: list[tuple[str, Mask]] = [
        ("absent", rows.time < begin),
        ("opening", (rows.time >= begin) & unanswered),
        ("closed", (rows.time >= end) & (flight.outstanding == 0)),
        ("silent", flight.silent()),
        ("standby", backup & (flight.outstanding == 0)),
        ("recovery", flight.recovering()),
        ("receive_window", (waits & full | fills) & rows.knows_window),
        ("unknown", waits | fills | level),
    ]
    names = ["network", *(name for name, _ in rules)]
    state = np.select([mask for _, mask in rules], range(1, len(names)), default=0)
    blocked = state == names.index("receive_window")
    carrier = rows.carrier()
    slots = np.where(blocked & (carrier != subflow), carrier + 1, 0)
    codes, index = np.unique(state * _SLOTS + slots, return_inverse=True)
    lasted = np.bincount(index, weights=rows.until - rows.time, minlength=len(codes)) / 1e9
    named: list[State] = []
    for code in codes.tolist():
        which, slot = divmod(code, _SLOTS)
        named.append((names[which], slot - 1 if slot > 0 else None))
    rate, lost = _lost(rows, flight, index, named)
    seconds = dict(zip(named, lasted.tolist(), strict=True))
    states = SubflowStates(subflow, about.name, seconds, rate, flight.shows_rate, lost)
    return states, _intervals(rows, subflow, index, named)


def _intervals(rows: Rows, subflow: int, index: Numbers, named: Sequence[State]) -> pl.DataFrame:
    """Each interval of the subflow in one state; `index` is the state after each row."""
    begins = np.flatnonzero(np.append(True, np.diff(index) != 0))
    since = rows.time[begins]
    states = [named[each] for each in index[begins]]
    return pl.DataFrame(
        {
            "subflow": np.full(begins.size, subflow),
            "state": [state for state, _ in states],
            "behind": pl.Series([behind for _, behind in states], dtype=pl.Int64),
            "from_ns": since,
            "until_ns": np.append(since[1:], rows.time[-1]),
        }
    )


def _lost(
    rows: Rows, flight: Flight, index: Numbers, named: Sequence[State]
) -> tuple[float, dict[State, float]]:
    """The rate of the path in Mbit/s, and what it carried less than that by state.

    Each bin's missing bytes count for the states in it that held the subflow back, or else for the
    network. No state loses more than the path could have carried while it lasted.
    """
    whole = int(rows.time[-1])
    if not flight.any_data or whole == 0:
        return 0.0, {}
    edges = _edges(rows)
    acked = np.diff(np.interp(edges, rows.time, flight.una))
    rate = flight.path_rate()
    missing = np.maximum(rate * np.diff(edges) - acked, 0)
    parts = np.stack([_covered(rows, index == each, edges) for each in range(len(named))])
    held = parts * np.array([state in _BECAUSE for state, _ in named], dtype=float)[:, None]
    total = held.sum(axis=0)
    shares = (held / np.where(total == 0, 1, total) * missing).sum(axis=1)
    lost = _possible(shares, float(missing.sum()), rate * parts.sum(axis=1), named)
    lost["reinjected", None] = _repeated(rows, flight)
    per_second = 8e3 / whole
    return rate * 8e3, {key: each * per_second for key, each in lost.items() if each > 0}


def _possible(
    shares: Sample, missing: float, most: Sample, named: Sequence[State]
) -> dict[State, float]:
    """Loss of each state, at most as much as the path could have carried while it lasted.

    The rest goes to the network, and to the times at which the subflow could not send.
    """
    lost = dict(zip(named, np.minimum(shares, most).tolist(), strict=True))
    rest = missing - sum(lost.values())
    for state in ("network", *_NEVER_SENT):
        for key, room in zip(named, most.tolist(), strict=True):
            if key[0] == state:
                lost[key] = min(rest, room)
                rest -= lost[key]
    return lost


def _edges(rows: Rows) -> Sample:
    """Edges of bins of equal length, of which those without segments are merged.

    Their number is bounded by that of the segments, however long the capture pauses.
    """
    whole = int(rows.time[-1])
    count = max(1, whole // _BIN_NS)
    width = whole / count
    used = np.minimum(np.unique(rows.time // width), count - 1)
    edges: Sample = np.unique(np.concatenate([[0, count], used, used + 1])) * width
    return edges


def _repeated(rows: Rows, flight: Flight) -> float:
    """Bytes of the subflow that another subflow had carried before."""
    return float(rows.length[flight.data & rows.is_reinjected].sum())


def _covered(rows: Rows, mask: Mask, edges: Sample) -> Sample:
    """Duration of the rows of the mask in each bin, in ns."""
    lasted = np.where(mask, rows.until - rows.time, 0)
    sums = np.concatenate([[0], np.cumsum(lasted)])
    times = np.append(rows.time, rows.until[-1])
    return np.diff(np.interp(edges, times, sums))
