"""Every command that takes captures takes the same: compressed files, pipes and standard input."""

import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

import anabranch
from anabranch.analyze.given import Given, readable, title
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from conftest import scenario

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def at_sender(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("captures") / "server.pcapng"
    anabranch.run(scenario("10s"), pcap=file, pcap_at="server", snap=128)
    return file.read_bytes()


@pytest.fixture(scope="module")
def with_twin(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A capture over one path, which has a twin."""
    file = tmp_path_factory.mktemp("captures") / "server.pcapng"
    anabranch.run(scenario("6s", paths=("wifi",)), pcap=file, pcap_at="server", snap=128)
    return file.read_bytes()


def zstandard(data: bytes) -> bytes:
    """A frame with blocks that are not compressed. RFC 8878 §3.1.1."""
    size = 1 << 16
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x58")
    for part in parts:
        frame += (len(part) << 3 | (part is parts[-1])).to_bytes(3, "little") + part
    return bytes(frame)


def as_input(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    "name", ["server.pcapng.gz", "server.pcapng.zst", "server", "server.capture"]
)
def test_content_tells_captures_from_scenarios(
    name: str, at_sender: bytes, tmp_path: Path, capsys: Captured
) -> None:
    packed = {".gz": lambda data: gzip.compress(data, 1), ".zst": zstandard}
    file = tmp_path / name
    file.write_bytes(packed.get(file.suffix, bytes)(at_sender))
    assert run_command(["explain", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == [str(file)]
    assert told["connections"][0]["main_cause"] == "receive_window"
    with pytest.raises(InputError, match="neither a scenario nor a results folder"):
        anabranch.explain(file)
    with pytest.raises(InputError, match="neither a scenario nor a results folder"):
        anabranch.advise(file)
    for command in ("run", "advise"):
        assert run_command([command, str(file)]) == 2
        told_error = capsys.readouterr().err
        assert told_error.count("\n") == 1
        assert "server" in told_error
        assert "a capture; name a scenario" in " ".join(told_error.split())


def test_a_scenario_with_the_name_of_a_text_or_of_nothing_stays_one(
    tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "scenario"
    file.write_text(scenario("4s").to_toml(), encoding="utf-8")
    assert run_command(["explain", str(file)]) == 0
    assert capsys.readouterr().out.startswith("main delivered ")


def test_standard_input_is_read_once_for_explanations_and_twins(
    at_sender: bytes, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.pcapng"
    file.write_bytes(at_sender)
    assert run_command(["explain", str(file), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    as_input(gzip.compress(at_sender, 1), monkeypatch)
    assert run_command(["explain", "-", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == ["standard input"]
    assert found["connections"] == expected["connections"]


def test_standard_input_has_a_twin(
    with_twin: bytes, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, report = tmp_path / "twin.toml", tmp_path / "report"
    as_input(zstandard(with_twin), monkeypatch)
    command = ["twin", "-", "--seeds", "1", "--out", str(out), "--report", str(report), "--json"]
    assert run_command(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == ["standard input"]
    assert 'name = "twin of standard input"' in out.read_text(encoding="utf-8")
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "standard input" in page

    as_input(with_twin, monkeypatch)
    twin = anabranch.twin("-", seeds=1)
    assert twin.comparison().height == len(told["comparison"])


def test_what_if_and_the_explanation_read_standard_input_once(
    with_twin: bytes, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.explanations.what_if.changes", lambda *_, **__: [], raising=True)
    as_input(with_twin, monkeypatch)
    assert run_command(["explain", "-", "--what-if", "--seeds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["what_if"]["goodput_mbps"] > 0
    assert told["connections"]


def test_a_scenario_may_come_from_standard_input(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_input(scenario("4s").to_toml().encode(), monkeypatch)
    assert run_command(["explain", "-"]) == 0
    assert capsys.readouterr().out.startswith("main delivered ")
    as_input(b"[[path]]\nrate = 8\n", monkeypatch)
    assert run_command(["explain", "-"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("anabranch: standard input")
    assert told.count("\n") == 1


def test_a_pipe_is_explained_like_a_file(
    at_sender: bytes, tmp_path: Path, capsys: Captured
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(at_sender))
    writer.start()
    assert run_command(["explain", str(pipe), "--json"]) == 0
    writer.join()
    assert json.loads(capsys.readouterr().out)["files"] == [str(pipe)]


@pytest.mark.parametrize("command", ["analyze", "explain", "twin"])
def test_standard_input_is_named_once(
    command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_input(b"", monkeypatch)
    assert run_command([command, "-", "-"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told == "anabranch: -: standard input can be read only once; name it once"
    as_input(b"", monkeypatch)
    assert run_command([command, "-"]) == 2
    assert capsys.readouterr().err == "anabranch: standard input: empty\n"


def test_kinds_are_not_mixed(at_sender: bytes, tmp_path: Path, capsys: Captured) -> None:
    capture, text = tmp_path / "capture", tmp_path / "ss.txt"
    toml = tmp_path / "a.toml"
    capture.write_bytes(at_sender)
    for file in (text, toml):
        file.write_text(scenario("4s").to_toml(), encoding="utf-8")
    for targets, odd in (
        ([capture, text], text), ([capture, toml], toml), ([text, capture], capture),
        ([toml, toml], toml),
    ):  # fmt: skip
        assert run_command(["explain", *map(str, targets)]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert told.startswith(f"anabranch: {odd}: name one scenario, ")


def test_no_capture_and_unreadable_ones_are_one_line() -> None:
    with pytest.raises(InputError, match="name at least one capture"):
        anabranch.twin([])
    with readable(["a.pcap", Given("standard input", Path("copy"))]) as files:
        assert [each.is_capture for each in files] == [True, True]
        assert title(files) == "2 files"
    assert Given("results/a.pcap.gz", Path("x")).stem == "a"
    assert Given("a.b", Path("x")).stem == "a.b"
