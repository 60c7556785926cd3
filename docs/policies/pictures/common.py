"""Shared by the pictures: links, runs, time series, and style."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch import Bulk, Connection, Job, NetworkPath, Run, Scenario, run_many
from anabranch.reports import pictures
from anabranch.reports.figures import GREY
from anabranch.results import metrics

Numbers = npt.NDArray[np.float64]

# ---- links of papers and tests --------------------------------------------------------------

WIFI = NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets")
"""NSDI 2012: 20 ms round-trip time, 80 ms of queue."""
THREE_G = NetworkPath(name="3g", rate="2Mbit/s", delay="75ms", limit="334packets")
"""NSDI 2012: 150 ms round-trip time, 2 s of queue."""
LTE = NetworkPath(name="lte", rate="8Mbit/s", delay="30ms", limit="100packets")
"""The second path of `crates/anabranch-sim/tests/suite/path_managers.rs`."""
GPRS = NetworkPath(name="2g", rate="0.2Mbit/s", delay="200ms", limit="6s")
"""Another second path of these tests, within DRePaS's profile of 2G."""

# ---- runs -----------------------------------------------------------------------------------


def scenario(
    paths: Sequence[NetworkPath],
    connections: Sequence[Connection],
    duration_s: float,
    warm_up_s: float = 0,
    sample: str = "100ms",
) -> Scenario:
    """A scenario with these paths and connections."""
    return Scenario(
        name="picture",
        duration=f"{duration_s:g}s",
        warm_up=f"{warm_up_s:g}s",
        sample_interval=sample,
        paths=tuple(paths),
        connections=tuple(connections),
    )


def bulk(**keys: Any) -> Connection:
    """A connection that sends as fast as possible."""
    return Connection(workload=Bulk(), **keys)


def run_each(scenarios: Iterable[Scenario], seeds: Sequence[int] = (1,)) -> list[list[Run]]:
    """The runs of all seeds for each scenario, executed on all cores."""
    jobs = [Job(each, seed) for each in scenarios for seed in seeds]
    runs = run_many(jobs, lambda _, run: run)
    return [runs[start : start + len(seeds)] for start in range(0, len(runs), len(seeds))]


def run_one(each: Scenario, seed: int = 1) -> Run:
    """One run of a scenario."""
    return run_each([each], [seed])[0][0]


# ---- measurements ---------------------------------------------------------------------------


def goodput(run: Run, connection: int = 0) -> float:
    """Mbit/s that the application received after the warm-up."""
    return float(metrics.connection_row(run, connection)["goodput_mbps"])


def share_of_second(run: Run) -> float:
    """Share of the received bytes that the second path carried."""
    return float(metrics.connection_row(run)[f"share_{run.path_names[1]}"])


def series(run: Run, column: str, path: int = 0, connection: int = 0) -> tuple[Numbers, Numbers]:
    """Times in s, and a column of the samples of a path's subflow."""
    rows = run.subflow_samples.filter(
        (pl.col("path") == path) & (pl.col("connection") == connection)
    )
    return _floats(rows["time_ns"]) / 1e9, _floats(rows[column])


def throughput(run: Run, path: int, connection: int = 0) -> tuple[Numbers, Numbers]:
    """Times in s, and the payload throughput of all subflows on a path in Mbit/s."""
    rows = run.subflow_samples.filter(
        (pl.col("path") == path) & (pl.col("connection") == connection)
    )
    grown = rows.with_columns(
        pl.col("bytes_received").cast(pl.Int64).diff().over("subflow").fill_null(0)
    )
    times = run.subflow_samples["time_ns"].unique().sort()
    sums = grown.group_by("time_ns").agg(pl.col("bytes_received").sum())
    all_times = pl.DataFrame({"time_ns": times}).join(sums, on="time_ns", how="left")
    byte_count = _floats(all_times.sort("time_ns")["bytes_received"].fill_null(0))
    return _rates(_floats(times) / 1e9, byte_count)


def delivered(run: Run, connection: int = 0) -> tuple[Numbers, Numbers]:
    """Times in s, and the goodput in Mbit/s."""
    rows = run.connection_samples.filter(pl.col("connection") == connection)
    byte_count = np.diff(_floats(rows["bytes_delivered"]), prepend=0)
    return _rates(_floats(rows["time_ns"]) / 1e9, byte_count)


def _rates(seconds: Numbers, byte_count: Numbers) -> tuple[Numbers, Numbers]:
    """The middles of whole seconds, and the rates in Mbit/s, from bytes at sample times."""
    edges = np.arange(0, np.ceil(seconds[-1] - 1e-6) + 1)
    sums, _ = np.histogram(seconds - 1e-6, edges, weights=byte_count)
    return edges[:-1] + 0.5, sums * 8e-6


def _floats(column: pl.Series) -> Numbers:
    return column.to_numpy().astype(np.float64)


# ---- style ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caption:
    """The finding of a picture, its runs, and the numbers behind it."""

    title: str
    runs: str
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)


Draw = Callable[[Sequence[Axes]], Caption]


@dataclass(frozen=True)
class Picture:
    """A picture, named after its page."""

    name: str
    columns: int
    draw: Draw


ALL: list[Picture] = []
"""Every picture, in the order of the modules that define them."""


def picture(columns: int = 2) -> Callable[[Draw], Draw]:
    """Register a function as the picture of the page that has the function's name."""

    def register(draw: Draw) -> Draw:
        ALL.append(Picture(getattr(draw, "__name__", ""), columns, draw))
        return draw

    return register


def label(axes: Axes, x: float, y: float, text: str, colour: str, **keys: Any) -> None:
    """Add a label next to a curve or above a bar, in its colour."""
    axes.annotate(text, (x, y), color=colour, fontsize=8, annotation_clip=False, **keys)


def curve(
    axes: Axes, xy: tuple[Numbers, Numbers], colour: str, text: str = "", line: Any = "-"
) -> None:
    """Draw a curve of a few hundred points, with its label in the legend."""
    x, y = xy
    step = max(1, x.size // 600)
    axes.plot(x[::step], y[::step], color=colour, linestyle=line, linewidth=1.3, label=text)


def names_below(axes: Axes, names: Sequence[str]) -> None:
    """Name the bars below the axis, without vertical grid lines."""
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")


def values_above(axes: Axes, values: Sequence[float], form: str = "{:.1f}") -> None:
    """Write the value of each bar above the bar."""
    for at, value in enumerate(values):
        label(axes, at, value, form.format(value), "black", ha="center", va="bottom",
              xytext=(0, 2), textcoords="offset points")  # fmt: skip


def compose(each: Picture) -> tuple[Figure, Caption]:
    """Draw a picture: the finding above, the panels, and the runs below."""
    width = 3.9 * each.columns if each.columns > 1 else 5.6
    figure = Figure(figsize=(width, 3.3), layout="constrained")
    panels = list(figure.subplots(1, each.columns, squeeze=False).flat)
    caption = each.draw(panels)
    figure.suptitle(caption.title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    figure.supxlabel(caption.runs, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure, caption


@functools.cache
def style() -> Any:
    """The style of the reports. Text stays text in the SVG, which keeps the files small."""
    return pictures.RC | {"svg.fonttype": "none", "axes.titlesize": 9, "axes.titleweight": "normal"}
