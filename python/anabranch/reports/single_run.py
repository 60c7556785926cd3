"""The report of one run of a user's scenario: time series of every subflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.reports import figures, outages
from anabranch.reports.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Panel, Style
from anabranch.reports.report import Report
from anabranch.reports.table import Table
from anabranch.results import metrics
from anabranch.results.estimates import Sample, number, percent
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.flows import flows
from anabranch.scenarios.loading import settings_in
from anabranch.words import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
_FORMS = ("o-", "o--", "o:")

_MOST_CONNECTIONS = len(_COLOURS)
"""Number of connections in a drawing: those that delivered the most."""

Samples = tuple[str, pl.DataFrame, Style]
"""A label, the samples of one subflow or connection, and how they are drawn."""


def panels(results: Results) -> tuple[Panel, ...]:
    """Time series of the run, and the distribution of block delays if there are any."""
    drawn = [
        Panel(
            "Goodput over time",
            "Bytes delivered in order to the application: means over intervals of a second, or "
            "over tenths of a shorter run.",
            _goodput,
        ),
        Panel(
            "Throughput of every subflow",
            "Payload bytes that arrived on each path, as means over the same intervals. Shows "
            "which paths carried data.",
            _throughput,
        ),
        Panel(
            "Congestion windows",
            "The most data that each subflow may have in flight.",
            lambda results, axes: _subflow_series(results, axes, "cwnd", 1e3, "cwnd (kB)"),
        ),
        Panel(
            "Smoothed RTT",
            "The smoothed RTT grows with the queue at the bottleneck.",
            lambda results, axes: _subflow_series(results, axes, "srtt_ns", 1e6, "SRTT (ms)"),
        ),
        Panel(
            "Queues",
            "Packets in the queue of each path, in the direction of the data.",
            lambda results, axes: _subflow_series(
                results, axes, "queue_packets", 1, "queue (packets)"
            ),
        ),
    ]
    if not results.blocks.is_empty():
        caption = "Cumulative distribution of the delays."
        drawn.append(Panel("Delay of a block", caption, _block_delay))
    return tuple(drawn)


def save(results: Results, folder: Path) -> None:
    """Write the report of one run of a user's scenario.

    Raises:
        InputError: if the folder cannot be written.
    """
    name = str(results.provenance["scenario"])
    # Linux does not say how long full buffers stopped its Multipath TCP.
    limits = {} if results.is_live else metrics.LIMITS
    Report(
        id=name,
        title=name,
        question=results.provenance["description"] or "One run of a scenario.",
        results=results,
        panels=panels(results),
        finding=finding(results),
        overview_title="Connections",
        overview=Table(
            (
                "connection",
                "goodput (Mbit/s)",
                *limits,
                "blocks",
                "mean delay (ms)",
                "p95 (ms)",
                "p99 (ms)",
                "longest stall (ms)",
            ),
            tuple(
                (
                    row["connection"],
                    number(row["goodput_mbps"]),
                    *(percent(row[key]) for key in limits.values()),
                    f"{row['block_count']:,}",
                    *(
                        "–" if row.get(key) is None else number(row[key])
                        for key in ("delay_mean_ms", "delay_p95_ms", "delay_p99_ms", "stall_ms")
                    ),
                )
                for row in results.runs.iter_rows(named=True)
            ),
        ),
    ).save(folder)


def finding(results: Results) -> list[str]:
    """The first connection's goodput, the capacity of its paths, and the share of each path."""
    (toml,) = results.scenarios.values()
    scenario = settings_in(toml)
    row, connection = results.runs.row(0, named=True), flows(scenario)[0]
    delivered = f"{row['connection']} delivered {number(row['goodput_mbps'])} Mbit/s"
    capacity = outages.capacity_mbps(scenario, connection)
    if capacity and results.runs.height == 1:
        share = row["goodput_mbps"] / capacity * 100
        delivered += f", {share:.0f} % of the {number(capacity)} Mbit/s that its paths could carry"
    shares = {name: row.get(f"share_{name}") or 0.0 for name in connection["paths"]}
    carried = listed(f"{name} ({share * 100:.0f} %)" for name, share in shares.items() if share)
    found = [f"{delivered}.", f"Its bytes came over {carried}." if carried else "Nothing arrived."]
    if results.runs.height > _MOST_CONNECTIONS:
        found.append(
            f"The drawings show the {_MOST_CONNECTIONS} of {results.runs.height:,} connections "
            "that delivered the most."
        )
    return found


def _goodput(results: Results, axes: Axes) -> None:
    lines = {}
    for label, samples, style in _connections(results):
        lines[label] = (*rate_mbps(samples, "bytes_delivered"), style)
    figures.series(axes, lines, f"goodput (Mbit/s, {mean_words(results.samples)})")
    _finish(axes, results)
    _cut_spikes(axes, [values for _, values, _ in lines.values()])


def _throughput(results: Results, axes: Axes) -> None:
    lines = {}
    for label, samples, style in _subflows(results):
        lines[label] = (*rate_mbps(samples, "subflow_bytes_received"), style)
    figures.series(axes, lines, f"throughput (Mbit/s, {mean_words(results.samples)})")
    _finish(axes, results)
    _cut_spikes(axes, [values for _, values, _ in lines.values()])


