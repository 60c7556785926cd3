"""Drawing results onto axes. `pictures` composes figures of such drawings.

The colours are those of Okabe and Ito, which readers with any colour vision can distinguish. Line
styles differ as well. Every axis has a unit, and every figure states the source of its numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.results.estimates import Estimate, Sample, median, number
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.results.metrics import MODE_BIN_MS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#666666"
OF_SUBFLOWS = (BLUE, ORANGE, GREEN, RED, SKY, PURPLE)
"""The colours of the first six subflows, or paths, of a connection."""
_ON_LIGHT, _ON_DARK = "#101a2c", "#fffdf4"
"""Text on coloured cells. These colours are not grey, because dark mode inverts greys."""
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])

_QUANTILE_MARKS = (50, 95, 99)


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure."""

    title: str
    caption: str
    """Instructions for reading the drawing, for the report."""
    draw: Callable[[Results, Axes], None]


_LINES: Mapping[str, Any] = {
    "-": "-",
    "--": (0, (4, 1.5)),
    "..": (0, (2, 1)),
    "-.": (0, (6, 1.5, 1, 1.5)),
    ":": (0, (1, 1)),
    "": "none",
}
"""Solid lines, dashes, short dashes, dashes with dots, dots, and no line."""


@dataclass(frozen=True)
class Style:
    """The style of a curve, the same in every panel."""

    colour: str
    fmt: str = "o-"
    """A marker of Matplotlib or none, and a line: ``-``, ``--``, ``..``, ``-.``, ``:`` or none."""

    def __post_init__(self) -> None:
        if len(self.marker) > 1 or self.fmt.removeprefix(self.marker) not in _LINES:
            raise ValueError(f"{self.fmt!r} is not a marker and a line, as o- or s--")

    @property
    def marker(self) -> str:
        """The marker; empty for none."""
        return self.fmt.rstrip("-.:")

    @property
    def line(self) -> Any:
        """The pattern of the line."""
        return _LINES[self.fmt.removeprefix(self.marker)]

    def line_arguments(self) -> dict[str, Any]:
        """Arguments for `Axes.plot`."""
        return {"color": self.colour, "linestyle": self.line}


Curves = Mapping[str, tuple[Sample, Style]]
"""Delays in ms and style by label."""


def cdf(axes: Axes, curves: Curves, right: float | None = None) -> None:
    """Draw cumulative distributions of delays, and mark the quantiles that tables show."""
    for label, (delays, style) in curves.items():
        share = np.linspace(0, 1, 801)
        axes.plot(np.quantile(delays, share), share, label=label, **style.line_arguments())
    for mark, above in zip(_QUANTILE_MARKS, (False, False, True), strict=True):
        _mark(axes, mark / 100, f"p{mark}", "bottom" if above else "center")
    axes.set(xlabel="delay of a block (ms)", ylabel="share of blocks, cumulative")
    axes.set_ylim(0, 1.01)
    axes.set_xlim(0, right)


def ccdf(axes: Axes, curves: Curves, right: float | None = None) -> None:
    """Draw the share of blocks that take longer, on a logarithmic scale that shows the tails."""
    lowest = 1e-2
    for label, (delays, style) in curves.items():
        lowest = min(lowest, 1 / delays.size)
        longer = np.geomspace(1, 1 / delays.size, 801)
        axes.plot(np.quantile(delays, 1 - longer), longer, label=label, **style.line_arguments())
    for mark in _QUANTILE_MARKS:
        _mark(axes, 1 - mark / 100, f"p{mark}")
    axes.set(xlabel="delay of a block (ms)", ylabel="share of blocks that take longer")
    axes.set_yscale("log")
    axes.set_ylim(max(lowest, 1e-4), 1.1)
    axes.set_xlim(0, right)


def pdf(axes: Axes, curves: Curves, right: float | None = None) -> None:
    """Draw densities of delays: histograms with bins of 20 ms and an area of 1."""
    for label, (delays, style) in curves.items():
        edges = np.arange(0, delays.max() + 2 * MODE_BIN_MS, MODE_BIN_MS)
        density, _ = np.histogram(delays, edges, density=True)
        axes.stairs(density, edges, label=label, **style.line_arguments())
    axes.set(xlabel="delay of a block (ms)", ylabel=f"density (1/ms; bins of {MODE_BIN_MS:.0f} ms)")
    axes.set_xlim(0, right)
    axes.set_ylim(0)


def share_of_settings(axes: Axes, values: Sample, label: str, style: Style) -> None:
    """Draw the cumulative distribution of a value over the settings of a design, as steps."""
    share = np.arange(1, values.size + 1) / values.size
    axes.step(np.sort(values), share, where="post", label=label, **style.line_arguments())
    axes.set_ylabel("share of settings, cumulative")
    axes.set_ylim(0, 1)


def over_factor(
    axes: Axes,
    results: Results,
    factor: str,
    metric: str,
    curves: Mapping[str, tuple[Mapping[str, Factor], Style]],
    scale: float = 1,
) -> None:
    """Draw medians over seeds of a metric over a numeric factor, with 95 % confidence intervals.

    `curves` gives the other factors and the style for each label. `scale` multiplies the metric.
    """
    for label, (others, style) in curves.items():
        points = results.runs.filter(
            *(results.runs[name] == value for name, value in others.items())
        )
        drawn: dict[float, Estimate] = {}
        for level in sorted(points[factor].drop_nulls().unique().to_list()):
            with contextlib.suppress(NothingMeasured):
                values = results.values(metric, **{factor: level}, **others)
                drawn[level] = median(values * scale)
        estimates(axes, list(drawn), list(drawn.values()), label, style)


