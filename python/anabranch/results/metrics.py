"""Metrics of a run, computed from its tables. Each metric is defined once.

Goodput is the data that arrived at the receiver in the measured time, divided by that time. The
measured time begins at the end of the warm-up, or when the connection opens if that is later. It
ends with the run, or when the last byte of the workload is delivered. Each byte counts once, when
its first copy arrives, even if it waits for earlier data. No link delivers more than its rate in
any time, so goodput cannot exceed what the paths can carry. (Bytes that reach the application in
order can: data that was out of order when the warm-up ended is released after it.)

The delay of a block starts when the stack has accepted its last byte, and ends when its last byte
has been delivered in order. The delay of a round of a request and its responses starts with the
first byte of the request. Delays exclude the warm-up: a block counts at the time at which the stack
accepted it. A block that is still undelivered at the end of the run has no delay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.runs.columns import Columns, Words, column
from anabranch.runs.run import Run
from anabranch.scenarios.quantities import nanoseconds

Numbers = npt.NDArray[np.float64]

Table = Columns | pl.DataFrame
"""A table of a run, as plain columns or as a frame."""

MODE_BIN_MS = 20.0
"""Width of the histogram bins for `mode_ms` and the density plots, as in CS244'14."""

_UNKNOWN, _NO_BOTTLENECK = 0, 1
"""Values in the column `bottleneck` of the samples; larger values are numbers of groups."""

DELAY_METRICS = (
    "block_count",
    "delay_mean_ms",
    "delay_sd_ms",
    "delay_p5_ms",
    "delay_p25_ms",
    "delay_p50_ms",
    "delay_p75_ms",
    "delay_p90_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "delay_max_ms",
    "delay_iqr_ms",
    "delay_mode_ms",
    "jitter_p95_ms",
)


LIMITS = {
    "window-limited": "window_limited_share",
    "send-buffer-limited": "send_buffer_limited_share",
}
"""The metrics of the buffers that can stop a sender, by their names in tables."""


def goodput_mbps(connections: Table, connection: int = 0) -> float:
    """Rate of data that arrived for the first time in the measured time, in Mbit/s.

    `connections` is the table of that name, and `connection` the index of the connection.
    """
    row = _row(connections, connection)
    return _rate_mbps(row("bytes_arrived_measured"), row("measured_ns"))


def window_limited_share(connections: Table, connection: int = 0) -> float:
    """Share of the measured time in which only the receive window stopped a subflow."""
    return _share_of_time(connections, "window_limited_ns", connection)


def send_buffer_limited_share(connections: Table, connection: int = 0) -> float:
    """Share of the measured time in which only the send buffer stopped a subflow."""
    return _share_of_time(connections, "send_buffer_limited_ns", connection)


def _share_of_time(connections: Table, name: str, connection: int) -> float:
    row = _row(connections, connection)
    limited, measured = int(row(name)), int(row("measured_ns"))
    return limited / measured if measured else 0.0


def duplicate_mbps(
    connections: Table, subflows: Table, virtual_ns: int, connection: int = 0
) -> float:
    """Throughput minus goodput at the receiver over the whole run, in Mbit/s.

    Throughput counts the payload bytes that each subflow delivered in order. The difference is data
    that arrived on more than one subflow, plus data that awaits reassembly at the end.
    """
    received = int(_of(subflows, "bytes_received", connection).sum())
    delivered = _row(connections, connection)("bytes_delivered")
    return _rate_mbps(received - delivered, virtual_ns)


def path_shares(subflows: Table, connection: int = 0) -> dict[int, float]:
    """Share of the received payload bytes that each path carried, by index of the path."""
    counts: dict[int, int] = {}
    paths, byte_counts = (_of(subflows, name, connection) for name in ("path", "bytes_received"))
    for path, count in zip(paths.tolist(), byte_counts.tolist(), strict=True):
        counts[path] = counts.get(path, 0) + count
    total = sum(counts.values())
    return {path: counts[path] / total if total else 0.0 for path in sorted(counts)}


def idle_restarts(subflows: Table, connection: int = 0) -> int:
    """Number of reductions of the connection's congestion windows by idle time. RFC 5681 §4.1."""
    return int(_of(subflows, "idle_restarts", connection).sum())


def delays_ms(blocks: Table, warm_up_ns: int = 0, connection: int = 0) -> Numbers:
    """Delays in ms of the delivered blocks that a connection accepted after the warm-up."""
    accepted, delivered = (
        _of(blocks, name, connection) for name in ("accepted_ns", "delivered_ns")
    )
    measured = (accepted >= warm_up_ns) & (delivered >= accepted)
    delays: Numbers = (delivered[measured] - accepted[measured]).astype(np.float64) / 1e6
    return delays


