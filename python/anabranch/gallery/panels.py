"""Panel types: metrics over factors, points, bars, distributions and series over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from anabranch.gallery.measures import Values
from anabranch.gallery.metrics import Levels, Metric
from anabranch.reports import figures, outages
from anabranch.reports.figures import Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.loading import settings_in

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # the import is slow, and `list` does not draw

Draw = Callable[[Results, Axes], None]
Drawings = Mapping[str, Draw]
"""The drawing of each panel, by its title."""
Curves = Mapping[str, tuple[Levels, Style]]
"""The factors and the style of each curve."""


MARK: Any = {"color": figures.GREY, "linewidth": 0.8, "linestyle": (0, (1, 2))}
"""The line that marks a value."""


class Look(TypedDict, total=False):
    """The look of axes."""

    ticks: Sequence[float] | Mapping[float, str]
    """Levels of the x axis, as plain numbers or in words. They make the axis logarithmic."""
    places: Sequence[str]
    """Words at the places 0, 1, 2 and so on of the x axis."""
    turned: float
    """The angle of these words in degrees, if they are long."""
    xlog: bool
    """Whether the x axis is logarithmic."""
    xticks: Sequence[float]
    """Levels of a linear x axis."""
    bottom: float | None
    """The lower end of the y axis: by default 0, unless it is logarithmic."""
    top: float
    log: bool
    """Whether the y axis is logarithmic."""
    lines: Mapping[float, str]
    """Horizontal lines with their words."""
    uprights: Sequence[float]
    """Vertical lines."""
    stated: Iterable[tuple[float, float]]
    """Numbers of the source."""
    span: tuple[float, float | None]
    """Ends of the x axis."""


def curves(styles: Mapping[str, Style], *names: str, by: str = "curve", **fixed: Any) -> Curves:
    """One curve for each level of the factor `by`: those of `names`, or all that have a style."""
    return {name: ({by: name, **fixed}, styles[name]) for name in names or styles}


def over(factor: str, metric: Metric, drawn: Curves, x: str, **look: Unpack[Look]) -> Draw:
    """Medians of a metric over a numeric factor, whose label is `x`."""

    def draw(results: Results, axes: Axes) -> None:
        figures.over_factor(axes, results, factor, metric.column, drawn, metric.scale)
        dress(axes, look, x, metric.heading)

    return draw


def points(
    levels: Mapping[float, Any] | Sequence[float],
    measure: Callable[[str, Any], Measure],
    styles: Mapping[str, Style],
    x: str,
    y: str,
    **look: Unpack[Look],
) -> Draw:
    """Estimates of each curve at places on the x axis. What was not measured is left out."""
    places = levels if isinstance(levels, Mapping) else {level: level for level in levels}

    def draw(results: Results, axes: Axes) -> None:
        for curve, style in styles.items():
            found = {}
            for place, level in places.items():
                with suppress(NothingMeasured):
                    found[place] = measure(curve, level)(results)
            figures.estimates(axes, [*found], [*found.values()], curve, style)
        dress(axes, look, x, y)

    return draw


def bars(
    groups: Mapping[str, Any] | Sequence[str],
    measure: Callable[[str, Any], Measure | None],
    styles: Mapping[str, Style],
    y: str,
    source: Mapping[str, Sequence[float | None]] | None = None,
    x: str = "",
    **look: Unpack[Look],
) -> Draw:
    """Estimates as bars: one for each curve in each group, or none. `source` has the source's."""
    levels = groups if isinstance(groups, Mapping) else {group: group for group in groups}

    def draw(results: Results, axes: Axes) -> None:
        drawn = {}
        for curve, style in styles.items():
            found = [measure(curve, level) for level in levels.values()]
            drawn[curve] = ([each(results) if each else None for each in found], style)
        figures.grouped_bars(axes, [*levels], drawn, source)
        dress(axes, look, x, y)

    return draw


def bars_of(
    groups: Mapping[str, Any] | Sequence[str],
    metric: Metric,
    cell: Callable[[str, Any], Levels],
    styles: Mapping[str, Style],
    source: Mapping[str, Sequence[float | None]] | None = None,
    x: str = "",
    **look: Unpack[Look],
) -> Draw:
    """Medians of a metric as bars; `cell` names the runs of a curve in a group."""

    def measure(curve: str, group: Any) -> Measure:
        return metric.median(cell(curve, group))

    return bars(groups, measure, styles, metric.heading, source, x, **look)


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


