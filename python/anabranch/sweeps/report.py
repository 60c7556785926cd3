"""What a sweep found: its summary and its report."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The columns that tell the rows of the summary apart."""
    factors = list(results.provenance["factors"])
    several = results.runs["connection"].n_unique() > 1
    return [*factors, "connection"] if several or not factors else factors


def short_names(names: Sequence[str]) -> list[str]:
    """Keys of a scenario without the leading parts that do not tell them apart.

    ``"connection.download.scheduler"`` becomes ``"scheduler"`` unless another name ends like that.
    """
    return [_short(name, [other for other in names if other != name]) for name in names]


def _short(name: str, others: Sequence[str]) -> str:
    parts = name.split(".")
    endings = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
    return next(
        ending
        for ending in endings
        if not any(f".{other}".endswith(f".{ending}") for other in others)
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
