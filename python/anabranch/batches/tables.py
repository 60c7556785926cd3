"""The tables of a batch, built at once from all of its reduced runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.batches.reduction import Reduced, Task
from anabranch.results import metrics
from anabranch.runs import columns

Labels = Mapping[str, Any]


def tables(tasks: Sequence[Task], reduced: Sequence[Reduced]) -> dict[str, pl.DataFrame]:
    """The tables of all runs, in their order. Columns at the left identify the run of each row."""
    labels = [{"cell": task.cell, **task.factors, "seed": task.seed} for task in tasks]
    plain = ("subflows", "links", "counters")
    parts = {
        "runs": _rows([each.rows for each in reduced]),
        **{name: _plain([each.tables[name] for each in reduced]) for name in plain},
        "blocks": _kept("blocks", reduced, metrics.BLOCK_COLUMNS),
        "samples": _kept("samples", reduced, metrics.SAMPLE_COLUMNS),
    }
    return {name: _labelled(labels, each) for name, each in parts.items()}


@dataclass(frozen=True)
class _Parts:
    """The rows of all runs; the number of rows and the names of the columns of each run."""

    frame: pl.DataFrame
    heights: list[int]
    columns: Sequence[tuple[str, ...]]


def _rows(runs: Sequence[list[dict[str, Any]]]) -> _Parts:
    rows = [row for run in runs for row in run]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return _Parts(frame, [len(run) for run in runs], [tuple(run[0]) for run in runs])


def _plain(tables: Sequence[columns.Columns]) -> _Parts:
    frame = columns.stacked(tables)
    names = [tuple(frame.columns)] * len(tables)
    return _Parts(frame, [columns.height(each) for each in tables], names)


def _kept(name: str, reduced: Sequence[Reduced], schema: Mapping[str, Any]) -> _Parts:
    empty = pl.DataFrame(schema=schema)
    frames = [each.frames.get(name, empty) for each in reduced]
    names = [tuple(empty.columns)] * len(frames)
    return _Parts(pl.concat([empty, *frames]), [frame.height for frame in frames], names)


def _labelled(labels: Sequence[Labels], parts: _Parts) -> pl.DataFrame:
    """The rows with the labels of their runs at the left.

    Labels and columns that the first run lacks stand at the right.
    """
    used = [each if rows else {} for each, rows in zip(labels, parts.heights, strict=True)]
    # The first run has the columns, even if it has no rows.
    named = (labels[0], *used)
    run_of_row = np.repeat(np.arange(len(labels), dtype=np.uint32), parts.heights)
    series = {
        name: pl.Series(
            name, [each.get(name) for each in used], _type(named, name), strict=False
        ).gather(run_of_row)
        for name in dict.fromkeys(name for each in named for name in each)
    }
    kinds = dict.fromkeys(
        (*label, *names) for label, names in zip(used, parts.columns, strict=True) if label
    )
    order = dict.fromkeys(
        (*labels[0], *parts.columns[0], *(name for kind in kinds for name in kind))
    )
    return parts.frame.with_columns(*series.values()).select(*order)


def _type(labels: Sequence[Labels], name: str) -> pl.DataType:
    """The type of a column that has the values of a label."""
    examples: dict[tuple[type, bool], Any] = {}
    for value in (each[name] for each in labels if name in each):
        is_large = isinstance(value, int) and not -(2**31) <= value < 2**31
        examples.setdefault((type(value), is_large), value)
    frames = [pl.select(value=pl.lit(value)) for value in examples.values()]
    return pl.concat(frames, how="vertical_relaxed").dtypes[0]
