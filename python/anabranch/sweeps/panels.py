"""Drawings of a sweep: by the two factors with the largest effect, by each factor, and over time.

If there are several connections, the drawings by two factors and over time show the first.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.reports import figures, outages
from anabranch.reports.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Panel, Style
from anabranch.reports.single_run import mean_words, rate_mbps
from anabranch.results.estimates import Estimate, median
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.loading import settings_in
from anabranch.scenarios.quantities import bits_per_second, byte_count, nanoseconds, packets
from anabranch.sweeps.factors import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_FACTORS = 6
_MAX_LEVELS = 16
"""Most levels of a factor in a heat map."""
_MAX_GROUPS = 8
"""Most groups of bars."""
_WIDE = 8
"""Ratio of the largest to the smallest level from which an axis is logarithmic."""
_MAX_FACETS, _MAX_SERIES = 4, 6
"""Most panels for the levels of a factor: of curves and heat maps, and of time series."""
_TICK_WIDTH = 16
"""Characters per line of a level's label."""
_METRICS = {"goodput_mbps": "goodput (Mbit/s)", "delay_mean_ms": "mean delay of a block (ms)"}
Level = tuple[str, Any] | None
"""A factor and its level if only that level is drawn, otherwise `None`."""

_STYLES = (
    Style(BLUE),
    Style(RED, "s--"),
    Style(GREEN, "^-"),
    Style(ORANGE, "D.."),
    Style(PURPLE, "v-."),
    Style(SKY, "x:"),
    Style(BLACK),
)


