"""The model of a published stack, compared with recorded runs of its kernel."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from anabranch.calibration import recorded
from anabranch.calibration.recorded import DRAWN, STACKS, TARGETS, ComparedRun, RecordedQuantity
from anabranch.cli.main import run_command
from anabranch.results import metrics
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading

STACK = "mptcp.org-0.89"


def test_every_recorded_run_is_a_scenario_of_the_stack() -> None:
    for stack in STACKS:
        for row in recorded._rows(stack):
            scenario = recorded._scenario(stack, row)
            ((_, found, _),) = scenario.stacks()
            assert found == stack, row


@pytest.mark.parametrize("fact", ["data_ack", "own_window"])
def test_the_slow_path_is_used_only_with_both_facts(fact: str) -> None:
    row = next(row for row in recorded._rows(STACK) if row["name"] == "both facts")
    shares = []
    for value in (row[fact], {"data_ack": "after_ack", "own_window": "ignored"}[fact]):
        scenario = recorded._scenario(STACK, row | {fact: value})
        run = run_scenario(loading.changed(scenario, {"duration": "10s"}), 1)
        shares.append(metrics.connection_rows(run)[0][f"share_{run.path_names[1]}"])
    assert shares[0] > 0.03
    assert shares[1] < 0.001


def test_a_delay_begins_with_the_write() -> None:
    blocks = {
        "connection": np.array([0, 0, 0]),
        "accepted_ns": np.array([1_000_000, 4_000_000, 6_000_000]),
        "delivered_ns": np.array([9_000_000, 12_000_000, 15_000_000]),
    }
    assert metrics.delays_since_write_ms(blocks, 1_000_000).tolist() == [11.0, 11.0]
    assert metrics.delays_since_write_ms(blocks, 2_000_000).tolist() == [11.0]


def test_sentences_and_tables_agree() -> None:
    compared = [
        ComparedRun(DRAWN, name, RecordedQuantity(10, 10 + off), RecordedQuantity(100, 100 - off))
        for name, off in (("a", 0.1), ("b", 0.2), ("c", 2.0))
    ]
    (title, table), *_ = recorded.tables(compared).items()
    assert title == DRAWN
    assert [row[3] for row in table.rows] == ["+1.0 %", "+2.0 %", "+20.0 %"]
    goodput, delay = recorded.finding(compared)
    assert "off by 2.0 % in the median" in goodput
    assert "20 % at worst (c): not within" in goodput
    assert ": within the targets of 5 and 12 %" in delay
    assert len(recorded.frame(compared)) == 3


def test_a_folder_that_cannot_be_written_is_named_before_the_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert run_command(["calibrate", "--stack", STACK, "--out", str(tmp_path / "file")]) == 2
    out, err = capsys.readouterr()
    assert (out, "file exists; name a writable folder" in " ".join(err.split())) == ("", True)


def test_a_stack_without_records_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["calibrate", "--stack", "linux-6.12"]) == 2
    told = "--stack linux-6.12: no recorded runs; write one of: mptcp.org-0.89"
    assert told in " ".join(capsys.readouterr().err.split())
    assert run_command(["calibrate", "--stack", STACK, "--seed", "2"]) == 2
    assert "leave out the other options" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_the_model_meets_its_targets() -> None:
    compared = recorded.compare(STACK)
    for sentence, (median, p90) in zip(recorded.finding(compared), TARGETS.values(), strict=True):
        found = [float(each) for each in re.findall(r"by ([\d.]+) %", sentence)]
        assert found[0] <= median, sentence
        assert found[1] <= p90, sentence
