"""Live runs in the virtual machine, where its kernel was built."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import anabranch
from anabranch.calibration import case, deviations
from anabranch.calibration import entry as calibration
from anabranch.cli.main import run_command
from anabranch.gallery.reproduce import execute
from anabranch.live import guest, vm
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.run import run_once
from anabranch.runs.run import Capture
from anabranch.scenarios import loading
from conftest import scenario

_KERNEL = Path(__file__).parents[2] / "target/linux-vm/linux"
HOSTS = Hosts(machine=LINUX_VM)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that `make linux-vm` has built."""
    if not _KERNEL.is_file():
        pytest.skip("no kernel: make linux-vm")
    monkeypatch.setenv(vm.KERNEL, str(_KERNEL))


def _captured(folder: Path, seed: int) -> str:
    file = folder / "capture.pcapng"
    run_once(loading.of_text(scenario("2s").to_toml(), "short.toml"), seed, HOSTS, Capture(file))
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_equal_seeds_give_equal_captures(kernel: None, tmp_path: Path) -> None:
    first = _captured(tmp_path, 1)
    assert _captured(tmp_path, 1) == first
    assert _captured(tmp_path, 2) != first


def test_seeds_begin_at_different_phases_of_the_kernels_timer() -> None:
    phases = sorted(guest.phase(seed) for seed in range(1, 6))
    assert phases[0] >= 0
    assert phases[-1] < 1
    assert min(later - earlier for earlier, later in pairwise(phases)) > 0.1


def test_the_machine_grants_the_largest_buffer_of_a_scenario() -> None:
    made = loading.of(scenario("2s", send_buffer="4MB", receive_buffer="200kB"))
    assert vm.largest_buffer(made.settings) == 4_000_000
    tuned = loading.of(scenario("2s", send_buffer=None, receive_buffer=None))
    assert vm.largest_buffer(tuned.settings) == 0


def test_the_machine_runs_linux_in_time(kernel: None) -> None:
    run, conditions = run_once(loading.of_text(scenario("2s").to_toml(), "short.toml"), 1, HOSTS)
    assert conditions.valid
    assert conditions.kernel.startswith("6.")
    assert run.connections["bytes_delivered"][0] > 100_000
    assert run.connections["corrupt_bytes"].sum() == 0


@pytest.mark.slow
def test_calibration_compares_with_linux_in_the_machine(kernel: None, tmp_path: Path) -> None:
    cases = [case.of(scenario("2s"), "short")]
    entry = calibration.entry_of(calibration.experiment_of(cases, "one", LINUX_VM))
    results = execute(entry, replace(entry.quick, seeds=2), tmp_path)
    (compared,) = deviations.compared(results)
    assert compared.delay is not None
    assert len(compared.delay.linux) == 2
    assert set(results.runs["hosts"]) == {case.VIRTUAL, "Linux, linux-vm"}


def test_without_a_kernel_a_run_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(vm.KERNEL, str(tmp_path / "missing"))
    file = tmp_path / "short.toml"
    file.write_text(scenario("2s").to_toml(), encoding="utf-8")
    assert run_command(["run", str(file), "--live", "--in", LINUX_VM]) == 2
    assert f"no kernel at {tmp_path / 'missing'}" in capsys.readouterr().err


def test_a_machine_that_does_not_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "linux"
    broken.write_text("#!/bin/sh\necho no memory; exit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv(vm.KERNEL, str(broken))
    with pytest.raises(anabranch.IntegrityError, match=r"linux-vm: .*: no memory$"):
        run_once(loading.of_text(scenario("2s").to_toml(), "short.toml"), 1, HOSTS)
