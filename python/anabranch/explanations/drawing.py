"""The figure of an explanation: the states of the subflows over time, above the send window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import polars as pl
from matplotlib.patches import Patch

from anabranch._core import __version__
from anabranch.explanations import capture
from anabranch.explanations.capture import CaptureExplanation
from anabranch.explanations.causes import BY_NAME, NONE, STATES, Cause
from anabranch.explanations.explanation import Explanation
from anabranch.reports import pictures
from anabranch.reports.figures import BLACK, GREY, OF_SUBFLOWS, ORANGE, SKY, YELLOW
from anabranch.results.estimates import Sample
from anabranch.runs.columns import frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Each row is a subflow. In every column, the colours divide its height as its states divided "
    "the time. Below: data in flight on each subflow, data that arrived out of order, and the "
    "window that the receiver offers."
)
_BINS = 400
_TIMELINE_GAP = 0.12
_TIMELINE_INCHES, _WINDOW_INCHES, _REST_INCHES = 0.55, 2.2, 1.9
_LOOKS: Mapping[str, Cause] = BY_NAME | {
    name: Cause(name, capture.STATES[name], colour=colour)
    for name, colour in {"network": SKY, "unknown": ORANGE}.items()
}
"""The look of states of captures; most are those of runs."""


@dataclass(frozen=True)
class Timeline:
    """The states of a subflow.

    Attributes:
        intervals: By state, a table with the columns ``from_ns`` and ``until_ns``.
    """

    label: str
    intervals: Mapping[Cause, pl.DataFrame]


@dataclass(frozen=True)
class Window:
    """Contents of the send window, at some times. Amounts are in bytes.

    Attributes:
        in_flight: Data in flight on each subflow.
        waiting: Data that arrived out of order.
        room: Data that the window still admits.
    """

    times_ns: Sample
    in_flight: Mapping[str, Sample]
    waiting: Sample
    room: Sample


@dataclass(frozen=True)
class TimelineDrawing:
    """Contents of the figure, and their origin."""

    timelines: Sequence[Timeline]
    window: Window | None
    lasted_ns: int
    source: str


def draw(drawn: TimelineDrawing) -> Figure:
    """The figure of one direction of a connection."""
    heights = (max(1, len(drawn.timelines)) * _TIMELINE_INCHES, _WINDOW_INCHES)
    with matplotlib.rc_context(pictures.RC):
        figure = pictures.NotebookFigure(
            figsize=(8.2, sum(heights) + _REST_INCHES), layout="constrained"
        )
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=heights)
        _draw_timelines(above, drawn)
        if drawn.window is None:
            said = "the connection never opened"
            below.text(0.5, 0.5, said, ha="center", transform=below.transAxes)
        else:
            _draw_window(below, drawn.window)
        colours = {
            state.words: state.colour
            for timeline in drawn.timelines
            for state in timeline.intervals
        }
        handles = [Patch(color=colour, label=words) for words, colour in colours.items()]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8)
        below.set_xlabel("time (s)")
        below.set_xlim(0, drawn.lasted_ns / 1e9)
        source = f"anabranch {__version__} · {drawn.source}"
        figure.supxlabel(source, fontsize=7, color=GREY, x=0.008, ha="left")
    return figure


def of_run(explanation: Explanation) -> TimelineDrawing:
    """The drawing of an explained run."""
    run = explanation.run
    return TimelineDrawing(
        list(_timelines_of_run(explanation)),
        _window_of_run(explanation),
        run.virtual_ns,
        f"{explanation.name} · seed {run.seed} · {run.digest}",
    )


def _timelines_of_run(explanation: Explanation) -> Iterator[Timeline]:
    """The timelines of the subflows, by path. Times without a subflow are in its first timeline."""
    table = explanation.activities.sort("path", "from_ns")
    for of_path in table.partition_by("path", maintain_order=True):
        name = explanation.run.path_names[of_path["path"][0]]
        none = of_path.filter(pl.col("subflow") == NONE)
        subflows = of_path.filter(pl.col("subflow") != NONE)
        groups = subflows.partition_by(["subflow", "generation"], maintain_order=True) or [subflows]
        groups[0] = pl.concat([none, groups[0]]).sort("from_ns")
        for number, group in enumerate(groups, 1):
            present = set(group["state"])
            states = {
                state: group.filter(pl.col("state") == state.name)
                for state in STATES
                if state.name in present
            }
            yield Timeline(f"{name} ({number})" if len(groups) > 1 else name, states)


def _window_of_run(explanation: Explanation) -> Window | None:
    run, number = explanation.run, explanation.number
    connection = frame(run.tables["connection_samples"]).filter(pl.col("connection") == number)
    subflows = frame(run.tables["subflow_samples"]).filter(pl.col("connection") == number)
    if connection.is_empty():
        return None
    times = connection["time_ns"].to_numpy()
    in_flight = {
        str(explanation.path_of_subflow.get(slot, slot)): _at(
            subflows.filter(pl.col("subflow") == slot), "bytes_in_flight", times
        )
        for slot in sorted(subflows["subflow"].unique())
    }
    waiting, room = (
        connection[each].to_numpy() for each in ("out_of_order_bytes", "available_window")
    )
    return Window(times, in_flight, waiting, room)


def _at(samples: pl.DataFrame, column: str, times: Sample) -> Sample:
    """A column of samples at these times; 0 where there is no sample."""
    values = np.zeros(len(times))
    places = np.searchsorted(times, samples["time_ns"].to_numpy())
    values[places] = samples[column].to_numpy()
    return values


def of_capture(found: CaptureExplanation, source: str) -> TimelineDrawing:
    """The drawing of an explained capture, whose files `source` names."""
    timelines = []
    for subflow in found.subflows:
        mine = found.intervals.filter(pl.col("subflow") == subflow.subflow)
        present = set(mine["state"].unique())
        states = {
            _LOOKS[state]: mine.filter(pl.col("state") == state)
            for state in capture.STATES
            if state in present
        }
        timelines.append(Timeline(f"subflow {subflow.subflow}", states))
    names = {f"subflow {subflow}": values for subflow, values in found.in_flight.items()}
    window = Window(found.times_ns, names, found.waiting, found.room)
    return TimelineDrawing(timelines, window, round(found.seconds * 1e9), source)


def _draw_timelines(axes: Axes, drawn: TimelineDrawing) -> None:
    """Draw the timelines, the first at the top."""
    edges = np.linspace(0, drawn.lasted_ns, _BINS + 1)
    seconds = edges / 1e9
    timelines = [*reversed(drawn.timelines)]
    for place, timeline in enumerate(timelines):
        base = np.full(_BINS, place + _TIMELINE_GAP / 2)
        for state, intervals in timeline.intervals.items():
            height = shares(intervals, edges) * (1 - _TIMELINE_GAP)
            axes.fill_between(
                seconds, _stepped(base), _stepped(base + height), step="post", linewidth=0,
                color=state.colour, label=state.words,
            )  # fmt: skip
            base = base + height
    axes.set_yticks(np.arange(len(timelines)) + 0.5, [timeline.label for timeline in timelines])
    axes.set_ylim(0, max(1, len(timelines)))
    axes.grid(visible=False)


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


def _draw_window(axes: Axes, window: Window) -> None:
    """Draw data in flight by subflow, data out of order, and the window."""
    seconds = window.times_ns / 1e9
    sum_kb = np.zeros(len(seconds))
    for place, (name, flight) in enumerate(window.in_flight.items()):
        above = sum_kb + flight / 1e3
        axes.fill_between(
            seconds, sum_kb, above, linewidth=0, alpha=0.75,
            color=OF_SUBFLOWS[place % len(OF_SUBFLOWS)], label=f"in flight on {name}",
        )  # fmt: skip
        sum_kb = above
    above = sum_kb + window.waiting / 1e3
    axes.fill_between(seconds, sum_kb, above, linewidth=0, color=YELLOW, label="out of order")
    edge = above + window.room / 1e3
    axes.plot(seconds, edge, color=BLACK, linewidth=1, label="receive window")
    axes.set_ylabel("data (kB)")
    top = max(float(np.quantile(above, 0.99)) * 1.4, 1.0)
    axes.set_ylim(0, min(float(edge.max()) * 1.05 or 1.0, 3 * top))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4)
