import errno
import os
from pathlib import Path

import polars as pl
import pytest

from anabranch import Run
from anabranch.batches.single import single
from anabranch.errors import InputError
from anabranch.files import prepare_folder
from anabranch.gallery.entry import start_time
from anabranch.results.folder import TABLES, NothingMeasured, Results, load, writing


@pytest.fixture
def results(short_run: Run) -> Results:
    return single(short_run, "short", 0.5)


def test_a_folder_reads_back_as_it_was_written(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "new" / "folder")
    again = load(tmp_path / "new" / "folder")
    assert again.provenance == results.provenance
    assert again.scenarios == results.scenarios
    for name in TABLES:
        assert getattr(again, name).equals(getattr(results, name)), name


def test_saving_again_leaves_no_old_scenarios(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path)
    (tmp_path / "scenarios" / "old.toml").touch()
    results.save(tmp_path)
    assert list(load(tmp_path).scenarios) == ["short"]


def test_provenance_names_version_and_every_digest(results: Results, short_run: Run) -> None:
    about = results.provenance
    assert about["version"]
    assert about["seeds"] == [1]
    assert about["duration"] == "3s"
    assert about["runs"] == [
        {"cell": "short", "seed": 1, "digest": short_run.digest, "starts": ["0s"]}
    ]


def test_values_are_looked_up_by_factor(results: Results) -> None:
    assert results.values("goodput_mbps", cell="short").size == 1
    assert results.delays(cell="short").min() > 0
    with pytest.raises(NothingMeasured, match="goodput_mbps was measured for cell = other"):
        results.values("goodput_mbps", cell="other")
    with pytest.raises(NothingMeasured, match="no block"):
        results.delays(cell="other")


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"provenance\.json is missing"):
        load(tmp_path)


def test_a_damaged_table_is_refused(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path)
    (tmp_path / "runs.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_with_columns_of_an_earlier_version_is_refused(
    results: Results, tmp_path: Path
) -> None:
    results.save(tmp_path)
    table = pl.read_parquet(tmp_path / "subflows.parquet")
    table.rename({"bytes_sent": "octets_sent"}).write_parquet(tmp_path / "subflows.parquet")
    with pytest.raises(InputError, match="renamed the column octets_sent to bytes_sent"):
        load(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="name a writable folder"):
        prepare_folder(tmp_path / "file" / "folder")


def test_a_full_disk_is_explained(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.save(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def full(file: Path, data: bytes) -> int:
        if file.name.startswith("links"):
            file.touch()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="no space left on device"):
        results.save(tmp_path)
    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before


def test_one_process_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with (
        writing(tmp_path),
        pytest.raises(InputError, match="another process is writing results to this folder"),
        writing(tmp_path),
    ):
        pass
    with writing(tmp_path):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "make the results again"),
        ("[]", "not an object"),
        ("{}", '"version" is missing or damaged'),
        ('{"version": 7}', '"version" is missing or damaged'),
    ],
)
def test_damaged_provenance_is_refused(
    text: str, words: str, results: Results, tmp_path: Path
) -> None:
    results.save(tmp_path)
    (tmp_path / "provenance.json").write_text(text)
    with pytest.raises(InputError, match=words):
        load(tmp_path)


def test_start_times_spread_over_200_ms() -> None:
    starts = [int(start_time(seed).removesuffix("us")) for seed in range(1, 21)]
    assert len(set(starts)) == 20
    assert min(starts) >= 0
    assert max(starts) < 200_000
    assert max(starts) - min(starts) > 150_000