def settings(
    drawn: Mapping[str, tuple[Values, Style]],
    x: str,
    marks: Mapping[float, str],
    **look: Unpack[Look],
) -> Draw:
    """Cumulative distributions of values over the settings of a design, with marked values."""

    def draw(results: Results, axes: Axes) -> None:
        for label, (values, style) in drawn.items():
            figures.share_of_settings(axes, values(results), label, style)
        for place, words in marks.items():
            axes.axvline(place, **MARK)
            if words:
                axes.text(place, 0.3, f" {words}", fontsize=7, color=figures.GREY, rotation=90)
        dress(axes, {"top": 1, **look}, x)

    return draw


def series(
    columns: Mapping[str, tuple[Levels, str, Style]],
    y: str,
    x: str = "time (s)",
    *,
    scale: float = 1,
    bin_samples: int = 0,
    zero_s: float = 0,
    shown_s: tuple[float, float] = (-math.inf, math.inf),
    since_zero: bool = False,
    where: pl.Expr | bool = True,
    down: bool = False,
    **look: Unpack[Look],
) -> Draw:
    """Columns of the first seed's samples over time; each has the factors that name its rows.

    With `bin_samples`, the column counts bytes, and its rate in Mbit/s over as many samples is
    drawn. `zero_s` is the time that counts as 0; with `since_zero`, values count from their value
    at this time. Only samples within `shown_s` that meet the condition `where` are drawn. Outages
    are shaded if `down`.
    """

    def draw(results: Results, axes: Axes) -> None:
        lines: dict[str, tuple[Sample, Sample, Style]] = {}
        for label, (rows, column, style) in columns.items():
            found = results.rows("samples", **{"seed": 1, **rows})
            found = found.filter(where).unique("time_ns", maintain_order=True)
            if found.is_empty():
                raise NothingMeasured(f"no time series of {label}")
            seconds, values = found["time_ns"].to_numpy() / 1e9 - zero_s, found[column].to_numpy()
            if since_zero:
                values = values - np.interp(0, seconds, values)
            shown = (seconds >= shown_s[0]) & (seconds <= shown_s[1])
            seconds, values = seconds[shown], values[shown]
            if bin_samples:
                seconds, values = seconds[::bin_samples], values[::bin_samples]
                values = np.diff(values) * 8e-6 / np.diff(seconds)
                seconds = seconds[1:]
            lines[label] = (seconds, values * scale, style)
        figures.series(axes, lines, y)
        dress(axes, look, x)
        if down:
            outages.shade(axes, settings_in(results.scenarios[found["cell"][0]]), shift_s=zero_s)

    return draw


def goodput_around(drawn: Curves, away_s: float, back_s: float) -> Draw:
    """Goodput over time of the first seed, around an outage."""
    return series(
        {label: (cell, "bytes_delivered", style) for label, (cell, style) in drawn.items()},
        "goodput, bins of 1 s (Mbit/s)",
        bin_samples=10,
        down=True,
        span=(away_s - 10, back_s + 15),
        bottom=None,
    )


def dress(axes: Axes, look: Look, x: str = "", y: str = "") -> None:
    """Give axes their labels, limits, ticks and lines."""
    if "ticks" in look:
        figures.plain_ticks(axes, look["ticks"])
    if "places" in look:
        axes.set_xticks(range(len(look["places"])), look["places"])
    if "turned" in look:
        for label in axes.get_xticklabels():
            label.set(rotation=look["turned"], ha="right", fontsize=7)
    if "xticks" in look:
        axes.set_xticks(look["xticks"], [f"{level:g}" for level in look["xticks"]])
    if look.get("xlog") and "ticks" not in look:
        figures.plain_log_x(axes)
    if look.get("log"):
        figures.plain_log_y(axes)
    axes.set(**{name: words for name, words in (("xlabel", x), ("ylabel", y)) if words})
    bottom = look.get("bottom", None if look.get("log") else 0)
    axes.set_ylim(bottom, look.get("top"))
    if "span" in look:
        axes.set_xlim(*look["span"])
    for place in look.get("uprights", ()):
        axes.axvline(place, color=figures.GREY, linewidth=0.6, zorder=1)
    for height, words in look.get("lines", {}).items():
        figures.reference_line(axes, height, words)
    if "stated" in look:
        figures.stated(axes, *zip(*look["stated"], strict=True))
