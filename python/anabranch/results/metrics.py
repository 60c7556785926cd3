"""Metrics of a run, computed from its frames. Each metric is defined once.

Goodput counts bytes that the application received in order. The delay of a block starts when the
stack has accepted its last byte, and ends when its last byte has been delivered in order. The delay
of a round of a request and its responses starts with the first byte of the request. Both metrics
exclude the warm-up. A block counts at the time at which the stack accepted it. A block that is
still undelivered at the end of the run has no delay.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.runs.run import Run
from anabranch.scenarios.quantities import nanoseconds

Numbers = npt.NDArray[np.float64]

MODE_BIN_MS = 20.0
"""Width of the histogram bins for `mode_ms` and the density plots, as in CS244'14."""

_UNKNOWN, _NO_BOTTLENECK = 0, 1
"""Values in the column `bottleneck` of the samples; larger values are numbers of groups."""

FALLBACKS = ("", "syn", "syn_ack", "third_ack", "options_lost", "checksum", "peer")
"""Reasons for a fallback to TCP, indexed by the number in the table `connections`."""

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


def goodput_mbps(connections: pl.DataFrame, connection: int = 0) -> float:
    """Rate of bytes delivered in order to the application after the warm-up, in Mbit/s.

    `connections` is the table of that name, and `connection` the index of the connection.
    """
    row = _row(connections, connection)
    return _rate_mbps(row["bytes_delivered_measured"], row["measured_ns"])


def window_limited_share(connections: pl.DataFrame, virtual_ns: int, connection: int = 0) -> float:
    """Share of the whole run in which the receive window stopped the sender."""
    limited = _row(connections, connection)["window_limited_ns"]
    return limited / virtual_ns if virtual_ns else 0.0


def duplicate_mbps(
    connections: pl.DataFrame, subflows: pl.DataFrame, virtual_ns: int, connection: int = 0
) -> float:
    """Throughput minus goodput at the receiver over the whole run, in Mbit/s.

    Throughput counts the payload bytes that each subflow delivered in order. The difference is data
    that arrived on more than one subflow, plus data that awaits reassembly at the end.
    """
    received = subflows.filter(pl.col("connection") == connection)["bytes_received"].sum()
    delivered = _row(connections, connection)["bytes_delivered"]
    return _rate_mbps(received - delivered, virtual_ns)


def path_shares(subflows: pl.DataFrame, connection: int = 0) -> dict[int, float]:
    """Share of the received payload bytes that each path carried, by index of the path."""
    rows = subflows.filter(pl.col("connection") == connection)
    byte_count = rows.group_by("path").agg(pl.col("bytes_received").sum()).sort("path")
    total = byte_count["bytes_received"].sum()
    return {path: count / total if total else 0.0 for path, count in byte_count.iter_rows()}


def idle_restarts(subflows: pl.DataFrame, connection: int = 0) -> int:
    """How often idle time reduced a congestion window of the connection. RFC 5681 §4.1."""
    rows = subflows.filter(pl.col("connection") == connection)
    return int(rows["idle_restarts"].sum())


def delays_ms(blocks: pl.DataFrame, warm_up_ns: int = 0, connection: int = 0) -> Numbers:
    """Delays in ms of the delivered blocks that a connection accepted after the warm-up."""
    measured = blocks.filter(
        (pl.col("connection") == connection)
        & (pl.col("accepted_ns") >= warm_up_ns)
        & (pl.col("delivered_ns") >= pl.col("accepted_ns"))
    )
    nanoseconds = measured["delivered_ns"] - measured["accepted_ns"]
    return nanoseconds.to_numpy().astype(np.float64) / 1e6


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


