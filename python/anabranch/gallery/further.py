"""Further runs of an entry's cells, in a folder next to its results.

Each run has one more factor, which says what differs from the entry's own run.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anabranch.batches import batch
from anabranch.batches.reduction import Task
from anabranch.results.folder import PROVENANCE, TABLES, Factor, NothingMeasured, Results, load
from anabranch.results.provenance import digest

if TYPE_CHECKING:
    from anabranch import _core
    from anabranch.gallery.entry import Entry, Tier


def task(of: Task, number: int, scenario: _core.Scenario, **factor: Factor) -> Task:
    """A further run of the cell of a task, with another scenario and one more factor.

    `number` tells its cell from other further cells of that cell.
    """
    return replace(
        of,
        cell=f"{of.cell}.{number}",
        factors={**of.factors, **factor},
        scenario=scenario,
        keep_blocks=False,
    )


def about(entry: Entry, tier: Tier, seeds: Iterable[int]) -> dict[str, Any]:
    """Facts about the runs of an entry, for their provenance."""
    return {
        "entry": entry.id,
        "tier": tier.name,
        "seeds": list(seeds),
        "duration": tier.duration,
        "warm_up": tier.warm_up,
    }


def execute(
    entry: Entry,
    tier: Tier,
    seeds: Iterable[int],
    tasks: Sequence[Task],
    results: Results,
    folder: Path,
    **running: Any,
) -> None:
    """Execute further runs of an entry with these results, or remove the folder if there are none.

    `running` has the last two arguments of `batch.execute`.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    if not tasks:
        shutil.rmtree(folder, ignore_errors=True)
        return
    of_main_runs = {"main_runs": digest(results.provenance)[1]}
    batch.execute(about(entry, tier, seeds) | of_main_runs, tasks, folder, **running)


def loaded(results: Results, folder: Path) -> Results | None:
    """The further runs in a folder; `None` if there are none, or if they belong to other results.

    Raises:
        InputError: if their files are damaged.
    """
    if not (folder / PROVENANCE).is_file():
        return None
    found = load(folder)
    return found if found.provenance.get("main_runs") == digest(results.provenance)[1] else None


def part(results: Results, further: Results, **factor: Factor) -> Results:
    """The further runs with a factor, with the names of the cells and the provenance of results."""
    original = pl.col("cell").str.replace(r"\.\d+$", "")
    tables: dict[str, Any] = {
        table: further.rows(table, **factor).with_columns(original) for table in TABLES
    }
    return replace(results, **tables)


def cells_read(read: Iterable[Callable[[Results], object]], results: Results) -> set[str]:
    """The cells whose runs these functions read, such as the measures of a claim's conditions."""
    watched = _Watched(**{name: getattr(results, name) for name in _FIELDS})
    for function in read:
        with contextlib.suppress(NothingMeasured):
            function(watched)
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
