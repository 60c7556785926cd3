"""A connection in a capture: its paths, its hosts and how it went.

A capture of a network and one of its twin are read by this same code, so their numbers compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.analyze.analysis import Analysis, analyze
from anabranch.analyze.flights import Flight, Hidden, Rows, seen
from anabranch.errors import InputError
from anabranch.results.estimates import Sample
from anabranch.twins.hosts import Ends, ends
from anabranch.twins.link import Link, link
from anabranch.twins.transmissions import Transmissions, transmissions

_CURVE_POINTS = 100
"""Points of the curves over time."""


@dataclass(frozen=True)
class Lane:
    """One path of the connection, with the subflow that carried most over it.

    Attributes:
        name: Name of the path in the twin.
        addresses: The two hosts, as the capture names them.
        data_s: When its subflow first sent data, from the connection's begin.
        link: What the subflow shows of the link; `None` if it carried too little.
        share: Its part of the acknowledged bytes of all subflows.
        goodput_mbps: What its subflow acknowledged, over the time of the connection.
        rtt_ms: Median and 95th percentile of the round-trip times; `None` without any.
        rtt_s, rtt_samples_ms: When, from the connection's begin, which round-trip time was seen.
        acked_s, acked_mb: How much it had acknowledged by when.
    """

    name: str
    addresses: str
    is_backup: bool
    data_s: float
    link: Link | None
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
        goodput_mbps: Data that was acknowledged in order, until the last of these acknowledgements.
        reinjected: Share of the data that was sent again on another subflow than before.
        reordering_kb: Median and 95th percentile over time of the data that subflows delivered and
            the connection did not, because earlier data was missing.
    """

    direction: str
    is_ipv6: bool
    is_complete: bool
    seconds: float
    goodput_mbps: float
    delivered: int
    reinjected: float
    reordering_kb: tuple[float, float]
    lanes: tuple[Lane, ...]
    ends: Ends
    notes: tuple[str, ...]


def read(
    files: Sequence[Path], on_progress: Any = None, rates_mbps: Sequence[float] = ()
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
    abouts = sorted(
        analysis.connections.iter_rows(named=True),
        key=lambda about: -max(about["bytes_out"], about["bytes_in"]),
    )
    reasons = []
    for about in abouts:
        way = "out" if about["bytes_out"] >= about["bytes_in"] else "in"
        try:
            rows = seen(analysis, about, way)
        except Hidden as hidden:
            reasons.append(f"{files}: connection {about['connection']}: {hidden}")
            continue
        return _observed(analysis, about, rows, way, rates_mbps)
    raise InputError(reasons[0] if reasons else f"{files}: no TCP connection")


def _observed(
    analysis: Analysis,
    about: Mapping[str, Any],
    rows: Rows,
    way: str,
    rates_mbps: Sequence[float],
) -> Observed:
    known = analysis.subflows.filter(pl.col("connection") == about["connection"])
    is_ipv6 = about["initiator"].count(":") > 1
    begin_ns = int(about["begin_ns"])
    subflows = list(known.iter_rows(named=True))
    flights = [Flight(rows, int(each["subflow"])) for each in subflows]
    advances = np.flatnonzero(np.diff(rows.una, prepend=0) > 0)
    if not advances.size:
        advances = np.array([rows.time.size - 1])
    lasted = max(1, int(rows.time[advances[-1]]) - begin_ns)
    lanes = _lanes(rows, subflows, flights, begin_ns, lasted, is_ipv6, rates_mbps)
    again = rows.is_data & (rows.table["kind"] == "reinjection").to_numpy()
    rtts = [each.rtt_ms[0] for each in lanes if each.rtt_ms is not None]
    held = np.maximum(sum(each.una for each in flights) - rows.una, 0) / 1e3
    weights = rows.until - rows.time
    return Observed(
        direction="upload" if way == "out" else "download",
        is_ipv6=is_ipv6,
        is_complete=bool(about["is_complete"]),
        seconds=int(rows.time[-1] - begin_ns) / 1e9,
        goodput_mbps=float(rows.una[-1]) * 8e3 / lasted,
        delivered=int(rows.una[-1]),
        reinjected=float(rows.length[again].sum()) / max(1, int(rows.length[rows.is_data].sum())),
        reordering_kb=(_weighted(held, weights, 0.5), _weighted(held, weights, 0.95)),
        lanes=lanes,
        ends=ends(
            rows,
            flights,
            closed=str(about["state"]).startswith("closed"),
            rtt_ns=int(max(rtts, default=0.0) * 1e6),
        ),
        notes=tuple(_notes(analysis, about, rows)),
    )


def _lanes(
    rows: Rows,
    subflows: Sequence[Mapping[str, Any]],
    flights: Sequence[Flight],
    begin_ns: int,
    lasted: int,
    is_ipv6: bool,
    rates_mbps: Sequence[float],
) -> tuple[Lane, ...]:
    """The paths: the pairs of addresses, in the order in which they were used."""
    total = max(1, sum(int(each.una[-1]) for each in flights))
    by_address: dict[str, list[int]] = {}
    for place, each in enumerate(subflows):
        hosts = (each["initiator"].rpartition(":")[0], each["listener"].rpartition(":")[0])
        by_address.setdefault(" – ".join(hosts), []).append(place)
    found: list[Lane] = []
    for addresses, places in by_address.items():
        most = max(places, key=lambda place: int(flights[place].una[-1]))
        carried = sum(int(flights[place].una[-1]) for place in places)
        sent = transmissions(rows, int(subflows[most]["subflow"]), ipv6=is_ipv6)
        when_s, rtt = _rtts(sent, begin_ns)
        near = rates_mbps[len(found)] if len(found) < len(rates_mbps) else None
        points = np.linspace(0, lasted, _CURVE_POINTS)
        acked = sum(flights[place].una for place in places)
        found.append(
            Lane(
                name=f"path-{len(found) + 1}",
                addresses=addresses,
                is_backup=bool(subflows[most]["is_backup"]),
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


def _notes(analysis: Analysis, about: Mapping[str, Any], rows: Rows) -> list[str]:
    notes = [
        f"{name}: {what}; the twin is of the packets before"
        for name, what in analysis.files["file", "damage"].rows()
        if what is not None
    ]
    if not about["is_complete"]:
        notes.append("the capture begins after the connection did; the twin starts afresh")
    if analysis.connections.height > 1:
        notes.append(
            f"connection {about['connection']} of {analysis.connections.height}, which carried "
            "most; the others are not in the twin, and make its paths seem slower or lossy"
        )
    return notes
