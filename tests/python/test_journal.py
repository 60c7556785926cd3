import dataclasses
import pickle
import resource
from contextlib import closing
from pathlib import Path

import pytest

from anabranch import _core
from anabranch.batches.journal import FILE, Journal
from anabranch.batches.reduction import Task, make
from anabranch.errors import InputError
from anabranch.results.provenance import build
from anabranch.scenarios import loading
from conftest import scenario


def task(seed: int, cell: str = "cell") -> Task:
    made = loading.of_text(scenario("2s").to_toml(), "test")
    return Task(cell=cell, factors={"n": 1}, scenario=made, seed=seed, build=build())


@pytest.fixture(scope="module")
def made() -> dict[bytes, _core.Record]:
    tasks = [task(seed) for seed in (1, 2, 3)]
    return {each.key(): make(each) for each in tasks}


def record(folder: Path, made: dict[bytes, _core.Record]) -> list[int]:
    """Record the runs, and return the end of each record."""
    ends = []
    with closing(Journal(folder)) as kept:
        for key, run in made.items():
            kept.add(key, run)
            ends.append((folder / FILE).stat().st_size)
    return ends


def found(folder: Path, made: dict[bytes, _core.Record]) -> list[bool]:
    with closing(Journal(folder)) as kept:
        return [kept.find(key) is not None for key in made]


def test_a_recorded_run_reads_back_as_it_was(tmp_path: Path) -> None:
    tasks = [
        dataclasses.replace(task(seed), keep_blocks=True, keep_samples=True) for seed in (1, 2)
    ]
    made = {each.key(): make(each) for each in tasks}
    record(tmp_path, made)
    with closing(Journal(tmp_path)) as kept:
        assert kept.damage is None
        for key, run in made.items():
            assert kept.find(key) == run
        assert kept.find(b"0" * 32) is None


def test_a_record_can_be_sent_to_another_process(made: dict[bytes, _core.Record]) -> None:
    for run in made.values():
        again = pickle.loads(pickle.dumps(run))
        assert again == run
        assert (again.digest, again.virtual_ns) == (run.digest, 2_000_000_000)


def test_a_key_depends_on_all_that_the_result_does() -> None:
    faster = loading.changed(task(1).scenario, {"path.wifi.rate": "9Mbit/s"})
    keys = {
        task(1).key(),
        task(2).key(),
        task(1, cell="other").key(),
        dataclasses.replace(task(1), keep_samples=True).key(),
        dataclasses.replace(task(1), factors={"n": 2}).key(),
        dataclasses.replace(task(1), scenario=faster).key(),
    }
    assert len(keys) == 6
    assert task(1).key() == task(1).key()
    elsewhere = task(1).scenario.with_file("elsewhere")
    assert dataclasses.replace(task(1), scenario=elsewhere).key() == task(1).key()


def test_another_build_does_not_make_the_run() -> None:
    other = dataclasses.replace(build(), core="0" * 64)
    with pytest.raises(InputError, match=r"another build of anabranch: .*; install the same build"):
        make(dataclasses.replace(task(1), build=other))
    elsewhere = dataclasses.replace(other, platform="linux-aarch64")
    assert make(dataclasses.replace(task(1), build=elsewhere)).digest
    assert dataclasses.replace(task(1), build=other).key() != task(1).key()


def test_truncation_costs_the_last_record_only(
    tmp_path: Path, made: dict[bytes, _core.Record]
) -> None:
    ends = record(tmp_path, made)
    for cut in (ends[1] + 1, ends[1] + 30, ends[2] - 1):
        record(tmp_path, made)
        with open(tmp_path / FILE, "r+b") as file:
            file.truncate(cut)
        with closing(Journal(tmp_path)) as kept:
            assert kept.damage is not None
            assert "2 finished runs are intact" in kept.damage
            assert "\n" not in kept.damage
        assert found(tmp_path, made) == [True, True, False]
        (tmp_path / FILE).unlink()


@pytest.mark.parametrize("where", ["magic", "length", "body"])
def test_a_damaged_record_costs_that_run_only(
    where: str, tmp_path: Path, made: dict[bytes, _core.Record]
) -> None:
    ends = record(tmp_path, made)
    data = bytearray((tmp_path / FILE).read_bytes())
    data[ends[0] + {"magic": 2, "length": 12, "body": 300}[where]] ^= 0x55
    (tmp_path / FILE).write_bytes(data)
    assert found(tmp_path, made) == [True, False, True]
    with closing(Journal(tmp_path)) as kept:
        assert kept.damage is None  # the journal was rewritten


def test_a_file_that_is_no_journal_is_explained(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else" * 1000)
    with closing(Journal(tmp_path)) as kept:
        assert kept.damage is not None
        assert "0 finished runs are intact" in kept.damage


def test_a_full_disk_costs_no_recorded_run(tmp_path: Path, made: dict[bytes, _core.Record]) -> None:
    keys = list(made)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(Journal(tmp_path)) as kept:
        kept.add(keys[0], made[keys[0]])
        end = (tmp_path / FILE).stat().st_size
        # A disk that is filling up accepts a part of the record first.
        resource.setrlimit(resource.RLIMIT_FSIZE, (end + 100, limits[1]))
        try:
            for _ in range(2):
                with pytest.raises(InputError, match="file too large; the recorded runs are kept"):
                    kept.add(keys[1], made[keys[1]])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (tmp_path / FILE).stat().st_size == end
        kept.add(keys[2], made[keys[2]])
    with closing(Journal(tmp_path)) as kept:
        assert kept.damage is None
    assert found(tmp_path, made) == [True, False, True]


def test_runs_that_are_not_used_are_dropped(
    tmp_path: Path, made: dict[bytes, _core.Record]
) -> None:
    record(tmp_path, made)
    keys = list(made)
    with closing(Journal(tmp_path)) as kept:
        kept.find(keys[1])
        kept.keep_only_used()
        assert kept.find(keys[1]) is not None
    assert found(tmp_path, made) == [False, True, False]
