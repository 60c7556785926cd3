"""Scenarios with every default spelled out, and with the user's own policies found."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from anabranch import _core
from anabranch.errors import ScenarioError
from anabranch.scenarios import custom
from anabranch.scenarios.scenario import Scenario, to_toml


def of(scenario: Scenario) -> str:
    """The normalised scenario of an object. Names of files are relative to the working directory.

    Raises:
        ScenarioError: if the scenario is wrong.
    """
    return of_text(scenario.to_toml(), scenario.name, os.curdir, scenario.made_by())


def of_text(
    toml: str,
    file: str,
    folder: str | os.PathLike[str] | None = None,
    given: custom.MadeBy | None = None,
) -> str:
    """The scenario `toml` as TOML with every default spelled out. `file` is its name in messages.

    Names of trace files and of the user's own policies are relative to `folder`, or to the folder
    of `file`. The result has the whole names of the policies' files, whose classes were found.
    `given` has the classes of a scenario that was made in Python.

    Raises:
        ScenarioError: if the scenario is wrong, or names a policy without a file.
        InputError: if a file of the user's own policy cannot be read, or lacks the class.
        PolicyError: if such a file cannot be imported.
    """
    text = _core.validate(toml, file, folder)
    if custom.PREFIX not in text:
        return text
    table = tomllib.loads(text)
    beside = Path(file).parent if folder is None else Path(folder)
    for index, connection in enumerate(table["connection"]):
        for kind in custom.KINDS:
            name = custom.named_in(connection[kind])
            if name is None or (given is not None and given[index][kind] is not None):
                continue
            where = f'{file}: connection[{index}].{kind}: "{name}"'
            if not custom.names_file(name):
                raise ScenarioError(
                    f'{where}: your own policy needs a file; write {kind} = "{custom.FORM}", or '
                    f"name the class with --{kind.replace('_', '-')} {custom.FORM}"
                )
            connection[kind] = custom.value_of(custom.load(kind, name, where, beside))
    return _core.validate(to_toml(table), file, folder)
