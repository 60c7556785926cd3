"""Reduction of one run of a batch to the results that are kept."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.live.hosts import Hosts
from anabranch.live.run import CONDITION_COLUMNS, Conditions, identity, run_in_time
from anabranch.results.folder import Factor
from anabranch.results.metrics import column_names, reduced
from anabranch.results.provenance import Build, build
from anabranch.runs.run import Run, run_scenario
from anabranch.scenarios import custom
from anabranch.scenarios.custom import CustomPolicy


@dataclass(frozen=True)
class Task:
    """A self-contained description of a run, which can be sent to another process or machine."""

    cell: str
    factors: Mapping[str, Factor]
    """Values that identify the cell; they become columns of every table."""
    scenario: _core.Scenario
    seed: int
    build: Build
    """The build of anabranch that makes the run."""
    keep_blocks: bool = False
    """Whether to keep the delays of single blocks."""
    keep_samples: bool = False
    """Whether to keep time series."""
    may_fail: bool = False
    """Whether a connection may fail."""
    hosts: Hosts | None = None
    """The hosts of a live run; `None` in virtual time."""

    @property
    def settings(self) -> dict[str, Any]:
        """The scenario as plain values, which must not be changed."""
        return self.scenario.settings

    @property
    def starts(self) -> list[str]:
        """Start time of each connection."""
        return [connection["start"] for connection in self.settings["connection"]]

    def key(self) -> bytes:
        """SHA-256 over everything that the reduced run depends on."""
        return keys([self])[0]

    def _all_but_seed(self) -> bytes:
        """Everything that the reduced run depends on, except its seed."""
        depends_on = {
            "build": asdict(self.build),
            "toml": self.scenario.to_toml(),
            "labels": [["cell", self.cell], *map(list, self.factors.items())],
            "kept": [self.keep_blocks, self.keep_samples],
            "own": [self._identity(policy) for policy in custom.describe(self.scenario)],
        }
        if self.hosts:
            depends_on["live"] = identity(self.hosts)
        return json.dumps(depends_on).encode()

    @staticmethod
    def _identity(policy: CustomPolicy) -> list[Any]:
        # Without a file, a changed policy cannot be recognised.
        return [*astuple(policy), None if policy.sha256 else secrets.token_hex()]


def keys(tasks: Sequence[Task]) -> list[bytes]:
    """The key of each task: SHA-256 over everything that the reduced run depends on."""
    cells: dict[tuple[Any, ...], Any] = {}
    found = []
    for task in tasks:
        # The runs of a cell share these objects. To describe them takes far longer than to hash.
        cell = (
            *(id(each) for each in (task.scenario, task.factors, task.build, task.hosts)),
            *(task.cell, task.keep_blocks, task.keep_samples),
        )
        if cell not in cells:
            cells[cell] = hashlib.sha256(task._all_but_seed())
        key = cells[cell].copy()
        key.update(task.seed.to_bytes(8, "little"))
        found.append(key.digest())
    return found


def make(task: Task) -> _core.Record:
    """Run the task in this process, and reduce the run.

    Raises:
        InputError: if this build of anabranch differs from the task's.
        IntegrityError: if a connection failed that must not fail, or delivered wrong bytes.
        PolicyError: if the user's own policy raised an exception.
    """
    if not task.build.makes_the_same_runs_as(build()):
        raise InputError(
            f"the worker has another build of anabranch: {build().text()}, not "
            f"{task.build.text()}; install the same build on it"
        )
    if task.hosts is None:
        return reduce(task, run_scenario(task.scenario, task.seed))
    return reduce(task, *run_in_time(task.scenario, task.seed, task.hosts))


def require_free_names(tasks: Iterable[Task]) -> None:
    """Check before the first run that no factor has the name of a results column.

    Raises:
        InputError: if one has.
    """
    seen = set()
    for task in tasks:
        cell = (id(task.scenario), id(task.factors))
        if cell not in seen:
            seen.add(cell)
            _require_free_names(task)


def _require_free_names(task: Task) -> None:
    columns = {"cell", "seed", *column_names(task.scenario)}
    columns.update(() if task.hosts is None else CONDITION_COLUMNS)
    for name in sorted(task.factors):
        if name in columns:
            raise InputError(
                f'{task.scenario.file}: "{name}" is a column of the results; choose another name '
                "for the factor"
            )


def reduce(task: Task, run: Run, conditions: Conditions | None = None) -> _core.Record:
    """Reduce a run of the task. `conditions` belong to a live run.

    Raises:
        IntegrityError: if a connection failed that must not fail, or delivered wrong bytes.
    """
    note: dict[str, Any] = {}
    if run.custom_policies:
        note["custom_policies"] = [asdict(policy) for policy in run.custom_policies]
    if conditions is not None:
        note["columns"] = conditions.columns()
    return reduced(
        run,
        keep_blocks=task.keep_blocks,
        keep_samples=task.keep_samples,
        may_fail=task.may_fail,
        name=f"{task.cell}, seed {run.seed}",
        note=json.dumps(note) if note else "",
    )
