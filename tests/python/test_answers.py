"""Explanations, advice and twins in notebooks."""

import os
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

import anabranch
from anabranch import InputError
from anabranch.cli.main import run_command
from conftest import scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

SMALL = {"workload": anabranch.Bulk(), "remedies": {}}


@pytest.fixture(scope="module")
def explained() -> anabranch.Explained:
    return anabranch.explain(scenario("3s"), what_if=True, seeds=1)


def test_an_explanation_says_what_the_command_says(
    explained: anabranch.Explained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario("3s").to_toml())
    assert run_command(["explain", str(file), "--what-if", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert len(explained.finding()) >= 4
    assert all(sentence in out for sentence in explained.finding())
    assert anabranch.explain(file).finding() == explained.finding()[:-1]


def test_the_causes_add_up(explained: anabranch.Explained) -> None:
    (part,) = explained.parts
    causes = explained.causes()
    missing = part.capacity_mbps - part.goodput_mbps
    assert causes["mbps"].sum() == pytest.approx(missing)
    assert set(causes["connection"]) == {"main"}
    assert causes["mbps"].is_sorted(descending=True)
    per_subflow = explained.states().group_by("path").agg(pl.col("seconds").sum())
    # The account begins after the warm-up of one second.
    assert per_subflow["seconds"].to_list() == pytest.approx([2, 2])
    blocks = explained.blocks()
    parts = blocks.select(pl.sum_horizontal(pl.col("^.*_ms$").exclude("delay_ms")))
    assert parts.to_series().to_list() == pytest.approx(blocks["delay_ms"].to_list())


def test_predictions_have_a_row_for_each_change(explained: anabranch.Explained) -> None:
    predictions = explained.predictions()
    assert {"change", "linux", "goodput_gain", "goodput_mbps", "goodput_mbps_low"} <= {
        *predictions.columns
    }
    assert "without 3g" in predictions["change"].to_list()
    assert anabranch.explain(scenario("1500ms")).predictions().is_empty()


def test_a_notebook_shows_an_explanation(explained: anabranch.Explained) -> None:
    assert isinstance(explained.plot(), Figure)
    assert repr(explained).startswith("<Explained: main delivered ")
    page = explained._repr_html_()
    assert page.count("data:image/svg+xml") == 1
    assert "mbps" in page


def test_an_explanation_takes_settings_and_folders(tmp_path: Path) -> None:
    faster = anabranch.explain(scenario("2s"), settings={"path.wifi.rate": "80Mbit/s"})
    assert faster.parts[0].capacity_mbps > 80
    anabranch.run(scenario("2s")).results().save(tmp_path)
    again = anabranch.explain(tmp_path)
    assert again.finding() == anabranch.explain(scenario("2s")).finding()
    with pytest.raises(InputError, match=r"x\.pcap: neither a scenario nor"):
        anabranch.explain("x.pcap")


@pytest.mark.slow
def test_advice_has_predictions_commands_and_a_scenario() -> None:
    advice = anabranch.advise(scenario("3s", **SMALL), "throughput=2,latency", seeds=1)
    assert len(advice.finding()) == 2
    rows = advice.predictions()
    assert rows["stack"].to_list() == ["Linux"] * 3 + ["anabranch"] * 3
    assert rows.filter(settings="now")["improvement"].to_list() == pytest.approx([1, 1])
    assert {"goodput_mbps", "goodput_mbps_low", "delay_p95_ms_high"} <= {*rows.columns}
    assert any("sysctl" in line for lines in advice.commands().values() for line in lines)
    assert "[[connection]]" in advice.toml()
    assert 'buffers = "socket"' in advice.toml(linux=True)
    assert "improvement" in advice._repr_html_()


def test_advice_explains_a_wrong_goal() -> None:
    with pytest.raises(InputError, match='unknown goal "speed"'):
        anabranch.advise(scenario("2s"), "speed")


@pytest.mark.slow
def test_a_twin_is_a_scenario_beside_its_capture(tmp_path: Path) -> None:
    capture = tmp_path / "run.pcapng"
    anabranch.run(scenario("6s", **SMALL), pcap=capture)
    twin = anabranch.twin(capture, seeds=2)
    assert twin.finding()[0].startswith("The capture shows ")
    rows = twin.comparison()
    assert {"quantity", "path", "unit", "capture", "twin", "least", "largest"} == {*rows.columns}
    assert isinstance(twin.plot(), Figure)
    assert "capture" in twin._repr_html_()
    twin.save(tmp_path / "new" / "twin.toml")
    assert (tmp_path / "new" / "twin.toml").read_text() == twin.toml
    assert anabranch.run(os.fspath(tmp_path / "new" / "twin.toml")).virtual_ns > 0
