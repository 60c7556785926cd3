"""One run of a sweep and what is kept of it: labelled tables of a few rows."""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import polars as pl

from anabranch.errors import InputError, IntegrityError
from anabranch.live.run import Conditions, run_in_time
from anabranch.results import metrics
from anabranch.results.folder import Factor
from anabranch.results.provenance import Build, build
from anabranch.runs.run import Run, run_toml
from anabranch.scenarios import own
from anabranch.scenarios.own import MadeBy, OwnPolicy


@dataclass(frozen=True)
class Task:
    """A run of a sweep, complete: it can be handed to another process or machine."""

    cell: str
    factors: Mapping[str, Factor]
    """What tells the cell apart: columns of every table."""
    toml: str
    """The scenario, normalised."""
    file: str
    """How messages call it."""
    seed: int
    build: Build
    """What makes the run."""
    keep_blocks: bool = False
    """Are delays of single blocks kept?"""
    keep_samples: bool = False
    """Are time series kept?"""
    may_fail: bool = False
    """May a connection fail?"""
    made_by: MadeBy | None = None
    """What makes the user's own policies, for each connection."""
    stacks: tuple[str, str] | None = None
    """Whose TCP client and server run, in real time; `None` in virtual time."""

    @property
    def settings(self) -> dict[str, Any]:
        """The scenario as plain values."""
        return tomllib.loads(self.toml)

    @property
    def starts(self) -> list[str]:
        """When each connection starts."""
        return [connection["start"] for connection in self.settings["connection"]]

    def key(self) -> str:
        """SHA-256, in hexadecimal, over everything that the reduced run depends on."""
        depends_on = {
            "build": asdict(self.build),
            "toml": self.toml,
            "seed": self.seed,
            "labels": [["cell", self.cell], *map(list, self.factors.items())],
            "kept": [self.keep_blocks, self.keep_samples],
            "own": [self._identity(policy) for policy in self._own_policies()],
        }
        if self.stacks:
            depends_on["live"] = [*self.stacks, platform.release(), platform.node()]
        return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()

    def _own_policies(self) -> tuple[OwnPolicy, ...]:
        if self.made_by is None:
            return ()
        names = [connection["name"] for connection in self.settings["connection"]]
        return own.describe(names, self.made_by)

    @staticmethod
    def _identity(policy: OwnPolicy) -> list[str | None]:
        # Without a file nobody can tell whether it is still the same policy.
        return [*astuple(policy), None if policy.sha256 else secrets.token_hex()]


@dataclass(frozen=True)
class Reduced:
    """What is kept of a run; tables that are not kept are there without rows."""

    runs: pl.DataFrame
    subflows: pl.DataFrame
    links: pl.DataFrame
    counters: pl.DataFrame
    blocks: pl.DataFrame
    samples: pl.DataFrame
    digest: str
    virtual_ns: int
    segments: int
    cpu_s: float
    own_policies: tuple[OwnPolicy, ...]


def make(task: Task) -> Reduced:
    """Run it and reduce it, here.

    Raises:
        InputError: if this is not the build of anabranch that the task was meant for.
        IntegrityError: if a connection failed that may not, or delivered wrong bytes.
        PolicyError: if a policy of the user's own raised an exception.
    """
    if not task.build.makes_the_same_runs_as(build()):
        raise InputError(
            f"the worker has another build of anabranch: {build().text()}, not "
            f"{task.build.text()}; install the same one there"
        )
    if task.stacks is None:
        return reduce(task, run_toml(task.toml, task.file, task.seed, made_by=task.made_by))
    return reduce(task, *run_in_time(task.toml, task.file, task.seed, task.stacks))


def reduce(task: Task, run: Run, conditions: Conditions | None = None) -> Reduced:
    """What is kept of the task's run; `conditions` are those of a live run.

    Raises:
        InputError: if a factor is named like a column of a table.
        IntegrityError: if a connection failed that may not, or delivered wrong bytes.
    """
    rows = [metrics.connection_row(run, index) for index in range(run.connections.height)]
    for row in rows:
        _check_integrity(f"{task.cell}, seed {run.seed}", row, may_fail=task.may_fail)
        row.update({} if conditions is None else conditions.columns())
    label = {"cell": task.cell, **task.factors, "seed": run.seed}
    labels = [pl.lit(value).alias(name) for name, value in label.items()]

    def labelled(table: pl.DataFrame, *, keep: bool = True) -> pl.DataFrame:
        if taken := sorted(label.keys() & set(table.columns)):
            raise InputError(f'"{taken[0]}" names a column of the results; rename the factor')
        return (table if keep else table.clear()).select(*labels, pl.all())

    return Reduced(
        runs=labelled(pl.DataFrame(rows, infer_schema_length=None)),
        subflows=labelled(metrics.subflow_rows(run)),
        links=labelled(metrics.link_rows(run)),
        counters=labelled(run.counters),
        blocks=labelled(metrics.block_rows(run), keep=task.keep_blocks),
        samples=labelled(metrics.sample_rows(run), keep=task.keep_samples),
        digest=run.digest,
        virtual_ns=run.virtual_ns,
        segments=run.segments,
        cpu_s=run.cpu_s,
        own_policies=run.own_policies,
    )


def _check_integrity(where: str, row: Mapping[str, Any], *, may_fail: bool) -> None:
    if row["corrupt_bytes"]:
        raise IntegrityError(f"{where}: {row['corrupt_bytes']} bytes were delivered wrong")
    if row["failed"] and not may_fail:
        raise IntegrityError(f"{where}: {row['connection']} failed")
