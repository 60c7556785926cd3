"""What a capture shows of the hosts: buffers, the application's writes, and the kind of TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.analyze.flights import Flight, Numbers, Rows
from anabranch.results.estimates import Sample

_TUNED = 1.3
"""Growth of the receive window from which the host tunes it. A fixed buffer of Linux' opens by 1.23
times (docs/calibration.md)."""
_DEFAULT = (62_000, 66_000)
"""First windows of Linux with its default buffer of 131,072 bytes, which it tunes. Half of that,
rounded to the unit of the window field."""
_LINUX_SEGMENT = 1424
"""Payload of a full segment of Linux' over IPv4: its options take whole words."""
_IDLE_OF_RTT = 0.5
_LEAST_IDLE_NS = 2_000_000
"""Time without unacknowledged data from which the application pauses: at least this, and at least
half of a round-trip time (ours)."""
_BATCH_NS = 1_000_000
"""Pause between sends that separates two batches."""
_CLOCKED_NS = 200_000
"""Time after an acknowledgement in which the host sends what that allows."""
_PACED = 0.5
"""Share of batches that no acknowledgement caused, from which the application sets the pace."""
_FEW = 4
_ASKED = 0.8
"""Share of the bursts that answer data of the receiver, from which these are requests."""
_ANSWER_NS = 20_000_000
_BLOCKED = 0.02
"""Share of the time that the sender waited from which the send buffer may be the reason."""


@dataclass(frozen=True)
class Workload:
    """What the application writes, as a scenario says it, and why."""

    settings: dict[str, Any]
    because: str


@dataclass(frozen=True)
class Ends:
    """What a capture shows of the two hosts.

    Attributes:
        is_linux: Whether segments and windows look like Linux'.
        first_window, largest_window: Receive window after the handshake, and the largest, in bytes.
        tuned: Whether the receiver enlarges its buffer.
        in_flight: The most data that was sent and not acknowledged at the data level, in bytes: its
            95th percentile.
        waited: Share of the time in which there was room on a subflow and in the window.
        reduction: What was in flight after a loss, divided by what was before; `None` without one.
    """

    is_linux: bool
    first_window: int
    largest_window: int
    tuned: bool
    in_flight: float
    waited: float
    workload: Workload
    reduction: float | None


def ends(rows: Rows, flights: list[Flight], *, closed: bool, rtt_ns: int) -> Ends:
    """What the rows of a connection show of its hosts."""
    windows = rows.table["window"].to_numpy()[rows.is_ack & (rows.data_ack >= 0)]
    first, largest = int(windows[0]), int(windows.max())
    is_linux = rows.mss == _LINUX_SEGMENT or largest > first
    has_data = (rows.nxt > rows.una) & (rows.time > rows.time[rows.is_data][0])
    room = np.any([each.has_room for each in flights], axis=0) & (rows.edge - rows.nxt >= rows.mss)
    lasted = rows.until - rows.time
    during = max(1, int(lasted[has_data].sum()))
    return Ends(
        is_linux=is_linux,
        first_window=first,
        largest_window=largest,
        tuned=largest > _TUNED * first or (is_linux and _DEFAULT[0] <= first <= _DEFAULT[1]),
        in_flight=float(np.quantile((rows.nxt - rows.una)[has_data], 0.95)),
        waited=float(lasted[has_data & room].sum()) / during,
        workload=_workload(rows, closed=closed, rtt_ns=rtt_ns),
        reduction=_reduction(flights),
    )


def _workload(rows: Rows, *, closed: bool, rtt_ns: int) -> Workload:
    """The pattern of writes."""
    total = int(rows.nxt[-1])
    bursts = _bursts(rows, max(_LEAST_IDLE_NS, int(_IDLE_OF_RTT * rtt_ns)))
    if len(bursts) >= _FEW:
        return _repeated(rows, bursts, closed=closed)
    paced = _paced(rows)
    if paced is not None:
        return paced
    done = bool(rows.una[-1] >= total) and rows.time[-1] - rows.time[rows.is_data][-1] > 2 * rtt_ns
    if closed or done:
        return Workload(
            {"kind": "bulk", "size": f"{total}B"}, "all of it was written as fast as possible"
        )
    return Workload({"kind": "bulk"}, "there was always data, until the capture ends")