def delays_since_write_ms(blocks: Table, warm_up_ns: int = 0, connection: int = 0) -> Numbers:
    """Delays in ms from the write of each block to its delivery.

    They include the wait for the send buffer: a program that writes as fast as it can begins to
    write a block when the send buffer has accepted the previous block. Only blocks whose write
    began after the warm-up count.
    """
    accepted, delivered = (
        _of(blocks, name, connection) for name in ("accepted_ns", "delivered_ns")
    )
    written, accepted, delivered = accepted[:-1], accepted[1:], delivered[1:]
    measured = (written >= warm_up_ns) & (delivered >= accepted)
    delays: Numbers = (delivered[measured] - written[measured]).astype(np.float64) / 1e6
    return delays


def delay_summary(delays: Numbers) -> dict[str, float | int | None]:
    """Number, mean, standard deviation, quantiles, interquartile range and mode of delays in ms.

    The jitter is the absolute difference between the delays of two successive blocks. Without
    delays, all values except the number are `None`.
    """
    if delays.size == 0:
        return {"block_count": 0} | dict.fromkeys(DELAY_METRICS[1:])
    points = (5, 25, 50, 75, 90, 95, 99)
    quantiles = dict(zip(points, np.percentile(delays, points).tolist(), strict=True))
    return {
        "block_count": int(delays.size),
        "delay_mean_ms": float(delays.mean()),
        "delay_sd_ms": float(delays.std()),
        **{f"delay_p{point}_ms": value for point, value in quantiles.items()},
        "delay_max_ms": float(delays.max()),
        "delay_iqr_ms": quantiles[75] - quantiles[25],
        "delay_mode_ms": mode_ms(delays),
        "jitter_p95_ms": _quantile(np.abs(np.diff(delays)), 95),
    }


def _quantile(values: npt.NDArray[Any], percent: float) -> float | None:
    """The quantile, interpolated linearly as by `np.percentile`, in a fraction of its time."""
    if values.size == 0:
        return None
    ordered = np.sort(values)
    at = (values.size - 1) * (percent / 100)
    below = int(at)
    low, high = ordered[below].item(), ordered[min(below + 1, values.size - 1)].item()
    share = at - below
    if share < 0.5:
        return float(low + (high - low) * share)
    return float(high - (high - low) * (1 - share))


def completion_s(run: Run, connection: int = 0) -> float | None:
    """Time from the opening of a connection to the delivery of its last block or round, in s.

    `None` for a workload without a `count`, or if the run ended earlier.
    """
    settings = run.flows[connection]
    count = settings["workload"].get("count")
    if count is None:
        return None
    blocks = run.tables["blocks"]
    accepted, delivered = (
        _of(blocks, name, connection) for name in ("accepted_ns", "delivered_ns")
    )
    delivered = delivered[delivered >= accepted]
    if delivered.size < count:
        return None
    return (int(delivered.max()) - nanoseconds(settings["start"])) / 1e9


def recovery_ms(run: Run, connection: int = 0) -> float | None:
    """Longest time without a delivered block after a path went down for the first time, in ms.

    The metric considers times between two successive deliveries that include the moment of the
    outage or begin within a second of it. It is `None` if no path goes down, or for data without
    blocks.
    """
    changes = [change for path in run.settings["path"] for change in path["change"]]
    down = [nanoseconds(each["at"]) for each in changes if each.get("state") == "down"]
    delivered = np.sort(_of(run.tables["blocks"], "delivered_ns", connection))
    if not down or delivered.size == 0:
        return None
    times = np.append(delivered, np.uint64(run.virtual_ns))
    begins, ends = times[:-1], times[1:]
    concerned = (begins <= min(down) + 1_000_000_000) & (ends >= min(down))
    return float((ends - begins)[concerned].max(initial=0)) / 1e6


def mode_ms(delays: Numbers, bin_ms: float = MODE_BIN_MS) -> float:
    """Middle of the fullest bin of a histogram that starts at zero; the first in case of a tie."""
    counts = np.bincount((delays / bin_ms).astype(np.int64))
    return (int(counts.argmax()) + 0.5) * bin_ms


