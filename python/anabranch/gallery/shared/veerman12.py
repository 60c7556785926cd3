"""Shared by the entries after Veerman 2012: links, buffers, and their scaling.

Rates and buffers are a tenth of those in the slides; round-trip times are not scaled. Every window
and every queue therefore has a tenth of the bytes. Factors and labels name the buffers of the
slides, in MB.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from anabranch.gallery.measures import per_seed
from anabranch.gallery.metrics import GOODPUT, WINDOW_LIMITED
from anabranch.gallery.panels import Axes, Curves, Draw, Look, over
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.reports.figures import GREY
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Change, Connection, NetworkPath

SCALE = 10
"""Divisor of rates and buffers, unless an entry sets another one."""

SMALL_MSS, LARGE_MSS = 1400, 8900

BUFFER = f"buffer of the slides (MB; run with 1/{SCALE})"
"""The label of an axis."""


def link(
    name: str,
    gbps: float,
    rtt_ms: float,
    *,
    mss: int = SMALL_MSS,
    scale: int = SCALE,
    changes: tuple[Change, ...] = (),
) -> NetworkPath:
    """A link of the slides, with a queue of one bandwidth-delay product."""
    settings = {"jitter": "0.1ms", "mtu": f"{mss + 40}B", "changes": changes}
    rate, delay = f"{gbps * 1000 / scale:g}Mbit/s", f"{rtt_ms / 2:g}ms"
    return network_path(name, rate, delay, f"{rtt_ms:g}ms", **settings)


def connection(buffer_mb: float, *, scale: int = SCALE, **others: Any) -> Connection:
    """A flow with buffers of `buffer_mb`, in megabytes of the slides."""
    return flow(buffers=f"{buffer_mb * 1e6 / scale:.0f}B", **others)


def min_buffer_mb(rtt_ms: float, *gbps: float) -> float:
    """The buffer by the slides' rule: twice the longest round-trip time times the sum of rates."""
    return 2 * rtt_ms * sum(gbps) / 8


def recovery_s(subflows: int, gbps: float, rtt_ms: float, mss: int, scale: int = SCALE) -> float:
    """Seconds that LIA needs to recover a halved window: about n²·w/2 round trips.

    The window is one bandwidth-delay product.
    """
    window = gbps * 1e6 * rtt_ms / 8 / scale / mss
    return float(subflows**2 * window / 2 * rtt_ms / 1000)


def halvings(results: Results, **factors: Factor) -> float:
    """Median over runs of the window halvings of the main connection that were not undone."""
    rows = results.rows("subflows", connection_name="main", **factors)
    halved = (pl.col("recoveries") - pl.col("undone")).sum()
    return float(np.median(per_seed(rows, halved, f"no run with {factors}")))


def halvings_measured(results: Results, **factors: Factor) -> int:
    """Number of window reductions by losses after the warm-up, over all runs with these factors.

    The count comes from the time series, so the cell has to keep them for all seeds.
    """
    rows = _after_warm_up(results, **factors)
    changes = pl.col("ssthresh").diff().over("seed", "connection", "subflow") != 0
    return int(rows.sort("time_ns").select(changes.sum()).item())


def _after_warm_up(results: Results, **factors: Factor) -> pl.DataFrame:
    return results.rows("samples", **factors).filter(pl.col("time_ns") >= results.warm_up_ns)


def limited(results: Results, cells: Sequence[dict[str, Factor]]) -> str:
    """The time for which the window is full, and the number of halvings, with each buffer."""
    return "; ".join(
        f"{cell['buffer_mb']:g} MB: window full {WINDOW_LIMITED.number(results, cell):.0f} % of "
        f"the time, {halvings(results, **cell):.0f} halvings a run"
        for cell in cells
    )


def path_mbps(results: Results, path: str, **factors: Factor) -> float:
    """Throughput of a path after the warm-up, in Mbit/s, or 0 if the path was not used.

    It comes from the time series of the first seed and the main connection, unless the factors
    `seed` and `connection_name` name others.
    """
    wanted: dict[str, Factor] = {"seed": 1, "connection_name": "main", "path_name": path}
    rows = _after_warm_up(results, **wanted | factors)
    if rows.is_empty():
        return 0.0
    total = pl.col("subflow_bytes_received")
    received = rows.group_by("subflow").agg(new=total.max() - total.min())["new"].to_numpy()
    return float(received.sum() * 8e3 / np.ptp(rows["time_ns"].to_numpy()))


def draw_paths(cells: Mapping[str, dict[str, Factor]], colours: Mapping[str, str]) -> Draw:
    """Stacked throughput by path for labelled cells: seed 1, unless a cell names another."""

    def draw(results: Results, axes: Axes) -> None:
        for place, cell in enumerate(cells.values()):
            bottom = 0.0
            for path, colour in colours.items():
                height = path_mbps(results, path, **cell)
                label = None if place else f"path {path}"
                axes.bar(place, height, 0.5, bottom=bottom, color=colour, alpha=0.8, label=label)
                bottom += height
        axes.set_xticks(range(len(cells)), list(cells))
        axes.set_ylabel("throughput (Mbit/s)")

    return draw


def over_buffers(curves: Curves, rule_mb: float, at_y: float, lines: Mapping[float, str]) -> Draw:
    """Goodput over the buffers of the slides, with the buffer of their rule and with rates."""

    def draw(results: Results, axes: Axes) -> None:
        look = Look(lines=lines, top=1.15 * max(lines))
        over("buffer_mb", GOODPUT, curves, BUFFER, **look)(results, axes)
        axes.axvline(rule_mb, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
        right = rule_mb + (0.08 if rule_mb < 5 else 0.3)
        axes.text(right, at_y, "rule", fontsize=7, color=GREY)

    return draw
