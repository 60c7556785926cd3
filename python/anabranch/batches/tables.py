"""The tables of a batch: those of the core, with the labels of the runs at the left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.batches.reduction import Task
from anabranch.results.collected import Collected
from anabranch.results.folder import TABLES

Labels = Mapping[str, Any]


def tables(
    tasks: Sequence[Task], scenario_of_run: Sequence[int], found: Collected
) -> dict[str, pl.DataFrame]:
    """The tables of all runs, in their order. Columns at the left identify the run of each row.

    `scenario_of_run` has the number of each run's scenario in `found`.
    """
    labels = _Labels(tasks)
    more = [json.loads(note).get("columns", {}) if note else {} for note in found.notes]
    columns = [
        (*found.columns[scenario], *columns)
        for scenario, columns in zip(scenario_of_run, more, strict=True)
    ]
    runs = _with(found.frame("runs"), found.heights("runs"), more)
    made = {"runs": labels.put(runs, found.heights("runs"), columns)}
    for name in TABLES[1:]:
        compact = name == "counters"  # by far the longest table of a sweep
        frame = found.frame(name, compact=compact)
        made[name] = labels.put(frame, found.heights(name), compact=compact)
    return made


def _with(
    frame: pl.DataFrame, heights: npt.NDArray[np.uint32], more: Sequence[Mapping[str, float]]
) -> pl.DataFrame:
    """The rows of all runs with columns that belong to some runs."""
    run_of_row = np.repeat(np.arange(len(more), dtype=np.uint32), heights)
    names = dict.fromkeys(name for columns in more for name in columns)
    return frame.with_columns(
        pl.Series(name, [columns.get(name) for columns in more]).gather(run_of_row)
        for name in names
    )


class _Labels:
    """The labels of runs: cell, factors and seed."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        numbers: dict[tuple[str, int], int] = {}
        self._cells: list[Labels] = []
        of_run = []
        for task in tasks:
            # The runs of a cell share one object with its factors.
            number = numbers.setdefault((task.cell, id(task.factors)), len(numbers))
            if number == len(self._cells):
                self._cells.append({"cell": task.cell, **task.factors})
            of_run.append(number)
        self._cell_of_run = np.array(of_run, np.uint32)
        self._seeds = np.array([task.seed for task in tasks], np.uint64)

    def put(
        self,
        frame: pl.DataFrame,
        heights: npt.NDArray[np.uint32],
        columns: Sequence[tuple[str, ...]] | None = None,
        *,
        compact: bool = False,
    ) -> pl.DataFrame:
        """The rows of a table with the labels of their runs at the left.

        Labels and columns that the first run lacks stand at the right. `columns` has the names of
        the columns of each run, if runs have different ones. With `compact`, text is an
        enumeration.
        """
        has_rows = heights > 0
        used = dict.fromkeys(self._cell_of_run[has_rows].tolist())
        # The first run has the columns, even if it has no rows.
        named = [self._cells[self._cell_of_run[0]], *(self._cells[number] for number in used)]
        run_of_row = np.repeat(np.arange(len(heights), dtype=np.uint32), heights)
        cell_of_row = self._cell_of_run[run_of_row]
        series = {}
        for name in dict.fromkeys(name for each in named for name in each):
            values = [each.get(name) for each in self._cells]
            kind = _type(each[name] for each in named if name in each)
            if compact and kind == pl.String:
                kind = pl.Enum(list(dict.fromkeys(each for each in values if each is not None)))
            series[name] = pl.Series(name, values, kind, strict=False).gather(cell_of_row)
        seeds = self._seeds[has_rows | (np.arange(len(heights)) == 0)]
        kind = _type(int(seed) for seed in (seeds.min(), seeds.max()))
        series["seed"] = pl.Series("seed", self._seeds).cast(kind, strict=False).gather(run_of_row)
        order = self._order(has_rows, columns or [tuple(frame.columns)] * len(heights))
        return frame.with_columns(*series.values()).select(*order)

    def _order(
        self, has_rows: npt.NDArray[np.bool_], columns: Sequence[tuple[str, ...]]
    ) -> dict[str, None]:
        """The names of all columns in their order."""
        runs = dict.fromkeys(
            (number, names)
            for number, names, has in zip(
                self._cell_of_run.tolist(), columns, has_rows.tolist(), strict=True
            )
            if has
        )
        first = (*self._cells[self._cell_of_run[0]], "seed", *columns[0])
        others = ((*self._cells[number], "seed", *names) for number, names in runs)
        return dict.fromkeys((*first, *(name for each in others for name in each)))


def _type(values: Iterable[Any]) -> pl.DataType:
    """The type of a column that has these values."""
    examples: dict[tuple[type, bool], Any] = {}
    for value in values:
        is_large = isinstance(value, int) and not -(2**31) <= value < 2**31
        examples.setdefault((type(value), is_large), value)
    frames = [pl.select(value=pl.lit(value)) for value in examples.values()]
    return pl.concat(frames, how="vertical_relaxed").dtypes[0]