def panels(results: Results) -> tuple[Panel, ...]:
    """Panels of goodput and any measured delay, by two factors and by each, and time series."""
    measured = [name for name in _METRICS if results.runs[name].drop_nulls().len()]
    factors = results.provenance["factors"][:_MAX_FACTORS] or ["connection"]
    identities = list(dict.fromkeys(["connection", *factors]))
    is_alone = results.runs.select(identities).n_unique() == _levels(results.runs, factors[0])
    caption = (
        "Medians over seeds, with 95 % intervals."
        if is_alone
        else "A dot for each cell: its median over seeds. Line: medians over the cells."
    )
    by_factor = (
        Panel(
            f"{_name(metric)} over {_shown(results, factor)}",
            caption,
            partial(_draw_alone if is_alone else _draw_cells, factor=factor, metric=metric),
        )
        for factor in factors
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
    if _is_number(runs, other) and not _is_number(runs, across):
        across, other = other, across
    draw, caption = _kind_of(runs, across, other)
    title = f"{_name(metric)} by {_shown(results, across)} and {_shown(results, other)}"
    for level in _facets(runs, ranked[2:]):
        words = "" if level is None else f"; {_shown(results, level[0])} {level[1]}"
        bound: Any = partial(draw, across=across, other=other, metric=metric, level=level)
        yield Panel(f"{title}{words}", caption, bound)


def _kind_of(runs: pl.DataFrame, across: str, other: str) -> tuple[Any, str]:
    """Drawing of a metric by two factors, and the caption."""
    medians = "Medians over seeds and other factors"
    if _levels(runs, other) <= len(_STYLES):
        if _is_number(runs, across):
            return _draw_curves, f"{medians}, with 95 % intervals."
        if _levels(runs, across) <= _MAX_GROUPS:
            return _draw_bars, f"{medians}, with 95 % intervals."
    return _draw_heat, f"{medians}. Brighter means more."


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
    """Levels in the plan's order, or sorted if they are numbers or quantities."""
    levels = runs[factor].drop_nulls().unique(maintain_order=True).to_list()
    places = _places(levels)
    return levels if places is None else sorted(levels, key=lambda level: places[level])


def _is_number(runs: pl.DataFrame, factor: str) -> bool:
    """Whether the levels of a factor have places on an axis."""
    return _places(runs[factor].drop_nulls().unique(maintain_order=True).to_list()) is not None


def _places(levels: Sequence[Any]) -> dict[Any, float] | None:
    """The levels as numbers, also of quantities such as ``"8Mbit/s"``; `None` for names."""
    for read in _READERS:
        with contextlib.suppress(ValueError, TypeError):
            return {level: float(read(level)) for level in levels}
    return None


def _number(level: Any) -> float:
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        raise TypeError
    return level


def _percent(level: str) -> float:
    if not level.endswith("%"):
        raise ValueError
    return float(level.removesuffix("%"))


_READERS: tuple[Callable[[Any], float], ...] = (
    _number, nanoseconds, bits_per_second, byte_count, packets, _percent,
)  # fmt: skip


def _set_ticks(axes: Axes, levels: list[Any], places: Mapping[Any, float]) -> None:
    """Name the levels of a quantity on the x axis, which is logarithmic if they span decades."""
    if all(isinstance(level, (int, float)) for level in levels):
        return
    at = [places[level] for level in levels]
    if len(at) > 2 and min(at) > 0 and max(at) >= _WIDE * min(at):
        axes.set_xscale("log")
    axes.set_xticks(at, _ticks(levels))
    axes.xaxis.minorticks_off()


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
    levels = _in_order(runs, across)
    places = _places(levels) or {}
    for name, style in zip(_in_order(runs, other), _STYLES, strict=False):
        points = _medians(runs.filter(pl.col(other) == name), across, metric)
        at = [places[each] for each in points]
        figures.estimates(axes, at, list(points.values()), _word(name), style)
    _set_ticks(axes, levels, places)
    axes.set(xlabel=_shown(results, across), ylabel=_METRICS[metric])
    axes.set_ylim(0)


def _draw_bars(
    results: Results,
    axes: Axes,
    across: str,
    other: str,
    metric: str,
    level: Level,
) -> None:
    runs = _chosen(results, metric, level)
    groups = _in_order(runs, across)
    bars = {}
    for name, style in zip(_in_order(runs, other), _STYLES, strict=False):
        points = _medians(runs.filter(pl.col(other) == name), across, metric)
        bars[_word(name)] = ([points.get(group) for group in groups], style)
    figures.grouped_bars(axes, _ticks(groups), bars)
    axes.set(xlabel=_shown(results, across), ylabel=_METRICS[metric])
    axes.set_ylim(0)


def _medians(runs: pl.DataFrame, factor: str, metric: str) -> dict[Any, Estimate]:
    """The median of a metric for each level of a factor, with its interval."""
    return {
        level: median(runs.filter(pl.col(factor) == level)[metric].to_numpy())
        for level in _in_order(runs, factor)
    }


def _ticks(levels: list[Any]) -> list[str]:
    return [textwrap.fill(_word(level), _TICK_WIDTH) for level in levels]


def _word(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


# ---- by each factor ----------------------------------------------------------------------------


def _draw_alone(results: Results, axes: Axes, factor: str, metric: str) -> None:
    """Draw a metric over the only factor."""
    runs = results.runs.drop_nulls(metric)
    if runs.is_empty():
        raise NothingMeasured(f"no {metric} was measured")
    levels = _in_order(runs, factor)
    points = list(_medians(runs, factor, metric).values())
    places = _on_axis(axes, levels)
    # A line between names would mean nothing.
    style = Style(BLUE, "o-" if _places(levels) is not None else "o")
    figures.estimates(axes, [places[level] for level in levels], points, "median", style)
    axes.set(xlabel=_shown(results, factor), ylabel=_METRICS[metric])
    axes.set_ylim(0, 1.08 * max(point.high for point in points) or None)


def _draw_cells(results: Results, axes: Axes, factor: str, metric: str) -> None:
    """Draw the medians of all cells over one of several factors."""
    cells = (
        results.runs.drop_nulls(metric)
        .group_by(list(dict.fromkeys(["cell", "connection", factor])), maintain_order=True)
        .agg(pl.col(metric).median())
    )
    if cells.is_empty():
        raise NothingMeasured(f"no {metric} was measured")
    levels = _in_order(cells, factor)
    places = _on_axis(axes, levels)
    values = cells[metric].to_numpy()
    axes.plot(
        [places[level] for level in cells[factor].to_list()], values, "o", color=BLUE, alpha=0.5,
        markersize=4, label="cell",
    )  # fmt: skip
    middles = [_median_of(cells.filter(pl.col(factor) == level)[metric]) for level in levels]
    if _places(levels) is not None:
        axes.plot([places[level] for level in levels], middles, color=RED, label="median")
    else:  # a line between names would mean nothing
        for number, (level, middle) in enumerate(zip(levels, middles, strict=True)):
            ends = [places[level] - 0.25, places[level] + 0.25]
            axes.plot(ends, [middle] * 2, color=RED, label=None if number else "median")
    axes.set(xlabel=_shown(results, factor), ylabel=_METRICS[metric])
    axes.set_ylim(0, 1.08 * float(values.max()) or None)


def _median_of(values: pl.Series) -> float:
    return float(np.median(values.to_numpy()))


def _on_axis(axes: Axes, levels: list[Any]) -> dict[Any, float]:
    """The places of levels on the x axis, which gets their names unless they are numbers."""
    places = _places(levels)
    if places is not None:
        _set_ticks(axes, levels, places)
        return places
    axes.set_xticks(range(len(levels)), _ticks(levels))
    axes.set_xlim(-0.5, len(levels) - 0.5)
    return {level: float(index) for index, level in enumerate(levels)}


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
        row = cell.row(0, named=True)
        label = ", ".join(f"{_shown(results, name)} {_word(row[name])}" for name in told_by)
        lines[label] = (*rate_mbps(once, "bytes_delivered"), style)
        drawn.append(settings_in(results.scenarios[row["cell"]]))
    figures.series(axes, lines, f"goodput (Mbit/s, {mean_words(results.samples)})")
    axes.set_xlim(0)
    axes.set_ylim(0)
    if drawn and all(each["path"] == drawn[0]["path"] for each in drawn):
        outages.shade(axes, drawn[0])
