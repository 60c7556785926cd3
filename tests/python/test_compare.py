import dataclasses
import json
from pathlib import Path

import polars as pl
import pytest

from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.results.folder import Results
from anabranch.sweeps import compare
from anabranch.sweeps.sweep import sweep
from sweeping import PLAN, write_plan

Captured = pytest.CaptureFixture[str]


def swept(folder: Path, text: str = PLAN) -> Results:
    return sweep(write_plan(folder, text), folder / "out")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return swept(tmp_path_factory.mktemp("compare") / "plan")


def test_pairs_are_runs_with_the_same_seed(results: Results) -> None:
    found = compare.levels(results, "connection.main.scheduler", "min_rtt", "ecf")
    (goodput,) = [
        each
        for each in found.differences
        if each.cell == "4Mbit/s" and each.metric == "goodput_mbps"
    ]
    a = results.values("goodput_mbps", cell="min_rtt_4Mbits")
    b = results.values("goodput_mbps", cell="ecf_4Mbits")
    paired = sorted(b - a)
    assert goodput.pairs == goodput.difference.seeds == 3
    assert goodput.difference.value == paired[1]
    assert paired[0] <= goodput.difference.low <= goodput.difference.high <= paired[2]
    assert found.notes == ()
    assert found.changed == (
        'connection.main.scheduler: "min_rtt" → { kind = "ecf", beta = 0.25, rule = "paper" }',
    )


def test_over_all_cells_each_counts_once(results: Results) -> None:
    found = compare.levels(results, "connection.main.scheduler", "min_rtt", "ecf")
    per_cell = {
        each.cell: each.difference.value
        for each in found.differences
        if each.metric == "delay_mean_ms"
    }
    assert per_cell[None] == pytest.approx((per_cell["4Mbit/s"] + per_cell["8Mbit/s"]) / 2)


def test_other_links_are_said(results: Results) -> None:
    found = compare.levels(results, "path.wifi.rate", "4Mbit/s", "8Mbit/s")
    (note,) = found.notes
    assert "the links differ (path.wifi.rate" in note
    assert 'path.wifi.rate: "4Mbit/s" → "8Mbit/s"' in found.changed


def test_the_same_results_do_not_differ(results: Results) -> None:
    found = compare.folders(results, results, ("a", "b"))
    assert found.changed == found.notes == ()
    assert all(each.difference.value == 0 for each in found.differences)


def test_two_folders_with_one_thing_changed(results: Results, tmp_path: Path) -> None:
    write_plan(tmp_path / "plan")
    base = tmp_path / "plan" / "base.toml"
    base.write_text(base.read_text() + '\n[connection.remedies]\npenalisation = "conext13"\n')
    other = sweep(tmp_path / "plan" / "plan.toml", tmp_path / "out")
    found = compare.folders(results, other, ("without", "with"))
    assert found.changed == (
        'connection.main.remedies.penalisation: not set → { form = "conext13" }',
    )
    assert found.notes == ()
    assert {each.pairs for each in found.differences if each.cell is None} == {12}


def test_other_seeds_are_said(results: Results, tmp_path: Path) -> None:
    other = swept(tmp_path / "plan", PLAN.replace("[1, 2, 3]", "[2, 3, 4, 5]"))
    found = compare.folders(results, other, ("a", "b"))
    assert found.notes == ("the seeds differ: 3 in A, 4 in B, 2 in both",)


def test_cells_without_partner_are_counted(results: Results, tmp_path: Path) -> None:
    other = swept(tmp_path / "plan", PLAN.replace(', "8Mbit/s"]', "]"))
    found = compare.folders(results, other, ("a", "b"))
    assert found.notes == ("6 of 12 rows of A have no partner",)


def test_nothing_in_common_is_refused(results: Results, tmp_path: Path) -> None:
    other = swept(tmp_path / "plan", PLAN.replace("[1, 2, 3]", "[7]"))
    with pytest.raises(InputError, match="a and b cannot be paired"):
        compare.folders(results, other, ("a", "b"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("DIR", "name two folders, or one folder with --by FACTOR A B"),
        ("DIR DIR --by path.wifi.rate 4Mbit/s 8Mbit/s", "name two folders"),
        ("DIR --by path.wify.rate a b", 'did you mean "path.wifi.rate"?'),
        ("DIR --by path.wifi.rate 4Mbit/s 8Mbit", 'did you mean "8Mbit/s"?'),
        ("nowhere DIR", "nowhere: provenance.json is missing"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: str, words: str, results: Results, tmp_path: Path, capsys: Captured
) -> None:
    results.save(tmp_path)
    words_of_command = [word.replace("DIR", str(tmp_path)) for word in arguments.split()]
    assert run_command(["compare", *words_of_command]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert words in err


def test_the_command_prints_a_table_and_writes_json(
    results: Results, tmp_path: Path, capsys: Captured
) -> None:
    results.save(tmp_path)
    by = ["--by", "connection.main.scheduler", "min_rtt", "ecf"]
    file = tmp_path / "comparison.json"
    assert run_command(["compare", str(tmp_path), *by, "--out", str(file)]) == 0
    printed = capsys.readouterr().out
    for word in ("A: min_rtt", "B: ecf", "p95 delay (ms)", "share of 3g", "reinjections"):
        assert word in printed
    assert "The scenarios differ in:\n  connection.main.scheduler: " in printed
    written = json.loads(file.read_text())
    assert written["a"] == "min_rtt"
    assert {"value", "low", "high", "seeds"} == set(written["differences"][0]["difference"])


def lines_of(comparison: Path, *others: str, captured: Captured) -> list[str]:
    assert run_command(["compare", str(comparison), *others]) == 0
    return [line.rstrip() for line in captured.readouterr().out.splitlines()]


def test_each_metric_has_a_table_with_a_row_for_each_cell(
    results: Results, tmp_path: Path, capsys: Captured
) -> None:
    results.save(tmp_path)
    by = ("--by", "connection.main.scheduler", "min_rtt", "ecf")
    printed = lines_of(tmp_path, *by, captured=capsys)
    table = printed[printed.index("goodput (Mbit/s)") :]
    assert table[1].split() == ["rate", "A", "B", "B", "−", "A", "[95", "%]", "relative"]
    assert [line.split()[0] for line in table[2:5]] == ["4Mbit/s", "8Mbit/s", "all"]
    assert not any("main" in line for line in table[:5]), "there is only one connection"


def test_two_runs_are_one_table_with_a_row_for_each_metric(
    results: Results, tmp_path: Path, capsys: Captured
) -> None:
    for side, level in (("a", "min_rtt_4Mbits"), ("b", "ecf_4Mbits")):
        runs = results.runs.filter(pl.col("cell") == level).drop(
            "connection.main.scheduler", "path.wifi.rate"
        )
        dataclasses.replace(results, runs=runs).save(tmp_path / side)
    printed = lines_of(tmp_path / "a", str(tmp_path / "b"), captured=capsys)
    assert sum("B − A" in line for line in printed) == 1
    assert not any(line.startswith("all") for line in printed)
    assert any(line.startswith("p95 delay (ms)") for line in printed)
