"""Files that commands read and write: nothing is lost, and names are shown as they are."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

import anabranch
from anabranch import files
from anabranch.answers import Twin
from anabranch.cli import app, shell
from anabranch.cli.main import run_command
from anabranch.cli.tables import Grid
from anabranch.errors import InputError, UnwritableError
from anabranch.live.run import Conditions
from anabranch.live.shell import ShellOutcome
from anabranch.results import provenance
from anabranch.results.folder import load
from anabranch.runs import executors
from anabranch.sweeps import report as sweep_report
from anabranch.twins.fit import Fitted
from conftest import scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(scenario("2s").to_toml())
    return Path("short.toml")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("before")

    def fill_the_disk() -> None:
        with files.whole(kept) as part:
            part.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(UnwritableError, match="kept: no space left"):
        fill_the_disk()
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "before"
    files.write_file(kept, b"after")
    assert kept.read_text() == "after"


def test_a_capture_into_a_device_leaves_the_device(file: Path) -> None:
    os.mkfifo("pipe")
    with Path("copy").open("wb") as copy, subprocess.Popen(["cat", "pipe"], stdout=copy):
        assert run_command(["run", str(file), "--pcap", "pipe"]) == 0
    assert Path("copy").read_bytes()[:4] == b"\n\r\r\n"  # as a capture begins (pcapng)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_a_capture_does_not_replace_a_link(file: Path, capsys: Captured) -> None:
    Path("link").symlink_to("elsewhere")
    assert run_command(["run", str(file), "--pcap", "link"]) == 2
    assert "--pcap link: not a regular file" in capsys.readouterr().err
    assert Path("link").is_symlink()


def test_results_remove_only_the_scenarios_of_earlier_results(file: Path) -> None:
    Path("scenarios").mkdir()
    Path("scenarios/mine.toml").write_text("mine")
    assert run_command(["run", str(file), "--out", "."]) == 0
    assert {each.name for each in Path("scenarios").iterdir()} == {"mine.toml", "short.toml"}
    file.write_text(file.read_text().replace('"short"', '"other"'))
    assert run_command(["run", str(file), "--out", "."]) == 0
    assert {each.name for each in Path("scenarios").iterdir()} == {"mine.toml", "other.toml"}
    assert [*load(Path()).scenarios] == ["other"]


@pytest.mark.parametrize("name", ["x" * 300, "é" * 120])
def test_a_long_name_is_shortened_in_the_results(name: str, file: Path) -> None:
    file.write_text(file.read_text().replace('"short"', f'"{name}"'))
    assert run_command(["run", str(file), "--out", "out"]) == 0
    (cell,) = load(Path("out")).scenarios
    assert name.startswith(cell.rpartition("-")[0])
    assert load(Path("out")).provenance["scenario"] == name
    long = file.rename(f"{'é' * 120}.toml")
    other = Path(f"{'é' * 119}.toml")
    other.write_text(long.read_text())
    assert run_command(["run", str(long), str(other), "--out", "several"]) == 0
    several = load(Path("several"))
    assert len(several.scenarios) == 2
    assert several.runs["scenario"].to_list() == [long.stem, other.stem]


def test_errors_of_the_interface_for_python_name_no_option(file: Path) -> None:
    with pytest.raises(InputError, match=r"^nowhere/x: no such file or directory; name a writable"):
        anabranch.run(file, pcap="nowhere/x")
    with pytest.raises(InputError, match=r"^short\.toml: file exists; name a writable folder"):
        anabranch.sweep(anabranch.Plan(file), file)
    with pytest.raises(InputError, match=r"^\.: not a regular file"):
        Twin(Mock(spec=Fitted), ()).save(".")
    for seed in (-1, 2**64):
        with pytest.raises(InputError, match=f"seed {seed}: seeds are from 0"):
            anabranch.run(file, seed=seed)
    with pytest.raises(InputError, match="embedded null byte; name a readable TOML file"):
        anabranch.explain("a\0")


def test_the_file_of_an_option_belongs_to_it_even_in_the_folder_of_another(
    file: Path, capsys: Captured
) -> None:
    Path("out/x").mkdir(parents=True)
    assert run_command(["run", str(file), "--out", "out", "--pcap", "out/x"]) == 2
    assert "--pcap out/x: not a regular file" in capsys.readouterr().err


def test_arguments_of_a_calling_script_need_not_be_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py", "caf\udce9"])
    assert r"caf\udce9" in provenance.describe_host()["command"]


def test_an_error_of_the_system_is_not_one_of_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/temporary")

    monkeypatch.setattr(type(app.app), "__call__", fail)
    assert run_command(["list"]) == 2
    assert capsys.readouterr().err == "anabranch: /temporary: permission denied\n"


# ---- names in brackets, which Rich could take for its markup -----------------------------------


def test_names_in_brackets_are_printed_as_they_are(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(sweep_report, "MAX_CELLS_SHOWN", 0)
    assert run_command(["run", str(file), "--seeds", "2", "--out", "r[/x]"]) == 0
    assert "read r[/x]/runs.parquet" in capsys.readouterr().out


def test_headings_in_brackets_are_printed_as_they_are() -> None:
    console = Console(width=14, record=True)
    for rows in ([("a", "1", "2"), ("b", "3", "4")], []):
        for part in Grid("", ("[/name]", "[/x] share", "[b]"), rows).fitted(console):
            console.print(part)
    shown = console.export_text()
    for heading in ("[/x] share", "[b]", "[/name]: none"):
        assert heading in shown


def test_the_summary_of_a_shell_shows_brackets(short_run: anabranch.Run, capsys: Captured) -> None:
    conditions = Conditions("engine", "engine", "here", "6.12", True, (0, 0, 0, 0), 0, 0, ())
    shell._print(ShellOutcome(0, short_run, conditions), Path("r[/x]"))
    assert "report: r[/x]/report.html" in capsys.readouterr().err


# ---- one place ---------------------------------------------------------------------------------


def test_jobs_give_their_results_in_order_and_report_each() -> None:
    told = []
    with executors.opened(workers=1) as executor:
        made = executors.make_all(
            executor, lambda x: (x * 10, x), [1, 2, 3], [1, 3, 2], lambda *each: told.append(each)
        )
    assert made == [10, 20, 30]
    assert sorted(told) == [(0, 1), (1, 2), (2, 3)]


NOT_IN_JOURNALS = {
    "__init__.py": "has no code",
    "hosts.py": "names the stacks and the machine, which are part of a run's key",
    "sandbox.py": "starts the programs of shells",
    "shell.py": "runs programs, and journals keep no such runs",
    "support.py": "refuses scenarios, and changes no run",
}
"""The modules of live runs that cannot change a run in a journal, with the reason."""


def test_a_journal_knows_each_module_that_makes_live_runs() -> None:
    modules = {each.name for each in Path(provenance.__file__).parents[1].glob("live/*.py")}
    known = {Path(each).name for each in provenance._SOURCES if each.startswith("live/")}
    assert modules == known | NOT_IN_JOURNALS.keys()
    assert not known & NOT_IN_JOURNALS.keys()
