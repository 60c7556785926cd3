"""Runs of several scenarios with several seeds: a sweep whose only factor is the scenario."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anabranch.batches.reduction import Task
from anabranch.errors import InputError
from anabranch.live import support
from anabranch.live.hosts import Hosts
from anabranch.results.folder import Factor, shortened
from anabranch.results.provenance import build
from anabranch.scenarios import loading
from anabranch.scenarios.overrides import Overrides


def tasks(
    files: Sequence[Path], overrides: Overrides, seeds: range, hosts: Hosts | None = None
) -> tuple[dict[str, Any], list[Task]]:
    """The provenance of the runs, and a task for every file and seed.

    With `hosts` the runs are live.

    Raises:
        ScenarioError: if a scenario is wrong.
        InputError: if a file cannot be read, or two files have the same name.
    """
    made = [
        task for file in files for task in _of_file(file, overrides, seeds, len(files) > 1, hosts)
    ]
    cells = list(dict.fromkeys(task.cell for task in made))
    if len(cells) < len(files):
        raise InputError(
            f"{files[0]}: the scenarios' file names must differ even without their folders"
        )
    about = {
        "entry": None,
        "sweep": ", ".join(cells),
        "description": "Scenarios side by side."
        if len(files) > 1
        else made[0].settings["description"],
        "plan": None,
        "factors": ["scenario"] if len(files) > 1 else [],
        "seeds": list(seeds),
        "duration": made[0].settings["duration"],
        "warm_up": made[0].settings["warm_up"],
    }
    return about, made


def _of_file(
    file: Path, overrides: Overrides, seeds: range, several: bool, hosts: Hosts | None
) -> list[Task]:
    scenario = loading.of_file(file, overrides)
    if hosts is not None:
        support.require_possible(hosts, scenario)
    name = re.sub(r"[^\w.()-]+", "", file.stem)
    factors: dict[str, Factor] = {"scenario": name} if several else {}
    return [
        Task(
            cell=shortened(name),
            factors=factors,
            scenario=scenario,
            seed=seed,
            build=build(),
            keep_samples=seed == seeds[0],
            may_fail=True,
            hosts=hosts,
        )
        for seed in seeds
    ]
