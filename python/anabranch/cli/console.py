"""What the command line prints: tables on standard output, progress on standard error."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from anabranch.live.run import Conditions
from anabranch.results import metrics
from anabranch.results.claims import Judgement, Verdict
from anabranch.results.estimates import number
from anabranch.runs.executors import Progress as Step
from anabranch.runs.run import Run

if TYPE_CHECKING:
    from anabranch.analyze.analysis import Analysis
    from anabranch.reports import report

_COLOURS = {
    Verdict.REPRODUCED: "green",
    Verdict.PARTLY: "yellow",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.NOT_APPLICABLE: "bright_black",
}

_MOST_ROWS = 30
"""Rows of each table of a capture that are printed."""

_PIPE_WIDTH = 160
"""Width of tables that do not go to a terminal."""


def stdout() -> Console:
    """A console on standard output."""
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    return console


@contextmanager
def progress(label: str) -> Iterator[Callable[[Step], None]]:
    """A progress bar on standard error, with rate and remaining time."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs · {task.fields[rate]} · {task.fields[remaining]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=None, rate="–", remaining="–")

        def advance(step: Step) -> None:
            if step.found == step.done > 0:
                bar.console.print(
                    f"{step.found} of {step.total} runs were finished before", highlight=False
                )
            elapsed = bar.tasks[task].elapsed or 0.0
            rate = f"{step.virtual_s / elapsed:,.0f}× real time" if elapsed else "–"
            remaining = "–" if step.remaining_s is None else _clock(step.remaining_s)
            bar.update(task, completed=step.done, total=step.total, rate=rate, remaining=remaining)

        yield advance


