"""Findings about the hosts of a capture: buffers, the application's writes, and the kind of TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.analyze.flights import Flight, Hidden, Rows
from anabranch.analyze.records import Numbers
from anabranch.words import counted

_TUNED = 1.3
"""Growth of the receive window from which the host tunes it. Linux opens the window of a fixed
buffer by a factor of 1.23 (docs/calibration.md)."""
_FILLED = 0.8
"""Part of the largest window in flight from which Linux would tune its buffer (this project)."""
_DEFAULTS = (*range(62_000, 66_001), 6 << 20)
"""First windows of default buffers: half of the 131,072 bytes that Linux begins with, in whole
units of the window field, and 6 MiB of a host that counts payload."""
_LINUX_SEGMENT = 1424
"""Payload of a full segment that Linux sends over IPv4: its options take whole words."""
_IDLE_OF_RTT = 0.5
_LEAST_IDLE_NS = 2_000_000
"""Time without unacknowledged data from which the application pauses: at least this, and at least
half of a round-trip time (this project)."""
_BATCH_NS = 1_000_000
"""Pause between sends that separates two batches."""
_CLOCKED_NS = 200_000
"""Time after an acknowledgement in which the host sends what that allows."""
_PACED = 0.5
"""Share of batches not clocked by ACKs, from which the application sets the pace."""
_FEW = 4
_ASKED = 0.8
"""Number of times that the receiver sent data, as a part of the bursts, from which it requests."""


@dataclass(frozen=True)
class Workload:
    """The application's writes, as a scenario states them, and the reason for the choice."""

    settings: dict[str, Any]
    because: str


@dataclass(frozen=True)
class Ends:
    """Findings about the two hosts of a capture.

    Attributes:
        is_linux: Whether segments and windows look like Linux's.
        windows: Receive window after the handshake, and the largest, in bytes; `None` if the
            capture lacks the handshake with their scale (RFC 7323 §2.2).
        is_default: Whether the receive buffer is its host's default, which Linux tunes.
        in_flight: The most data that was sent and not acknowledged at the data level, in bytes: its
            95th percentile.
        waited: Share of the time in which there was room on a subflow and in the window.
    """

    is_linux: bool
    windows: tuple[int, int] | None
    is_default: bool
    in_flight: float
    waited: float
    workload: Workload


def ends(rows: Rows, flights: list[Flight], *, closed: bool, rtt_ns: int) -> Ends:
    """The hosts of a connection, as far as its rows show them.

    Raises:
        Hidden: if no data was under way.
    """
    windows = _windows(rows)
    is_linux = rows.mss == _LINUX_SEGMENT or (windows is not None and windows[1] > windows[0])
    has_data = (rows.nxt > rows.una) & (rows.time > rows.time[rows.is_data][0])
    if not has_data.any():
        raise Hidden("all data was acknowledged when it was captured; capture at the sender")
    room = np.any([each.has_room for each in flights], axis=0)
    if rows.knows_window:
        room &= rows.edge - rows.nxt >= rows.mss
    lasted = rows.until - rows.time
    during = max(1, int(lasted[has_data].sum()))
    in_flight = float(np.quantile((rows.nxt - rows.una)[has_data], 0.95))
    return Ends(
        is_linux=is_linux,
        windows=windows,
        is_default=windows is None or _is_default(*windows, in_flight, is_linux=is_linux),
        in_flight=in_flight,
        waited=float(lasted[has_data & room].sum()) / during,
        workload=_workload(rows, closed=closed, rtt_ns=rtt_ns),
    )


def _windows(rows: Rows) -> tuple[int, int] | None:
    """The first and the largest window that was offered for the data."""
    known = rows.window.of(rows.is_ack & (rows.data_ack >= 0)) if rows.knows_window else None
    if known is None or not known.size:
        return None
    return int(known[0]), int(known.max())


def _is_default(first: int, largest: int, in_flight: float, *, is_linux: bool) -> bool:
    """Whether windows are those of a default buffer, which its host tunes."""
    grows = is_linux and largest > _TUNED * first
    is_filled = is_linux and in_flight > _FILLED * largest
    return grows or (first in _DEFAULTS and not is_filled)


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
    asking = _requests(rows)
    if asking.size >= max(_FEW, _ASKED * len(bursts)):
        return _asked(rows, asking, closed=closed)
    starts = rows.time[[row for row, _ in bursts]]
    sizes = np.array([size for _, size in bursts])
    settings = {
        "kind": "on_off",
        "burst_size": _sizes(sizes if closed else sizes[:-1]),
        "interval": _times(np.diff(starts)),
    }
    if closed:
        settings["count"] = len(bursts)
    return Workload(settings, f"{counted(len(bursts), 'burst')} of data with pauses between them")