def _subflow_series(results: Results, axes: Axes, column: str, scale: float, unit: str) -> None:
    lines = {}
    for label, samples, style in _subflows(results):
        values = samples[column].to_numpy() / scale
        lines[label] = (samples["time_ns"].to_numpy() / 1e9, values, style)
    figures.series(axes, lines, unit)
    _finish(axes, results)


def _block_delay(results: Results, axes: Axes) -> None:
    curves = {}
    names = results.blocks["connection_name"].unique(maintain_order=True)
    for name, colour in zip(names, _colours_of_connections(len(names)), strict=False):
        curves[name] = (results.delays(connection_name=name), Style(colour))
    figures.cdf(axes, curves)


def _finish(axes: Axes, results: Results) -> None:
    axes.set_xlim(0)
    axes.set_ylim(0)
    colours = {group["path_name"][0]: style.colour for _, group, style in _subflows(results)}
    (toml,) = results.scenarios.values()
    outages.shade(axes, settings_in(toml), colours)


def _cut_spikes(axes: Axes, series: Sequence[Sample]) -> None:
    """Cut off the peaks of a few samples, caused by data that is released at once, and say so."""
    sampled = [values for values in series if values.size]
    usual = max((float(np.quantile(values, 0.98)) for values in sampled), default=0.0)
    largest = max((float(values.max()) for values in sampled), default=0.0)
    if usual > 0 and largest > 2 * usual:
        axes.set_ylim(0, 1.4 * usual)
        axes.text(
            0.99, 0.97, f"peaks cut off; largest {largest:.0f}", fontsize=7, color=figures.GREY,
            ha="right", va="top", transform=axes.transAxes,
        )  # fmt: skip


def _colours_of_connections(count: int) -> Sequence[str]:
    """A single connection is black, because the other colours are those of its paths."""
    return (BLACK,) if count == 1 else _COLOURS


def _drawn(results: Results) -> pl.DataFrame:
    """The samples of the connections in the drawings."""
    if results.runs.height <= _MOST_CONNECTIONS:
        return results.samples
    largest = results.runs.sort("bytes_delivered", descending=True).head(_MOST_CONNECTIONS)
    return results.samples.join(
        largest, left_on="connection_name", right_on="connection", how="semi"
    )


def _connections(results: Results) -> Iterator[Samples]:
    drawn = _drawn(results)
    if drawn.is_empty():
        raise NothingMeasured("no connection was established")
    groups = drawn.partition_by("connection_name", maintain_order=True)
    for samples, colour in zip(groups, _colours_of_connections(len(groups)), strict=False):
        unique = samples.unique("time_ns", maintain_order=True)
        yield samples["connection_name"][0], unique, Style(colour)


def _subflows(results: Results) -> Iterator[Samples]:
    samples = _drawn(results).drop_nulls("subflow")
    if samples.is_empty():
        raise NothingMeasured("no subflow was established")
    keys = ["connection_name", "subflow", "path_name"]
    several = samples["connection_name"].n_unique() > 1
    groups = samples.partition_by(keys, maintain_order=True)
    places = Counter((group["connection_name"][0], group["path_name"][0]) for group in groups)
    for index, group in enumerate(groups):
        connection, path = group["connection_name"][0], group["path_name"][0]
        if places[connection, path] > 1:
            path = f"{path}, subflow {group['subflow'][0]}"
        style = Style(_COLOURS[index % len(_COLOURS)], _FORMS[index // len(_COLOURS) % len(_FORMS)])
        yield f"{connection}, {path}" if several else path, group, style


def rate_mbps(samples: pl.DataFrame, column: str) -> tuple[Sample, Sample]:
    """Middles of intervals in s, and the growth of a column of bytes in them, in Mbit/s."""
    seconds = samples["time_ns"].to_numpy() / 1e9
    byte_count = samples[column].to_numpy().astype(np.float64)
    if not seconds.size:
        return seconds, seconds
    # The first sample, and those at the ends of the intervals.
    interval = _interval_s(seconds)
    ends = np.arange(np.ceil(seconds[0] / interval), np.floor(seconds[-1] / interval) + 1)
    chosen = np.unique([0, *np.searchsorted(seconds[:-1], ends * interval - 1e-9)])
    seconds, byte_count = seconds[chosen], byte_count[chosen]
    return (seconds[1:] + seconds[:-1]) / 2, np.diff(byte_count) * 8 / 1e6 / np.diff(seconds)


def mean_words(samples: pl.DataFrame) -> str:
    """The intervals of `rate_mbps` in words."""
    seconds = samples["time_ns"].to_numpy() / 1e9
    return f"means over {_interval_s(seconds):g} s" if seconds.size else "means"


def _interval_s(seconds: Sample) -> float:
    """A second, or a tenth of the time if it is shorter than 10 s."""
    lasted = float(seconds[-1] - seconds[0])
    return 1.0 if lasted >= 10 else max(round(lasted / 10, 2), 0.01)
