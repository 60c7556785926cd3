"""Drawings of a sweep: by the two factors with the largest effect, by each factor, and over time.

If there are several connections, the drawings by two factors and over time show the first.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.reports import figures, outages
from anabranch.reports.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Panel, Style
from anabranch.reports.single_run import rate_mbps
from anabranch.results.estimates import median
from anabranch.results.folder import NothingMeasured, Results
from anabranch.sweeps.factors import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_FACTORS = 6
_MAX_LEVELS = 16
"""Most levels of a factor in a heat map."""
_MAX_FACETS, _MAX_SERIES = 4, 6
"""Most panels for the levels of a factor: of curves and heat maps, and of time series."""
_TICK_WIDTH = 16
"""Characters per line of a level's label."""
_POINTS = 120
"""Points of a time series, few enough to distinguish several series."""
_METRICS = {"goodput_mbps": "goodput (Mbit/s)", "delay_mean_ms": "mean delay of a block (ms)"}
Level = tuple[str, Any] | None
"""A factor and its level if only that level is drawn, otherwise `None`."""

_STYLES = (
    Style(BLUE, "-", "o"),
    Style(RED, (0, (4, 1.5)), "s"),
    Style(GREEN, "-", "^"),
    Style(ORANGE, (0, (2, 1)), "D"),
    Style(PURPLE, (0, (6, 1.5, 1, 1.5)), "v"),
    Style(SKY, (0, (1, 1)), "x"),
    Style(BLACK, "-", "o"),
)


def panels(results: Results) -> tuple[Panel, ...]:
    """Panels of goodput and any measured delay, by two factors and by each, and time series."""
    measured = [name for name in _METRICS if results.runs[name].drop_nulls().len()]
    by_factor = (
        Panel(
            f"{_name(metric)} over {_shown(results, factor)}",
            "A dot for each cell: its median over seeds. Bars: medians over the cells.",
            partial(_draw, factor=factor, metric=metric),
        )
        for factor in results.provenance["factors"][:_MAX_FACTORS] or ["connection"]
        for metric in measured
    )
    by_two = (panel for metric in measured for panel in _by_two(results, metric))
    return (*by_two, *by_factor, *_over_time(results))


def _name(metric: str) -> str:
    return _METRICS[metric].split(" (")[0].capitalize()


def _shown(results: Results, factor: str) -> str:
    """The short name of a factor, for readers."""
    factors: list[str] = results.provenance["factors"]
    return dict(zip(factors, short_names(factors), strict=True)).get(factor, factor)


def _first_connection(table: pl.DataFrame, column: str = "connection") -> pl.DataFrame:
    return table.filter(pl.col(column) == table[column][0]) if table.height else table


# ---- by two factors ----------------------------------------------------------------------------


def _by_two(results: Results, metric: str) -> Iterator[Panel]:
    """Panels of a metric by the two factors with the largest effect, for each level of a third."""
    runs = _first_connection(results.runs.drop_nulls(metric))
    few = [
        name for name in results.provenance["factors"] if 2 <= _levels(runs, name) <= _MAX_LEVELS
    ]
    ranked = sorted(few, key=lambda name: -_effect(runs, name, metric))
    if len(ranked) < 2:
        return
    across, other = sorted(ranked[:2], key=few.index)
    if runs[other].dtype.is_numeric() and not runs[across].dtype.is_numeric():
        across, other = other, across
    is_curve = runs[across].dtype.is_numeric() and _levels(runs, other) <= len(_STYLES)
    draw = _draw_curves if is_curve else _draw_heat
    caption = (
        "Medians over seeds and other factors, with 95 % intervals."
        if is_curve
        else "Medians over seeds and other factors. Brighter means more."
    )
    title = f"{_name(metric)} by {_shown(results, across)} and {_shown(results, other)}"
    for level in _facets(runs, ranked[2:]):
        words = "" if level is None else f"; {_shown(results, level[0])} {level[1]}"
        bound: Any = partial(draw, across=across, other=other, metric=metric, level=level)
        yield Panel(f"{title}{words}", caption, bound)


def _facets(runs: pl.DataFrame, factors: list[str]) -> Iterator[Level]:
    """The levels of the next factor, if they are few."""
    if not factors or _levels(runs, factors[0]) > _MAX_FACETS:
        yield None
        return
    for level in _in_order(runs, factors[0]):
        yield factors[0], level


def _levels(runs: pl.DataFrame, factor: str) -> int:
    return runs[factor].drop_nulls().n_unique()


def _in_order(runs: pl.DataFrame, factor: str) -> list[Any]:
    """Levels in the plan's order, or sorted if they are numbers."""
    levels = runs[factor].drop_nulls().unique(maintain_order=True)
    return (levels.sort() if levels.dtype.is_numeric() else levels).to_list()


def _effect(runs: pl.DataFrame, factor: str, metric: str) -> float:
    """Range of the medians of a factor's levels."""
    middles = runs.group_by(factor).agg(pl.col(metric).median())[metric].to_numpy()
    return float(np.ptp(middles))


def _chosen(results: Results, metric: str, level: Level) -> pl.DataFrame:
    runs = _first_connection(results.runs.drop_nulls(metric))
    return runs if level is None else runs.filter(pl.col(level[0]) == level[1])


