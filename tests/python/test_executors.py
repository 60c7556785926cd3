"""Runs in other processes: a Dask cluster with two workers, one of which is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch import Progress
from anabranch.cli.main import run_command
from anabranch.sweeps.sweep import sweep
from sweeping import PLAN, provenance, tables, write_plan

pytestmark = pytest.mark.usefixtures("plain_pictures")

pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")


@dataclass
class Cluster:
    address: str
    workers: list["subprocess.Popen[bytes]"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers with one thread each, started by Dask's own commands."""
    file = tmp_path / "scheduler.json"

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
        log = (tmp_path / f"{time.monotonic_ns()}.log").open("wb")
        with log:
            return subprocess.Popen(
                [*command, "--no-dashboard"], stdout=log, stderr=log, cwd=tmp_path
            )

    scheduler = start(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)
    )
    one_thread = ("--nthreads", "1", "--no-nanny", "--scheduler-file", str(file))
    workers = [start("dask_worker", *one_thread) for _ in range(2)]
    try:
        deadline = time.monotonic() + 30
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline, "no scheduler"
            time.sleep(0.1)
        yield Cluster(json.loads(file.read_text())["address"].replace("tcp", "dask"), workers)
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_sweep_survives_the_death_of_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    file = write_plan(tmp_path / "plan", PLAN.replace("[1, 2, 3]", "8"), duration="50s")
    sweep(file, tmp_path / "here")

    def kill_one(step: Progress) -> None:
        if step.done == 4:
            cluster.workers[0].kill()

    arguments = (file, tmp_path / "there")
    sweep(*arguments, on=cluster.address, on_progress=kill_one)
    assert cluster.workers[0].wait(timeout=10) != 0
    assert tables(tmp_path / "there") == tables(tmp_path / "here")
    assert provenance(tmp_path / "there")["runs"] == provenance(tmp_path / "here")["runs"]
    assert sweep(*arguments).provenance["runs_found"] == 32


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("localhost:8786", "write dask://HOST:PORT"),
        ("dask://localhost", "write dask://HOST:PORT"),
        ("dask://127.0.0.1:9", "no Dask scheduler answers; start one with: dask scheduler"),
    ],
)
def test_a_wrong_address_is_explained(
    address: str,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("anabranch.runs.executors._CONNECT_S", 1)
    file = write_plan(tmp_path / "plan")
    arguments = ["sweep", str(file), "--out", str(tmp_path / "out"), "--on", address]
    assert run_command(arguments) == 2
    err = capsys.readouterr().err
    assert words in err.splitlines()[-1]


def test_without_dask_the_message_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    file = write_plan(tmp_path / "plan")
    arguments = ["sweep", str(file), "--out", str(tmp_path / "out"), "--on", "dask://host:1"]
    assert run_command(arguments) == 2
    assert "pip install distributed" in capsys.readouterr().err