def _quantile(values: Numbers, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values.size else None


def completion_s(run: Run, connection: int = 0) -> float | None:
    """Time from the opening of a connection to the delivery of its last block or round, in s.

    `None` for a workload without a `count`, or if the run ended earlier.
    """
    settings = run.flows[connection]
    count = settings["workload"].get("count")
    blocks = run.blocks.filter(
        (pl.col("connection") == connection) & (pl.col("delivered_ns") >= pl.col("accepted_ns"))
    )
    if count is None or blocks.height < count:
        return None
    return (cast("int", blocks["delivered_ns"].max()) - nanoseconds(settings["start"])) / 1e9


def recovery_ms(run: Run, connection: int = 0) -> float | None:
    """Longest time without a delivered block after a path went down for the first time, in ms.

    The metric considers times between two successive deliveries that include the moment of the
    outage or begin within a second of it. It is `None` if no path goes down, or for data without
    blocks.
    """
    changes = [change for path in run.settings["path"] for change in path["change"]]
    down = [nanoseconds(each["at"]) for each in changes if each.get("state") == "down"]
    delivered = run.blocks.filter(pl.col("connection") == connection)["delivered_ns"].sort()
    if not down or delivered.is_empty():
        return None
    times = np.append(delivered.to_numpy(), run.virtual_ns)
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
    samples = run.connection_samples.filter(pl.col("connection") == connection).sort("time_ns")
    times, byte_count = (samples[name].to_numpy() for name in ("time_ns", "bytes_delivered"))
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
    waiting = samples["out_of_order_bytes"].to_numpy()[first : last + 1]
    summary["out_of_order_mean_bytes"] = float(waiting.mean())
    subflows = run.subflow_samples.filter(
        (pl.col("connection") == connection)
        & (pl.col("srtt_ns") > 0)
        & pl.col("time_ns").is_between(times[first], times[last])
    )
    for path, srtts in subflows.group_by("path"):
        quantile = float(np.percentile(srtts["srtt_ns"].to_numpy(), 95)) / 1e6
        summary[f"srtt_p95_ms_{run.path_names[cast('int', path[0])]}"] = quantile
    return summary


def one_bottleneck_share(run: Run, connection: int = 0) -> float | None:
    """Share of the samples after the warm-up in which all subflows share one bottleneck.

    Shared-bottleneck detection (RFC 8382) groups the subflows. Only samples in which every subflow
    has a group, or none, count; `None` if there is no such sample.
    """
    verdicts = (
        run.subflow_samples.filter(
            (pl.col("connection") == connection) & (pl.col("time_ns") >= run.warm_up_ns)
        )
        .group_by("time_ns")
        .agg(least=pl.col("bottleneck").min(), most=pl.col("bottleneck").max())
        .filter(pl.col("least") > _UNKNOWN)
    )
    if verdicts.is_empty():
        return None
    together = (pl.col("least") == pl.col("most")) & (pl.col("least") > _NO_BOTTLENECK)
    return float(verdicts.select(together.mean()).item())


def connection_row(run: Run, connection: int = 0) -> dict[str, Any]:
    """All metrics of one connection of a run, as a row of a results table."""
    row = _row(run.connections, connection)
    delays = delays_ms(run.blocks, run.warm_up_ns, connection)
    shares = path_shares(run.subflows, connection)
    return {
        "connection": run.connection_names[connection],
        "goodput_mbps": goodput_mbps(run.connections, connection),
        "duplicate_mbps": duplicate_mbps(run.connections, run.subflows, run.virtual_ns, connection),
        "window_limited_share": window_limited_share(run.connections, run.virtual_ns, connection),
        **{
            key: row[key]
            for key in (
                *("bytes_written", "bytes_delivered", "reinjections", "path_probes"),
                *("send_buffer", "receive_buffer", "out_of_order_segments", "stray_segments"),
            )
        },
        "idle_restarts": idle_restarts(run.subflows, connection),
        **{key: bool(row[key]) for key in ("is_mptcp", "completed", "failed")},
        "fallback": FALLBACKS[row["fallback"]],
        "corrupt_bytes": row["corrupt_bytes"],
        **{f"share_{name}": shares.get(path, 0.0) for path, name in enumerate(run.path_names)},
        **delay_summary(delays),
        "completion_s": completion_s(run, connection),
        "recovery_ms": recovery_ms(run, connection),
        **series_summary(run, connection),
        "one_bottleneck_share": one_bottleneck_share(run, connection),
    }


def subflow_rows(run: Run) -> pl.DataFrame:
    """The run's subflows with the names of their connections and paths, and their shares."""
    total = pl.col("bytes_received").sum().over("connection")
    return run.subflows.with_columns(
        connection_name=_names(pl.col("connection"), run.connection_names),
        path_name=_names(pl.col("path"), run.path_names),
        share=pl.when(total > 0).then(pl.col("bytes_received") / total).otherwise(0.0),
    )


def link_rows(run: Run) -> pl.DataFrame:
    """The run's links with the names of their paths."""
    return run.links.with_columns(
        path_name=_names(pl.col("path"), run.path_names),
        direction_name=_names(pl.col("direction"), ["forward", "reverse"]),
    )


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


def _row(table: pl.DataFrame, connection: int) -> dict[str, Any]:
    return table.row(by_predicate=pl.col("connection") == connection, named=True)


def _rate_mbps(byte_count: int, nanoseconds: int) -> float:
    return byte_count * 8e3 / nanoseconds if nanoseconds else 0.0
