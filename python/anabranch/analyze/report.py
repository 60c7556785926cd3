"""The report of a capture: its tables, and a drawing of each large transfer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from anabranch._core import __version__
from anabranch.analyze import panels
from anabranch.analyze.analysis import (
    Analysis,
    joined_filters,
    largest,
    listed_packets,
    packet_filter,
    subflow_filter,
)
from anabranch.files import write_whole
from anabranch.reports import pictures
from anabranch.reports.page import drawing, template
from anabranch.reports.table import Table
from anabranch.results.estimates import number
from anabranch.words import counted

MOST_DRAWN = 6
"""Largest number of drawings: one for each direction of a connection."""
_MOST_ROWS = 200
_CAPTION = "Data over time, an enlarged part of it, outstanding data, and rates."


def connections(analysis: Analysis, most: int = _MOST_ROWS) -> Table:
    """A row for each connection."""
    rows = []
    for row in analysis.connections.head(most).iter_rows(named=True):
        spoken = row["protocol"]
        if row["fallback"]:
            spoken = f"TCP (fallback: {row['fallback']})"
        elif spoken == "MPTCP" and row["token_listener"] is None:
            spoken = "MPTCP, keys unknown"
        elif row["version"] == 0:
            spoken = "MPTCP version 0"
        rows.append((
            str(row["connection"]),
            f"{row['initiator']} – {row['listener']}",
            spoken,
            row["state"] or "–",
            str(row["subflows"]),
            *(f"{row[f'bytes_{way}']:,}" for way in ("out", "in")),
            *(_rate(row[f"goodput_{way}_mbps"]) for way in ("out", "in")),
            _verified(row),
        ))  # fmt: skip
    headings = (
        "connection", "initiator – listener", "speaks", "state", "subflows", "bytes out",
        "bytes in", "Mbit/s out", "Mbit/s in", "verified",
    )  # fmt: skip
    return Table(headings, tuple(rows), max(0, analysis.connections.height - most))


def subflows(analysis: Analysis, most: int = _MOST_ROWS) -> Table:
    """A row for each Multipath TCP subflow."""
    spoken = analysis.connections.filter(pl.col("protocol") != "TCP")["connection"].to_list()
    shown = analysis.subflows.filter(
        pl.col("connection").is_in(spoken) | pl.col("connection").is_null()
    )
    rows = []
    for row in shown.head(most).iter_rows(named=True):
        backup = ", backup" if row["is_backup"] else ""
        sums = {
            name: f"{row[f'{name}_out'] + row[f'{name}_in']:,}"
            for name in ("bytes", "retransmitted", "reinjected")
        }
        rows.append((
            "–" if row["connection"] is None else str(row["connection"]),
            str(row["subflow"]),
            f"{row['initiator']} – {row['listener']}",
            f"{row['kind']}{backup}",
            row["state"],
            *sums.values(),
            "–" if row["rtt_ns"] is None else number(row["rtt_ns"] / 1e6),
            row["seen_at"],
        ))  # fmt: skip
    headings = (
        "connection", "subflow", "addresses", "kind", "state", "bytes", "retransmitted",
        "reinjected", "first RTT ms", "seen at",
    )  # fmt: skip
    return Table(headings, tuple(rows), max(0, shown.height - most))


def violations(analysis: Analysis, most: int = _MOST_ROWS) -> Table:
    """A row for each violation."""
    several = analysis.files.height > 1
    begin = analysis.files["first_ns"].drop_nulls().min() or 0
    rows = []
    for row in analysis.violations.head(most).iter_rows(named=True):
        packet = f"{row['file'] + 1}:{row['packet']}" if several else str(row["packet"])
        rows.append((
            f"{(row['time_ns'] - begin) / 1e9:.6f}",
            packet,
            "–" if row["connection"] is None else str(row["connection"]),
            str(row["subflow"]),
            str(row["direction"]),
            row["clause"],
            row["rule"],
            row["what"],
        ))  # fmt: skip
    headings = (
        "time s", "file:packet" if several else "packet", "connection", "subflow", "direction",
        "clause", "rule", "what",
    )  # fmt: skip
    return Table(headings, tuple(rows), max(0, analysis.violations.height - most))


def events(analysis: Analysis, most: int = _MOST_ROWS) -> Table:
    """A row for each event."""
    begin = analysis.files["first_ns"].drop_nulls().min() or 0
    rows = tuple(
        (
            f"{(row['time_ns'] - begin) / 1e9:.6f}",
            str(row["packet"]),
            "–" if row["connection"] is None else str(row["connection"]),
            str(row["subflow"]),
            str(row["direction"]),
            row["event"].replace("_", " "),
            row["detail"] or "",
        )
        for row in analysis.events.head(most).iter_rows(named=True)
    )
    headings = ("time s", "packet", "connection", "subflow", "direction", "event", "detail")
    return Table(headings, rows, max(0, analysis.events.height - most))


def files(analysis: Analysis) -> Table:
    """A row for each file."""
    rows = tuple(
        (
            row["file"],
            f"{row['packets']:,}",
            f"{row['other_packets']:,}",
            row["unread"] or "–",
            f"{row['without_options']:,}",
            row["damage"] or "–",
        )
        for row in analysis.files.iter_rows(named=True)
    )
    headings = ("file", "packets", "not TCP", "not read", "TCP options unknown", "damage")
    return Table(headings, rows)


def save(
    analysis: Analysis, folder: Path, on_figure: Callable[[int, int], object] = lambda *_: None
) -> None:
    """Write ``report.html`` and the drawings ``cN-out`` and ``cN-in``, each as SVG and PNG.

    Raises:
        InputError: if the folder cannot be written.
    """
    drawn = largest(analysis, MOST_DRAWN)
    left_out = len(largest(analysis, analysis.connections.height * 2)) - len(drawn)
    names = ", ".join(Path(name).name for name in analysis.files["file"])
    footer = f"anabranch {__version__} · {names}"
    drawings = []
    contents: dict[str, bytes] = {}
    for done, (connection, direction) in enumerate(drawn):
        on_figure(done, len(drawn))
        shown = panels.flow(analysis, connection, direction)
        if shown.data.is_empty():
            continue
        figure = panels.draw(shown, footer)
        name = f"c{connection}-{direction}"
        contents |= pictures.files_of(name, figure)
        svg = contents[f"{name}.svg"]
        drawings.append(drawing(shown.title.capitalize(), _CAPTION, figure, svg))
    page = template("analyze.html").render(
        names=names,
        version=__version__,
        analysis=analysis,
        finding=finding(analysis),
        verdict=verdict(analysis),
        connections=connections(analysis),
        subflows=subflows(analysis),
        violations=violations(analysis),
        events=events(analysis),
        files=files(analysis),
        drawings=drawings,
        not_drawn=left_out,
        sections=_sections(analysis),
    )
    write_whole(folder, contents | {"report.html": page.encode()})


def finding(analysis: Analysis) -> list[str]:
    """Two sentences about the captures: their connections and their violations."""
    multipath = analysis.connections.filter(pl.col("protocol") == "MPTCP")
    carried = sum(int(multipath[f"bytes_{way}"].sum()) for way in ("out", "in"))
    joined = analysis.subflows.filter(
        pl.col("connection").is_in(multipath["connection"].to_list())
    ).height
    found = [
        f"{counted(analysis.connections.height, 'connection')}, {multipath.height} with Multipath "
        f"TCP: {number(carried / 1e6)} MB of data over {counted(joined, 'subflow')}."
    ]
    broken = analysis.violations
    if broken.is_empty():
        return [
            *found,
            f"The capture contains no violation of {analysis.standards}{_limit(analysis)}.",
        ]
    rules = broken["rule"].value_counts(sort=True)
    clause = broken.filter(pl.col("rule") == rules["rule"][0])["clause"][0]
    found.append(
        f"{counted(broken.height, 'violation')} of {analysis.standards} of "
        f"{counted(rules.height, 'kind')}; "
        f"the most frequent is “{rules['rule'][0]}” ({clause})."
    )
    return found


def verdict(analysis: Analysis) -> str:
    """The number of violations, and of packets that were not judged."""
    count = analysis.violations.height
    violations = counted(count, "violation") if count else "no violations"
    return f"{violations} of {analysis.standards}{_limit(analysis)}"


def _limit(analysis: Analysis) -> str:
    unread = analysis.not_judged
    return f"; {counted(unread, 'packet')} could not be judged" if unread else ""


def packets_of_violations(analysis: Analysis, most: int = 20) -> list[str]:
    """For each file, its name and the display filter for the first packets of its violations."""
    lines = []
    for index, name in enumerate(analysis.files["file"]):
        found = analysis.violations.filter(pl.col("file") == index)["packets"]
        numbers = list(dict.fromkeys(itertools.chain.from_iterable(map(listed_packets, found))))
        if numbers:
            rest = f" (and {len(numbers) - most:,} more)" if len(numbers) > most else ""
            lines.append(f"{name}: {packet_filter(numbers[:most])}{rest}")
    return lines


def as_json(analysis: Analysis) -> dict[str, Any]:
    """An analysis as plain values. Each row has the display filter that shows its packets."""
    rows = {
        name: table.to_dicts()
        for name, table in (
            ("connections", analysis.connections), ("subflows", analysis.subflows),
            ("events", analysis.events), ("violations", analysis.violations),
        )
    }  # fmt: skip
    filters: dict[int | None, list[str]] = {}
    for row in rows["subflows"]:
        row["filter"] = subflow_filter(row["initiator"], row["listener"])
        filters.setdefault(row["connection"], []).append(row["filter"])
    for row in rows["connections"]:
        row["filter"] = joined_filters(filters.get(row["connection"], ()))
    for row in rows["events"]:
        row["filter"] = packet_filter([row["packet"]])
    for row in rows["violations"]:
        row["packets"] = listed_packets(row["packets"])
        row["filter"] = packet_filter(row["packets"])
    return {
        "files": analysis.files["file"].to_list(),
        "packets": analysis.files.to_dicts(),
        **rows,
        "finding": finding(analysis),
        "notes": list(analysis.notes),
    }


def _sections(analysis: Analysis) -> list[tuple[str, str]]:
    """The table of contents: anchors and titles."""
    names = ("connections", "violations", "subflows", "events", "files")
    shown = [name for name in names if name != "violations" or analysis.violations.height]
    return [(name, name.capitalize()) for name in shown]


def _rate(rate: float | None) -> str:
    return "–" if rate is None else number(rate)


def _verified(row: dict[str, object]) -> str:
    """The tokens, HMACs and checksums of a connection that were verified."""
    if row["protocol"] != "MPTCP":
        return "–"
    counts = (
        ("tokens_right", "token"), ("hmacs_right", "HMAC"), ("checksums_right", "checksum"),
    )  # fmt: skip
    words = []
    for key, what in counts:
        count = row[key]
        if count:
            words.append(f"{count:,} {what}{'' if count == 1 else 's'}")
    whole = [] if row["is_complete"] else ["capture incomplete"]
    return ", ".join(words + whole) or "–"
