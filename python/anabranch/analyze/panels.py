"""Drawings of a capture: data over time, outstanding data, and the rates of the subflows.

Data sequence numbers count from the first byte of the data. A capture can have more segments than a
drawing has pixels. The segments are therefore placed on a grid finer than the drawing, and segments
in the same place are drawn once. No visible detail is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.collections import LineCollection

from anabranch.analyze.analysis import Analysis, rates_mbps
from anabranch.reports import figures, pictures
from anabranch.reports.figures import BLACK, BLUE, GREY, OF_SUBFLOWS, RED, SKY, Style
from anabranch.results.estimates import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMS = ("o-", "o--", "o:")

_GRID = (3000, 2000)
"""Columns and rows of the grid for segments."""
_MARKER_GRID = (240, 120)
"""Columns and rows of the grid for markers, which are larger."""
_RASTERISED_FROM = 4000
"""Number of bars above which they are drawn as pixels, not as lines of a vector graphic."""
_DETAIL_SEGMENTS = 90
_BINS = 100


@dataclass(frozen=True)
class DrawnDirection:
    """One direction of a connection, ready to be drawn."""

    title: str
    data: pl.DataFrame
    acknowledgements: pl.DataFrame
    subflows: tuple[tuple[int, str, Style], ...]
    """Number, label and style of each subflow that carried data."""


def flow(analysis: Analysis, connection: int, direction: str) -> DrawnDirection:
    """One direction of a connection."""
    about = analysis.connections.row(connection, named=True)
    data = analysis.data(connection, direction)
    ends = [about["initiator"], about["listener"]]
    source, sink = ends if direction == "out" else ends[::-1]
    total = max(1, _new_bytes(data))
    labels: list[tuple[int, str, Style]] = []
    carried = {key: rows for (key,), rows in data.partition_by("subflow", as_dict=True).items()}
    for row in analysis.subflows.filter(pl.col("subflow").is_in([*carried])).iter_rows(named=True):
        place = len(labels)
        again, colour = divmod(place, len(OF_SUBFLOWS))
        style = Style(OF_SUBFLOWS[colour], _FORMS[again % len(_FORMS)])
        words = f"subflow {row['subflow']}: {row['initiator']} – {row['listener']}"
        share = _new_bytes(carried[row["subflow"]]) / total
        labels.append((row["subflow"], f"{words}, {share * 100:.0f} %", style))
    return DrawnDirection(
        title=f"connection {connection}: {source} → {sink}",
        data=data,
        acknowledgements=analysis.acknowledgements(connection, direction),
        subflows=tuple(labels),
    )


def _new_bytes(data: pl.DataFrame) -> int:
    return int(data.filter(pl.col("kind") == "new")["len"].sum())


def draw(shown: DrawnDirection, footer: str) -> Figure:
    """Draw data over time, an enlarged part of it, outstanding data, and rates."""
    with matplotlib.rc_context(pictures.RC):
        figure = pictures.NotebookFigure(figsize=(10.5, 8.6), layout="constrained")
        body = figure.add_gridspec(2, 2, height_ratios=(1.3, 1), width_ratios=(1.25, 1))
        whole = figure.add_subplot(body[0, 0])
        part = figure.add_subplot(body[0, 1])
        outstanding = figure.add_subplot(body[1, 0])
        rates = figure.add_subplot(body[1, 1])
        _whole(whole, shown)
        _detail(part, whole, shown)
        _outstanding(outstanding, shown)
        _rates(rates, shown)
        figure.suptitle(shown.title, x=0.008, ha="left", fontsize=12, fontweight="bold")
        handles, labels = whole.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower left", ncols=2, fontsize=8, columnspacing=1.4
        )
        figure.text(0.995, 0.99, footer, fontsize=7, color=GREY, ha="right", va="top")
    return figure


def _whole(axes: Axes, shown: DrawnDirection) -> None:
    unit, scale = _unit(shown.data["end"].max())
    limits = _limits(shown)
    widths = np.linspace(3.2, 1.4, len(shown.subflows))  # so that no subflow hides another
    for (number, label, style), width in zip(shown.subflows, widths, strict=True):
        segments = shown.data.filter(pl.col("subflow") == number)
        _bars(axes, segments, limits, scale, style, label, float(width))
    _markers(axes, shown.data, limits, scale)
    _levels(axes, shown, limits, scale)
    axes.set(
        title="Data over time", xlabel="time (s)", ylabel=f"data sequence number ({unit})",
        xlim=limits[:2], ylim=(limits[2] / scale, limits[3] / scale),
    )  # fmt: skip


def _detail(axes: Axes, whole: Axes, shown: DrawnDirection) -> None:
    """Draw the part around the first data that was sent again, with single segments visible."""
    data = shown.data
    again = np.flatnonzero((data["kind"] == "reinjection").to_numpy())
    if again.size == 0:
        again = np.flatnonzero((data["kind"] == "retransmission").to_numpy())
    middle = int(again[0]) if again.size else data.height // 2
    first = max(0, min(middle - _DETAIL_SEGMENTS // 2, data.height - _DETAIL_SEGMENTS))
    part = data.slice(first, _DETAIL_SEGMENTS)
    unit, scale = _unit(part["end"].max())
    times, low, high = part["seconds"].to_numpy(), _least(part["start"]), _largest(part["end"])
    margin = max(1e-4, float(times[-1] - times[0])) * 0.03
    space = max(1.0, high - low) * 0.05
    limits = (times[0] - margin, times[-1] + margin, low - space, high + space)
    for number, _, style in shown.subflows:
        segments = part.filter(pl.col("subflow") == number)
        if not segments.is_empty():
            _bars(axes, segments, limits, scale, style, None, 2.6)
    _markers(axes, part, limits, scale, grid=None)
    _levels(axes, shown, limits, scale)
    axes.set(
        title="Enlarged", xlabel="time (s)", ylabel=f"data sequence number ({unit})",
        xlim=limits[:2], ylim=(limits[2] / scale, limits[3] / scale),
    )  # fmt: skip
    axes.locator_params(axis="x", nbins=6)
    _, whole_scale = _unit(shown.data["end"].max())
    corners = (limits[0], limits[2] / whole_scale)
    size = (limits[1] - limits[0], (limits[3] - limits[2]) / whole_scale)
    whole.add_patch(
        matplotlib.patches.Rectangle(corners, *size, fill=False, edgecolor=BLACK, linewidth=0.8)
    )


def _bars(
    axes: Axes,
    segments: pl.DataFrame,
    limits: tuple[float, float, float, float],
    scale: float,
    style: Style,
    label: str | None,
    width: float,
) -> None:
    """Draw a bar for each segment, from its first to its last byte."""
    times, starts, ends = _bars_on_grid(segments, limits)
    lines = np.empty((times.size, 2, 2))
    lines[:, :, 0] = times[:, None]
    lines[:, 0, 1], lines[:, 1, 1] = starts / scale, ends / scale
    bars = LineCollection(
        list(lines), colors=style.colour, linewidths=width, capstyle="butt", zorder=2.5,
        rasterized=times.size > _RASTERISED_FROM,
    )  # fmt: skip
    axes.add_collection(bars, autolim=False)
    if label is not None:
        axes.plot([], [], color=style.colour, linewidth=4, label=label)


def _bars_on_grid(
    segments: pl.DataFrame, limits: tuple[float, float, float, float]
) -> tuple[Sample, Sample, Sample]:
    """Bars. If there are many, those that touch in a column of the grid are merged."""
    times, starts, ends = (segments[name].to_numpy() for name in ("seconds", "start", "end"))
    if times.size <= _RASTERISED_FROM:
        return times, starts.astype(float), ends.astype(float)
    columns, rows = _GRID
    x = np.floor((times - limits[0]) / (limits[1] - limits[0]) * columns).astype(np.int64)
    height = (limits[3] - limits[2]) / rows
    low = np.floor((starts - limits[2]) / height).astype(np.int64)
    high = np.maximum(np.ceil((ends - limits[2]) / height).astype(np.int64), low + 1)
    order = np.lexsort((low, x))
    x, low, high = x[order], low[order], high[order]
    # The end of all earlier bars in the same column: the distance between columns exceeds all rows.
    apart = x * (4 * rows + 4 * int(high.max() + 1))
    reach = np.maximum.accumulate(high + apart)
    begins = np.flatnonzero(np.concatenate(([True], low[1:] + apart[1:] > reach[:-1])))
    tops = np.maximum.reduceat(high, begins)
    at = limits[0] + (x[begins] + 0.5) / columns * (limits[1] - limits[0])
    return at, np.asarray(limits[2] + low[begins] * height), limits[2] + tops * height


def _markers(
    axes: Axes,
    data: pl.DataFrame,
    limits: tuple[float, float, float, float],
    scale: float,
    grid: tuple[int, int] | None = _MARKER_GRID,
) -> None:
    """Mark data that was sent again. With a grid, overlapping marks become one."""
    for kind, marker, words, colour in (
        ("retransmission", "x", "TCP retransmission", GREY),
        ("reinjection", "^", "reinjection on another subflow", RED),
    ):
        rows = data.filter(pl.col("kind") == kind)
        if rows.is_empty():
            continue
        x, y = rows["seconds"].to_numpy(), rows["start"].to_numpy().astype(np.float64)
        if grid is not None:
            place = np.stack([
                np.floor((x - limits[0]) / (limits[1] - limits[0]) * grid[0]),
                np.floor((y - limits[2]) / (limits[3] - limits[2]) * grid[1]),
            ])  # fmt: skip
            _, first = np.unique(place, axis=1, return_index=True)
            x, y = x[first], y[first]
        axes.plot(
            x, y / scale, linestyle="none", marker=marker, markersize=4.5 if marker == "^" else 4,
            markerfacecolor="none", markeredgecolor=colour, markeredgewidth=0.9, zorder=4,
            label=f"{words} ({rows.height:,} segments)", rasterized=x.size > _RASTERISED_FROM,
        )  # fmt: skip


def _levels(
    axes: Axes, shown: DrawnDirection, limits: tuple[float, float, float, float], scale: float
) -> None:
    """Draw the lines between which data may be sent: DATA_ACK and the edge of the window."""
    rows = shown.acknowledgements
    if rows.is_empty():
        return
    times = rows["seconds"].to_numpy()
    for column, colour, words, line in (
        ("acked", BLACK, "DATA_ACK", "-"),
        ("edge", GREY, "edge of the receive window", (0, (4, 2))),
    ):
        known = rows[column].is_not_null().to_numpy()
        if not known.any():
            continue
        x, y = _steps(times[known], rows[column].drop_nulls().to_numpy(), limits)
        axes.step(
            x, y / scale, where="post", color=colour, linewidth=0.8, linestyle=line, label=words,
            zorder=2,
        )  # fmt: skip


def _steps(
    times: Sample, values: Any, limits: tuple[float, float, float, float]
) -> tuple[Sample, Sample]:
    """A non-decreasing line: its last value in each column of the grid, extended to the right."""
    inside = np.flatnonzero((times >= limits[0]) & (times <= limits[1]))
    before = np.flatnonzero(times < limits[0])
    kept = np.concatenate((before[-1:], inside))
    if kept.size == 0:
        return np.array([]), np.array([])
    times, values = times[kept], values[kept].astype(np.float64)
    column = np.floor((times - limits[0]) / (limits[1] - limits[0]) * _GRID[0])
    last = np.append(np.flatnonzero(np.diff(column)), column.size - 1)
    return np.append(times[last], limits[1]), np.append(values[last], values[-1])


def _outstanding(axes: Axes, shown: DrawnDirection) -> None:
    """Draw the data that was sent but not yet acknowledged, and the receive window."""
    acks = shown.acknowledgements.filter(pl.col("edge").is_not_null())
    if acks.is_empty():
        figures.nothing_to_draw(axes, "the capture shows no DATA_ACK with a window")
        return
    times, acked = acks["seconds"].to_numpy(), acks["acked"].to_numpy()
    window = acks["edge"].to_numpy() - acked
    sent = np.maximum.accumulate(shown.data["end"].to_numpy())
    before = np.searchsorted(shown.data["seconds"].to_numpy(), times, side="right")
    reached = np.where(before > 0, sent[np.maximum(before - 1, 0)], acked)
    flight = np.maximum(reached - acked, 0)
    unit, scale = _unit(max(int(flight.max()), int(window.max())))
    x = np.linspace(float(times[0]), float(times[-1]), 1200)
    place = np.maximum(np.searchsorted(times, x, side="right") - 1, 0)
    # The largest between two points of the drawing, so that no peak is lost.
    starts = np.append(place[:-1], place[-1])
    peaks = np.maximum.reduceat(flight, np.minimum(starts, flight.size - 1))
    axes.fill_between(x, peaks / scale, color=SKY, alpha=0.45, linewidth=0, label="outstanding")
    axes.plot(x, peaks / scale, color=BLUE, linewidth=0.8)
    axes.plot(
        x, window[place] / scale, color=GREY, linewidth=1, linestyle=(0, (4, 2)),
        label="receive window",
    )  # fmt: skip
    axes.annotate(
        "receive window", (x[-1], window[place][-1] / scale), fontsize=7, color=GREY, ha="right",
        va="bottom", textcoords="offset points", xytext=(0, 2),
    )  # fmt: skip
    axes.set(
        title="Sent but not yet acknowledged by a DATA_ACK", xlabel="time (s)",
        ylabel=f"data ({unit})",
    )  # fmt: skip
    axes.set_xlim(0, float(times[-1]))
    axes.set_ylim(0)


def _rates(axes: Axes, shown: DrawnDirection) -> None:
    """Draw the new data of every subflow, and the data that DATA_ACKs report as delivered."""
    end = _largest(shown.data["seconds"])
    edges, width = _edges(end)
    middles = (edges[1:] + edges[:-1]) / 2
    for number, _, style in shown.subflows:
        rows = shown.data.filter(pl.col("subflow") == number, pl.col("kind") == "new")
        rates = rates_mbps(rows["seconds"].to_numpy(), rows["len"].to_numpy(), edges)
        label = f"subflow {number}"
        axes.plot(middles, rates, linewidth=1.2, label=label, **style.line_arguments())
    acks = shown.acknowledgements
    if not acks.is_empty():
        values = np.diff(acks["acked"].to_numpy(), prepend=0)
        rates = rates_mbps(acks["seconds"].to_numpy(), values, edges)
        axes.plot(middles, rates, color=BLACK, linewidth=0.8, label="DATA_ACKs")
        mean = _largest(acks["acked"]) * 8 / 1e6 / max(end, 1e-9)
        figures.reference_line(axes, mean, f"mean {mean:.3g} Mbit/s")
    axes.set(
        title=f"New data and DATA_ACKs, {_time(width)} bins",
        xlabel="time (s)", ylabel="Mbit/s",
    )  # fmt: skip
    axes.set_xlim(0, max(end, 1e-9))
    axes.set_ylim(0)


def _limits(shown: DrawnDirection) -> tuple[float, float, float, float]:
    """Limits of a drawing of all data: times in s, and bytes."""
    data = shown.data
    last = max(_largest(data["seconds"]), _largest(shown.acknowledgements["seconds"]))
    top = _largest(data["end"])
    return (
        -0.01 * last,
        max(1.01 * last, 1e-6),
        min(0.0, _least(data["start"])) - 0.01 * top,
        1.06 * top,
    )


def _largest(series: pl.Series) -> float:
    return 0.0 if series.is_empty() else float(series.to_numpy().max())


def _least(series: pl.Series) -> float:
    return 0.0 if series.is_empty() else float(series.to_numpy().min())


def _unit(byte_count: Any) -> tuple[str, float]:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if byte_count >= 2 * scale:
            return unit, scale
    return "B", 1.0


def _edges(end: float) -> tuple[Sample, float]:
    """Edges of bins with a round width, and that width in s."""
    wanted = max(end, 1e-6) / _BINS
    power = 10.0 ** np.floor(np.log10(wanted))
    width = next(power * step for step in (1, 2, 5, 10) if power * step >= wanted)
    return np.arange(0, end + width, width), float(width)


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1e3:g} ms"
