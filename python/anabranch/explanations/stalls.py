"""The longest stall of a connection, in a sentence."""

from __future__ import annotations

import polars as pl

from anabranch.explanations.causes import BY_NAME
from anabranch.reports.outages import outages
from anabranch.results.estimates import number
from anabranch.runs.run import Run
from anabranch.words import listed

_LEAST_NS = 200_000_000
"""The minimum retransmission timeout of Linux. A shorter stall contains no timeout."""
_ROUND_TRIPS = 3
"""Fast recovery repairs a loss within two round-trip times. A longer stall has another reason."""


def sentence(run: Run, flow: int, activities: pl.DataFrame) -> str | None:
    """The time of a flow's longest stall, and what its subflows waited for.

    `None` if the stall is no longer than the repair of a loss. `activities` are the intervals of
    the flow's subflows.
    """
    row = run.connections.row(flow, named=True)
    began, length = row["stall_began_ns"], row["stall_ns"]
    if length <= max(_LEAST_NS, _ROUND_TRIPS * _srtt_ns(run, flow, began)):
        return None
    waits = _waits(run, activities, began, began + length)
    meanwhile = f": {listed(waits)}" if waits else ""
    return (
        f"From {began / 1e9:.2f} s on, the application got nothing for {number(length / 1e6)} ms "
        f"although data was waiting{meanwhile}."
    )


def _srtt_ns(run: Run, flow: int, at_ns: int) -> int:
    """The longest smoothed round-trip time of the subflows in the last sample before this time."""
    samples = run.subflow_samples.filter(
        pl.col("connection") == flow, pl.col("time_ns") <= at_ns, pl.col("srtt_ns") > 0
    )
    last = samples.filter(pl.col("time_ns") == pl.col("time_ns").max())["srtt_ns"].max()
    return int(last) if isinstance(last, int) else 0


def _waits(run: Run, activities: pl.DataFrame, since_ns: int, until_ns: int) -> list[str]:
    """The outage of each path in this time, and the state in which its subflow spent most of it."""
    overlap = (
        pl.min_horizontal("until_ns", pl.lit(until_ns)).cast(pl.Int64)
        - pl.max_horizontal("from_ns", pl.lit(since_ns)).cast(pl.Int64)
    ).clip(0)
    times = activities.group_by("path", "state", maintain_order=True).agg(ns=overlap.sum())
    downs = {
        each.path: f", which was {each.state} from {each.begin_s:.2f} s to {each.end_s:.2f} s,"
        for each in outages(run.settings)
        if each.begin_s * 1e9 < until_ns and each.end_s * 1e9 > since_ns
    }
    waits = []
    for (path,), states in times.group_by("path", maintain_order=True):
        state, ns = states.sort("ns", descending=True)["state", "ns"].row(0)
        name = run.path_names[int(path)]
        # This state lasts until an acknowledgement arrives.
        if state == "silent":
            did = "waited for its retransmission timer"
        else:
            did = f"was in the state “{BY_NAME[state].words}”"
        waits.append(f"{name}{downs.get(name, '')} {did} for {number(ns / 1e6)} ms")
    return waits
