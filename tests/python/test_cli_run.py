"""The command `run`: its options, its layouts, Ctrl-C and SIGTERM."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import anabranch
from anabranch.cli.main import run_command
from conftest import interrupt, scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]

COMMAND = [sys.executable, "-m", "anabranch"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(scenario("2s").to_toml())
    return path


def as_json(captured: Captured) -> dict[str, object]:
    out, err = captured.readouterr()
    assert err == ""
    found: dict[str, object] = json.loads(out)
    return found


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_width_cuts_a_number(
    width: int, file: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run_command(["run", str(file)]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    made = anabranch.run(file)
    (wifi, _) = made.subflows["bytes_received"].to_list()
    assert f"{wifi:,}" in out
    assert all(len(line) <= width or "digest" in line for line in out.splitlines())


def test_the_stack_of_a_connection_is_printed(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "short.toml"
    file.write_text(
        'name = "a"\nduration = "1s"\nstack = "linux-6.12"\n'
        '[[path]]\nname = "p"\nrate = "8Mbit/s"\ndelay = "1ms"\nlimit = "9packets"\n'
        '[[connection]]\nname = "main"\nworkload = { kind = "bulk" }\n'
    )
    assert run_command(["run", str(file)]) == 0
    assert "\nmain: stack linux-6.12\n" in capsys.readouterr().out
    assert run_command(["run", str(file), "--scheduler", "ecf"]) == 0
    assert "\nmain: stack linux-6.12, with its own scheduler\n" in capsys.readouterr().out


def test_keys_are_set_and_checked_like_the_file(file: Path, capsys: Captured) -> None:
    arguments = ["run", str(file), "--json", "--set", "path.wifi.rate=20Mbit/s"]
    assert run_command(arguments) == 0
    faster = as_json(capsys)
    changed = file.read_text().replace('"8Mbit/s"', '"20Mbit/s"', 1)
    file.write_text(changed)
    assert run_command(["run", str(file), "--json"]) == 0
    assert as_json(capsys)["digest"] == faster["digest"]


@pytest.mark.parametrize(
    ("option", "name", "key"),
    [
        ("--scheduler", "round_robin", "scheduler"),
        ("--congestion-control", "new_reno", "congestion_control"),
        ("--path-manager", "initial_only", "path_manager"),
    ],
)
def test_built_in_policies_are_chosen_by_name(
    option: str, name: str, key: str, file: Path, capsys: Captured
) -> None:
    assert run_command(["run", str(file), "--json", option, name]) == 0
    by_option = as_json(capsys)
    assert run_command(["run", str(file), "--json", "--set", f"connection.main.{key}={name}"]) == 0
    by_key = as_json(capsys)
    assert run_command(["run", str(file), "--json"]) == 0
    assert by_option["digest"] == by_key["digest"] != as_json(capsys)["digest"]


def test_several_scenarios_and_seeds(file: Path, tmp_path: Path, capsys: Captured) -> None:
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('"8Mbit/s"', '"1Mbit/s"'))
    arguments = ["run", str(file), str(other), "--seed", "3", "--seeds", "2", "--json"]
    assert run_command(arguments) == 0
    found = as_json(capsys)
    assert (found["factors"], found["seeds"]) == (["scenario"], [3, 4])
    rows = found["runs"]
    assert isinstance(rows, list)
    assert [(row["scenario"], row["seed"]) for row in rows] == [
        ("short", 3), ("short", 4), ("other", 3), ("other", 4),
    ]  # fmt: skip
    assert rows[0]["goodput_mbps"] > rows[2]["goodput_mbps"]

    assert run_command(["run", str(file), "--seeds", "2", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^connection +goodput \(Mbit/s\)", out, re.M)
    assert (tmp_path / "out" / "report.html").exists()


def test_a_capture_ends_at_its_limit(file: Path, tmp_path: Path, capsys: Captured) -> None:
    trace = tmp_path / "trace.pcapng"
    limited = ["--pcap", str(trace), "--pcap-limit", "100kB"]
    assert run_command(["run", str(file), *limited]) == 0
    out, err = capsys.readouterr()
    assert "the capture reached its limit" in out
    assert "capture: up to about" in err
    assert 90_000 < trace.stat().st_size <= 100_000
    assert run_command(["analyze", str(trace)]) == 0, "it ends with a whole packet"
    assert f"digest {anabranch.run(file).digest}" in out, "the run goes on"


def test_probable_mistakes_are_mentioned(file: Path, capsys: Captured) -> None:
    late = "path.wifi.change=[{ at = '9s', rate = '1Mbit/s' }]"
    assert run_command(["run", str(file), "--set", late, "--set", "path.3g.jitter=80ms"]) == 0
    err = capsys.readouterr().err
    assert "path.wifi.change[0]: 9s is after the end of the run (duration 2s)" in err
    assert "path.3g: the jitter (80ms) exceeds the delay (75ms)" in err


def test_short_options(capsys: Captured) -> None:
    assert run_command(["-V"]) == 0
    assert capsys.readouterr().out == f"anabranch {anabranch.__version__}\n"
    assert run_command(["run", "-h"]) == 0
    assert "Example:" in capsys.readouterr().out


def test_help_cuts_no_sentence(capsys: Captured) -> None:
    assert run_command(["--help"]) == 0
    commands = capsys.readouterr().out.partition("Commands:")[2]
    assert "run " in commands
    assert "..." not in commands


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    wanted = {
        "_ANABRANCH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "anabranch reproduce nsdi12-fig",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "anabranch reproduce nsdi12-fig",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        ["anabranch"], env=os.environ | wanted | path(), capture_output=True, text=True, check=False
    )
    assert "nsdi12-fig7" in done.stdout


def path() -> dict[str, str]:
    """A search path that starts with the folder of the installed command."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def test_output_that_cannot_be_written_is_one_line(file: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "run", str(file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "anabranch: standard output: no space left on device\n"


