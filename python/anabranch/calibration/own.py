"""The user's own scenarios as cases of the calibration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.calibration.case import Case, timed
from anabranch.errors import InputError
from anabranch.live.support import objection
from anabranch.results.folder import shortened
from anabranch.scenarios import loading
from anabranch.words import listed

GROUP = "own"
_CONTROLS = ("cubic_linux", "new_reno", "bbr")
"""Congestion controls that follow Linux."""


def cases(files: Sequence[Path]) -> list[Case]:
    """The scenarios in these files.

    Raises:
        ScenarioError: if a scenario is wrong.
        InputError: if a file cannot be read, if Linux cannot run its scenario, or if two files
            have the same name.
    """
    made = [_case(file) for file in files]
    if len({case.key for case in made}) < len(made):
        raise InputError(
            f"{files[0]}: the scenarios' file names must differ even without their folders"
        )
    return made


def _case(file: Path) -> Case:
    scenario = loading.of_file(file)
    if reason := objection(scenario):
        raise InputError(f"{file}: Linux cannot run this scenario: {reason}")
    return Case(
        shortened(re.sub(r"[^\w.()-]+", "", file.stem)), file.stem, GROUP, timed(scenario).to_toml()
    )


def unlike_linux(cases: Sequence[Case]) -> str | None:
    """A note about scenarios in which the engine does not follow Linux; `None` if there is none."""
    found = {case.name: _unlike(loading.settings_in(case.toml)) for case in cases}
    keys = list(dict.fromkeys(key for differs in found.values() for key in differs))
    if not keys:
        return None
    names = ", ".join(name for name, differs in found.items() if differs)
    return f"{names}: the engine follows Linux only with {listed(keys)}"


def _unlike(settings: Mapping[str, Any]) -> list[str]:
    """The settings, of any connection, that keep the engine from following Linux."""
    found = []
    for connection in settings["connection"]:
        host = connection["host"]
        if not isinstance(host, dict) or (host.get("kind"), host.get("buffers")) != (
            "linux",
            "socket",
        ):
            found.append('host = { kind = "linux", buffers = "socket" }')
        if connection["congestion_control"] not in _CONTROLS:
            found.append('congestion_control = "cubic_linux", "new_reno" or "bbr"')
        if connection["protocol"] == "mptcp" and connection["scheduler"] != "linux":
            found.append('scheduler = "linux"')
        if connection.get("remedies"):
            found.append("no remedies")
    return found
