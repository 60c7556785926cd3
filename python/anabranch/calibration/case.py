"""A scenario of the calibration: one text, which the engine and Linux both run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from anabranch import _core
from anabranch.gallery.entry import Cell, ScenarioText
from anabranch.live.hosts import HERE, Hosts
from anabranch.results.folder import Factor
from anabranch.scenarios import loading
from anabranch.scenarios.quantities import nanoseconds
from anabranch.scenarios.scenario import Scenario

VIRTUAL = "engine, virtual time"
"""Value of the factor `hosts` in runs of the engine."""


def linux_on(machine: str) -> str:
    """Value of the factor `hosts` in runs of Linux on a machine."""
    return "Linux, real time" if machine == HERE else f"Linux, {machine}"


def modelled_version(machine: str) -> str:
    """The version of Linux, of those that the model knows, whose rules the machine's kernel has."""
    if machine != HERE:
        return "v6.12"
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    assert release
    return "v6.18" if (int(release[1]), int(release[2])) >= (6, 18) else "v6.12"


@dataclass(frozen=True)
class Case:
    """A scenario that runs with the engine in virtual time, and with Linux at both ends."""

    key: str
    """Unique and usable as a file name."""
    name: str
    group: str
    toml: str
    """The normalised scenario."""

    @property
    def duration_s(self) -> float:
        """Time that a run simulates, in s."""
        return nanoseconds(loading.settings_in(self.toml)["duration"]) / 1e9

    def for_machine(self, machine: str) -> Case:
        """The case with hosts that have the rules of the machine's kernel."""
        scenario = loading.of_text(self.toml, self.name)
        version = modelled_version(machine)
        new = {
            f"connection.{connection['name']}.host.version": version
            for connection in scenario.settings["connection"]
        }
        return replace(self, toml=loading.changed(scenario, new).to_toml())

    def cells(self, machine: str) -> tuple[Cell, Cell]:
        """The run of the engine, and that of Linux on this machine."""
        labels: dict[str, Factor] = {"group": self.group, "scenario": self.name}
        engine, linux = (
            Cell(
                f"{self.key}_{stack}",
                ScenarioText(self.name, self.toml),
                {"hosts": label, **labels},
                hosts=hosts,
                may_fail=True,
            )
            for stack, label, hosts in (
                ("engine", VIRTUAL, None),
                ("linux", linux_on(machine), Hosts(machine=machine)),
            )
        )
        return engine, linux


def of(scenario: Scenario, group: str, key: str | None = None) -> Case:
    """The case of a scenario. By default, the scenario's name also makes the key."""
    name = scenario.name.lower().replace("/", "-").replace("%", "percent")
    made = "".join(each for each in name.replace(" ", "-") if each.isalnum() or each in "_-.()")
    return Case(key or made, scenario.name, group, timed(loading.of(scenario)).to_toml())


def timed(scenario: _core.Scenario) -> _core.Scenario:
    """The normalised scenario with every transfer of a given size as a single block of that size.

    The block carries the same bytes in the same way, and the time of its delivery is recorded.
    """
    new = {}
    for connection in scenario.settings["connection"]:
        workload = connection["workload"]
        if workload["kind"] == "bulk" and "size" in workload:
            block = {"kind": "blocks", "block_size": workload["size"], "count": 1}
            new[f"connection.{connection['name']}.workload"] = block
    return loading.changed(scenario, new)


def durations(cases: Iterable[Case]) -> str:
    """The durations of the runs in words, such as ``"2 to 20 s"``."""
    seconds = sorted({case.duration_s for case in cases})
    if len(seconds) == 1:
        return f"{seconds[0]:g} s"
    return f"{seconds[0]:g} to {seconds[-1]:g} s"