@pytest.mark.parametrize("closed", ["stdout", pytest.param("stderr", marks=pytest.mark.slow)])
def test_results_are_whole_if_nobody_reads_the_output(
    closed: str, file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    reader, writer = os.pipe()
    os.close(reader)
    streams = ("stdout", "stderr")
    stdout, stderr = (writer if name == closed else subprocess.PIPE for name in streams)
    command = [*COMMAND, "run", str(file), "--out", str(out)]
    done = subprocess.run(command, check=False, stdout=stdout, stderr=stderr)
    os.close(writer)
    assert (done.returncode, done.stderr or b"") == (0, b"")
    assert (out / "provenance.json").is_file()
    assert (out / "report.html").is_file()


# ---- Ctrl-C ---------------------------------------------------------------------------------

LONG = "--set=duration=100000s"


def wait_until_started(process: subprocess.Popen[str]) -> None:
    """Wait two seconds longer than the command takes to load the engine, up to a minute on a busy
    machine."""
    maps = Path(f"/proc/{process.pid}/maps")
    deadline = time.monotonic() + 60
    while maps.exists() and "_core" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--pcap", "trace.pcapng"],
        ["--out", "out"],
        ["--seeds", "4"],
        ["--scheduler", f"{Path(__file__).parents[2]}/examples/my_scheduler.py:LowestRtt"],
    ],
    ids=["plain", "pcap", "out", "seeds", "own"],
)
def test_ctrl_c_ends_a_run_at_once(options: list[str], file: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), LONG, *options],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until_started(process)
    assert process.poll() is None
    out, err = interrupt(process)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "anabranch: interrupted"
    assert "Traceback" not in err
    assert not list(tmp_path.glob("*.pcapng*")), "half a capture does not look whole"
    assert not (tmp_path / "out" / "provenance.json").exists()


def test_sigterm_ends_the_workers_too(file: Path) -> None:
    own = f"--scheduler={Path(__file__).parents[2]}/examples/my_scheduler.py:LowestRtt"
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), LONG, "--seeds=4", own],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_until_started(process)
    time.sleep(2)
    assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (143, "anabranch: interrupted\n")
    deadline = time.monotonic() + 5
    while running_in_group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running_in_group(process.pid) == []


def running_in_group(group: int) -> list[str]:
    """States of the processes of a group. In a container, ended ones may stay as zombies."""
    command = ["ps", "-eo", "pgid=,stat="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    states = [row.split() for row in listed.stdout.splitlines()]
    return [state for each, state in states if int(each) == group and not state.startswith("Z")]


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.4])
def test_ctrl_c_at_the_start_prints_no_traceback(after_s: float, file: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), LONG], stderr=subprocess.PIPE, text=True
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    # Before the first line of the package runs, Python itself handles the signal.
    assert err == "anabranch: interrupted\n" or "site" in err


IMPOSSIBLE = """
from anabranch.policy import Scheduler, Wait


class Impossible(Scheduler):
    def schedule(self, ctx):
        return Wait()
"""


def test_impossible_decisions_are_noted(file: Path, tmp_path: Path, capsys: Captured) -> None:
    policy = tmp_path / "impossible.py"
    policy.write_text(IMPOSSIBLE)
    assert run_command(["run", str(file), "--scheduler", f"{policy}:Impossible"]) == 0
    out = capsys.readouterr().out
    assert "main uses your own scheduler impossible.Impossible\n" in out
    assert re.search(r"^note: the engine replaced [\d,]+ scheduler decisions, ", out, re.MULTILINE)


def test_a_path_that_a_scenario_lacks_has_a_dash(
    file: Path, tmp_path: Path, capsys: Captured
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('"wifi"', '"wlan"'))
    assert run_command(["run", str(file), str(other)]) == 0
    lines = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    headings, *rows = [line for line in lines if len(line) > 4]
    first, second = (row[headings.index("wlan carried")] for row in rows)
    assert first == "–"
    assert second != "–"


def test_data_without_blocks_has_no_rows_about_blocks(file: Path, capsys: Captured) -> None:
    bulk = scenario("2s", workload=anabranch.Bulk())
    file.write_text(bulk.to_toml())
    assert run_command(["run", str(file)]) == 0
    out = capsys.readouterr().out
    assert "blocks" not in out
    assert "p95 ms" not in out