def _bursts(rows: Rows, idle_ns: int) -> list[tuple[int, int]]:
    """First row of each burst of data, and its size in bytes.

    Bursts are separated by times in which everything was acknowledged.
    """
    data = np.flatnonzero(rows.is_data)
    before = np.clip(data - 1, 0, None)
    clear = rows.nxt[before] == rows.una[before]
    emptied = np.maximum.accumulate(np.where(np.diff(rows.una, prepend=0) > 0, rows.time, 0))
    pause = rows.time[data] - emptied[before]
    starts = data[clear & (pause >= idle_ns) & (np.diff(rows.nxt, prepend=0)[data] > 0)]
    starts = np.unique(np.concatenate([data[:1], starts]))
    edges = np.append(rows.nxt[np.clip(starts - 1, 0, None)], rows.nxt[-1])
    edges[0] = 0
    return list(zip(starts.tolist(), np.diff(edges).tolist(), strict=True))


def _repeated(rows: Rows, bursts: list[tuple[int, int]], *, closed: bool) -> Workload:
    """Bursts at times of the sender's own, or after requests of the receiver."""
    starts = rows.time[[row for row, _ in bursts]]
    sizes = np.array([size for _, size in bursts])
    whole = sizes if closed else sizes[:-1]
    count = {"count": len(bursts)} if closed else {}
    asking = np.flatnonzero(rows.is_ack & (rows.length > 0))
    asked = rows.time[asking]
    places = np.searchsorted(asked, starts, side="right") - 1
    gaps = np.where(places >= 0, starts - asked[np.clip(places, 0, None)], _ANSWER_NS + 1)
    if asking.size and (gaps <= _ANSWER_NS).mean() >= _ASKED:
        emptied = np.maximum.accumulate(np.where(np.diff(rows.una, prepend=0) > 0, rows.time, 0))
        thinks = np.array([
            rows.time[row] - emptied[row]
            for row in asking[places[1:]].tolist()
        ])  # fmt: skip
        request = int(rows.length[asking].sum() / max(1, len(bursts)))
        return Workload(
            {
                "kind": "request_response",
                "request_size": f"{max(1, request)}B",
                "response_size": _sizes(whole),
                "think_time": _times(thinks),
                **count,
            },
            f"{len(bursts)} bursts of data, each after data of the receiver",
        )
    return Workload(
        {
            "kind": "on_off",
            "burst_size": _sizes(whole),
            "interval": _times(np.diff(starts)),
            **count,
        },
        f"{len(bursts)} bursts of data with pauses between them",
    )


_CONSTANT = 0.02
"""Relative spread up to which a quantity is constant (ours)."""


def _sizes(values: Numbers) -> Any:
    """A size, or its lognormal distribution."""
    median, sigma = _lognormal(values)
    if sigma < _CONSTANT:
        return f"{round(median)}B"
    return {"kind": "lognormal", "median": f"{round(median)}B", "sigma": round(sigma, 3)}


def _times(values: Numbers) -> Any:
    """A duration, or its lognormal distribution."""
    median, sigma = _lognormal(np.maximum(values, 1))
    if sigma < _CONSTANT:
        return f"{round(median / 1e3)}us"
    return {"kind": "lognormal", "median": f"{round(median / 1e3)}us", "sigma": round(sigma, 3)}


def _lognormal(values: Numbers) -> tuple[float, float]:
    logs = np.log(np.maximum(values, 1).astype(np.float64))
    return float(np.exp(np.median(logs))), float(np.std(logs))


def _paced(rows: Rows) -> Workload | None:
    """Blocks at a constant rate: batches of data that no acknowledgement caused."""
    data = np.flatnonzero(rows.is_data & (rows.table["kind"] == "new").to_numpy())
    times = rows.time[data]
    begins = np.flatnonzero(np.diff(times, prepend=times[0] - 2 * _BATCH_NS) > _BATCH_NS)
    if begins.size < _FEW:
        return None
    acks = rows.time[rows.is_ack]
    places = np.searchsorted(acks, times[begins], side="right") - 1
    since = times[begins] - acks[np.clip(places, 0, None)]
    if (since > _CLOCKED_NS).mean() < _PACED:
        return None
    sums = np.add.reduceat(rows.length[data], begins)
    sizes, counts = np.unique(sums[:-1], return_counts=True)
    block = int(sizes[np.argmax(counts)])
    rate: Sample = sums[:-1].sum() * 8e9 / (times[begins[-1]] - times[0])
    return Workload(
        {"kind": "cbr", "block_size": f"{block}B", "rate": f"{round(float(rate))}bit/s"},
        "batches of data that no acknowledgement caused",
    )


def _reduction(flights: list[Flight]) -> float | None:
    """The median over repaired losses of data in flight afterwards, as a part of that before."""
    ratios = []
    for each in flights:
        recovering = each.recovering()
        edges = np.diff(recovering.astype(np.int8), prepend=0)
        for start, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)):
            before = each.outstanding[start]
            if before > 0:
                ratios.append(each.outstanding[stop] / before)
    return float(np.median(ratios)) if ratios else None
