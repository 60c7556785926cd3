"""Stalls of an application, and its first byte after a change of a path, in all commands alike."""

import json
from pathlib import Path

import pytest

import anabranch
from anabranch.cli.main import run_command
from anabranch.results import metrics
from conftest import scenario

Captured = pytest.CaptureFixture[str]

OUTAGE = """
name = "outage"
duration = "10s"
warm_up = "1s"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
[[path.change]]
at = "5s"
state = "down"
noticed = false
[[path.change]]
at = "7s"
state = "up"
noticed = false
[[connection]]
name = "main"
protocol = "tcp"
[connection.workload]
kind = "bulk"
"""


@pytest.fixture
def outage(tmp_path: Path) -> Path:
    """One path, over which packets vanish from 5 s to 7 s."""
    file = tmp_path / "outage.toml"
    file.write_text(OUTAGE, encoding="utf-8")
    return file


def test_single_runs_and_sweeps_have_the_same_stalls(outage: Path, tmp_path: Path) -> None:
    single = anabranch.run(outage)
    (stall,) = single.summary()["stall_ms"]
    assert 2000 < stall < 4000
    (stalled_ns,) = single.connections["stall_ns"]
    assert stall == stalled_ns / 1e6
    plan = anabranch.Plan(outage, factors={"path.wifi.delay": ["10ms", "20ms"]}, seeds=1)
    assert anabranch.sweep(plan, tmp_path / "out").results.runs["stall_ms"][0] == stall


def test_no_byte_arrives_between_both_changes(outage: Path, capsys: Captured) -> None:
    down, up = metrics.changes(anabranch.run(outage))
    assert (down["path"], down["changed_s"], up["changed_s"]) == ("wifi", 5, 7)
    assert down["first_byte_ms"] - up["first_byte_ms"] == pytest.approx(2000)
    assert run_command(["run", str(outage), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == [down, up]
    assert run_command(["run", str(outage)]) == 0
    printed = capsys.readouterr().out
    assert "Changes of paths" in printed
    assert "longest stall ms" in printed


def test_a_change_without_a_later_byte_has_no_time(outage: Path) -> None:
    text = OUTAGE.replace('kind = "bulk"', 'kind = "bulk"\nsize = "100kB"')
    outage.write_text(text, encoding="utf-8")
    run = anabranch.run(outage)
    assert [each["first_byte_ms"] for each in metrics.changes(run)] == [None, None]
    # The transfer ended before the warm-up.
    assert run.summary()["stall_ms"].to_list() == [None]


def test_explain_says_what_a_long_stall_waited_for(
    outage: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert run_command(["explain", str(outage), "--out", str(tmp_path / "out")]) == 0
    (stall,) = anabranch.run(outage).summary()["stall_ms"]
    sentence = (
        f"From 5.00 s on, the application got nothing for {stall:,.0f} ms although data was "
        "waiting: wifi, which was down from 5.00 s to 7.00 s, waited for its retransmission timer "
        "for "
    )
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert sentence in (tmp_path / "out/report.html").read_text(encoding="utf-8")


def test_explain_is_silent_about_the_repair_of_a_loss() -> None:
    run = anabranch.explain(scenario("8s", workload=anabranch.Bulk()))
    assert not any("got nothing" in sentence for sentence in run.finding())
