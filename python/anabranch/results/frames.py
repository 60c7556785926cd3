"""Readable frames, with seconds, names of paths, and rates."""

from __future__ import annotations

import polars as pl

_UNITS = {
    "cwnd": "cwnd_bytes",
    "ssthresh": "ssthresh_bytes",
    "unsent_bytes": "unsent_bytes",
    "available_window": "available_window_bytes",
    "out_of_order_bytes": "out_of_order_bytes",
    "bytes_in_flight": "in_flight_bytes",
    "queue_packets": "queue_packets",
    "queue_bytes": "queue_bytes",
}
"""Columns copied from the samples, with their new names."""


def timeseries(samples: pl.DataFrame, labels: tuple[str, ...] = ()) -> pl.DataFrame:
    """Samples (of `metrics.tables`) as a tidy frame with a row for each time and subflow.

    ``time_s`` is the end of a sample interval. ``goodput_mbps`` is the rate at which the connection
    delivered data to the application in that interval, and ``throughput_mbps`` the rate at which
    the subflow received data. ``srtt_ms`` is null before the first measurement. `labels` are
    columns at the left that identify a run.
    """
    run = [*labels, "connection_name", "subflow"]
    seconds = pl.col("time_ns").diff().over(run) / 1e9
    srtt = pl.when(pl.col("srtt_ns") > 0).then(pl.col("srtt_ns") / 1e6)
    return samples.select(
        *labels,
        time_s=pl.col("time_ns") / 1e9,
        connection=pl.col("connection_name"),
        path=pl.col("path_name"),
        subflow=pl.col("subflow"),
        goodput_mbps=_growth("bytes_delivered", run) * 8e-6 / seconds,
        throughput_mbps=_growth("subflow_bytes_received", run) * 8e-6 / seconds,
        srtt_ms=srtt,
        **{new: pl.col(old) for old, new in _UNITS.items()},
    )


def _growth(column: str, run: list[str]) -> pl.Expr:
    return pl.col(column).cast(pl.Int64).diff().over(run)
