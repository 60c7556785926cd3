"""Reduction of one run of a sweep to small labelled tables."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from anabranch import _core
from anabranch.errors import InputError, IntegrityError, ScenarioError
from anabranch.live.hosts import Hosts
from anabranch.live.run import Conditions, identity, run_in_time
from anabranch.results import metrics
from anabranch.results.folder import Factor
from anabranch.results.provenance import Build, build
from anabranch.runs.columns import Columns
from anabranch.runs.run import Run, run_scenario
from anabranch.scenarios import custom, loading
from anabranch.scenarios.custom import CustomPolicy

if TYPE_CHECKING:
    import polars as pl


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

    def key(self) -> str:
        """SHA-256, in hexadecimal, over everything that the reduced run depends on."""
        depends_on = {
            "build": asdict(self.build),
            "toml": self.scenario.to_toml(),
            "seed": self.seed,
            "labels": [["cell", self.cell], *map(list, self.factors.items())],
            "kept": [self.keep_blocks, self.keep_samples],
            "own": [self._identity(policy) for policy in custom.describe(self.scenario)],
        }
        if self.hosts:
            depends_on["live"] = identity(self.hosts)
        return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()

    @staticmethod
    def _identity(policy: CustomPolicy) -> list[Any]:
        # Without a file, a changed policy cannot be recognised.
        return [*astuple(policy), None if policy.sha256 else secrets.token_hex()]


@dataclass(frozen=True)
class Reduced:
    """Results that are kept of a run."""

    rows: list[dict[str, Any]]
    """A row of metrics for each connection."""
    tables: dict[str, Columns]
    """The tables ``subflows``, ``links`` and ``counters``."""
    frames: dict[str, pl.DataFrame]
    """The tables ``blocks`` and ``samples``, if they are kept."""
    digest: str
    virtual_ns: int
    data_segments: int
    cpu_s: float
    custom_policies: tuple[CustomPolicy, ...]


def make(task: Task) -> Reduced:
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


def rehearse(task: Task) -> None:
    """Check before the first run what only the results of a run show: the names of the factors.

    Raises:
        InputError: if a factor has the name of a results column.
    """
    try:
        scenario = loading.changed(task.scenario, {"duration": "1ms", "warm_up": "0ms"})
    except (InputError, ScenarioError):  # something happens later than that
        return
    made = run_scenario(scenario, task.seed)
    reduce(replace(task, scenario=scenario, may_fail=True), made)


def reduce(task: Task, run: Run, conditions: Conditions | None = None) -> Reduced:
    """Reduce a run of the task. `conditions` belong to a live run.

    Raises:
        InputError: if a factor has the name of a results column.
        IntegrityError: if a connection failed that must not fail, or delivered wrong bytes.
    """
    rows = [metrics.connection_row(run, index) for index in range(len(run.flows))]
    for row in rows:
        _check_integrity(f"{task.cell}, seed {run.seed}", row, may_fail=task.may_fail)
        row.update({} if conditions is None else conditions.columns())
    frames = {}
    if task.keep_blocks:
        frames["blocks"] = metrics.block_rows(run)
    if task.keep_samples:
        frames["samples"] = metrics.sample_rows(run)
    tables = {
        "subflows": metrics.subflow_rows(run),
        "links": metrics.link_rows(run),
        "counters": run.tables["counters"],
    }
    _check_names(task, (rows[0], *tables.values(), metrics.BLOCK_COLUMNS, metrics.SAMPLE_COLUMNS))
    return Reduced(
        rows=rows,
        tables=tables,
        frames=frames,
        digest=run.digest,
        virtual_ns=run.virtual_ns,
        data_segments=run.data_segments,
        cpu_s=run.cpu_s,
        custom_policies=run.custom_policies,
    )


def _check_names(task: Task, tables: Iterable[Mapping[str, Any]]) -> None:
    labels = sorted({"cell", *task.factors, "seed"})
    for table in tables:
        for name in labels:
            if name in table:
                raise InputError(f'"{name}" is a column of the results; rename the factor')


def _check_integrity(where: str, row: Mapping[str, Any], *, may_fail: bool) -> None:
    if row["corrupt_bytes"]:
        raise IntegrityError(f"{where}: {row['corrupt_bytes']} delivered bytes are wrong")
    if row["failed"] and not may_fail:
        raise IntegrityError(f"{where}: {row['connection']} failed")
