"""Captures of version 0 (RFC 6824) say the same as those of version 1."""

import json
from pathlib import Path

import pytest

import anabranch
import captures
import older
from anabranch.analyze import analyze
from anabranch.cli.main import run_command
from conftest import scenario


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A capture of a run at its sender, in version 1 and in version 0."""
    folder = tmp_path_factory.mktemp("captures")
    made = scenario("10s", workload=anabranch.Bulk())
    newer = captures.of_run(folder, made)
    paths = folder / "newer.pcap", folder / "older.pcap"
    for path, packets in zip(paths, (newer, older.version_0(newer)), strict=True):
        path.write_bytes(captures.pcap(packets))
    return paths


def test_version_0_is_verified(files: tuple[Path, Path]) -> None:
    newer, found = map(analyze, files)
    assert found.connections["version"].to_list() == [0]
    assert found.violations.is_empty()
    for name in ("subflows", "tokens_right", "hmacs_right", "bytes_in", "is_complete"):
        assert found.connections[name].equals(newer.connections[name]), name
    assert found.connections["hmacs_right"][0] == 2


def test_version_0_is_explained_like_version_1(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for file in files:
        assert run_command(["explain", str(file), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out)["connections"])
    assert told[0] == told[1]
    assert told[1][0]["main_cause"] == "receive_window"


def test_version_0_has_the_twin_of_version_1(files: tuple[Path, Path]) -> None:
    newer, found = (anabranch.twin(file, seeds=1) for file in files)
    assert found.comparison().equals(newer.comparison())
    assert found.toml == newer.toml.replace("newer", "older")
