"""Plans of sweeps: a base scenario, seeds, and factors.

``examples/sweep_wifi_3g.toml`` is an example, and ``docs/sweeps.md`` explains the keys.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.batches.reduction import Task
from anabranch.errors import InputError, unknown
from anabranch.forms import check_keys
from anabranch.results.folder import shortened
from anabranch.results.provenance import build
from anabranch.runs.limits import MAX_SEED
from anabranch.scenarios import custom, keys, loading
from anabranch.scenarios.overrides import Overrides
from anabranch.scenarios.scenario import Scenario, TomlTable
from anabranch.sweeps import design_factors, factors
from anabranch.sweeps.factors import Factor, Level

KEYS = ("name", "description", "scenario", "seeds", "keep", "factors", "design")
KEEP = ("blocks", "samples")
MAX_RUNS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """A sweep: a scenario with all combinations of factors, and several seeds for each.

    `anabranch.sweep` runs it::

        class Mine(anabranch.policy.Scheduler): ...

        plan = anabranch.Plan(
            "wifi_3g.toml",
            factors={
                "connection[0].scheduler": ["min_rtt", Mine],
                "path.wifi.rate": ["4Mbit/s", "8Mbit/s"],
            },
            seeds=5,
        )
        sweep = anabranch.sweep(plan, "results/schedulers")

    The constructor checks all values, and `docs/sweeps.md` explains them. `Plan.read` reads a plan
    file.

    Attributes:
        scenario: The base scenario, as an object or as the name of its file. Names of files in the
            factors' values are relative to that file, or to the working directory.
        factors: A list of values for each key of the scenario, as in a plan file. A policy is a
            name, ``"FILE.py:CLASS"``, or your class.
        seeds: The number of seeds, which start at 1, or the seeds themselves.
        keep: Tables to keep besides the metrics: ``"blocks"`` (the delay of each block) and
            ``"samples"`` (time series of each cell's first seed).
        design: A space-filling design, as the table of a plan file.
        name: Name of the sweep; by default that of the scenario.
        file: Name of the plan in messages.
        changes: Changes of the base scenario, which precede the factors.

    Raises:
        InputError: if a value is wrong, or a file cannot be read.
        ScenarioError: if the base scenario is wrong.
    """

    scenario: Scenario | str | os.PathLike[str]
    factors: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | Sequence[int] = 1
    keep: Sequence[str] = ()
    design: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    file: str = "plan"
    changes: Overrides = field(default_factory=Overrides)

    @classmethod
    def read(cls, file: str | os.PathLike[str], changes: Overrides | None = None) -> Plan:
        """Read the plan in a TOML file, whose base scenario is relative to it.

        Raises:
            InputError: if a file cannot be read, or the plan is wrong.
            ScenarioError: if the base scenario is wrong.
        """
        where = os.fspath(file)
        table = loading.toml_in(loading.read_text(file), where)
        if keys.is_scenario(table):
            raise InputError(f"{where}: this is a scenario, not a plan; use: anabranch run {where}")
        check_keys(where, table, KEYS)
        base = table.get("scenario")
        if not isinstance(base, str):
            example = 'scenario = "wifi.toml"'
            raise InputError(f"{where}: scenario: missing; name a file, such as {example}")
        return cls(
            Path(where).parent / base,
            factors=table.get("factors", {}),
            seeds=table.get("seeds", 1),
            keep=table.get("keep", []),
            design=table.get("design"),
            name=_text(table, "name", where, Path(where).stem),
            description=_text(table, "description", where, ""),
            file=where,
            changes=changes or Overrides(),
        )

    def __post_init__(self) -> None:
        if not self.name:
            given = self.scenario
            name = given.name if isinstance(given, Scenario) else Path(given).stem
            object.__setattr__(self, "name", name)
        for option in self.changes.policies:
            self._refuse_varied(option)
        names = self.factor_names()
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InputError(
                f'{self.file}: "{repeated[0]}" is in both factors and design; keep one'
            )
        _ = self.all_seeds, self._kept

    def _refuse_varied(self, kind: str) -> None:
        """Refuse a policy that an option names and a factor replaces."""
        varied = re.compile(rf"connection(\[\d+\]|\.[^.]+)\.{kind}(\..+)?")
        for factor in (*self._factors, *self._design):
            for key in factor.keys:
                if varied.fullmatch(key):
                    raise InputError(
                        f"--{kind.replace('_', '-')}: {factor.where} varies {key}; write the "
                        "policy as one of its values, or leave out the factor"
                    )

    def tasks(self) -> list[Task]:
        """All runs, cell by cell.

        Raises:
            InputError: if a factor does not fit the scenario, or names a policy that cannot be
                loaded.
            ScenarioError: if the scenario of a cell is wrong.
        """
        count = math.prod(len(factor.levels) for factor in self._factors) * len(self.all_seeds)
        count *= len(self._design[0].levels) if self._design else 1
        if count > MAX_RUNS:
            raise InputError(
                f"{self.file}: these factors and seeds are {count:,} runs; a sweep has at most "
                f"{MAX_RUNS:,}"
            )
        cells = list(self._cells())
        names = _names([list(levels) for levels in cells], len(self._design))
        return [
            task
            for name, levels in zip(names, cells, strict=True)
            for task in self._tasks_of_cell(name, levels)
        ]

    def factor_names(self) -> list[str]:
        """Columns of the results that identify cells."""
        return [factor.name for factor in (*self._factors, *self._design)]

    @cached_property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of every cell."""
        return _seeds(self.seeds, self.file)

    @cached_property
    def _kept(self) -> frozenset[str]:
        return _keep(self.keep, self.file)

    @cached_property
    def _factors(self) -> tuple[Factor, ...]:
        return factors.read(self.factors, self.file)

    @cached_property
    def _design(self) -> tuple[Factor, ...]:
        """Factors of the design. Their first levels are the coordinates of point 1, and so on."""
        return () if self.design is None else design_factors.read(self.design, self.file)

    @cached_property
    def _base(self) -> _core.Scenario:
        if isinstance(self.scenario, Scenario):
            return self.changes.with_policies(loading.of(self.scenario, dict(self.changes.pairs())))
        return loading.of_file(self.scenario, self.changes)

    def _cells(self) -> Iterator[Sequence[tuple[Factor, Level]]]:
        """The levels of every cell: each combination of factors at each point of the design."""
        levels = ([(each, level) for level in each.levels] for each in self._factors)
        points = [
            [(each, each.levels[number]) for each in self._design]
            for number in range(len(self._design[0].levels) if self._design else 1)
        ]
        for combination, point in itertools.product(itertools.product(*levels), points):
            yield (*combination, *point)

    def _tasks_of_cell(self, name: str, cell: Sequence[tuple[Factor, Level]]) -> Iterator[Task]:
        words = ", ".join(f"{factor.name} = {level.label}" for factor, level in cell)
        where = f"{self.file}: {words}" if words else self.file
        levels = {key: level.value for factor, level in cell for key in factor.keys}
        scenario = loading.changed(self._base.with_file(where), levels, f"{where}: ")
        custom.require_picklable(scenario)
        labels = {factor.name: level.label for factor, level in cell}
        for seed in self.all_seeds:
            yield Task(
                cell=name,
                factors=labels,
                scenario=scenario,
                seed=seed,
                build=build(),
                keep_blocks="blocks" in self._kept,
                keep_samples="samples" in self._kept and seed == self.all_seeds[0],
                may_fail=True,
            )


def _text(table: TomlTable, key: str, where: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"{where}: {key}: {value!r} is not text; write it in quotation marks")
    return value


def _seeds(value: object, where: str) -> tuple[int, ...]:
    """Seeds from their number, starting at 1, or from a list."""
    if isinstance(value, int) and value > MAX_RUNS:
        raise InputError(
            f"{where}: seeds: {value} is too many; a sweep has at most {MAX_RUNS:,} runs"
        )
    listed = list(range(1, value + 1)) if isinstance(value, int) else value
    if (
        not isinstance(listed, (list, tuple, range))
        or not listed
        or isinstance(value, bool)
        or not all(_is_whole(seed) and 0 <= seed <= MAX_SEED for seed in listed)
        or len(set(listed)) < len(listed)
    ):
        raise InputError(
            f"{where}: seeds: {value!r} is not valid; write a count (seeds = 5 means 1 to 5) or a "
            "list of different whole numbers"
        )
    return tuple(listed)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _keep(value: object, where: str) -> frozenset[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise InputError(f'{where}: keep: {value!r} is not a list such as ["samples"]')
    for each in value:
        if each not in KEEP:
            raise unknown(f"{where}: keep: unknown table", each, KEEP)
    return frozenset(value)


def _names(cells: list[list[tuple[Factor, Level]]], of_design: int) -> list[str]:
    """A name for each cell, usable as a file name: its levels, or a number if they are too long."""
    words = []
    for number, cell in enumerate(cells, start=1):
        labels = [str(level.label) for _, level in cell[: len(cell) - of_design]]
        labels += [f"point{number:04}"] if of_design else []
        words.append("_".join(re.sub(r"[^\w.()-]+", "", label) for label in labels) or "base")
    if len(set(words)) == len(words) and words == [*map(shortened, words)]:
        return words
    return [f"cell{number:04}" for number in range(1, len(cells) + 1)]
