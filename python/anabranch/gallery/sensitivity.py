"""Sensitivity bands: how much verdicts depend on parameters that sources leave open.

An entry names groups of `uncertain` parameters. With ``--full``, each parameter is 10 % smaller and
10 % larger, one at a time, in the cells that a claim reads, with three seeds. Each such change is a
*variant*. Its runs are ordinary tasks of a batch in the folder ``sensitivity``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from anabranch.gallery import further
from anabranch.gallery.entry import Entry, Tier
from anabranch.results.claims import Variants
from anabranch.results.folder import Results
from anabranch.scenarios.scaling import scaled

FOLDER = "sensitivity"
SEEDS = (1, 2, 3)
CHANGES = {"−10 %": 0.9, "+10 %": 1.1}

_VARIANT = "variant"
"""The factor that names a variant in the tables."""


def execute(entry: Entry, tier: Tier, results: Results, folder: Path, **running: Any) -> None:
    """Run the variants of an entry whose results are in a folder.

    `running` has the last two arguments of `batch.execute`.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    measures = [each.measure for claim in entry.claims for each in claim.conditions]
    read = further.cells_read(measures, results)
    cells = [cell for cell in entry.cells(tier) if cell.key in read and cell.hosts is None]
    tasks = []
    for number, (variant, pattern, factor) in enumerate(_changes(entry)):
        for cell in cells:
            for task in map(cell.task, SEEDS):
                scenario = scaled(task.scenario, pattern, factor)
                task = replace(task, keep_samples=cell.keep_samples)
                tasks.append(further.task(task, number, scenario, **{_VARIANT: variant}))
    further.execute(entry, tier, SEEDS, tasks, results, folder / FOLDER, **running)


def variants(results: Results, folder: Path) -> Variants:
    """The variants next to results in a folder; none if they belong to other results.

    Raises:
        InputError: if their files are damaged.
    """
    varied = further.loaded(results, folder / FOLDER)
    if varied is None:
        return {}
    names = varied.runs[_VARIANT].unique(maintain_order=True).to_list()
    return {name: further.part(results, varied, **{_VARIANT: name}) for name in names}


def _changes(entry: Entry) -> Iterator[tuple[str, str, float]]:
    for words, pattern in entry.uncertain_parameters.items():
        for sign, factor in CHANGES.items():
            yield f"{words} {sign}", pattern, factor
