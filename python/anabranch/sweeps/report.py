"""What a sweep found: its summary and its report."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from anabranch.reports.report import Report, Table, overview_row
from anabranch.results.folder import Results
from anabranch.sweeps.panels import panels

MAX_CELLS_SHOWN = 32
"""More cells than these are for a program to read, not for a person."""

_GROUP = ["cell", "connection"]
_METRICS = {
    "goodput_mbps": "goodput (Mbit/s)",
    "delay_mean_ms": "mean delay (ms)",
    "delay_p95_ms": "p95 (ms)",
    "reinjections": "reinjections",
}


def summary(results: Results) -> Table:
    """Every cell and connection: medians over seeds with their intervals."""
    factors = list(results.provenance["factors"])
    several = results.runs["connection"].n_unique() > 1
    shares = {
        column: f"{column.removeprefix('share_')} carried"
        for column in results.runs.columns
        if column.startswith("share_")
    }
    columns = [*factors, *(["connection"] if several else [])]
    return Table(
        (*columns, *_METRICS.values(), *shares.values()),
        tuple(
            overview_row(runs, columns, list(_METRICS), list(shares))
            for runs in results.runs.partition_by(_GROUP, maintain_order=True)
        ),
    )


def all_seeds_alike(results: Results) -> bool:
    """Did several seeds give the same goodput and delay in every cell?

    Then nothing in the scenario is random, and one seed says it all.
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
        ["Every seed gave the same numbers: nothing in the scenario is random."]
        if all_seeds_alike(results)
        else []
    )
    Report(
        id=name,
        title=name,
        question=results.provenance["description"] or "A sweep over factors of a scenario.",
        results=results,
        panels=panels(results),
        notes=notes,
        overview=summary(results),
    ).save(folder)
