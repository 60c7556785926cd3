"""Read scenarios from files, texts and objects.

The result is a `_core.Scenario`: read once, checked, immutable, and with the user's own policies
that it names. Everything that makes or describes runs takes such an object.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, ScenarioError
from anabranch.files import reading
from anabranch.scenarios import custom
from anabranch.scenarios.classes import TomlTable
from anabranch.scenarios.overrides import Overrides
from anabranch.scenarios.scenario import Scenario, table_of

_UNCHANGED = Overrides()


def of_file(
    file: str | os.PathLike[str],
    changes: Overrides = _UNCHANGED,
    settings: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> _core.Scenario:
    """The scenario in a TOML file, with changes. Names of files in it are relative to its folder.

    `settings` changes keys, such as ``{"path.wifi.rate": "20Mbit/s"}``, and takes the place of the
    keys in `changes`. A value may be the class of the user's own policy. `name` is that of the file
    in messages; that of standard input has no folder, and means the working directory.

    Raises:
        InputError: if a file cannot be read, or a change is wrong.
        ScenarioError: if the scenario is wrong.
        PolicyError: if the file of the user's own policy cannot be imported.
    """
    name = os.fspath(file) if name is None else name
    text = read_text(file, name)
    try:
        return of_text(text, name, os.path.dirname(name), changes, settings)
    except ScenarioError:
        if _is_plan(text):
            raise InputError(
                f"{name}: this is a plan, not a scenario; use: anabranch sweep {name}"
            ) from None
        raise


def of_text(
    text: str,
    file: str,
    folder: str | os.PathLike[str] | None = None,
    changes: Overrides = _UNCHANGED,
    settings: Mapping[str, Any] | None = None,
) -> _core.Scenario:
    """The scenario in a TOML text, with changes. `file` is its name in messages.

    Names of files in it are relative to `folder`, or to the folder of `file`. Errors are those of
    `of_file`.
    """
    if settings:
        scenario = _core.Scenario.parse(text, file, folder, custom.pairs(settings))
        scenario = scenario.with_policies(custom.classes_among(settings.values()))
    else:
        scenario = _core.Scenario.parse(text, file, folder, changes.pairs(), changes.OPTION)
    return custom.found(changes.with_policies(scenario))


def of(scenario: Scenario, settings: Mapping[str, Any] | None = None) -> _core.Scenario:
    """The scenario of an object, with changed keys.

    Names of files in it are relative to the working directory. Errors are those of `of_file`.
    """
    return of_table(table_of(scenario), scenario.name, os.curdir, settings=settings)


def of_table(
    table: TomlTable,
    file: str,
    folder: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    policies: Mapping[str, custom.Factory] | None = None,
) -> _core.Scenario:
    """The scenario of plain values, in which the user's own policies may be classes.

    `policies` has the classes that the scenario only names. Errors are those of `of_file`.
    """
    classes, plain = custom.classes_in(table), custom.without_classes(table)
    scenario = _core.Scenario.of(plain, file, folder)
    scenario = custom.found(scenario.with_policies({**(policies or {}), **classes}))
    return changed(scenario, settings) if settings else scenario


def changed(
    scenario: _core.Scenario, settings: Mapping[str, Any], option: str = ""
) -> _core.Scenario:
    """The scenario with these keys set. A value may be the class of the user's own policy.

    Messages about a key begin with `option`. Errors are those of `of_file`.
    """
    new = scenario.with_settings(custom.pairs(settings), option)
    policies = custom.classes_among(settings.values(), scenario.policies)
    return custom.found(new.with_policies(policies))


def read_text(file: str | os.PathLike[str], name: str | None = None) -> str:
    """The text of a scenario file or a plan, with its name in messages.

    Raises:
        InputError: if the file cannot be read, or is a capture.
    """
    name = os.fspath(file) if name is None else name
    with reading(name, "name a readable TOML file"):
        data = Path(file).read_bytes()
    if _core.analyse_begins_capture(data[:4]):
        raise InputError(
            f"{name}: a capture; name a scenario, such as the twin of the capture, which "
            "anabranch twin makes"
        )
    with reading(name, "name a TOML file (anabranch twin makes one from a capture)"):
        return data.decode()


@cache
def settings_in(text: str) -> Mapping[str, Any]:
    """The settings in the text of a normalised scenario, which is read once."""
    return tomllib.loads(text)


def toml_in(text: str, name: str, hint: str = "") -> TomlTable:
    """The table in a TOML text, which messages call `name`. They end with `hint`.

    Raises:
        InputError: if the text is wrong.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise InputError(f"{name}: {error}{hint}") from error


def _is_plan(text: str) -> bool:
    """Whether the text of a file that is no scenario is a plan."""
    try:
        table = toml_in(text, "")
    except InputError:
        return False
    return isinstance(table.get("scenario"), str) and "path" not in table
