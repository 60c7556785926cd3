"""Results as the command line prints them: tables and JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anabranch import _core
from anabranch.live.hosts import HERE
from anabranch.results import metrics
from anabranch.results.claims import Judgement, Verdict
from anabranch.results.estimates import number, percent

# The command line must start quickly, and these modules are needed for their types only.
if TYPE_CHECKING:
    from anabranch.analyze.analysis import Analysis
    from anabranch.explanations.what_if import WhatIf
    from anabranch.live.run import Conditions
    from anabranch.reports import table
    from anabranch.results.folder import Results
    from anabranch.runs.run import Run
    from anabranch.sweeps.compare import Comparison

_VERDICTS = {
    Verdict.REPRODUCED: ("✓", "green"),
    Verdict.PARTLY: ("~", "yellow"),
    Verdict.OPEN: ("?", "yellow"),
    Verdict.NOT_REPRODUCED: ("✗", "red"),
    Verdict.NOT_APPLICABLE: ("–", "bright_black"),
}

_GAP = 2
"""Spaces between columns."""

_MOST_ROWS = 30
"""Most rows printed of each table about a capture, and of the changes of paths."""


@dataclass(frozen=True)
class Grid:
    """A table that adapts its layout to the terminal's width."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    """Number of columns at the left that identify a row."""
    caption: str = ""
    may_omit: bool = False
    """Whether a table with many rows may omit columns that do not fit; the caption names them."""
    needed: int = 0
    """Number of columns at the left that it never omits."""

    def fitted(self, screen: Console) -> Iterator[RenderableType]:
        """The first layout that fits: upright, transposed, with fewer columns, or row by row.

        No layout cuts or breaks a number. A table without rows is a line that says so.
        """
        if not self.rows:
            yield Text(f"{self.title or self.headings[0]}: none")
            yield ""
            return
        if self.title:
            yield Text(self.title, style="bold")
        columns = [
            (heading, *cells) for heading, *cells in zip(self.headings, *self.rows, strict=True)
        ]
        names = ("", *self.headings[self.names :])
        sideways = [names, *((self._name(row), *row[self.names :]) for row in self.rows)]
        if _width(columns) <= screen.width:
            yield self._upright()
        elif _width(sideways) <= screen.width:
            yield self._transposed()
        elif self.may_omit and (narrowed := self._narrowed(columns, screen.width)):
            yield from narrowed.fitted(screen)
            return
        else:
            yield self._row_by_row(screen.width)
        if self.caption:
            yield Text(self.caption, style="dim")
        yield ""

    def _narrowed(self, columns: Sequence[Sequence[str]], width: int) -> Grid | None:
        """The columns that fit, or `None` if they are fewer than two or lack a needed one."""
        kept = list(range(self.names))
        for index in range(self.names, len(columns)):
            if _width([columns[each] for each in (*kept, index)]) <= width:
                kept.append(index)
        if len(kept) < self.names + 2 or kept[: self.needed] != list(range(self.needed)):
            return None
        omitted = [name for index, name in enumerate(self.headings) if index not in kept]
        caption = f"not shown for lack of width: {', '.join(omitted)}"
        return Grid(
            "",
            [self.headings[index] for index in kept],
            [[row[index] for index in kept] for row in self.rows],
            self.names,
            "\n".join(filter(None, (self.caption, caption))),
        )

    def _upright(self) -> Table:
        table = _table()
        for index, heading in enumerate(self.headings):
            numeric = index >= self.names and all(_is_number(row[index]) for row in self.rows)
            table.add_column(Text(heading), justify="right" if numeric else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _transposed(self) -> Table:
        table = _table()
        table.add_column("", no_wrap=True)
        for row in self.rows:
            table.add_column(Text(self._name(row)), justify="right", no_wrap=True)
        for index in range(self.names, len(self.headings)):
            table.add_row(Text(self.headings[index]), *(Text(row[index]) for row in self.rows))
        return table

    def _row_by_row(self, width: int) -> RenderableType:
        parts: list[RenderableType] = []
        for row in self.rows:
            pairs = zip(self.headings[self.names :], row[self.names :], strict=True)
            words = [f"{heading}: {value}" for heading, value in pairs]
            lines = Text("\n".join(_packed(words, width - _GAP)), no_wrap=True)
            parts += [
                Text(self._name(row), style="bold"),
                indented(lines, by=_GAP),
            ]
        return Group(*parts)

    def _name(self, row: Sequence[str]) -> str:
        return " · ".join(row[: self.names])


def _packed(words: Sequence[str], width: int) -> list[str]:
    """Words in as few lines as possible; an overlong word gets its own line."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]}{' ' * _GAP}{word}" if lines else ""
        if lines and cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _width(columns: Sequence[Sequence[str]]) -> int:
    """Width of a table without any cuts."""
    return sum(max(map(cell_len, column)) + _GAP for column in columns) - _GAP


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, perhaps with unit and interval, or a dash for a missing one."""
    return cell[:1] in "-+−–0123456789" and " – " not in cell


def of_report(shown: table.Table, title: str, names: int = 1, *, may_omit: bool = False) -> Grid:
    """A table of a report, for the terminal."""
    caption = f"{shown.left_out:,} more rows are not shown" if shown.left_out else ""
    return Grid(title, shown.headings, shown.rows, names, caption, may_omit)


def predictions(predicted: WhatIf) -> Grid:
    """The effects of changes. The numbers that order the rows stay in view."""
    return replace(of_report(predicted.table(), "What if", may_omit=True), needed=3)


def claims(judgements: Sequence[Judgement]) -> RenderableType:
    """Claims with their verdicts and measurements."""
    parts: list[RenderableType] = []
    for judgement in judgements:
        mark, colour = _VERDICTS[judgement.verdict]
        claim = judgement.claim
        head = Text.assemble(
            (f"{mark} ", colour),
            (claim.id, "bold"),
            f"  {claim.statement} ",
            (f"({claim.source})", "dim"),
        )
        where = "" if not claim.where or claim.where in claim.statement else f"{claim.where}: "
        body = Text.assemble((f"{judgement.verdict.words}: ", colour), where + judgement.measured)
        parts += [_hanging(head, by=2), indented(body, by=4)]
        if judgement.overturned_by:
            parts.append(indented(f"not robust: {judgement.sensitivity}", "yellow", by=4))
    return Group(*parts, "")


def pairs(comparison: Comparison) -> str:
    """A line about the numbers of a comparison."""
    cells = comparison.cells
    if cells == 1:
        over = ""
    elif comparison.shows_cells:
        over = "; in the rows “all”, each cell counts once"
    else:
        over = f"; each of the {cells:,} cells counts once, and --json prints them"
    count = f"{comparison.pairs:,} pair{'' if comparison.pairs == 1 else 's'}"
    return f"Medians over {count} of runs with equal seeds{over}."


def side_by_side(rows: Mapping[str, Sequence[str]]) -> Grid:
    """Virtual time compared with Linux: goodput in Mbit/s and delays of blocks in ms."""
    headings = [
        "scenario",
        *(
            heading
            for metric in ("goodput Mbit/s", "p50 ms", "p95 ms")
            for heading in (metric, "Linux", "off by")
        ),
    ]
    cells = [(name, *values) for name, values in rows.items()]
    return Grid("Virtual time and Linux", headings, cells)


def effort_of(run: Run, conditions: Conditions | None) -> str:
    """Lines about how a run was made."""
    if conditions is None:
        effort = (
            f"{run.virtual_ns / 1e9:g} s simulated in {run.wall_s:.2f} s · {run.segments:,} "
            f"segments · seed {run.seed} · digest {run.digest}"
        )
        return "\n".join([effort, *_stacks(run.scenario)])
    first = (
        f"{run.virtual_ns / 1e9:.3g} s {_time_of(conditions)} · client {conditions.client}, "
        f"server {conditions.server} · Linux {conditions.kernel} · {run.segments:,} packets · "
        f"seed {run.seed}"
    )
    notices = [f"note: {notice}" for notice in conditions.notices]
    return "\n".join([first, conditions.lateness(), *notices])


def _stacks(scenario: _core.Scenario) -> Iterator[str]:
    """A line about each stack that a connection selects."""
    for name, stack, departures in scenario.stacks():
        if stack is not None:
            changed = f", with its own {', '.join(departures)}" if departures else ""
            yield f"{name}: stack {stack}{changed}"


def _time_of(conditions: Conditions) -> str:
    return "in real time" if conditions.machine == HERE else f"in {conditions.machine}"


def run(run: Run, conditions: Conditions | None) -> list[Grid]:
    """A run as tables: its connections, its subflows, and its hosts' counters."""
    changes = [] if run.changes.is_empty() else [_changes(run)]
    return [_connections(run, conditions), *changes, _subflows(run), _counters(run)]


def paths(run: Run) -> Grid:
    """Data that each path carried for the connections of a program."""
    links = run.links
    total = max(links["bytes_delivered"].sum(), 1)
    rows = []
    for index, name in enumerate(run.path_names):
        down, up = links.filter(links["path"] == index).sort("direction").iter_rows(named=True)
        carried = [each["bytes_delivered"] for each in (down, up)]
        lost = sum(
            each[column]
            for each in (down, up)
            for column in ("dropped_by_queue", "dropped_by_loss", "dropped_down")
        )
        rows.append(
            (
                name,
                *(f"{count / 1e6:,.2f}" for count in carried),
                f"{sum(carried) / total * 100:.0f} %",
                f"{lost:,}",
            )
        )
    opened = len(run.settings["connection"])
    failed = run.connections.filter(run.connections["failed"] == 1).height // 2
    caption = f"{opened:,} connection{'' if opened == 1 else 's'}, {failed:,} failed"
    return Grid("Paths", ("path", "MB down", "MB up", "share", "packets lost"), rows, 1, caption)


def _connections(run: Run, conditions: Conditions | None) -> Grid:
    rows = metrics.connection_rows(run)
    has_blocks = any(row["block_count"] for row in rows)
    columns = [
        ("connection", [row["connection"] for row in rows]),
        ("goodput Mbit/s", [number(row["goodput_mbps"]) for row in rows]),
        *(
            (words, [_limited(run, key, *each, conditions) for each in enumerate(rows)])
            for words, key in metrics.LIMITS.items()
        ),
        ("reinjections", [f"{row['reinjections']:,}" for row in rows]),
        *(_delays(rows) if has_blocks else ()),
        ("longest stall ms", [_or_dash(row["stall_ms"]) for row in rows]),
        ("state", [_state(row) for row in rows]),
    ]
    title = f"Connections (after the warm-up{'; delays of blocks' if has_blocks else ''})"
    headings, values = zip(*columns, strict=True)
    return Grid(title, headings, list(zip(*values, strict=True)))


def _delays(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    yield "blocks", [f"{row['block_count']:,}" for row in rows]
    for name in ("mean", "p50", "p95", "p99", "max"):
        yield f"{name} ms", [_or_dash(row[f"delay_{name}_ms"]) for row in rows]


def _or_dash(value: float | None) -> str:
    return "–" if value is None else number(value)


def _limited(
    run: Run, key: str, index: int, row: Mapping[str, Any], conditions: Conditions | None
) -> str:
    """The share of time; a dash if the sender is a kernel, which does not report it."""
    if conditions is not None:
        uploads = run.flows[index]["direction"] == "upload"
        if (conditions.client if uploads else conditions.server) == "kernel":
            return "–"
    return percent(row[key])


def _state(row: dict[str, object]) -> str:
    spoken = "MPTCP" if row["is_mptcp"] else "TCP"
    if row["fallback"]:
        spoken = f"fallback to TCP ({str(row['fallback']).replace('_', ' ')})"
    ends = {"failed": "failed", "aborted": "reset by an application", "completed": "completed"}
    return f"{spoken}, {next((ends[key] for key in ends if row[key]), 'open at the end')}"


def _changes(run: Run) -> Grid:
    """The first changes of paths, and the time until the application's next byte."""
    rows = [
        (
            row["connection"],
            row["path"],
            f"{row['changed_s']:g}",
            _or_dash(row["first_byte_ms"]),
        )
        for row in metrics.changes(run)[:_MOST_ROWS]
    ]
    left_out = run.changes.height - len(rows)
    return Grid(
        "Changes of paths",
        ("connection", "path", "at s", "ms until the first byte after it"),
        rows,
        names=2,
        caption=f"{left_out:,} more rows are not shown" if left_out else "",
    )


def _subflows(run: Run) -> Grid:
    headings = (
        "connection", "path", "sent", "received", "share", "retransmitted", "reinjected",
        "timeouts", "min RTT ms",
    )  # fmt: skip
    rows = [
        (
            row["connection_name"],
            row["path_name"],
            f"{row['bytes_sent']:,}",
            f"{row['bytes_received']:,}",
            f"{row['share'] * 100:.2f} %",
            f"{row['bytes_retransmitted']:,}",
            f"{row['bytes_reinjected']:,}",
            f"{row['timeouts']:,}",
            number(row["min_rtt_ns"] / 1e6),
        )
        for row in metrics.tables(run)["subflows"].iter_rows(named=True)
    ]
    return Grid("Subflows (whole run, bytes of payload)", headings, rows, names=2)


def _counters(run: Run) -> Grid:
    sides = run.counters.pivot("host", index="counter", values="count")
    rows = [
        (name, *("–" if count is None else f"{count:,}" for count in counts))
        for name, *counts in sides.select("counter", "client", "server").iter_rows()
        if any(counts)
    ]
    title = "Counters above zero (docs/counters.md)"
    return Grid(title, ("counter", "client", "server"), rows)


def bad_decisions(run: Run) -> str | None:
    """A line about impossible decisions of schedulers, or `None` if there were none."""
    count = run.counters.filter(counter="bad_decisions")["count"].sum()
    if not count:
        return None
    return (
        f"the engine replaced {count:,} scheduler decision{'' if count == 1 else 's'}, because "
        f"{'it was' if count == 1 else 'they were'} impossible or would have stalled the connection"
    )


def run_json(run: Run, conditions: Conditions | None) -> dict[str, Any]:
    """A run as plain values: sizes in bytes, and times in ns unless the name has another unit."""
    counters = {
        host: dict(run.counters.filter(host=host)["counter", "count"].iter_rows())
        for host in ("client", "server")
    }
    tables = metrics.tables(run)
    return {
        "scenario": run.settings["name"],
        "seed": run.seed,
        "digest": run.digest or None,
        "simulated_s": run.virtual_ns / 1e9,
        "wall_s": round(run.wall_s, 3),
        "segments": run.segments,
        "connections": tables["runs"].to_dicts(),
        "subflows": tables["subflows"].to_dicts(),
        "links": tables["links"].to_dicts(),
        "changes": metrics.changes(run),
        "counters": counters,
        "live": None if conditions is None else conditions.provenance(),
    }


def sweep_json(results: Results) -> dict[str, Any]:
    """A sweep as plain values: its factors and a row for each connection of each run."""
    return {
        "name": results.provenance["sweep"],
        "factors": results.provenance["factors"],
        "seeds": results.provenance["seeds"],
        "runs": results.runs.to_dicts(),
    }


def analysis(found: Analysis) -> Iterator[Grid]:
    """Tables about captures: connections, their subflows, and the first violations."""
    from anabranch.analyze import report as analyze_report

    yield of_report(analyze_report.connections(found, _MOST_ROWS), "Connections")
    subflows = analyze_report.subflows(found, _MOST_ROWS)
    if subflows.rows:
        yield of_report(subflows, "Subflows (bytes of payload, both directions)", names=2)
    violations = analyze_report.violations(found, _MOST_ROWS)
    if violations.rows:
        yield of_report(violations, f"Violations of {found.standards}")


def policies(all_of_them: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Policies grouped by kind: their purpose, parameters and sources."""
    for kind, group in itertools.groupby(all_of_them, key=lambda policy: str(policy["kind"])):
        yield Text(kind.replace("_", " "), style="bold underline")
        for each in group:
            yield _described(each["name"], each["summary"])
            for parameter in each["parameters"]:
                yield indented(_parameter(parameter), by=4)
            yield indented(f"Source: {each['source']}", "dim")
        yield ""


def workloads(schema: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The workloads in the JSON Schema of scenarios, with their keys."""
    yield Text("workload", style="bold underline")
    for workload in schema["$defs"]["Workload"]["oneOf"]:
        keys = {key: about["description"] for key, about in workload["properties"].items()}
        kind = workload["properties"]["kind"]["const"]
        del keys["kind"]
        yield _described(kind, " ".join(workload["description"].split()))
        for key, about in keys.items():
            yield indented(f"{key}: {' '.join(about.split())}", by=4)
    yield ""


def capabilities(found: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """The capabilities of this host: their purposes, and remedies for missing ones."""
    for each in found:
        works = each["problem"] is None
        mark, colour = ("✓", "green") if works else ("✗", "red")
        yield Text.assemble((f"{mark} ", colour), (each["name"], "bold"), f"  {each['purpose']}")
        if not works:
            yield indented(f"missing: {each['problem']}")
            yield indented(f"to do: {each['remedy']}")


def indented(text: str | Text, style: str = "", by: int = 2) -> Padding:
    """A paragraph with all its lines indented."""
    styled = Text(text, style) if isinstance(text, str) else text
    return Padding(styled, (0, 0, 0, by), expand=False)


def _hanging(text: Text, by: int) -> Table:
    """A paragraph whose lines after the first are indented."""
    table = Table.grid(padding=0)
    table.add_column(width=by)
    table.add_column()
    table.add_row(text[:by], text[by:])
    return table


def _described(name: str, summary: str) -> Text:
    return Text.assemble((name, "bold"), f"  {summary}")


def _parameter(parameter: Mapping[str, Any]) -> str:
    only = "" if parameter["only_with"] is None else f"; with {parameter['only_with']}"
    return (
        f"{parameter['name']} = {parameter['default']} ({parameter['origin']}): "
        f"{parameter['meaning']}; {parameter['values']}{only}"
    )
