"""Runs, sweeps and reproductions in notebooks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import anabranch
from conftest import scenario
from sweeping import write_plan


@pytest.fixture(scope="module")
def made() -> anabranch.Run:
    return anabranch.run(scenario("3s"), seed=1)


def test_the_summary_has_a_row_for_each_connection(made: anabranch.Run) -> None:
    (row,) = made.summary().to_dicts()
    arrived = made.connections["bytes_arrived_measured"].item()
    assert row["goodput_mbps"] == pytest.approx(arrived * 8e-6 / 2)  # 3 s, 1 s of warm-up
    assert row["share_wifi"] + row["share_3g"] == pytest.approx(1)
    assert row["connection"] == "main"


def test_time_series_are_in_seconds_by_path_and_as_rates(made: anabranch.Run) -> None:
    series = made.timeseries()
    assert series["time_s"].max() == 3.0
    assert set(series["path"].drop_nulls()) == {"wifi", "3g"}
    wifi = series.filter(pl.col("path") == "wifi")
    # Each sample interval is 100 ms; rates times intervals are the received bytes.
    received = np.nansum(wifi["throughput_mbps"].to_numpy()) * 0.1e6 / 8
    samples = made.subflow_samples.filter(pl.col("path") == 0)["bytes_received"]
    assert received == pytest.approx(samples[-1] - samples[0])
    assert wifi["srtt_ms"].drop_nulls().min() > 20  # type: ignore[operator]


def test_a_run_shows_itself(made: anabranch.Run) -> None:
    assert repr(made).startswith("<Run 'short', seed 1, 3 s: main ")
    assert len(repr(made)) < 80
    page = made._repr_html_()
    assert "goodput_mbps" in page
    assert page.count("data:image/svg+xml") == 1


def test_a_run_is_drawn(made: anabranch.Run) -> None:
    figure = made.plot()
    assert isinstance(figure, Figure)
    drawn = [
        axes.get_title(loc="left") for part in figure.subfigs for axes in part.axes if axes.lines
    ]
    assert drawn == [
        "Goodput over time", "Throughput of every subflow", "Congestion windows", "Smoothed RTT",
        "Queues", "Delay of a block",
    ]  # fmt: skip


def test_many_runs_are_reduced_as_runs_for_people() -> None:
    jobs = [anabranch.Job(scenario("1500ms"), seed) for seed in (1, 2)]
    goodputs = anabranch.run_many(jobs, lambda _, run: run.summary()["goodput_mbps"].item())
    assert all(goodput > 1 for goodput in goodputs)


def test_a_sweep_has_a_summary_and_time_series(tmp_path: Path) -> None:
    plan = """
        scenario = "base.toml"
        seeds = 2
        keep = ["samples"]
        [factors]
        "path.wifi.rate" = ["1Mbit/s", "8Mbit/s"]
    """
    swept = anabranch.sweep(write_plan(tmp_path, plan), tmp_path / "out")
    assert repr(swept) == "<Sweep 'plan': 2 cells, 2 seeds>"
    slow, fast = swept.summary().to_dicts()
    assert (slow["path.wifi.rate"], slow["seeds"]) == ("1Mbit/s", 2)
    assert slow["goodput_mbps"] < fast["goodput_mbps"]
    series = swept.timeseries()
    assert set(series["seed"]) == {1}
    assert series.group_by("cell").len().height == 2
    assert "data:image/svg+xml" in swept._repr_html_()


@pytest.mark.slow
def test_a_reproduction_has_its_claims(tmp_path: Path) -> None:
    found = anabranch.reproduce("nsdi12-fig7", tmp_path, seeds=2)
    assert repr(found).startswith("<Reproduction 'nsdi12-fig7': ")
    claims = found.claims()
    assert claims.columns == ["id", "statement", "source", "check", "measured", "verdict"]
    assert claims.height == len(found.judgements)
    assert (tmp_path / "report.html").exists()
    assert "data:image/svg+xml" in found._repr_html_()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, anabranch; print([m for m in ('polars', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_exported_name_is_there() -> None:
    assert all(getattr(anabranch, name) for name in anabranch.__all__)
    assert "Path" not in anabranch.__all__, "it would hide pathlib.Path"


def test_settings_change_keys_of_a_file_or_an_object(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario("2s").to_toml())
    changed = file.read_text().replace('"8Mbit/s"', '"20Mbit/s"', 1)
    (tmp_path / "fast.toml").write_text(changed)
    fast = anabranch.run(tmp_path / "fast.toml").digest
    settings = {"path.wifi.rate": "20Mbit/s"}
    assert anabranch.run(file, settings=settings).digest == fast
    assert anabranch.run(scenario("2s"), settings=settings).digest == fast
    with pytest.raises(anabranch.InputError, match=r'^path\.wifi\.rate: "20" has no unit'):
        anabranch.run(file, settings={"path.wifi.rate": "20"})


def test_two_runs_are_compared(short_run: anabranch.Run) -> None:
    slower = anabranch.run(scenario(), settings={"path.wifi.rate": "1Mbit/s"})
    found = anabranch.compare(short_run, slower)
    (goodput,) = found.filter(metric="goodput_mbps").iter_rows(named=True)
    assert goodput["pairs"] == 1
    assert goodput["difference"] == goodput["b"] - goodput["a"] < 0