def expected_delay_ms(send_buffer: int, goodput: float, reverse_delay_ms: float) -> float:
    """Expected delay of a block in ms when the send buffer is the limit, by Little's law.

    The stack has accepted a block when its last byte fits into the buffer of `send_buffer` bytes.
    The bytes before it leave the buffer at `goodput` Mbit/s. A byte leaves when its acknowledgement
    arrives, one reverse one-way delay after its delivery.
    """
    return send_buffer * 8 / (goodput * 1e3) - reverse_delay_ms


def series_summary(run: Run, connection: int = 0) -> dict[str, float | None]:
    """Metrics from the time series, over the time in which the application received data.

    `transfer_mbps` counts from the opening of the connection to the last sample interval in which
    bytes arrived. `goodput_cov` is the coefficient of variation (standard deviation over mean) of
    the goodput in the sample intervals after the warm-up. `out_of_order_mean_bytes` is the mean
    amount of out-of-order data at the data level. `srtt_p95_ms_PATH` is the 95th percentile of the
    smoothed round-trip time.
    """
    samples = run.tables["connection_samples"]
    times, byte_count, waiting = (
        _of(samples, name, connection)
        for name in ("time_ns", "bytes_delivered", "out_of_order_bytes")
    )
    grows = np.flatnonzero(np.diff(byte_count)) + 1
    paths = {f"srtt_p95_ms_{name}": None for name in run.path_names}
    names = ("transfer_mbps", "goodput_cov", "out_of_order_mean_bytes", *paths)
    summary: dict[str, float | None] = dict.fromkeys(names)
    if grows.size == 0:
        return summary
    last = grows[-1]
    start = nanoseconds(run.flows[connection]["start"])
    summary["transfer_mbps"] = float(byte_count[last] * 8e3 / (times[last] - start))
    first = min(int(np.searchsorted(times, run.warm_up_ns)), last - 1)
    rates = np.diff(byte_count[first : last + 1]) / np.diff(times[first : last + 1])
    summary["goodput_cov"] = float(rates.std() / rates.mean()) if rates.mean() else None
    summary["out_of_order_mean_bytes"] = float(waiting[first : last + 1].mean())
    at, path_of, srtts = (
        _of(run.tables["subflow_samples"], name, connection)
        for name in ("time_ns", "path", "srtt_ns")
    )
    measured = (srtts > 0) & (at >= times[first]) & (at <= times[last])
    for path, name in enumerate(run.path_names):
        quantile = _quantile(srtts[measured & (path_of == path)], 95)
        summary[f"srtt_p95_ms_{name}"] = None if quantile is None else quantile / 1e6
    return summary


def one_bottleneck_share(run: Run, connection: int = 0) -> float | None:
    """Share of the samples after the warm-up in which the subflows count as behind one bottleneck.

    They do if shared-bottleneck detection (RFC 8382) has put all of them into one group, or has no
    stable verdict on one of them. `None` without detection.
    """
    key = "shared_bottleneck_detection"
    # Most runs have no detection. To search the text is much faster than to parse it.
    if key not in run.toml or key not in run.settings["connection"][connection]:
        return None
    samples = run.tables["subflow_samples"]
    times, verdicts = (_of(samples, name, connection) for name in ("time_ns", "bottleneck"))
    times, verdicts = times[times >= run.warm_up_ns], verdicts[times >= run.warm_up_ns]
    if verdicts.size == 0:
        return None
    begins = np.flatnonzero(np.append(True, times[1:] != times[:-1]))
    least = np.minimum.reduceat(verdicts, begins)
    most = np.maximum.reduceat(verdicts, begins)
    one_group = (least == most) & (least > _NO_BOTTLENECK)
    return float((one_group | (least == _UNKNOWN)).mean())


def connection_row(run: Run, connection: int = 0) -> dict[str, Any]:
    """All metrics of one connection of a run, as a row of a results table."""
    connections, subflows = run.tables["connections"], run.tables["subflows"]
    row = _row(connections, connection)
    delays = delays_ms(run.tables["blocks"], run.warm_up_ns, connection)
    shares = path_shares(subflows, connection)
    return {
        "connection": run.connection_names[connection],
        "goodput_mbps": goodput_mbps(connections, connection),
        "duplicate_mbps": duplicate_mbps(connections, subflows, run.virtual_ns, connection),
        "window_limited_share": window_limited_share(connections, connection),
        "send_buffer_limited_share": send_buffer_limited_share(connections, connection),
        **{
            key: row(key)
            for key in (
                *("bytes_written", "bytes_delivered", "reinjections", "path_probes"),
                *("send_buffer", "receive_buffer", "out_of_order_segments", "stray_segments"),
            )
        },
        "idle_restarts": idle_restarts(subflows, connection),
        **{key: bool(row(key)) for key in ("is_mptcp", "completed", "aborted", "failed")},
        "fallback": row("fallback"),
        "corrupt_bytes": row("corrupt_bytes"),
        **{f"share_{name}": shares.get(path, 0.0) for path, name in enumerate(run.path_names)},
        **delay_summary(delays),
        "completion_s": completion_s(run, connection),
        "recovery_ms": recovery_ms(run, connection),
        **series_summary(run, connection),
        "one_bottleneck_share": one_bottleneck_share(run, connection),
    }


