"""Drawings of a sweep: what each factor does to goodput and delay."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from anabranch.reports.figures import BLUE, Panel
from anabranch.results.folder import NothingMeasured, Results

_MAX_FACTORS = 6
_METRICS = {"goodput_mbps": "goodput (Mbit/s)", "delay_mean_ms": "mean delay of a block (ms)"}


def panels(results: Results) -> tuple[Panel, ...]:
    """Goodput, and delay if any was measured, over each of the first factors."""
    measured = [name for name in _METRICS if results.runs[name].drop_nulls().len()]
    return tuple(
        Panel(
            f"{_METRICS[metric].split(' (')[0].capitalize()} over {factor}",
            "A dot for each cell: its median over seeds. Bars: medians over the cells.",
            partial(_draw, factor=factor, metric=metric),
        )
        for factor in results.provenance["factors"][:_MAX_FACTORS] or ["connection"]
        for metric in measured
    )


def _draw(results: Results, axes: Axes, factor: str, metric: str) -> None:
    cells = (
        results.runs.drop_nulls(metric)
        .group_by(list(dict.fromkeys(["cell", "connection", factor])), maintain_order=True)
        .agg(pl.col(metric).median())
    )
    if cells.is_empty():
        raise NothingMeasured(f"no {metric} was measured")
    axes.set(xlabel=factor, ylabel=_METRICS[metric])
    values = cells[metric].to_numpy()
    if cells[factor].dtype.is_numeric():
        axes.plot(cells[factor].to_numpy(), values, "o", color=BLUE, alpha=0.5, markersize=4)
    else:
        _by_name(axes, cells[factor].cast(pl.String).to_list(), values)
    axes.set_ylim(0)


def _by_name(axes: Axes, names: list[str], values: np.ndarray) -> None:
    levels = list(dict.fromkeys(names))
    places = np.array([levels.index(name) for name in names], dtype=np.float64)
    # Side by side, evenly, so that dots do not hide each other.
    shift = np.array([names[:index].count(name) for index, name in enumerate(names)])
    most = max(int(shift.max()), 1)
    axes.plot(places + (shift / most - 0.5) * 0.3, values, "o", color=BLUE, alpha=0.5, markersize=4)
    for place in range(len(levels)):
        middle = float(np.median(values[places == place]))
        axes.plot([place - 0.25, place + 0.25], [middle, middle], color=BLUE)
    axes.set_xticks(range(len(levels)), levels)
    axes.set_xlim(-0.5, len(levels) - 0.5)
