"""The figure of an explanation: the states of the subflows over time, above the send window."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from anabranch._core import __version__
from anabranch.explain.causes import NONE, STATES
from anabranch.explain.explanation import Explanation
from anabranch.reports import figures
from anabranch.reports.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from anabranch.results.estimates import Sample
from anabranch.runs.columns import frame

CAPTION = (
    "Each lane is a subflow. In every column, the colours divide its height as its states divided "
    "the time. Below: data in flight on each subflow, data that arrived out of order, and the "
    "window that the receiver offers."
)
_BINS = 400
_LANE_GAP = 0.12
_OF_SUBFLOWS = (BLUE, ORANGE, GREEN, RED, SKY, PURPLE)
_LANE_INCHES, _WINDOW_INCHES, _REST_INCHES = 0.55, 2.2, 1.9


def draw(explanation: Explanation) -> Figure:
    """The figure of one direction of a connection."""
    lanes = list(_lanes(explanation))
    heights = (max(1, len(lanes)) * _LANE_INCHES, _WINDOW_INCHES)
    with matplotlib.rc_context(figures.RC):
        figure = Figure(figsize=(8.2, sum(heights) + _REST_INCHES), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=heights)
        used = _draw_lanes(above, explanation, lanes)
        _draw_window(below, explanation)
        colours = {STATES[state].words: STATES[state].colour for state in used}
        handles = [Patch(color=colour, label=words) for words, colour in colours.items()]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8)
        below.set_xlabel("time (s)")
        below.set_xlim(0, explanation.seconds)
        run = explanation.run
        source = f"anabranch {__version__} · {explanation.name} · seed {run.seed} · {run.digest}"
        figure.supxlabel(source, fontsize=7, color=GREY, x=0.008, ha="left")
    return figure


def _lanes(explanation: Explanation) -> Iterator[tuple[str, pl.DataFrame]]:
    """The label and the intervals of each subflow, by path."""
    table = explanation.activities.sort("path", "subflow", "generation", "from_ns")
    groups = table.partition_by(["path", "subflow", "generation"], maintain_order=True)
    several = table.select("path", "subflow", "generation").unique()["path"].value_counts()
    repeated = set(several.filter(pl.col("count") > 1)["path"])
    for group in groups:
        first = group.row(0, named=True)
        label = explanation.run.path_names[first["path"]]
        if first["path"] in repeated and first["subflow"] != NONE:
            label += f" ({first['subflow']}.{first['generation']})"
        yield label, group


def _draw_lanes(
    axes: Axes, explanation: Explanation, lanes: list[tuple[str, pl.DataFrame]]
) -> list[int]:
    """Draw the lanes, the first at the top. Returns the states that occur."""
    edges = np.linspace(0, explanation.run.virtual_ns, _BINS + 1)
    seconds = edges / 1e9
    used: set[int] = set()
    for place, (_, group) in enumerate(reversed(lanes)):
        base = np.full(_BINS, place + _LANE_GAP / 2)
        for state in sorted(group["state"].unique()):
            height = shares(group.filter(pl.col("state") == state), edges) * (1 - _LANE_GAP)
            axes.fill_between(
                seconds, _stepped(base), _stepped(base + height), step="post", linewidth=0,
                color=STATES[state].colour, label=STATES[state].words,
            )  # fmt: skip
            base = base + height
            used.add(state)
    axes.set_yticks(np.arange(len(lanes)) + 0.5, [label for label, _ in reversed(lanes)])
    axes.set_ylim(0, max(1, len(lanes)))
    axes.grid(visible=False)
    return sorted(used)


def shares(intervals: pl.DataFrame, edges: Sample) -> Sample:
    """The part of each bin that the intervals cover; `edges` are the bins' ends in ns."""
    begin = intervals["from_ns"].to_numpy().astype(np.float64)
    end = intervals["until_ns"].to_numpy().astype(np.float64)
    covered = np.concatenate([[0.0], np.cumsum(end - begin)])
    times = np.stack([begin, end], axis=1).ravel()
    sums = np.stack([covered[:-1], covered[1:]], axis=1).ravel()
    part: Sample = np.diff(np.interp(edges, times, sums)) / np.diff(edges)
    return part


def _stepped(values: Sample) -> Sample:
    return np.append(values, values[-1])


def _draw_window(axes: Axes, explanation: Explanation) -> None:
    """Draw data in flight by subflow, data out of order, and the window."""
    run, number = explanation.run, explanation.number
    connection = frame(run.tables["connection_samples"]).filter(pl.col("connection") == number)
    subflows = frame(run.tables["subflow_samples"]).filter(pl.col("connection") == number)
    if connection.is_empty():
        axes.text(0.5, 0.5, "the connection never opened", ha="center", transform=axes.transAxes)
        return
    times = connection["time_ns"].to_numpy()
    sum_kb = np.zeros(len(times))
    for place, slot in enumerate(sorted(subflows["subflow"].unique())):
        flight = _at(subflows.filter(pl.col("subflow") == slot), "bytes_in_flight", times) / 1e3
        axes.fill_between(
            times / 1e9, sum_kb, sum_kb + flight, linewidth=0, alpha=0.75,
            color=_OF_SUBFLOWS[place % len(_OF_SUBFLOWS)],
            label=f"in flight on {explanation.path_of_subflow.get(slot, slot)}",
        )  # fmt: skip
        sum_kb = sum_kb + flight
    waiting = connection["out_of_order_bytes"].to_numpy() / 1e3
    axes.fill_between(
        times / 1e9, sum_kb, sum_kb + waiting, linewidth=0, color=YELLOW, label="out of order"
    )
    sum_kb = sum_kb + waiting
    edge = sum_kb + connection["window_room"].to_numpy() / 1e3
    axes.plot(times / 1e9, edge, color=BLACK, linewidth=1, label="receive window")
    axes.set_ylabel("data (kB)")
    top = max(float(np.quantile(sum_kb, 0.99)) * 1.4, 1.0)
    axes.set_ylim(0, min(float(edge.max()) * 1.05 or 1.0, 3 * top))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4)


def _at(samples: pl.DataFrame, column: str, times: Sample) -> Sample:
    """A column of samples at these times; 0 where there is no sample."""
    values = np.zeros(len(times))
    places = np.searchsorted(times, samples["time_ns"].to_numpy())
    values[places] = samples[column].to_numpy()
    return values