def subflow_rows(run: Run) -> Columns:
    """The run's subflows with the names of their connections and paths, and their shares."""
    subflows = run.tables["subflows"]
    connections, received = column(subflows, "connection"), column(subflows, "bytes_received")
    totals = np.zeros(len(run.flows), np.uint64)
    np.add.at(totals, connections, received)
    total = totals[connections]
    return {
        **subflows,
        "connection_name": Words(tuple(run.connection_names), connections),
        "path_name": Words(tuple(run.path_names), column(subflows, "path")),
        "share": np.divide(received, total, out=np.zeros(len(total)), where=total > 0),
    }


def link_rows(run: Run) -> Columns:
    """The run's links with the names of their paths."""
    links = run.tables["links"]
    directions = column(links, "direction").astype(np.uint32)
    return {
        **links,
        "path_name": Words(tuple(run.path_names), column(links, "path")),
        "direction_name": Words(("forward", "reverse"), directions),
    }


def block_rows(run: Run) -> pl.DataFrame:
    """The run's measured blocks: size, acceptance time and delay of each."""
    return run.blocks.filter(
        (pl.col("accepted_ns") >= run.warm_up_ns)
        & (pl.col("delivered_ns") >= pl.col("accepted_ns"))
    ).select(
        connection_name=_names(pl.col("connection"), run.connection_names),
        bytes=pl.col("bytes"),
        accepted_ms=(pl.col("accepted_ns") / 1e6).cast(pl.Float32),
        delay_ms=((pl.col("delivered_ns") - pl.col("accepted_ns")) / 1e6).cast(pl.Float32),
    )


BLOCK_COLUMNS = {
    "connection_name": pl.String,
    "bytes": pl.UInt64,
    "accepted_ms": pl.Float32,
    "delay_ms": pl.Float32,
}
"""Columns and types of `block_rows`."""

SAMPLE_COLUMNS = {
    "time_ns": pl.UInt64,
    "connection": pl.UInt32,
    **dict.fromkeys(
        ("bytes_delivered", "out_of_order_bytes", "available_window", "unsent_bytes"), pl.UInt64
    ),
    **dict.fromkeys(("subflow", "path"), pl.UInt32),
    **dict.fromkeys(("cwnd", "ssthresh", "bytes_in_flight", "srtt_ns"), pl.UInt64),
    **dict.fromkeys(("bottleneck", "queue_packets"), pl.UInt32),
    **dict.fromkeys(("queue_bytes", "subflow_bytes_received"), pl.UInt64),
    **dict.fromkeys(("connection_name", "path_name"), pl.String),
}
"""Columns and types of `sample_rows`."""


def sample_rows(run: Run) -> pl.DataFrame:
    """The run's time series: a row for each subflow and time, with its connection's columns."""
    subflows = run.subflow_samples.rename({"bytes_received": "subflow_bytes_received"})
    return run.connection_samples.join(
        subflows, on=["time_ns", "connection"], how="left", maintain_order="left"
    ).with_columns(
        connection_name=_names(pl.col("connection"), run.connection_names),
        path_name=_names(pl.col("path"), run.path_names),
    )


def _names(index: pl.Expr, names: list[str]) -> pl.Expr:
    old = list(range(len(names)))
    return index.cast(pl.UInt32).replace_strict(old, names, return_dtype=pl.String)


def _row(table: Table, connection: int) -> Callable[[str], Any]:
    """The values of a connection's row, by column."""
    at = int(np.flatnonzero(column(table, "connection") == connection)[0])
    return lambda name: column(table, name)[at].item()


def _of(table: Table, name: str, connection: int) -> npt.NDArray[Any]:
    """A column of the rows of a connection."""
    values: npt.NDArray[Any] = column(table, name)[column(table, "connection") == connection]
    return values


def _rate_mbps(byte_count: int, nanoseconds: int) -> float:
    return byte_count * 8e3 / nanoseconds if nanoseconds else 0.0
