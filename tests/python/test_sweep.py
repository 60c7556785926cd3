import dataclasses
import functools
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anabranch
from anabranch import Progress
from anabranch.batches import batch
from anabranch.batches.journal import FILE, Journal
from anabranch.batches.reduction import Task
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.gallery import catalogue, reproduce
from anabranch.gallery.entry import Cell, Tier
from anabranch.results import metrics
from anabranch.results.folder import TABLES, load
from anabranch.runs import executors
from anabranch.runs.executors import Meter
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from anabranch.sweeps.plan import Plan
from anabranch.sweeps.sweep import sweep
from conftest import interrupt, scenario
from sweeping import PLAN, provenance, tables, write_plan

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = "400s"
"""Duration that makes a sweep of twelve runs take some seconds."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_plan(tmp_path / "plan")


def recorded(folder: Path) -> int:
    """Number of intact runs in the journal of a folder."""
    with closing(Journal(folder)) as kept:
        return len(kept.keys())


def start(file: Path, out: Path) -> subprocess.Popen[str]:
    """A sweep in a separate process that has recorded some of its runs."""
    # Use one core, so that few runs are in progress.
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from anabranch.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program, "sweep", str(file), "--out", str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (out / FILE).exists() or (out / FILE).stat().st_size < 2_000:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


# ---- what a sweep writes --------------------------------------------------------------------


def test_every_cell_runs_with_every_seed(file: Path, tmp_path: Path) -> None:
    steps: list[Progress] = []
    results = sweep(file, tmp_path / "out", on_progress=steps.append)
    runs = results.runs.select("connection.main.scheduler", "path.wifi.rate", "seed").rows()
    assert runs == [
        (scheduler, rate, seed)
        for scheduler in ("min_rtt", "ecf")
        for rate in ("4Mbit/s", "8Mbit/s")
        for seed in (1, 2, 3)
    ]
    assert list(results.scenarios) == [
        "min_rtt_4Mbits", "min_rtt_8Mbits", "ecf_4Mbits", "ecf_8Mbits",
    ]  # fmt: skip
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == 12
    assert steps[-1].virtual_s == 12 * Plan.read(file).tasks()[0].scenario.duration_ns / 1e9
    assert steps[-1].remaining_s == 0
    fast = results.values("goodput_mbps", cell="ecf_8Mbits").mean()
    assert fast > results.values("goodput_mbps", cell="ecf_4Mbits").mean()


def test_a_cell_is_the_run_of_its_scenario(file: Path, tmp_path: Path) -> None:
    results = sweep(file, tmp_path / "out")
    alone = anabranch.run(tmp_path / "out" / "scenarios" / "ecf_4Mbits.toml", seed=2)
    digests = {(run["cell"], run["seed"]): run["digest"] for run in results.provenance["runs"]}
    assert digests["ecf_4Mbits", 2] == alone.digest


def test_tables_are_read_by_others(file: Path, tmp_path: Path) -> None:
    sweep(file, tmp_path / "out")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    for name in TABLES:
        table = tmp_path / "out" / f"{name}.parquet"
        counted = duckdb.sql(f"select count(*) from '{table}'").fetchall()
        assert counted == [(pl.read_parquet(table).height,)]


def test_samples_and_blocks_are_kept_on_request(file: Path, tmp_path: Path) -> None:
    assert sweep(file, tmp_path / "out").samples.is_empty()
    file.write_text(PLAN.replace("seeds", 'keep = ["samples", "blocks"]\nseeds', 1))
    results = sweep(file, tmp_path / "out")
    assert set(results.samples["seed"]) == {1}
    assert set(results.blocks["seed"]) == {1, 2, 3}


def test_a_design_varies_all_its_factors_together(file: Path, tmp_path: Path) -> None:
    file.write_text("""
        scenario = "base.toml"
        [design]
        kind = "lhs"
        points = 6
        [design.ranges]
        "path.wifi.rate" = { from = "1Mbit/s", to = "20Mbit/s", scale = "log" }
        buffers = { from = "50KiB", to = "500KiB", keys = [
          "connection[0].send_buffer", "connection[0].receive_buffer" ] }
    """)
    results = sweep(file, tmp_path / "out")
    rates = results.runs["path.wifi.rate (Mbit/s)"]
    assert results.runs.height == rates.n_unique() == 6
    assert rates.is_between(1, 20).all()
    settings = Plan.read(file).tasks()[0].settings
    assert settings["connection"][0]["send_buffer"] == settings["connection"][0]["receive_buffer"]


def test_a_grid_design_has_all_combinations(file: Path) -> None:
    file.write_text("""
        scenario = "base.toml"
        [design]
        kind = "grid"
        points = 3
        ranges."path[0].delay" = { from = "10ms", to = "30ms" }
        ranges."path[1].delay" = { from = "0ms", to = "100ms" }
    """)
    cells = [tuple(task.factors.values()) for task in Plan.read(file).tasks()]
    assert cells == [(a, b) for a in (10.0, 20.0, 30.0) for b in (0.0, 50.0, 100.0)]


# ---- nothing is lost ------------------------------------------------------------------------


def test_a_sweep_has_the_results_of_its_single_runs(file: Path, tmp_path: Path) -> None:
    file.write_text(PLAN.replace("seeds", 'keep = ["samples", "blocks"]\nseeds', 1))
    results = sweep(file, tmp_path / "out")
    for task in Plan.read(file).tasks():
        tables = metrics.tables(run_scenario(task.scenario, task.seed))
        for name in TABLES:
            rows = results.rows(name, cell=task.cell, seed=task.seed)
            if name == "samples" and not task.keep_samples:
                assert rows.is_empty()
                continue
            expected = tables[name]
            assert rows.select(expected.columns).cast(expected.schema).equals(expected), name


def test_workers_do_not_change_the_results(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for workers in (1, 2, 5):
        monkeypatch.setattr(executors, "available_cores", lambda workers=workers: workers)
        sweep(file, tmp_path / str(workers))
    assert tables(tmp_path / "1") == tables(tmp_path / "2") == tables(tmp_path / "5")


def test_ctrl_c_ends_long_runs_at_once(tmp_path: Path) -> None:
    file = write_plan(tmp_path / "plan", duration="1000000s")
    command = [
        sys.executable,
        "-m",
        "anabranch",
        "sweep",
        str(file),
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "out" / FILE).exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)  # the runs have begun
    _, err = interrupt(process)
    assert process.returncode == 130, err
    assert recorded(tmp_path / "out") == 0


@pytest.mark.slow
def test_a_sweep_of_100_000_runs_fits_into_1_gb(tmp_path: Path) -> None:
    file = write_plan(tmp_path / "plan")
    base = file.with_name("base.toml")
    short = base.read_text().replace('duration = "2s"', 'duration = "5ms"')
    base.write_text(short.replace('warm_up = "1s"', 'warm_up = "0ms"'))
    file.write_text(re.sub("seeds = .*", "seeds = 25_000", PLAN))
    program = (
        "import resource, sys; from anabranch.__main__ import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "sweep", str(file), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert pl.read_parquet(tmp_path / "out" / "runs.parquet").height == 100_000
    assert int(done.stderr.split()[-1]) * 1024 < 1e9


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_an_interrupted_sweep_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    file = write_plan(tmp_path / "plan", duration=LONG)
    sweep(file, tmp_path / "whole")

    process = start(file, tmp_path / "cut")
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert err.endswith(
            "anabranch: interrupted; the same command makes only the missing runs\n"
        )
    finished = recorded(tmp_path / "cut")
    assert 0 < finished < 12
    assert not (tmp_path / "cut" / "runs.parquet").exists()

    steps: list[Progress] = []
    sweep(file, tmp_path / "cut", on_progress=steps.append)
    assert steps[0].found == steps[0].done == finished
    assert steps[-1].done == 12
    assert provenance(tmp_path / "cut")["runs_found"] == finished
    assert tables(tmp_path / "cut") == tables(tmp_path / "whole")
    assert provenance(tmp_path / "cut")["runs"] == provenance(tmp_path / "whole")["runs"]


def test_the_same_again_runs_nothing(file: Path, tmp_path: Path) -> None:
    first = sweep(file, tmp_path / "out")
    before = tables(tmp_path / "out")
    again = sweep(file, tmp_path / "out")
    assert again.provenance["runs_found"] == 12
    assert again.provenance["wall_all_s"] >= first.provenance["wall_all_s"] > 0
    assert again.provenance["data_segments"] == first.provenance["data_segments"] > 0
    assert again.provenance["cpu_s"] == first.provenance["cpu_s"]
    assert tables(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("[1, 2, 3]", "[2, 3, 4, 5]", 8),
        ('"8Mbit/s"]', '"8Mbit/s", "9Mbit/s"]', 12),
        ('["min_rtt", "ecf"]', '["min_rtt", "blest"]', 6),
    ],
)
def test_a_changed_plan_runs_what_is_new(
    old: str, new: str, found: int, file: Path, tmp_path: Path
) -> None:
    sweep(file, tmp_path / "out")
    file.write_text(PLAN.replace(old, new))
    assert sweep(file, tmp_path / "out").provenance["runs_found"] == found
    sweep(file, tmp_path / "afresh")
    assert tables(tmp_path / "out") == tables(tmp_path / "afresh")


def test_a_changed_scenario_runs_anew(file: Path, tmp_path: Path) -> None:
    sweep(file, tmp_path / "out")
    write_plan(tmp_path / "plan", duration="3s")
    assert sweep(file, tmp_path / "out").provenance["runs_found"] == 0


def test_a_full_disk_keeps_what_is_finished(file: Path, tmp_path: Path, capsys: Captured) -> None:
    sweep(file, tmp_path / "whole")
    arguments = ["sweep", str(file), "--out", str(tmp_path / "out")]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    third = (tmp_path / "whole" / FILE).stat().st_size // 3
    resource.setrlimit(resource.RLIMIT_FSIZE, (third, limits[1]))
    try:
        assert run_command(arguments) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    err = capsys.readouterr().err
    assert "file too large" in err
    assert err.count("anabranch: ") == 1
    finished = recorded(tmp_path / "out")
    assert 0 < finished < 6
    assert run_command(arguments) == 0
    assert provenance(tmp_path / "out")["runs_found"] == finished
    assert tables(tmp_path / "out") == tables(tmp_path / "whole")


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_damage_is_said_in_one_line(file: Path, tmp_path: Path, capsys: Captured) -> None:
    arguments = ["sweep", str(file), "--out", str(tmp_path / "out")]
    assert run_command(arguments) == 0
    with open(tmp_path / "out" / FILE, "r+b") as handle:
        handle.truncate((tmp_path / "out" / FILE).stat().st_size - 10)
    capsys.readouterr()
    assert run_command(arguments) == 0
    captured = capsys.readouterr()
    (line,) = [each for each in captured.err.splitlines() if "damaged" in each]
    assert "11 finished runs are intact" in line
    assert "12 runs, 11 of them finished earlier" in captured.out


def test_reproduce_goes_on_too(tmp_path: Path) -> None:
    entry = catalogue.entry("nsdi12-fig4")
    some = dataclasses.replace(entry, design=lambda tier: entry.design(tier)[:3])
    reproduce.execute(some, Tier("tiny", seeds=2, measured_s=2), tmp_path)
    more = reproduce.execute(some, Tier("tiny", seeds=3, measured_s=2), tmp_path)
    assert more.provenance["runs_found"] == 6
    assert len(more.provenance["runs"]) == 9


# ---- order ----------------------------------------------------------------------------------


def test_expensive_runs_start_first_and_results_keep_their_order() -> None:
    begun: list[int] = []
    results: dict[int, str] = {}

    def work(item: int) -> str:
        begun.append(item)
        return f"of {item}"

    with executors.opened(workers=1) as executor:
        executors.call_all(executor, work, [10, 30, 20], [1, 3, 2], results.__setitem__)
    assert begun == [30, 20, 10]
    assert [results[index] for index in range(3)] == ["of 10", "of 30", "of 20"]


def test_cost_is_duration_times_rates() -> None:
    # 10 Mbit/s for 3 s are 2500 packets of 1500 bytes.
    assert loading.of(scenario("3s")).cost == 2500
    assert loading.of(scenario("30s")).cost == 25000


def test_remaining_time_follows_the_cost() -> None:
    steps: list[Progress] = []
    meter = Meter(steps.append, [3.0, 1.0], found=2)
    meter.made(0, 10**9)
    first, second = steps
    assert (first.done, first.total, first.found, first.remaining_s) == (2, 4, 2, None)
    assert (second.done, second.virtual_s) == (3, 1.0)
    assert second.remaining_s is not None


# ---- wrong plans ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('scenario = "base.toml"', "", "scenario: missing"),
        ("base.toml", "bas.toml", "bas.toml: no such file"),
        ("seeds", "seed", 'unknown key "seed"; did you mean "seeds"?'),
        ("[1, 2, 3]", "0", "seeds: 0 is not valid"),
        ("[1, 2, 3]", "[1, 1]", "seeds: [1, 1] is not valid"),
        ("[1, 2, 3]", "true", "seeds: True is not valid"),
        ("[1, 2, 3]", "[1, 2, 3", "plan.toml: "),
        ("path.wifi.rate", "path.wify.rate", 'unknown path "wify"; did you mean "wifi"?'),
        ("path.wifi.rate", "path[2].rate", "there is no path[2]; the scenario has 2"),
        ("path.wifi.rate", "path.wifi.rat", 'unknown key; did you mean "rate"?'),
        ("path.wifi.rate", "path.wifi", "name a key of that path"),
        ("path.wifi.rate", "path..rate", "is not a key"),
        ('"8Mbit/s"', '"8"', '"8" has no unit'),
        ('"8Mbit/s"', '"4Mbit/s"', "4Mbit/s appears twice"),
        ('["4Mbit/s", "8Mbit/s"]', '"4Mbit/s"', "'4Mbit/s' is not a list of values"),
        ('"ecf"', '"efc"', '"ecf"'),
        ('"path.wifi.rate" = ', "goodput_mbps = ", "goodput_mbps"),
        ("[factors]", "keep = ['block']\n[factors]", 'table "block"; did you mean "blocks"?'),
        ("[factors]", "[design]\nkind = 'wps'\n[factors]", 'kind "wps"; did you mean "wsp"?'),
        ("[factors]", "[design]\npoints = 0\n[factors]", "0 is not a whole number of at least 1"),
        ("[factors]", "[design]\npoints = 9\n[factors]", "design: ranges: missing"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_explained_in_one_line(
    old: str, new: str, words: str, file: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert old in PLAN
    file.write_text(PLAN.replace(old, new, 1))
    assert run_command(["sweep", str(file), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("anabranch: ")
    assert len(err.splitlines()) == 1
    assert words in err
    assert not (tmp_path / "out" / "runs.parquet").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('{ from = "1Mbit/s" }', 'write { from = "1Mbit/s", to = "20Mbit/s" }'),
        ('{ from = "1Mbit/s", to = "2kbit/s" }', "different units"),
        ('{ from = "2Mbit/s", to = "1Mbit/s" }', "from must be smaller"),
        ('{ from = "0Mbit/s", to = "1Mbit/s", scale = "log" }', "above 0"),
        ('{ from = "fast", to = "1Mbit/s" }', "'fast' is not a quantity"),
        ('{ from = "1Mbit/s", to = "2Mbit/s", scal = "log" }', 'did you mean "scale"?'),
    ],
)
def test_a_wrong_range_is_explained(given: str, words: str, file: Path) -> None:
    file.write_text(f"""
        scenario = "base.toml"
        design.points = 3
        design.ranges."path.wifi.rate" = {given}
    """)
    with pytest.raises(InputError) as caught:
        Plan.read(file)
    assert words in str(caught.value)
    assert 'design.ranges."path.wifi.rate"' in str(caught.value)


def test_help_has_an_example(capsys: Captured) -> None:
    assert run_command(["sweep", "--help"]) == 0
    assert "Example: anabranch sweep examples/sweep_wifi_3g.toml" in capsys.readouterr().out


# ---- the command ----------------------------------------------------------------------------


def test_sweep_prints_a_summary_and_writes_a_report(
    file: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "out"
    assert run_command(["sweep", str(file), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for word in ("goodput", "3g carried", "12 runs"):
        assert word in printed
    assert re.search(r"^min_rtt +4Mbit/s +\d", printed, re.MULTILINE), "a row for each cell"
    assert "not shown for lack of width: " not in printed, "tables are whole in a pipe"
    report = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert run_command(["report", str(out)]) == 0
    assert (out / "report.html").read_text() == report
    assert load(out).provenance["sweep"] == "small"


def test_without_randomness_all_seeds_are_alike(
    file: Path, tmp_path: Path, capsys: Captured
) -> None:
    base = file.parent / "base.toml"
    base.write_text(base.read_text().replace('jitter = "50ms"', ""))
    assert run_command(["sweep", str(file), "--out", str(tmp_path / "out")]) == 0
    assert "nothing in the scenario is random" in capsys.readouterr().out


def test_own_policies_are_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "policy_of_a_test.py"
    module.write_text((EXAMPLES / "my_scheduler.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    from policy_of_a_test import LowestRtt  # type: ignore[import-not-found]

    def task(factory: Any) -> Task:
        return Cell("own", scenario("2s", scheduler=factory), {}).task(1)

    def found() -> int:
        results = batch.execute({}, [task(LowestRtt)], tmp_path / "out")
        (mine,) = results.provenance["custom_policies"]
        assert mine["file"] == str(module)
        count: int = results.provenance["runs_found"]
        return count

    assert [found(), found()] == [0, 1]
    assert task(functools.partial(LowestRtt)).key() != task(LowestRtt).key()
    module.write_text(module.read_text() + "# changed\n")
    assert [found(), found()] == [0, 1]
