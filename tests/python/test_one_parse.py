"""A scenario is read once, whatever is done with it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch import _core
from anabranch.cli.main import run_command
from conftest import scenario

_OPENED: list[str] = []
_CHANGES = ("duration=4s", "path.wifi.rate=9Mbit/s", "connection.main.scheduler=ecf")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _OPENED.append(str(arguments[0]))


sys.addaudithook(_audit)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "once.toml"
    path.write_text(scenario("3s").to_toml(), encoding="utf-8")
    _OPENED.clear()
    yield path
    _OPENED.clear()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of scenarios that Python reads as TOML."""
    texts: list[str] = []
    real = tomllib.loads

    def counted(text: str, **keys: Any) -> dict[str, Any]:
        if "[[path]]" in text:
            texts.append(text)
        return real(text, **keys)

    monkeypatch.setattr(tomllib, "loads", counted)
    return texts


def options() -> list[str]:
    return [word for change in _CHANGES for word in ("--set", change)]


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_run_with_three_changes_reads_its_scenario_once(
    command: str, file: Path, loads: list[str]
) -> None:
    before = _core.scenarios_read()
    assert run_command([command, str(file), *options()]) == 0
    assert _core.scenarios_read() - before == 1
    assert loads == []
    if command == "run":  # explain looks at the first bytes, which may be those of a capture
        assert _OPENED.count(str(file)) == 1


def test_a_report_of_a_run_reads_the_settings_once(
    file: Path, tmp_path: Path, loads: list[str]
) -> None:
    assert run_command(["run", str(file), *options(), "--out", str(tmp_path / "out")]) == 0
    assert len(loads) == 1


def test_seeds_share_one_scenario(file: Path, loads: list[str]) -> None:
    before = _core.scenarios_read()
    assert run_command(["run", str(file), *options(), "--seeds", "3"]) == 0
    assert _core.scenarios_read() - before == 1
    assert loads == []
    assert _OPENED.count(str(file)) == 1


def test_each_cell_of_a_sweep_is_read_once(file: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'scenario = "{file.name}"\nseeds = 2\n[factors]\n'
        '"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]\n',
        encoding="utf-8",
    )
    before = _core.scenarios_read()
    assert run_command(["sweep", str(plan), "--out", str(tmp_path / "out")]) == 0
    # The base and both cells.
    assert _core.scenarios_read() - before == 3
