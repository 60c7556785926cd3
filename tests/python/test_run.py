import dataclasses
from pathlib import Path

import pytest

import anabranch
from anabranch import Job, Progress, Run, ScenarioError
from anabranch.results import metrics
from anabranch.scenarios.quantities import nanoseconds, size
from conftest import scenario


def test_same_seed_same_run(short_run: Run) -> None:
    again = anabranch.run(scenario(), seed=1)
    assert again.digest == short_run.digest
    assert again.blocks.equals(short_run.blocks)
    assert again.subflow_samples.equals(short_run.subflow_samples)


def test_another_seed_is_another_run(short_run: Run) -> None:
    assert anabranch.run(scenario(), seed=2).digest != short_run.digest


def test_a_file_runs_as_the_object_does(short_run: Run, tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario().to_toml())
    assert anabranch.run(file, seed=1).digest == short_run.digest


def test_a_run_knows_its_settings(short_run: Run) -> None:
    assert short_run.path_names == ["wifi", "3g"]
    assert short_run.connection_names == ["main"]
    assert short_run.warm_up_ns == 1_000_000_000
    assert short_run.virtual_ns == 3_000_000_000
    assert short_run.segments > 0


def test_many_runs_keep_their_order() -> None:
    jobs = [Job(scenario("500ms", start=f"{ms}ms"), seed) for ms in (0, 9) for seed in (3, 1, 2)]
    jobs = [
        dataclasses.replace(job, scenario=dataclasses.replace(job.scenario, warm_up="0s"))
        for job in jobs
    ]
    steps: list[Progress] = []
    found = anabranch.run_many(
        jobs, lambda job, run: (job.seed, run.seed, run.digest), on_progress=steps.append
    )
    assert [seed for seed, _, _ in found] == [3, 1, 2, 3, 1, 2]
    assert [seed for _, seed, _ in found] == [3, 1, 2, 3, 1, 2]
    assert [digest for _, _, digest in found] == [
        anabranch.run(job.scenario, job.seed).digest for job in jobs
    ]
    assert [step.done for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1].virtual_s == pytest.approx(3.0)


def test_an_error_in_one_of_many_is_raised() -> None:
    wrong = dataclasses.replace(scenario(), duration="-1s")
    with pytest.raises(ScenarioError):
        anabranch.run_many([Job(scenario("2s"), 1), Job(wrong, 1)], lambda _, run: run)


def test_a_capture_is_a_pcapng_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.pcapng"
    captured = anabranch.run(scenario("1500ms"), seed=1, pcap=str(file))
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert captured.digest == anabranch.run(scenario("1500ms"), seed=1).digest


@pytest.mark.parametrize(
    ("text", "value"), [("0s", 0), ("5s", 5 * 10**9), ("0.5ms", 500_000), ("123.607ms", 123607000)]
)
def test_durations_as_the_core_writes_them(text: str, value: int) -> None:
    assert nanoseconds(text) == value


@pytest.mark.parametrize(("text", "value"), [("200KiB", 204_800), ("6MB", 6_000_000), ("1B", 1)])
def test_sizes(text: str, value: int) -> None:
    assert size(text, "--pcap-limit") == value


def test_a_connection_that_sends_both_ways_has_a_row_for_each_direction() -> None:
    blocks = anabranch.Blocks(block_size="8KiB", count=20)
    run = anabranch.run(scenario(direction="both", workload=blocks), seed=1)
    assert run.connection_names == ["main download", "main upload"]
    rows = metrics.connection_rows(run)
    assert [row["connection"] for row in rows] == run.connection_names
    assert [row["bytes_delivered"] for row in rows] == [20 * 8192, 20 * 8192]
    assert all(row["completion_s"] < 1 for row in rows)
    assert metrics.tables(run)["subflows"]["connection_name"].unique().sort().to_list() == (
        run.connection_names
    )