def _draw_heat(
    results: Results,
    axes: Axes,
    across: str,
    other: str,
    metric: str,
    level: Level,
) -> None:
    runs = _chosen(results, metric, level)
    columns, rows = _in_order(runs, across), _in_order(runs, other)
    values = np.full((len(rows), len(columns)), np.nan)
    cells = runs.group_by(across, other).agg(pl.col(metric).median())
    for column, row, value in cells.iter_rows():
        values[rows.index(row), columns.index(column)] = value
    figures.heat_map(axes, _ticks(columns), _ticks(rows), values, _METRICS[metric])
    axes.set(xlabel=_shown(results, across), ylabel=_shown(results, other))


def _draw_curves(
    results: Results,
    axes: Axes,
    across: str,
    other: str,
    metric: str,
    level: Level,
) -> None:
    runs = _chosen(results, metric, level)
    for name, style in zip(_in_order(runs, other), _STYLES, strict=False):
        points = {
            at: median(runs.filter(pl.col(across) == at, pl.col(other) == name)[metric].to_numpy())
            for at in _in_order(runs.filter(pl.col(other) == name), across)
        }
        figures.estimates(axes, list(points), list(points.values()), _word(name), style)
    axes.set(xlabel=_shown(results, across), ylabel=_METRICS[metric])
    axes.set_ylim(0)


def _ticks(levels: list[Any]) -> list[str]:
    return [textwrap.fill(_word(level), _TICK_WIDTH) for level in levels]


def _word(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


# ---- by each factor ----------------------------------------------------------------------------


def _draw(results: Results, axes: Axes, factor: str, metric: str) -> None:
    cells = (
        results.runs.drop_nulls(metric)
        .group_by(list(dict.fromkeys(["cell", "connection", factor])), maintain_order=True)
        .agg(pl.col(metric).median())
    )
    if cells.is_empty():
        raise NothingMeasured(f"no {metric} was measured")
    axes.set(xlabel=_shown(results, factor), ylabel=_METRICS[metric])
    values = cells[metric].to_numpy()
    if cells[factor].dtype.is_numeric():
        _dots(axes, cells[factor].to_numpy(), values)
    else:
        _by_name(axes, cells[factor].cast(pl.String).to_list(), values)
    axes.set_ylim(0, 1.08 * float(values.max()) or None)


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    axes.plot(x, y, "o", color=BLUE, alpha=0.7, markersize=4, label="cell")


def _by_name(axes: Axes, names: list[str], values: np.ndarray) -> None:
    levels = list(dict.fromkeys(names))
    places = np.array([levels.index(name) for name in names], dtype=np.float64)
    # Spread the dots evenly side by side, so that they do not hide each other.
    shift = np.array([names[:index].count(name) for index, name in enumerate(names)])
    most = max(int(shift.max()), 1)
    _dots(axes, places + (shift / most - 0.5) * 0.3, values)
    for place in range(len(levels)):
        middle = float(np.median(values[places == place]))
        label = None if place else "median"
        axes.plot([place - 0.25, place + 0.25], [middle, middle], color=RED, label=label)
    axes.set_xticks(range(len(levels)), _ticks(levels))
    axes.set_xlim(-0.5, len(levels) - 0.5)


# ---- over time ---------------------------------------------------------------------------------


def _over_time(results: Results) -> Iterator[Panel]:
    """Panels of goodput over time if samples were kept, one for each level of the first factor."""
    if results.samples.is_empty():
        return
    factors = results.provenance["factors"]
    levels = _in_order(results.samples, factors[0]) if len(factors) > 1 else []
    if not levels or len(levels) > _MAX_SERIES:
        yield _time_panel(results, {}, factors)
        return
    for level in levels:
        yield _time_panel(results, {factors[0]: level}, factors[1:])


def _time_panel(results: Results, where: Mapping[str, Any], told_by: list[str]) -> Panel:
    samples = results.samples.filter(*(pl.col(name) == level for name, level in where.items()))
    cells = samples["cell"].n_unique()
    left_out = f" The first {len(_STYLES)} of {cells} cells." if cells > len(_STYLES) else ""
    words = "".join(f"; {_shown(results, name)} {_word(level)}" for name, level in where.items())
    return Panel(
        f"Goodput over time{words}",
        f"Seed {results.provenance['seeds'][0]} of each cell.{left_out}",
        partial(_draw_over_time, where=where, told_by=told_by),
    )


def _draw_over_time(
    results: Results, axes: Axes, where: Mapping[str, Any], told_by: list[str]
) -> None:
    samples = results.samples.filter(*(pl.col(name) == level for name, level in where.items()))
    lines, drawn = {}, []
    for cell, style in zip(
        samples.partition_by("cell", maintain_order=True), _STYLES, strict=False
    ):
        once = _first_connection(cell, "connection_name").unique("time_ns", maintain_order=True)
        coarse = once.gather_every(max(1, once.height // _POINTS))
        row = cell.row(0, named=True)
        label = ", ".join(f"{_shown(results, name)} {_word(row[name])}" for name in told_by)
        lines[label] = (*rate_mbps(coarse, "bytes_delivered"), style)
        drawn.append(results.scenarios[row["cell"]])
    figures.series(axes, lines, "goodput (Mbit/s)")
    axes.set_xlim(0)
    axes.set_ylim(0)
    if len({str(tomllib.loads(toml)["path"]) for toml in drawn}) == 1:
        outages.shade(axes, drawn[0])