def _requests(rows: Rows) -> Numbers:
    """Rows that end a request: the receiver's data before the sender's next."""
    asking = np.flatnonzero(rows.is_ack & (rows.length > 0))
    data = np.flatnonzero(rows.is_data)
    places = np.searchsorted(data, asking)
    last = np.append(np.diff(places) > 0, True)[: asking.size]
    return asking[last & (places < data.size)]


def _asked(rows: Rows, asking: Numbers, *, closed: bool) -> Workload:
    """Responses between requests, and how long the receiver thinks before the next."""
    edges = np.append(rows.nxt[asking], rows.nxt[-1])
    sizes = np.diff(edges)
    advanced = np.where(np.diff(rows.una, prepend=0) > 0, rows.time, 0)
    emptied = np.maximum.accumulate(advanced)[asking]
    thinks = (rows.time[asking] - emptied)[1:]
    incoming = int(rows.length[rows.is_ack].sum())
    settings = {
        "kind": "request_response",
        "request_size": f"{max(1, incoming // asking.size)}B",
        "response_size": _sizes(sizes if closed else sizes[:-1]),
        "think_time": _times(thinks),
    }
    if closed:
        settings["count"] = int(asking.size)
    bursts = counted(asking.size, "burst")
    return Workload(settings, f"{bursts} of data, each after data of the receiver")


_CONSTANT, _MEMORYLESS = 0.02, 0.7
"""Coefficients of variation: up to the first a quantity is constant, and from the second on the
time between events is exponential, for which it is 1 (this project)."""


def _sizes(values: Numbers) -> Any:
    """A size, or its lognormal distribution."""
    mean, variation = _moments(values)
    if variation < _CONSTANT:
        return f"{round(float(np.median(values)))}B"
    return _lognormal(f"{round(mean / np.sqrt(1 + variation**2))}B", variation)


def _times(values: Numbers) -> Any:
    """A duration, or its exponential or lognormal distribution."""
    mean, variation = _moments(values)
    if variation < _CONSTANT:
        return f"{round(float(np.median(values)) / 1e3)}us"
    if variation > _MEMORYLESS:
        return {"kind": "exponential", "mean": f"{round(mean / 1e3)}us"}
    return _lognormal(f"{round(mean / np.sqrt(1 + variation**2) / 1e3)}us", variation)


def _lognormal(median: str, variation: float) -> dict[str, Any]:
    sigma = float(np.sqrt(np.log1p(variation**2)))
    return {"kind": "lognormal", "median": median, "sigma": round(sigma, 3)}


def _moments(values: Numbers) -> tuple[float, float]:
    """The mean, which is at least 1, and the coefficient of variation."""
    mean = max(1.0, float(values.mean()))
    return mean, float(values.std()) / mean


def _paced(rows: Rows) -> Workload | None:
    """Blocks at a constant rate: batches of data not clocked by ACKs."""
    data = np.flatnonzero(rows.is_data & rows.is_new)
    times = rows.time[data]
    begins = np.flatnonzero(np.diff(times, prepend=times[0] - 2 * _BATCH_NS) > _BATCH_NS)
    if begins.size < _FEW:
        return None
    acks = rows.time[rows.is_ack]
    places = np.searchsorted(acks, times[begins], side="right") - 1
    since = times[begins] - acks[np.clip(places, 0, None)]
    own = begins[since > _CLOCKED_NS]
    if own.size < max(_FEW, _PACED * begins.size):
        return None
    carried = int(rows.length[data[own[0] : own[-1]]].sum())
    rate = carried * 8e9 / (times[own[-1]] - times[own[0]])
    # Nagle's algorithm moves ends of blocks to later batches, so the times give the size.
    block = round(rate * float(np.median(np.diff(times[own]))) / 8e9)
    return Workload(
        {"kind": "cbr", "block_size": f"{block}B", "rate": f"{round(rate)}bit/s"},
        "batches of data not clocked by ACKs",
    )
