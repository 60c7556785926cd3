"""A connection in a capture: its paths, its hosts and how it went.

A capture of a network and one of its twin are read by this same code, so their numbers compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.analyze import records
from anabranch.analyze.analysis import Analysis, analyze
from anabranch.analyze.flights import Flight, Hidden, Rows, seen
from anabranch.analyze.given import File
from anabranch.analyze.records import ConnectionRecord
from anabranch.errors import InputError
from anabranch.results.estimates import Sample, percent
from anabranch.twins.hosts import Ends, ends
from anabranch.twins.link import LinkFindings, link
from anabranch.twins.transmissions import Transmissions, transmissions
from anabranch.words import counted

_CURVE_POINTS = 100
"""Points of the curves over time."""
_LONGEST_PAUSE_NS, _LONGEST_GAP_NS = 120_000_000_000, 10_000_000_000
"""Longest time without a packet that a twin repeats: of an application that pauses, and of one that
does not. A twin has no outages."""
_PAUSING = ("on_off", "request_response")
"""Workloads with pauses."""


@dataclass(frozen=True)
class PathObservation:
    """One path of the connection, with the subflow that carried most over it.

    Attributes:
        name: Name of the path in the twin.
        addresses: The two hosts, as the capture names them.
        data_s: When its subflow first sent data, from the connection's begin.
        link: Findings about the link; `None` if the subflow carried too little.
        share: Its part of the acknowledged bytes of all subflows.
        goodput_mbps: Data acknowledged on its subflow, over the time of the connection.
        rtt_ms: Median and 95th percentile of the round-trip times; `None` without any.
        rtt_s, rtt_samples_ms: When, from the connection's begin, which round-trip time was seen.
        acked_s, acked_mb: How much it had acknowledged by when.
    """

    name: str
    addresses: str
    is_backup: bool
    data_s: float
    link: LinkFindings | None
    share: float
    goodput_mbps: float
    rtt_ms: tuple[float, float] | None
    rtt_s: Sample
    rtt_samples_ms: Sample
    acked_s: Sample
    acked_mb: Sample


@dataclass(frozen=True)
class Observed:
    """One direction of a connection.

    Attributes:
        direction: ``"download"`` if the host that was connected to sends the data.
        seconds: From the first packet to the last.
        goodput_mbps: As every command shows it.
        reinjected: Share of the data that was sent again on another subflow than before.
        reordering_kb: Median and 95th percentile over time of the data that subflows delivered and
            the connection did not, because earlier data was missing.
        fallback_after: Number of packets of the only path, in both directions, up to about a
            round-trip time before the connection fell back to TCP; `None` if it did not.
    """

    direction: str
    is_ipv6: bool
    seconds: float
    goodput_mbps: float
    reinjected: float
    reordering_kb: tuple[float, float]
    fallback_after: int | None
    observations: tuple[PathObservation, ...]
    ends: Ends
    notes: tuple[str, ...]


def read(
    files: Sequence[File], on_progress: Any = None, rates_mbps: Sequence[float] = ()
) -> Observed:
    """The connection in captures that carried most data.

    `rates_mbps` are about the rates of the paths, as far as they are known. This saves time.

    Raises:
        InputError: if a file cannot be read, or if no connection can have a twin.
    """
    analysis = analyze(*files, on_progress=on_progress)
    return observe(analysis, rates_mbps)


def observe(analysis: Analysis, rates_mbps: Sequence[float] = ()) -> Observed:
    """The connection that carried most data.

    Raises:
        InputError: if no connection shows its sender.
    """
    files = ", ".join(Path(name).name for name in analysis.files["file"])
    abouts = sorted(records.connections(analysis), key=lambda about: -about.ways[about.larger].sent)
    reasons = []
    for about in abouts:
        try:
            return _observed(analysis, about, rates_mbps)
        except Hidden as hidden:
            reasons.append(f"{files}: connection {about.number}: {hidden}")
    raise InputError(reasons[0] if reasons else f"{files}: no TCP connection")


def _rows(analysis: Analysis, about: ConnectionRecord) -> Rows:
    """The rows of the larger direction of a connection that can have a twin.

    Raises:
        Hidden: if it cannot.
    """
    rows = seen(analysis, about, about.larger)
    if rows.hides_subflows:
        raise Hidden(
            f"{percent(rows.elsewhere)} of the data came over subflows that are not in the "
            "capture; capture on all interfaces"
        )
    _require_no_pause(rows, _LONGEST_PAUSE_NS)
    return rows


def _require_no_pause(rows: Rows, longest_ns: int) -> None:
    """Refuse rows with a longer time without any packet.

    Raises:
        Hidden: with the place of the pause.
    """
    pauses = np.diff(rows.time)
    if pauses.size and pauses.max() > longest_ns:
        before = int(pauses.argmax())
        raise Hidden(
            f"no packet for {pauses[before] / 1e9:,.0f} s, {rows.time[before] / 1e9:,.1f} s after "
            "its first (a step of the clock?), which no twin can repeat; cut the capture there "
            "with editcap -A or -B"
        )


def _observed(analysis: Analysis, about: ConnectionRecord, rates_mbps: Sequence[float]) -> Observed:
    rows = _rows(analysis, about)
    way = about.ways[about.larger]
    if way.goodput_mbps is None:
        raise Hidden("no data was acknowledged")
    is_ipv6 = about.initiator.count(":") > 1
    begin_ns = rows.since(about.begin_ns)
    flights = [Flight(rows, each.number) for each in rows.subflows]
    advances = np.flatnonzero(np.diff(rows.una, prepend=0) > 0)
    last = rows.time[advances[-1]] if advances.size else rows.time[-1]
    observations = _lanes(
        rows, flights, begin_ns, max(1, int(last) - begin_ns), is_ipv6, rates_mbps
    )
    rtts = [each.rtt_ms[0] for each in observations if each.rtt_ms is not None]
    hosts = ends(
        rows,
        flights,
        closed=(about.state or "").startswith("closed"),
        rtt_ns=int(max(rtts, default=0.0) * 1e6),
    )
    if hosts.workload.settings["kind"] not in _PAUSING:
        _require_no_pause(rows, _LONGEST_GAP_NS)
    held = np.maximum(sum(each.una for each in flights) - rows.una, 0) / 1e3
    weights = rows.until - rows.time
    again = int(rows.length[rows.is_data & rows.is_reinjected].sum())
    return Observed(
        direction="upload" if about.larger == "out" else "download",
        is_ipv6=is_ipv6,
        seconds=int(rows.time[-1] - begin_ns) / 1e9,
        goodput_mbps=way.goodput_mbps,
        reinjected=again / max(1, int(rows.length[rows.is_data].sum())),
        reordering_kb=(_weighted(held, weights, 0.5), _weighted(held, weights, 0.95)),
        fallback_after=_fallback_after(rows) if len(observations) == 1 else None,
        observations=observations,
        ends=hosts,
        notes=tuple(_notes(analysis, rows, observations)),
    )


def _lanes(
    rows: Rows,
    flights: Sequence[Flight],
    begin_ns: int,
    lasted: int,
    is_ipv6: bool,
    rates_mbps: Sequence[float],
) -> tuple[PathObservation, ...]:
    """The paths: the pairs of addresses, in the order in which they were used."""
    total = max(1, sum(int(each.una[-1]) for each in flights))
    by_address: dict[str, list[int]] = {}
    for place, each in enumerate(rows.subflows):
        hosts = (each.initiator.rpartition(":")[0], each.listener.rpartition(":")[0])
        by_address.setdefault(" – ".join(hosts), []).append(place)
    found: list[PathObservation] = []
    for addresses, places in by_address.items():
        most = max(places, key=lambda place: int(flights[place].una[-1]))
        carried = sum(int(flights[place].una[-1]) for place in places)
        sent = transmissions(rows, rows.subflows[most], ipv6=is_ipv6)
        when_s, rtt = _rtts(sent, begin_ns)
        near = rates_mbps[len(found)] if len(found) < len(rates_mbps) else None
        points = np.linspace(0, lasted, _CURVE_POINTS)
        acked = sum(flights[place].una for place in places)
        found.append(
            PathObservation(
                name=f"path-{len(found) + 1}",
                addresses=addresses,
                is_backup=rows.subflows[most].is_backup,
                data_s=0.0 if sent is None else (int(sent.sent_ns[0]) - begin_ns) / 1e9,
                link=None if sent is None else link(sent, near),
                share=carried / total,
                goodput_mbps=carried * 8e3 / lasted,
                rtt_ms=(float(np.median(rtt)), float(np.quantile(rtt, 0.95))) if rtt.size else None,
                rtt_s=when_s,
                rtt_samples_ms=rtt,
                acked_s=points / 1e9,
                acked_mb=np.interp(points, rows.time - begin_ns, acked) / 1e6,
            )
        )
    return tuple(found)


def _fallback_after(rows: Rows) -> int | None:
    """Packets of the subflow that fell back, until about a round-trip time before."""
    fallbacks = rows.events.filter(pl.col("event") == "fallback")["subflow", "time_ns"].rows()
    for number, time_ns in fallbacks:
        rtt_ns = next((each.rtt_ns for each in rows.subflows if each.number == number), None)
        until = rows.since(time_ns) - (rtt_ns or 0)
        return int(((rows.subflow == number) & (rows.time < until)).sum())
    return None


def _rtts(sent: Transmissions | None, begin_ns: int) -> tuple[Sample, Sample]:
    """When an acknowledgement arrived, in s, and how long it took, in ms."""
    if sent is None:
        return np.empty(0), np.empty(0)
    packets, acked_ns = sent.answers
    return (acked_ns - begin_ns) / 1e9, (acked_ns - sent.sent_ns[packets]) / 1e6


def _weighted(values: Sample, weights: Any, quantile: float) -> float:
    order = np.argsort(values)
    sums = np.cumsum(np.asarray(weights, dtype=np.float64)[order])
    if not sums.size or sums[-1] == 0:
        return 0.0
    return float(values[order][min(np.searchsorted(sums, quantile * sums[-1]), sums.size - 1)])


def _notes(analysis: Analysis, rows: Rows, observations: Sequence[PathObservation]) -> list[str]:
    about = rows.about
    notes = [
        f"{name}: {what}; the twin is of the packets before"
        for name, what in analysis.files["file", "damage"].rows()
        if what is not None
    ]
    if not about.is_complete:
        notes.append("the capture lacks packets of the connection; the twin starts afresh")
    if not rows.knows_window:
        notes.append(
            "the capture lacks the handshake with the scale of the windows, so the twin has the "
            "host's default receive buffer"
        )
    if about.fallback is not None and len(observations) > 1:
        notes.append(f"the connection fell back to TCP ({about.fallback}); the twin does not")
    if rows.left_out:
        notes.append(f"{counted(rows.left_out, 'subflow')} that carried less left out")
    if analysis.connections.height > 1:
        notes.append(
            f"connection {about.number} of {analysis.connections.height}, which carried most; the "
            "others are not in the twin, and make its paths seem slower or lossy"
        )
    return notes