def estimates(
    axes: Axes, x: Sequence[float], points: Sequence[Estimate], label: str, style: Style
) -> None:
    """Draw a curve of estimates with their intervals."""
    axes.errorbar(
        x, [point.value for point in points], _intervals(points), label=label, capsize=2.5,
        marker=style.marker, markersize=4, elinewidth=0.8, **style.line_arguments(),
    )  # fmt: skip


def grouped_bars(
    axes: Axes,
    groups: Sequence[str],
    bars: Mapping[str, tuple[Sequence[Estimate | None], Style]],
    source: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Draw estimates as bars with intervals. Each label has one bar in every group, or none.

    `source` has the source's own numbers for bars, in the order of the groups.
    """
    width = 0.8 / len(bars)
    own: list[tuple[float, float]] = []
    for index, (label, (points, style)) in enumerate(bars.items()):
        shift = (index - (len(bars) - 1) / 2) * width
        drawn = [(place + shift, point) for place, point in enumerate(points) if point]
        axes.bar(
            [place for place, _ in drawn], [point.value for _, point in drawn], 0.9 * width,
            yerr=_intervals([point for _, point in drawn]), capsize=2.5, color=style.colour,
            alpha=0.75, error_kw={"elinewidth": 0.8},
        )  # fmt: skip
        axes.plot([], [], label=label, **style.line_arguments())
        numbers = enumerate((source or {}).get(label, ()))
        own += [(place + shift, value) for place, value in numbers if value is not None]
    if own:
        stated(axes, [place for place, _ in own], [value for _, value in own])
    axes.set_xticks(range(len(groups)), list(groups))


def _intervals(points: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """The distances from the values down to the lower and up to the upper ends of intervals."""
    return (
        [point.value - point.low for point in points],
        [point.high - point.value for point in points],
    )


def series(axes: Axes, lines: Mapping[str, tuple[Sample, Sample, Style]], unit: str) -> None:
    """Draw values over time. `lines` gives the times in s, values and style for each label."""
    for label, (seconds, values, style) in lines.items():
        axes.plot(seconds, values, label=label, linewidth=1, **style.line_arguments())
    axes.set(xlabel="time (s)", ylabel=unit)


def heat_map(
    axes: Axes, across: Sequence[str], upwards: Sequence[str], values: Sample, unit: str
) -> None:
    """Draw values by two factors, as coloured cells that contain the numbers.

    `values` has a row for each level of the factor `upwards`, and NaN where a value is missing.
    """
    edges = (np.arange(len(across) + 1) - 0.5, np.arange(len(upwards) + 1) - 0.5)
    mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap="cividis")
    colours = mesh.to_rgba(np.ma.masked_invalid(values))
    for row, column in np.argwhere(np.isfinite(values)):
        is_light = colours[row, column, :3] @ _LUMINANCE > 0.5
        axes.text(
            column, row, number(values[row, column]), ha="center", va="center",
            fontsize=9 if len(across) <= 6 else 7, color=_ON_LIGHT if is_light else _ON_DARK,
        )  # fmt: skip
    axes.set_xticks(range(len(across)), list(across))
    axes.set_yticks(range(len(upwards)), list(upwards))
    axes.grid(visible=False)
    axes.annotate(
        unit, (1, 1), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points",
        ha="right", va="bottom", fontsize=7, color=GREY, annotation_clip=False,
    )  # fmt: skip


def plain_ticks(axes: Axes, levels: Sequence[float] | Mapping[float, str]) -> None:
    """Make the x axis logarithmic, with the levels of a factor as ticks: plain numbers or words."""
    axes.set_xscale("log")
    words = levels.values() if isinstance(levels, Mapping) else [f"{each:g}" for each in levels]
    axes.set_xticks(list(levels), list(words))
    axes.xaxis.minorticks_off()


def plain_log_y(axes: Axes) -> None:
    """Make the y axis logarithmic, with ticks in plain numbers: 1, 2, 5, 10 and so on."""
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)


def plain_log_x(axes: Axes) -> None:
    """Make the x axis logarithmic, with ticks in plain numbers: 1, 2, 5, 10 and so on."""
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis)


def _plain_numbers(axis: Axis) -> None:
    from matplotlib.ticker import LogLocator  # the import is slow

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.minorticks_off()


def reference_line(axes: Axes, y: float, text: str) -> None:
    """Draw a labelled horizontal line."""
    axes.axhline(y, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    axes.annotate(
        text, (0.995, y), xycoords=axes.get_yaxis_transform(), ha="right", va="bottom",
        fontsize=7, color=GREY,
    )  # fmt: skip


def stated(axes: Axes, x: Sequence[float], values: Sequence[float]) -> None:
    """Mark the source's own numbers next to the measured ones, as hollow diamonds."""
    axes.plot(
        x, values, "D", color=BLACK, markerfacecolor="none", markersize=6, label="source", zorder=5
    )


def nothing_to_draw(axes: Axes, reason: str) -> None:
    """Show a sentence instead of a drawing."""
    axes.text(0.5, 0.5, reason, ha="center", va="center", wrap=True, transform=axes.transAxes)
    axes.set_axis_off()


def _mark(axes: Axes, y: float, text: str, above: str = "center") -> None:
    axes.axhline(y, color=GREY, linewidth=0.6, linestyle=(0, (1, 3)), zorder=1)
    axes.annotate(
        text, (1.0, y), xycoords=axes.get_yaxis_transform(), ha="left", va=above,
        fontsize=6.5, color=GREY, annotation_clip=False,
    )  # fmt: skip


def right_edge(samples: Iterable[Sample], quantile: float = 0.999) -> float:
    """A right end of delay axes that includes nearly all of every sample."""
    return max(float(np.quantile(sample, quantile)) for sample in samples) * 1.05
