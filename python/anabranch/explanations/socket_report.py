"""The explanation of the text of ss and nstat: tables, notes, plain values, and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch._core import __version__
from anabranch.errors import InputError
from anabranch.explanations import nstat, sockets
from anabranch.explanations.sockets import WORDS, Socket, SocketExplanation
from anabranch.files import write_whole
from anabranch.reports import page
from anabranch.reports.table import Table
from anabranch.results.estimates import number
from anabranch.words import counted

_MOST = 10
"""Connections that are explained, those that sent most first (this project)."""


@dataclass(frozen=True)
class SocketReport:
    """Findings from the files."""

    files: Sequence[str]
    found: Sequence[SocketExplanation]
    counters: Mapping[str, int] | None
    left_out: int

    def notes(self) -> list[str]:
        """Limits of the evidence."""
        found = []
        if any(each.token for each in self.found):
            found.append(
                "rwnd_limited and sndbuf_limited of a subflow do not show what held Multipath TCP "
                "back: the window and the buffer belong to the connection"
            )
        if any(each.token and each.last.whole is None for each in self.found):
            found.append("without the option -M of ss, the shared window is unknown")
        if any(sockets.UNKNOWN in counts for each in self.found for counts in each.states.values()):
            found.append(
                "the option -m of ss (ss -tiMm) tells a full send buffer from an application "
                "without data"
            )
        if len(self.found[0].moments) == 1:
            found.append(
                "one snapshot shows one moment; append several to the file for shares of time: "
                "for i in $(seq 20); do ss -tiMm >> ss.txt; sleep 0.5; done"
            )
        if self.left_out:
            found.append(f"{counted(self.left_out, 'connection')} that sent less left out")
        return found

    def json(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "files": list(self.files),
            "connections": [_json(each) for each in self.found],
            "counters": None
            if self.counters is None
            else [
                {"counter": name, "count": count, "meaning": meaning}
                for name, count, meaning in nstat.meanings(self.counters)
            ],
            "notes": self.notes(),
        }


def read(files: Sequence[Path]) -> SocketReport:
    """Read files with the output of ss and of nstat, in any order.

    Raises:
        InputError: if a file cannot be read or is neither, or if no connection sends.
    """
    snapshots: list[list[Socket]] = []
    counters: dict[str, int] = {}
    for file in files:
        shown, counted = sockets.read(file), nstat.read(file)
        if shown is None and counted is None:
            raise InputError(
                f"{file}: neither the output of ss nor of nstat; make it with: ss -tiMm > ss.txt; "
                "nstat -a > nstat.txt"
            )
        snapshots += shown or []
        counters |= {} if shown else counted or {}
    if not snapshots:
        raise InputError(f"{files[0]}: the output of nstat alone; add that of: ss -tiMm > ss.txt")
    found = sockets.explanations(snapshots)
    if not found:
        raise InputError(
            f"{files[0]}: no connection of this host sends data; run ss on the host that sends"
        )
    names = [str(file) for file in files]
    return SocketReport(names, found[:_MOST], counters or None, max(0, len(found) - _MOST))


def states(explanation: SocketExplanation) -> Table:
    """A row for each subflow and state."""
    rows = [
        (
            explanation.labels[subflow],
            WORDS[state],
            f"{explanation.share(subflow, state) * 100:.0f} %",
        )
        for subflow, counts in explanation.states.items()
        for state, _ in counts.most_common()
    ]
    return Table(("subflow", "state", "snapshots"), tuple(rows))


def subflows(explanation: SocketExplanation) -> Table:
    """A row of measurements for each subflow in the last snapshot."""
    headings: tuple[str, ...] = ("subflow", "RTT ms", "least", "cwnd", "Mbit/s", "retransmitted")
    if explanation.token is None:
        headings = (*headings, "rwnd_limited", "sndbuf_limited")
    rows = [
        (explanation.labels[each.name], *_measured(each, is_tcp=explanation.token is None))
        for each in explanation.last.subflows
    ]
    return Table(headings, tuple(rows))


def _measured(subflow: Socket, *, is_tcp: bool) -> tuple[str, ...]:
    sent, busy = subflow.number("bytes_sent"), subflow.number("busy")
    again = subflow.number("bytes_retrans") / sent if sent else 0.0
    row: tuple[str, ...] = (
        number(subflow.number("rtt")),
        number(subflow.number("minrtt")),
        f"{subflow.number('cwnd'):.0f}",
        number(subflow.number("delivery_rate") / 1e6),
        f"{again * 100:.1f} %",
    )
    if not is_tcp:
        return row
    shares = (
        subflow.number(key) / busy if busy else 0.0 for key in ("rwnd_limited", "sndbuf_limited")
    )
    return (*row, *(f"{share * 100:.0f} %" for share in shares))


def counters(report: SocketReport) -> Table | None:
    """A row for each counter that explains something; `None` without the output of nstat."""
    if report.counters is None:
        return None
    rows = [
        (name.removeprefix("MPTcpExt"), f"{count:,}", words)
        for name, count, words in nstat.meanings(report.counters)
    ]
    return Table(("counter of the host", "count", "meaning"), tuple(rows))


def _json(explanation: SocketExplanation) -> dict[str, Any]:
    main = explanation.main
    return {
        "connection": explanation.name,
        "protocol": "tcp" if explanation.token is None else "mptcp",
        "finding": explanation.finding(),
        "main_cause": None
        if main is None
        else {"subflow": main[0], "state": main[1], "share": main[2]},
        "snapshots": len(explanation.moments),
        "waiting_bytes": explanation.last.waiting,
        "window_bytes": explanation.last.window,
        "states": {subflow: dict(counts) for subflow, counts in explanation.states.items()},
        "subflows": [{"name": each.name, **each.values} for each in explanation.last.subflows],
    }


def save(report: SocketReport, folder: Path) -> None:
    """Write ``report.html`` and ``explanation.json``.

    Raises:
        InputError: if the folder cannot be written.
    """
    text = json.dumps(report.json(), indent=2, ensure_ascii=False)
    html = page.template("explain_sockets.html").render(
        name=", ".join(Path(name).name for name in report.files),
        version=__version__,
        explanations=[
            {"finding": each.finding(), "states": states(each), "subflows": subflows(each)}
            for each in report.found
        ],
        counters=counters(report),
        notes=report.notes(),
    )
    write_whole(folder, {"explanation.json": f"{text}\n".encode(), "report.html": html.encode()})