@contextmanager
def reading(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, of bytes read and to be read."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left"


def claims_table(judgements: Sequence[Judgement]) -> Table:
    """Claims with what was expected, what was measured, and the verdict."""
    table = Table(show_lines=True, expand=True)
    table.add_column("claim", overflow="fold", ratio=3)
    table.add_column("source", overflow="fold", ratio=2)
    table.add_column("expected", overflow="fold", ratio=3)
    table.add_column("measured [95 % interval]", overflow="fold", ratio=5)
    table.add_column("verdict", no_wrap=True)
    for judgement in judgements:
        colour = _COLOURS[judgement.verdict]
        table.add_row(
            _escaped(f"{judgement.claim.id}: {judgement.claim.statement}"),
            _escaped(judgement.claim.source),
            _escaped(judgement.claim.check),
            _escaped(judgement.measured),
            f"[{colour}]{judgement.verdict.words}[/{colour}]",
        )
    return table


def table(shown: report.Table, title: str) -> Table:
    """A table of a report, for the console: text to the left, numbers to the right."""
    drawn = Table(title=title, title_justify="left")
    for index, heading in enumerate(shown.headings):
        numeric = all(_is_number(row[index]) for row in shown.rows)
        drawn.add_column(heading, justify="right" if numeric else "left")
    for row in shown.rows:
        drawn.add_row(*map(_escaped, row))
    if shown.left_out:
        drawn.caption = f"{shown.left_out:,} more rows are not shown"
    return drawn


def side_by_side(rows: Mapping[str, Sequence[str]]) -> Table:
    """Virtual time beside Linux: goodput in Mbit/s, and delays of blocks in ms."""
    drawn = Table(title="Virtual time beside Linux", title_justify="left", box=box.SIMPLE_HEAD)
    drawn.add_column("scenario")
    for metric in ("goodput Mbit/s", "p50 ms", "p95 ms"):
        for heading in (f"{metric} virtual", "Linux", "off by"):
            drawn.add_column(heading, justify="right")
    for name, cells in rows.items():
        drawn.add_row(name, *cells)
    return drawn


def _is_number(cell: str) -> bool:
    """Is it a number, perhaps with a unit or an interval, or a dash for none?"""
    return cell[:1] in "-+–0123456789" and " – " not in cell


def effort_of(run: Run, conditions: Conditions | None) -> str:
    """How a run was made, in a line, or in real time in some."""
    if conditions is None:
        return (
            f"{run.virtual_ns / 1e9:g} s simulated in {run.wall_s:.2f} s · {run.segments:,} "
            f"segments · seed {run.seed} · digest {run.digest}"
        )
    first = (
        f"{run.virtual_ns / 1e9:.3g} s in real time · client {conditions.client}, "
        f"server {conditions.server} · {run.segments:,} packets · seed {run.seed}"
    )
    notices = [f"note: {notice}" for notice in conditions.notices]
    return "\n".join([first, conditions.lateness(), *notices])


def run_tables(run: Run) -> list[Table]:
    """A run in tables: its connections, what every subflow carried, and what its hosts counted."""
    return [_connections_table(run), _subflows_table(run), _counters_table(run)]


def _connections_table(run: Run) -> Table:
    table = Table(title="Connections (after the warm-up; delays of blocks)", title_justify="left")
    table.add_column("connection")
    for heading in ("goodput Mbit/s", "window-limited", "reinjections", "blocks"):
        table.add_column(heading, justify="right")
    for heading in ("mean", "p50", "p95", "p99", "max"):
        table.add_column(f"{heading} ms", justify="right")
    table.add_column("state")
    for index in range(run.connections.height):
        row = metrics.connection_row(run, index)
        delays = [row[f"delay_{name}_ms"] for name in ("mean", "p50", "p95", "p99", "max")]
        table.add_row(
            _escaped(row["connection"]),
            number(row["goodput_mbps"]),
            f"{row['window_limited_share'] * 100:.1f} %",
            str(row["reinjections"]),
            str(row["block_count"]),
            *("–" if delay is None else number(delay) for delay in delays),
            _state(row),
        )
    return table


def _state(row: dict[str, object]) -> str:
    spoken = "MPTCP" if row["is_mptcp"] else "TCP"
    if row["fallback"]:
        spoken = f"fallback to TCP ({str(row['fallback']).replace('_', ' ')})"
    end = "failed" if row["failed"] else "completed" if row["completed"] else "open at the end"
    return f"{spoken}, {end}"


def _subflows_table(run: Run) -> Table:
    table = Table(title="Subflows (whole run, payload bytes)", title_justify="left")
    for heading in ("connection", "path"):
        table.add_column(heading)
    for heading in ("sent", "received", "share", "retransmitted", "reinjected", "timeouts"):
        table.add_column(heading, justify="right")
    table.add_column("min RTT ms", justify="right")
    for row in metrics.subflow_rows(run).iter_rows(named=True):
        table.add_row(
            _escaped(row["connection_name"]),
            _escaped(row["path_name"]),
            f"{row['bytes_sent']:,}",
            f"{row['bytes_received']:,}",
            f"{row['share'] * 100:.2f} %",
            f"{row['bytes_retransmitted']:,}",
            f"{row['bytes_reinjected']:,}",
            str(row["timeouts"]),
            number(row["min_rtt_ns"] / 1e6),
        )
    return table


def _counters_table(run: Run) -> Table:
    table = Table(title="Counters that moved (docs/counters.md)", title_justify="left")
    table.add_column("counter")
    table.add_column("client", justify="right")
    table.add_column("server", justify="right")
    sides = run.counters.pivot("host", index="counter", values="count")
    for name, *counts in sides.select("counter", "client", "server").iter_rows():
        if any(counts):
            table.add_row(name, *("–" if count is None else f"{count:,}" for count in counts))
    return table


def analysis_tables(found: Analysis) -> Iterator[Table]:
    """What captures show: connections, their subflows, and the first violations."""
    from anabranch.analyze import report as analyze_report

    yield table(analyze_report.connections(found, _MOST_ROWS), "Connections")
    subflows = analyze_report.subflows(found, _MOST_ROWS)
    if subflows.rows:
        yield table(subflows, "Subflows (payload bytes, both directions)")
    violations = analyze_report.violations(found, _MOST_ROWS)
    if violations.rows:
        yield table(violations, "Violations of RFC 8684")


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


def policy_tables(policies: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """A table of the policies of each sort: what they do, what can be set, where they are from."""
    for sort, each in itertools.groupby(policies, key=lambda policy: str(policy["sort"])):
        table = Table(
            sort.replace("_", " "), "what it does", "parameters, with their defaults", "source",
            box=box.SIMPLE_HEAD, pad_edge=False,
        )  # fmt: skip
        table.columns[0].no_wrap = True
        for policy in each:
            parameters = "\n".join(_parameter(parameter) for parameter in policy["parameters"])
            table.add_row(policy["name"], policy["summary"], parameters or "–", policy["source"])
        yield table


def workload_table(schema: Mapping[str, Any]) -> Table:
    """The workloads in the JSON Schema of scenarios: what they do, and their keys."""
    table = Table("workload", "what it does", "keys", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    for workload in schema["$defs"]["Workload"]["oneOf"]:
        keys = {key: about["description"] for key, about in workload["properties"].items()}
        kind = workload["properties"]["kind"]["const"]
        del keys["kind"]
        described = (f"{key}: {' '.join(about.split())}" for key, about in keys.items())
        table.add_row(kind, " ".join(workload["description"].split()), "\n".join(described))
    return table


def _parameter(parameter: Mapping[str, Any]) -> str:
    only = "" if parameter["only_with"] is None else f"; with {parameter['only_with']}"
    return _escaped(
        f"{parameter['name']} = {parameter['default']} ({parameter['origin']}): "
        f"{parameter['meaning']}; {parameter['values']}{only}"
    )
