"""What panels draw: metrics over factors, points, bars, distributions and series over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import numpy as np

from anabranch.gallery.metrics import Factors, Metric
from anabranch.reports import figures, outages
from anabranch.reports.figures import Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import NothingMeasured, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[[Results, "Axes"], None]
Curves = Mapping[str, tuple[Factors, Style]]
"""The factors and the style of each curve."""
Level = TypeVar("Level")


class Look(TypedDict, total=False):
    """The look of axes."""

    x: str
    y: str
    ticks: Sequence[float]
    """Levels of a logarithmic x axis, as plain numbers."""
    bottom: float | None
    top: float
    log: bool
    """Whether the y axis is logarithmic."""
    lines: Mapping[float, str]
    """Horizontal lines with their words."""
    stated: Iterable[tuple[float, float]]
    """Numbers of the source."""
    span: tuple[float, float | None]
    """Ends of the x axis."""


def curves(styles: Mapping[str, Style], *names: str, by: str = "curve", **fixed: Any) -> Curves:
    """One curve for each level of the factor `by`: those of `names`, or all that have a style."""
    return {name: ({by: name, **fixed}, styles[name]) for name in names or styles}


def over(factor: str, metric: Metric, drawn: Curves, **look: Unpack[Look]) -> Draw:
    """Medians of a metric over a numeric factor."""

    def draw(results: Results, axes: Axes) -> None:
        figures.over_factor(axes, results, factor, metric.column, drawn, metric.scale)
        dress(axes, {"y": metric.heading, **look})

    return draw


def points(
    levels: Mapping[float, Level],
    measure: Callable[[str, Level], Measure],
    styles: Mapping[str, Style],
    **look: Unpack[Look],
) -> Draw:
    """Estimates of each curve at places on the x axis. What was not measured is left out."""

    def draw(results: Results, axes: Axes) -> None:
        for curve, style in styles.items():
            found = {}
            for place, level in levels.items():
                with suppress(NothingMeasured):
                    found[place] = measure(curve, level)(results)
            figures.estimates(axes, [*found], [*found.values()], curve, style)
        dress(axes, look)

    return draw


def bars(
    groups: Mapping[str, Level],
    measure: Callable[[str, Level], Measure | None],
    styles: Mapping[str, Style],
    source: Mapping[str, Sequence[float | None]] | None = None,
    **look: Unpack[Look],
) -> Draw:
    """Estimates as bars: one for each curve in each group, or none. `source` has the source's."""

    def draw(results: Results, axes: Axes) -> None:
        drawn = {}
        for curve, style in styles.items():
            found = [measure(curve, level) for level in groups.values()]
            drawn[curve] = ([each(results) if each else None for each in found], style)
        figures.grouped_bars(axes, [*groups], drawn, source)
        dress(axes, look)

    return draw


def distribution(
    kind: Callable[..., None], drawn: Curves, right: float | None = None, share: float = 0
) -> Draw:
    """Distributions of the delays of blocks: `figures.cdf`, `ccdf` or `pdf`.

    The axis ends at `right`, or includes this share of each curve's delays.
    """

    def draw(results: Results, axes: Axes) -> None:
        found = {name: (results.delays(**cell), style) for name, (cell, style) in drawn.items()}
        end = figures.right_edge((each for each, _ in found.values()), share) if share else right
        kind(axes, found, end)

    return draw


def series(
    columns: Mapping[str, tuple[Factors, str, Style]],
    unit: str,
    *,
    scale: float = 1,
    bin_samples: int = 0,
    zero_s: float = 0,
    down: bool = False,
    **look: Unpack[Look],
) -> Draw:
    """Columns of the first seed's samples over time; each has the factors that name its rows.

    With `bin_samples`, the column counts bytes, and its rate in Mbit/s over as many samples is
    drawn. `zero_s` is the time that counts as 0. Outages are shaded if `down`.
    """

    def draw(results: Results, axes: Axes) -> None:
        lines: dict[str, tuple[Sample, Sample, Style]] = {}
        for label, (rows, column, style) in columns.items():
            found = results.rows("samples", **{"seed": 1, **rows})
            found = found.unique("time_ns", maintain_order=True)
            if found.is_empty():
                raise NothingMeasured(f"no time series of {label}")
            seconds, values = found["time_ns"].to_numpy() / 1e9 - zero_s, found[column].to_numpy()
            if bin_samples:
                seconds, values = seconds[::bin_samples], values[::bin_samples]
                values = np.diff(values) * 8e-6 / np.diff(seconds)
                seconds = seconds[1:]
            lines[label] = (seconds, values * scale, style)
        figures.series(axes, lines, unit)
        dress(axes, look)
        if down:
            outages.shade(axes, results.scenarios[found["cell"][0]], shift_s=zero_s)

    return draw


def dress(axes: Axes, look: Look) -> None:
    """Give axes their labels, limits, ticks and lines."""
    if "ticks" in look:
        figures.plain_ticks(axes, look["ticks"])
    if look.get("log"):
        figures.plain_log_y(axes)
    axes.set(**{f"{name}label": look[name] for name in ("x", "y") if name in look})
    bottom = look.get("bottom", None if look.get("log") else 0)
    axes.set_ylim(bottom, look.get("top"))
    if "span" in look:
        axes.set_xlim(*look["span"])
    for y, words in look.get("lines", {}).items():
        figures.reference_line(axes, y, words)
    if "stated" in look:
        figures.stated(axes, *zip(*look["stated"], strict=True))
