"""Packet-delivery traces: from rates in a file, and synthetic ones."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from anabranch import _core
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.scenarios import traces
from anabranch.scenarios.scenario import (
    Bulk,
    Connection,
    NetworkPath,
    Reverse,
    Scenario,
    Trace,
)
from anabranch.scenarios.traces import OPPORTUNITY_BYTES, Rates, opportunities, synthetic

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


def read(folder: Path, text: str, time_unit: str = "s", rate_unit: str = "Mbit/s") -> Rates:
    file = folder / "rates.csv"
    file.write_text(text)
    return traces.read_rates(file, time_unit, rate_unit)


def test_an_opportunity_comes_when_the_rates_amount_to_its_bytes() -> None:
    # 1504 bytes are 12,032 bits: 10 ms at 1.2032 Mbit/s, and half as long at twice the rate.
    rates = Rates((0, 30_000), (1_203_200, 2_406_400), 40_000)
    assert opportunities(rates) == [10, 20, 30, 35, 40]
    assert rates.mean == Fraction(1_504_000)


def test_an_opportunity_may_need_bits_of_several_rates_and_is_rounded_up() -> None:
    # 6,016 bits in 5 ms, and 6,016 more in 15 ms at a third of the rate: at 20 ms. By 27.5 ms,
    # 3,008 bits come, and the other 9,024 in 3.75 ms after 30 ms. 5 ms later is 38.75 ms.
    rates = Rates((0, 5_000, 27_500, 30_000), (1_203_200, 401_067, 0, 2_406_400), 40_000)
    assert opportunities(rates) == [20, 34, 39, 40]


def test_the_last_opportunity_is_at_the_end_because_its_time_is_the_period() -> None:
    assert opportunities(Rates((0, 10_000), (1_203_200, 0), 1_000_000)) == [10, 1000]


def test_opportunities_can_come_in_slots() -> None:
    rates = Rates((0,), (12_032_000,), 20_000)  # one each millisecond
    assert opportunities(rates, slot_ms=5) == [5] * 5 + [10] * 5 + [15] * 5 + [20] * 5


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n2,3\n5,2\n",
        "0 1\n2 3\n5 2\n",
        "time;rate\n0; 1\n2;3\n\n5;2",
        "# a walk\ntime (s), rate (Mbit/s)\n10, 1\n12, 3\n# stop\n15, 2\n",
    ],
)
def test_columns_are_separated_by_commas_semicolons_or_blanks(text: str, tmp_path: Path) -> None:
    # The last rate holds for 3 s, as long as the one before it.
    rates = read(tmp_path, text)
    assert rates == Rates((0, 2_000_000, 5_000_000), (10**6, 3 * 10**6, 2 * 10**6), 8_000_000)


def test_units_are_chosen(tmp_path: Path) -> None:
    expected = Rates((0, 500_000), (10**6, 8 * 10**6), 1_000_000)
    assert read(tmp_path, "0 1000\n500 8e3\n", "ms", "kbit/s") == expected
    assert read(tmp_path, "0 0.125\n0.5 1\n", "s", "MB/s") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1\n1\n", "line 2: 1 column;"),
        ("0 1\n1 2 3\n", "line 2: 3 columns"),
        ("0 1\nnow 2\n", 'line 2: "now" is not a time; write a number of s'),
        ("0 1\n1 fast\n", 'line 2: "fast" is not a rate; write a number of Mbit/s'),
        ("0 1\n1 -2\n", 'line 2: "-2" is not a rate'),
        ("0 1\n1 nan\n", 'line 2: "nan" is not a rate'),
        ("1 1\n1 2\n", 'line 2: time "1" is not after the time before'),
        ("0 1\n1 1e999999999\n", 'line 2: "1e999999999" is not a rate'),
        ("0 1\n1 1_000\n", 'line 2: "1_000" is not a rate'),
        ("0s,1Mbit/s\n1,2\n", 'line 1: "0s" is not a time'),
        ("0;1,5\n1;2\n", 'line 1: "1,5" is not a rate'),
        ("0 1\n", "1 line with a rate; a trace needs at least two"),
        ("", "0 lines with a rate"),
        ("0 0\n1 0\n", "all rates are 0"),
    ],
)
def test_a_wrong_line_is_named_with_what_would_be_right(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "rates.csv") in str(caught.value)
    assert words in str(caught.value)


def test_a_trace_of_sensible_length_only() -> None:
    with pytest.raises(InputError, match="more than 10,000,000"):
        opportunities(Rates((0,), (10**12,), 10**9))
    with pytest.raises(InputError, match="at least 1 ms"):
        opportunities(Rates((0,), (10**6,), 900))
    with pytest.raises(InputError, match="less than 1504 bytes"):
        opportunities(Rates((0,), (1,), 10**6))


def test_a_synthetic_trace_has_its_mean_and_depends_on_its_seed_only() -> None:
    times = opportunities(synthetic(8 * 10**6, 60 * 10**6, seed=1))
    assert times == opportunities(synthetic(8 * 10**6, 60 * 10**6, seed=1))
    assert times != opportunities(synthetic(8 * 10**6, 60 * 10**6, seed=2))
    assert times[-1] == 60_000
    assert len(times) * OPPORTUNITY_BYTES * 8 == pytest.approx(60 * 8e6, rel=1e-3)


def test_a_synthetic_rate_moves_once_a_second_to_a_neighbouring_level() -> None:
    rates = synthetic(8 * 10**6, 1000 * 10**6, seed=1).bits_per_second
    levels = sorted(set(rates))
    assert len(levels) == 5
    steps = [abs(levels.index(after) - levels.index(before)) for before, after in pairwise(rates)]
    assert set(steps) == {0, 1}
    # A thousand draws move, less those at the two outer levels that would leave them: a fifth.
    assert 700 < sum(steps) < 900


def test_both_forms_of_a_trace_are_the_same_to_the_core() -> None:
    times = [0, 3, 3, 9]
    assert traces.in_line(times) == "0 3*2 9"
    assert traces.to_file(times) == "0\n3\n3\n9\n"
    path = NetworkPath(
        name="p", delay="1ms", limit="9packets", trace=Trace(milliseconds=traces.in_line(times)),
        reverse=Reverse(rate="1Mbit/s"),
    )  # fmt: skip
    text = Scenario(
        name="x", duration="1s", paths=(path,), connections=(Connection(workload=Bulk()),)
    ).to_toml()
    assert 'milliseconds = "0 3*2 9"' in _core.Scenario.parse(text, "x.toml").to_toml()


def test_the_command_makes_a_trace_that_scenarios_read(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "new" / "cellular.trace"
    assert run_command(["trace", str(ROOT / "examples/rates.csv"), "--out", str(out)]) == 0
    # 50.5 Mbit in 6.25 s; the trace begins at 0 s and its last rate holds for 1.25 s.
    assert "6.25 s, 8.08 Mbit/s on average" in capsys.readouterr().out
    assert out.read_text().splitlines()[-1] == "6250"
    scenario = (ROOT / "examples/cellular_trace.toml").read_text()
    (out.parent / "it.toml").write_text(scenario)
    assert _core.Scenario.parse(scenario, str(out.parent / "it.toml"), str(out.parent))


def test_the_command_makes_synthetic_traces(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "a.trace"
    command = ["trace", "--mean", "2Mbit/s", "--duration", "10s", "--seed", "7", "--out", str(out)]
    assert run_command(command) == 0
    assert "10 s, 2.001 Mbit/s on average, 1,663 delivery" in capsys.readouterr().out
    expected = opportunities(synthetic(2 * 10**6, 10 * 10**6, 7))
    assert out.read_text() == traces.to_file(expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "name a file with rates, or give --mean RATE"),
        ("--mean 8Mbit/s --duration 250ms", '"250ms" is not a multiple of 100 ms'),
        ("RATES --out RATES", "a file that this command reads; name another one"),
        ("RATES --out LINK", "not a regular file; name another one"),
        ("RATES --out /dev/null", "not a regular file; name another one"),
        ("RATES --mean 8Mbit/s", "either a file with rates or --mean"),
        ("RATES --seed 2", "need --mean"),
        ("--mean 8Mbit/s --rate-unit kbit/s", "need a file"),
        ("--mean 8", '--mean: "8" has no unit; write a rate such as "8Mbit/s"'),
        ("--mean 0Mbit/s", "a rate must be more than zero"),
        ("--mean 8Mbit/s --duration 60", '--duration: "60" has no unit'),
        ("RATES --rate-unit Mbps", "'Mbps' is not one of 'Mbit/s'"),
        ("nowhere.csv", "nowhere.csv: no such file"),
        ("RATES --out FOLDER", "not a regular file; name another one"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(
    arguments: str, words: str, tmp_path: Path, capsys: Captured
) -> None:
    link = tmp_path / "link.trace"
    link.symlink_to(tmp_path / "linked.trace")
    (tmp_path / "linked.trace").touch()
    rates = str(ROOT / "examples/rates.csv")
    stands_for = {"RATES": rates, "FOLDER": str(tmp_path), "LINK": str(link)}
    written = [stands_for.get(word, word) for word in arguments.split()]
    assert run_command(["trace", "--out", str(tmp_path / "out.trace"), *written]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "out.trace").exists()
