"""Sensitivity bands: how much verdicts depend on parameters that sources leave open.

An entry names its `uncertain_parameters`. With ``--full``, each of them is 10 % smaller
and 10 % larger, one at a time, in the cells that a claim reads, with three seeds. Each such change
is a *variant*. Its runs are ordinary tasks of a batch in the folder ``sensitivity``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.batches import batch
from anabranch.batches.reduction import Task
from anabranch.gallery.entry import Cell, Entry, Tier
from anabranch.results.claims import Variants
from anabranch.results.folder import PROVENANCE, TABLES, Factor, NothingMeasured, Results, load
from anabranch.results.provenance import digest
from anabranch.runs.executors import Progress
from anabranch.scenarios.scaling import scaled

FOLDER = "sensitivity"
SEEDS = (1, 2, 3)
CHANGES = {"−10 %": 0.9, "+10 %": 1.1}

_VARIANT = "variant"
"""The factor that names a variant in the tables."""


def execute(
    entry: Entry,
    tier: Tier,
    results: Results,
    folder: Path,
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run the variants of an entry whose results are in a folder.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    read = cells_read(entry, results)
    cells = [cell for cell in entry.cells(tier) if cell.key in read and cell.hosts is None]
    tasks = [
        _task(cell, seed, number, variant, pattern, factor)
        for number, (variant, pattern, factor) in enumerate(_changes(entry))
        for cell in cells
        for seed in SEEDS
    ]
    about = {
        "entry": entry.id,
        "tier": tier.name,
        "seeds": list(SEEDS),
        "duration": tier.duration,
        "warm_up": tier.warm_up,
        "beside": digest(results.provenance)[1],
    }
    if tasks:
        batch.execute(about, tasks, folder / FOLDER, on=on, on_progress=on_progress)
    else:
        shutil.rmtree(folder / FOLDER, ignore_errors=True)


def variants(results: Results, folder: Path) -> Variants:
    """The variants next to results in a folder; none if they belong to other results.

    Raises:
        InputError: if their files are damaged.
    """
    if not (folder / FOLDER / PROVENANCE).is_file():
        return {}
    varied = load(folder / FOLDER)
    if varied.provenance.get("beside") != digest(results.provenance)[1]:
        return {}
    names = varied.runs[_VARIANT].unique(maintain_order=True).to_list()
    return {name: _variant(results, varied, name) for name in names}


def _variant(results: Results, varied: Results, name: str) -> Results:
    """One variant, with the names of the cells and the provenance of the results next to it."""
    original = pl.col("cell").str.replace(r"\.\d+$", "")
    tables: dict[str, Any] = {
        table: varied.rows(table, **{_VARIANT: name}).with_columns(original) for table in TABLES
    }
    return replace(results, **tables)


def _changes(entry: Entry) -> Iterator[tuple[str, str, float]]:
    for words, pattern in entry.uncertain_parameters.items():
        for sign, factor in CHANGES.items():
            yield f"{words} {sign}", pattern, factor


def _task(cell: Cell, seed: int, number: int, variant: str, pattern: str, factor: float) -> Task:
    task = cell.task(seed)
    return replace(
        task,
        cell=f"{cell.key}.{number}",
        factors={**task.factors, _VARIANT: variant},
        scenario=scaled(task.scenario, pattern, factor),
        keep_blocks=False,
        keep_samples=cell.keep_samples,
    )


def cells_read(entry: Entry, results: Results) -> set[str]:
    """The cells whose runs the conditions of an entry's claims read."""
    watched = _Watched(**{name: getattr(results, name) for name in _FIELDS})
    for claim in entry.claims:
        for condition in claim.conditions:
            try:
                condition.measure(watched)
            except NothingMeasured:
                continue
    return watched.seen


_FIELDS = ("provenance", "scenarios", *TABLES)


@dataclass(frozen=True)
class _Watched(Results):
    """Results that remember the cells of all rows that were read."""

    seen: set[str] = field(default_factory=set)

    def rows(self, table: str, **factors: Factor) -> pl.DataFrame:
        found = super().rows(table, **factors)
        self.seen.update(found["cell"].unique())
        return found
