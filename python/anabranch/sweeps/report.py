"""The summary and the report of a sweep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from anabranch.reports.report import Report, overview_row
from anabranch.reports.table import Table
from anabranch.results.estimates import median
from anabranch.results.folder import Results
from anabranch.sweeps.factors import short_names
from anabranch.sweeps.panels import panels

_MAIN = {
    "goodput_mbps": ("Goodput", "Mbit/s", True),
    "delay_mean_ms": ("The mean delay of a block", "ms", False),
}
"""Name, unit and whether more is better, for the metrics of the finding."""

MAX_CELLS_SHOWN = 32
"""Largest number of cells in printed tables; more are useful only to programs."""

_GROUP = ["cell", "connection"]
_METRICS = {
    "goodput_mbps": "goodput (Mbit/s)",
    "delay_mean_ms": "mean delay (ms)",
    "delay_p95_ms": "p95 (ms)",
    "reinjections": "reinjections",
}


def summary(results: Results) -> Table:
    """Medians over seeds with intervals, with a row for each cell and connection."""
    names = name_columns(results)
    shares = {
        column: f"{column.removeprefix('share_')} carried"
        for column in results.runs.columns
        if column.startswith("share_")
    }
    return Table(
        (*short_names(names), *_METRICS.values(), *shares.values()),
        tuple(
            overview_row(runs, names, list(_METRICS), list(shares))
            for runs in results.runs.partition_by(_GROUP, maintain_order=True)
        ),
    )


def name_columns(results: Results) -> list[str]:
    """The columns that identify the rows of the summary."""
    factors = list(results.provenance["factors"])
    several = results.runs["connection"].n_unique() > 1
    return [*factors, "connection"] if several or not factors else factors


def finding(results: Results) -> list[str]:
    """The best and the worst setting for the main metrics, with medians over seeds."""
    first = results.runs["connection"][0]
    whose = f" of {first}" if results.runs["connection"].n_unique() > 1 else ""
    runs = results.runs.filter(pl.col("connection") == first)
    found = []
    for metric, (words, unit, most) in _MAIN.items():
        cells = runs.drop_nulls(metric).partition_by("cell", maintain_order=True)
        if not cells:
            continue
        cells.sort(key=lambda cell: np.median(cell[metric].to_numpy()), reverse=most)
        best_cell, worst_cell = cells[0], cells[-1]
        best, worst = (median(cell[metric].to_numpy()) for cell in (best_cell, worst_cell))
        if len(cells) == 1:
            found.append(f"{words}{whose} is {best.text(unit)}.")
            continue
        better, poorer = ("highest", "lowest") if most else ("lowest", "highest")
        found.append(
            f"{words}{whose} is {better} with "
            f"{_setting(results, best_cell)}: {best.text(unit)}; it is {poorer} with "
            f"{_setting(results, worst_cell)}: {worst.text(unit)}."
        )
    return found


def _setting(results: Results, cell: pl.DataFrame) -> str:
    row, factors = cell.row(0, named=True), results.provenance["factors"]
    names = zip(short_names(factors), factors, strict=True)
    return ", ".join(f"{name} {row[factor]}" for name, factor in names)


def all_seeds_alike(results: Results) -> bool:
    """Whether several seeds gave equal goodput and delay in every cell.

    Then nothing in the scenario is random, and one seed suffices.
    """
    if len(results.provenance["seeds"]) < 2:
        return False
    metrics = ["goodput_mbps", "delay_mean_ms"]
    counts = results.runs.group_by(_GROUP).agg(pl.col(metrics).n_unique())
    return bool((counts.select(metrics) == 1).to_numpy().all())


def save(results: Results, folder: Path) -> None:
    """Write the report of a sweep.

    Raises:
        InputError: if the folder cannot be written.
    """
    name = str(results.provenance["sweep"])
    notes = (
        ["All seeds gave the same numbers: nothing in the scenario is random."]
        if all_seeds_alike(results)
        else []
    )
    Report(
        id=name,
        title=name,
        question=results.provenance["description"] or "A sweep over the factors of a scenario.",
        results=results,
        panels=panels(results),
        finding=finding(results),
        notes=notes,
        overview=summary(results),
    ).save(folder)
