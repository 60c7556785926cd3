import math

import numpy as np
import polars as pl
import pytest

from anabranch import Run
from anabranch.results import metrics


def test_littles_law_at_8_mbps() -> None:
    # 204800 bytes are 1638.4 kbit: 204.8 ms at 8 Mbit/s, minus 10 ms for the reverse direction.
    assert metrics.expected_delay_ms(200 * 1024, 8.0, 10.0) == pytest.approx(194.8)


def test_a_real_run_is_consistent(short_run: Run) -> None:
    tables = metrics.tables(short_run)
    (row,) = tables["runs"].to_dicts()
    assert metrics.connection_rows(short_run) == [row]
    assert row["corrupt_bytes"] == 0
    assert not row["failed"]
    assert 0 < row["bytes_delivered"] <= row["bytes_written"]
    assert math.isclose(row["share_wifi"] + row["share_3g"], 1)
    assert row["delay_p5_ms"] <= row["delay_p50_ms"] <= row["delay_max_ms"]
    assert row["goodput_mbps"] <= 10
    assert tables["subflows"]["path_name"].to_list() == ["wifi", "3g"]
    assert tables["links"]["direction_name"].to_list() == ["forward", "reverse"] * 2
    assert tables["blocks"].height == row["block_count"]
    assert tables["counters"].equals(short_run.counters)


def test_delays_are_those_of_numpy(short_run: Run) -> None:
    (row,) = metrics.connection_rows(short_run)
    blocks = short_run.blocks.filter(
        (pl.col("accepted_ns") >= short_run.warm_up_ns)
        & (pl.col("delivered_ns") >= pl.col("accepted_ns"))
    )
    delays = (blocks["delivered_ns"] - blocks["accepted_ns"]).to_numpy() / 1e6
    assert metrics.delays_ms(short_run).tolist() == delays.tolist()
    assert row["delay_mean_ms"] == delays.mean()
    assert row["delay_sd_ms"] == delays.std()
    for percent in (5, 25, 50, 75, 90, 95, 99):
        assert row[f"delay_p{percent}_ms"] == np.percentile(delays, percent)
    assert row["jitter_p95_ms"] == np.percentile(np.abs(np.diff(delays)), 95)


def test_samples_keep_every_time_of_the_connection(short_run: Run) -> None:
    samples = metrics.tables(short_run)["samples"]
    assert samples["time_ns"].n_unique() == short_run.connection_samples.height
    assert set(samples["path_name"].drop_nulls()) == {"wifi", "3g"}
    # Before the connection opens, there is no subflow to sample.
    joined = short_run.connection_samples.join(
        short_run.subflow_samples.rename({"bytes_received": "subflow_bytes_received"}),
        on=["time_ns", "connection"],
        how="left",
        maintain_order="left",
    )
    assert samples.select(joined.columns).equals(joined)
