"""A report: one self-contained HTML file, with the figure and the claims as further files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.files import write_whole
from anabranch.reports import pictures
from anabranch.reports.figures import Panel
from anabranch.reports.page import drawing, template
from anabranch.reports.strips import strip
from anabranch.reports.table import Table
from anabranch.results.claims import Judgement, Verdict
from anabranch.results.estimates import median, number
from anabranch.results.folder import Results
from anabranch.results.provenance import digest
from anabranch.scenarios.addresses import address
from anabranch.scenarios.custom import CustomPolicy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 120


@dataclass(frozen=True)
class Report:
    """The contents of a report, before layout."""

    id: str
    title: str
    question: str
    results: Results
    panels: Sequence[Panel]
    finding: Sequence[str] = ()
    """The finding, in about two sentences."""
    summary: Table | None = None
    """A table that follows the finding."""
    judgements: Sequence[Judgement] = ()
    bands: str = ""
    """Description of the judgements' sensitivity bands, or the reason why there are none."""
    systems: Table | None = None
    """The verdicts on all systems, side by side."""
    judged_on: str = ""
    """The system on which the claims are judged, and what the source says of its own."""
    parameters: Sequence[tuple[str, str, str]] = ()
    """Name, value and source of each parameter."""
    references: Sequence[str] = ()
    notes: Sequence[str] = ()
    overview: Table | None = None
    overview_title: str = "All cells"
    index: str | None = None
    """The address of the index that lists this report, if there is one."""

    def figure(self) -> Figure:
        """All panels in one figure."""
        return pictures.compose(self.panels, self.results, self.title, pictures.COLUMNS)

    def html(self) -> str:
        """The report as the text of an HTML file."""
        drawings = [
            drawing(panel.title, panel.caption, pictures.alone(panel, self.results))
            for panel in self.panels
        ]
        return template("report.html").render(
            report=self,
            drawings=drawings,
            sections=self._sections(),
            counts=counts(self.judgements),
            strip=strip,
            bytes=bytes_per_subflow(self.results),
            links=queues(self.results),
            playground=_playground(self.results),
            provenance=_provenance(self.results.provenance),
        )

    def _sections(self) -> list[tuple[str, str]]:
        """The table of contents: anchors and headings."""
        sections = [
            ("question", "Question" if self.judgements else "Description", True),
            ("claims", f"Claims ({len(self.judgements)})", self.judgements),
            (
                "systems",
                "On the source's system, on this engine, and on today's Linux",
                self.systems,
            ),
            ("notes", "What the numbers say", self.notes),
            ("cells", self.overview_title, self.overview),
            ("paths", "What every path carried", True),
            ("parameters", "Parameters", self.parameters),
            ("provenance", "Provenance", True),
            ("references", "References", self.references),
        ]
        return [(anchor, words) for anchor, words, shown in sections if shown]

    def save(self, folder: Path) -> None:
        """Write ``report.html``, the figure as SVG, PNG and PDF, and ``claims.json``.

        Raises:
            InputError: if the folder cannot be written.
        """
        files = {
            "report.html": self.html().encode(),
            **pictures.files_of("figure", self.figure()),
            "claims.json": _json([judgement.as_json() for judgement in self.judgements]),
        }
        write_whole(folder, files)


def overview_row(
    runs: pl.DataFrame, labels: Sequence[str], metrics: Sequence[str], shares: Sequence[str]
) -> tuple[str, ...]:
    """A table row for the runs of one setting: labels, and medians of metrics and shares."""
    first = runs.row(0, named=True)
    return (
        *(_text(first[label]) for label in labels),
        *(_estimate(runs, metric) for metric in metrics),
        *(_share(runs[share]) for share in shares),
    )


def _share(carried: pl.Series) -> str:
    """The median share of a path; a dash if the scenarios lack this path."""
    if carried.null_count() == len(carried):
        return "–"
    return _percent(float(np.median(carried.fill_null(0))))


def bytes_per_subflow(results: Results) -> Table:
    """Data that every subflow carried: medians over seeds."""
    columns = {
        "bytes_sent": "MB sent",
        "bytes_received": "MB received",
        "bytes_retransmitted": "MB retransmitted",
        "bytes_reinjected": "MB reinjected",
    }
    events = {"timeouts": "timeouts", "recoveries": "recoveries"}
    keys = ["cell", "connection_name", "subflow", "path_name"]
    medians = results.subflows.group_by(keys, maintain_order=True).agg(
        *(pl.col(name).median() / 1e6 for name in columns),
        *(pl.col(name).median() for name in events),
        pl.col("share").median(),
    )
    rows = tuple(
        (
            *(str(row[key]) for key in keys if key != "subflow"),
            _percent(row["share"]),
            *(number(row[name]) for name in columns),
            *(f"{row[name]:,g}" for name in events),
        )
        for row in medians.iter_rows(named=True)
    )
    headings = ("cell", "connection", "path", "share", *columns.values(), *events.values())
    return _shortened(headings, rows)


def queues(results: Results) -> Table:
    """The queue counters of the links that carry data: medians over seeds."""
    counts = {
        "packets_in": "packets in",
        "marked": "marked by the queue",
        "dropped_by_queue": "dropped by the queue",
        "dropped_by_loss": "lost",
        "queue_packets_max": "longest queue (packets)",
    }
    keys = ["cell", "path_name", "direction_name"]
    medians = (
        results.links.filter(pl.col("packets_in") > 0)
        .group_by(keys, maintain_order=True)
        .agg(*(pl.col(name).median() for name in counts))
    )
    rows = tuple(
        (*(str(row[key]) for key in keys), *(f"{row[name]:,.0f}" for name in counts))
        for row in medians.iter_rows(named=True)
    )
    return _shortened(("cell", "path", "direction", *counts.values()), rows)


def _shortened(headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(headings, rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS))


def counts(judgements: Sequence[Judgement]) -> list[tuple[Verdict, int]]:
    """The number of judgements for each verdict that occurs."""
    verdicts = [judgement.verdict for judgement in judgements]
    return [(verdict, verdicts.count(verdict)) for verdict in Verdict if verdict in verdicts]


def _playground(results: Results) -> list[tuple[str, str]]:
    """The cells that the playground can run, and the addresses of their first runs there."""
    if results.is_live or "custom_policies" in results.provenance:
        return []
    seeds: dict[str, int] = {}
    for run in results.provenance["runs"]:
        seeds.setdefault(run["cell"], run["seed"])
    found = (
        (cell, address(results.scenarios[cell], f"{cell}.toml", seed))
        for cell, seed in [*seeds.items()][:_MOST_ROWS]
        if cell in results.scenarios
    )
    return [(cell, place) for cell, place in found if place is not None]


def _provenance(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = {key: value for key, value in about.items() if key not in ("runs", "entry")}
    shown["runs"] = len(about["runs"])
    if "custom_policies" in about:
        policies = [CustomPolicy.of(policy).text() for policy in about["custom_policies"]]
        shown["custom_policies"] = "; ".join(policies)
    name, value = digest(about)
    shown[name] = value
    return [(key.replace("_", " "), _text(value)) for key, value in shown.items()]


def _estimate(runs: pl.DataFrame, metric: str) -> str:
    sample = runs[metric].drop_nulls().to_numpy()
    return median(sample).text() if sample.size else "–"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return str(value)


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
