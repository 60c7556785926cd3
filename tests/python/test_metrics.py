import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Run
from anabranch.results import metrics
from anabranch.runs.columns import frame

# Two connections; 1 MB of the first arrives in 2 s after the warm-up, which is 4 Mbit/s.
CONNECTIONS = pl.DataFrame(
    {
        "connection": [0, 1],
        "bytes_delivered": [1_250_000, 0],
        "bytes_arrived_measured": [1_000_000, 0],
        "measured_ns": [2_000_000_000, 0],
        "window_limited_ns": [500_000_000, 0],
        "send_buffer_limited_ns": [1_000_000_000, 0],
    }
)
SUBFLOWS = pl.DataFrame(
    {
        "connection": [0, 0, 0, 1],
        "path": [0, 1, 1, 0],
        "bytes_received": [900_000, 300_000, 300_000, 0],
    }
)
MS = 1_000_000


def test_goodput_counts_the_measured_time_only() -> None:
    assert metrics.goodput_mbps(CONNECTIONS) == 4.0
    assert metrics.goodput_mbps(CONNECTIONS, 1) == 0.0


def test_shares_of_full_buffers_are_of_the_measured_time() -> None:
    assert metrics.window_limited_share(CONNECTIONS) == 0.25
    assert metrics.send_buffer_limited_share(CONNECTIONS) == 0.5
    assert metrics.window_limited_share(CONNECTIONS, 1) == 0.0


def test_duplicates_are_throughput_less_goodput() -> None:
    # 1.5 MB arrived on subflows, 1.25 MB were delivered: 0.25 MB in 2.5 s is 0.8 Mbit/s.
    assert metrics.duplicate_mbps(CONNECTIONS, SUBFLOWS, 2_500_000_000) == pytest.approx(0.8)


def test_shares_add_up_over_subflows_of_a_path() -> None:
    assert metrics.path_shares(SUBFLOWS) == {0: 0.6, 1: 0.4}
    assert metrics.path_shares(SUBFLOWS, 1) == {0: 0.0}


def test_delays_leave_out_the_warm_up_and_other_connections() -> None:
    blocks = pl.DataFrame(
        {
            "connection": [0, 0, 0, 1],
            "accepted_ns": [1 * MS, 5 * MS, 9 * MS, 6 * MS],
            "delivered_ns": [3 * MS, 9 * MS, 20 * MS, 7 * MS],
        }
    )
    assert metrics.delays_ms(blocks).tolist() == [2.0, 4.0, 11.0]
    assert metrics.delays_ms(blocks, warm_up_ns=5 * MS).tolist() == [4.0, 11.0]
    assert metrics.delays_ms(blocks, connection=1).tolist() == [1.0]


def test_delay_summary_of_1_to_101() -> None:
    # For the numbers 1 to 101 the quantile p is 1 + p. The mode's bin of width 20 is [20, 40),
    # because [0, 20) lacks the zero.
    summary = metrics.delay_summary(np.arange(1.0, 102.0))
    assert summary["block_count"] == 101
    assert summary["delay_mean_ms"] == 51.0
    assert summary["delay_p50_ms"] == 51.0
    assert summary["delay_p95_ms"] == 96.0
    assert summary["delay_p99_ms"] == 100.0
    assert summary["delay_max_ms"] == 101.0
    assert summary["delay_iqr_ms"] == 50.0
    assert summary["delay_mode_ms"] == 30.0


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=50), st.integers(0, 100))
def test_quantiles_are_exactly_those_of_numpy(values: list[int], percent: int) -> None:
    for each in (np.array(values, np.uint64), np.array(values) / 7e3):
        assert metrics._quantile(each, percent) == np.percentile(each, percent)


def test_summary_of_no_delays_has_no_numbers() -> None:
    summary = metrics.delay_summary(np.array([]))
    assert tuple(summary) == metrics.DELAY_METRICS
    assert summary.pop("block_count") == 0
    assert set(summary.values()) == {None}


def test_mode_is_the_middle_of_the_fullest_bin() -> None:
    assert metrics.mode_ms(np.array([5.0, 41.0, 59.9, 60.0, 100.0])) == 50.0
    assert metrics.mode_ms(np.array([5.0, 30.0])) == 10.0, "of equals, the first"
    assert metrics.mode_ms(np.array([3.0, 4.0, 9.0]), bin_ms=5.0) == 2.5


def test_littles_law_at_8_mbps() -> None:
    # 204800 bytes are 1638.4 kbit: 204.8 ms at 8 Mbit/s, minus 10 ms for the reverse direction.
    assert metrics.expected_delay_ms(200 * 1024, 8.0, 10.0) == pytest.approx(194.8)


def test_a_real_run_is_consistent(short_run: Run) -> None:
    row = metrics.connection_row(short_run)
    assert row["corrupt_bytes"] == 0
    assert not row["failed"]
    assert 0 < row["bytes_delivered"] <= row["bytes_written"]
    assert math.isclose(row["share_wifi"] + row["share_3g"], 1)
    assert row["delay_p5_ms"] <= row["delay_p50_ms"] <= row["delay_max_ms"]
    assert row["goodput_mbps"] <= 10
    assert frame(metrics.subflow_rows(short_run))["path_name"].to_list() == ["wifi", "3g"]
    directions = frame(metrics.link_rows(short_run))["direction_name"].to_list()
    assert directions == ["forward", "reverse"] * 2
    blocks = metrics.block_rows(short_run)
    assert blocks.height == row["block_count"]
    assert blocks["delay_ms"].to_numpy().mean() == pytest.approx(row["delay_mean_ms"], rel=1e-3)


def test_samples_keep_every_time_of_the_connection(short_run: Run) -> None:
    samples = metrics.sample_rows(short_run)
    assert samples["time_ns"].n_unique() == short_run.connection_samples.height
    assert set(samples["path_name"].drop_nulls()) == {"wifi", "3g"}
