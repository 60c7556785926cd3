"""Plans of sweeps: a base scenario, seeds, and factors.

``examples/sweep_wifi_3g.toml`` is an example, and ``docs/sweeps.md`` explains the keys.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch import _core
from anabranch.batches.reduction import Task
from anabranch.errors import InputError, unknown
from anabranch.results.provenance import build
from anabranch.runs.run import read_scenario
from anabranch.scenarios import keys
from anabranch.scenarios.scenario import TomlTable, to_toml
from anabranch.sweeps import design_factors, factors
from anabranch.sweeps.factors import Factor, Level

KEYS = ("name", "description", "scenario", "seeds", "keep", "factors", "design")
KEEP = ("blocks", "samples")
MAX_SEED = 2**64 - 1
MAX_RUNS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """The runs of a sweep: every cell of `factors` and `design` with every seed."""

    file: str
    """Name of the plan in messages."""
    name: str
    description: str
    scenario: TomlTable
    """The base scenario as written."""
    folder: Path
    """Folder to which names of trace files are relative."""
    seeds: tuple[int, ...]
    keep: frozenset[str]
    factors: tuple[Factor, ...]
    design: tuple[Factor, ...]
    """Factors of the design. Their first levels are the coordinates of point 1, and so on."""

    def tasks(self) -> list[Task]:
        """All runs, cell by cell.

        Raises:
            InputError: if a factor does not fit the scenario.
            ScenarioError: if the scenario of a cell is wrong.
        """
        count = math.prod(len(factor.levels) for factor in self.factors) * len(self.seeds)
        count *= len(self.design[0].levels) if self.design else 1
        if count > MAX_RUNS:
            raise InputError(
                f"{self.file}: these factors and seeds are {count:,} runs; a sweep has at most "
                f"{MAX_RUNS:,}"
            )
        cells = list(self._cells())
        names = _names([list(levels) for levels in cells], len(self.design))
        return [
            task
            for name, levels in zip(names, cells, strict=True)
            for task in self._tasks_of_cell(name, levels)
        ]

    def factor_names(self) -> list[str]:
        """Columns of the results that identify cells."""
        return [factor.name for factor in (*self.factors, *self.design)]

    def _cells(self) -> Iterator[Sequence[tuple[Factor, Level]]]:
        """The levels of every cell: each combination of factors at each point of the design."""
        levels = ([(each, level) for level in each.levels] for each in self.factors)
        points = [
            [(each, each.levels[number]) for each in self.design]
            for number in range(len(self.design[0].levels) if self.design else 1)
        ]
        for combination, point in itertools.product(itertools.product(*levels), points):
            yield (*combination, *point)

    def _tasks_of_cell(self, name: str, cell: Sequence[tuple[Factor, Level]]) -> Iterator[Task]:
        table = self.scenario
        for factor, level in cell:
            for key in factor.keys:
                table = keys.put(table, key, level.value, factor.where)
        words = ", ".join(f"{factor.name} = {level.label}" for factor, level in cell)
        where = f"{self.file}: {words}" if words else self.file
        toml = _core.validate(to_toml(table), where, self.folder)
        for seed in self.seeds:
            yield Task(
                cell=name,
                factors={factor.name: level.label for factor, level in cell},
                toml=toml,
                file=where,
                seed=seed,
                build=build(),
                keep_blocks="blocks" in self.keep,
                keep_samples="samples" in self.keep and seed == self.seeds[0],
                may_fail=True,
            )


def read(file: str | os.PathLike[str]) -> Plan:
    """Read the plan in a TOML file.

    Raises:
        InputError: if a file cannot be read, or the plan is wrong.
        ScenarioError: if the base scenario is wrong.
    """
    where = os.fspath(file)
    table = _toml(read_scenario(file), where)
    if keys.is_scenario(table):
        raise InputError(f"{where}: this is a scenario, not a plan; use: anabranch run {where}")
    for key in table:
        if key not in KEYS:
            raise unknown(f"{where}: unknown key", key, KEYS)
    base = table.get("scenario")
    if not isinstance(base, str):
        raise InputError(f'{where}: scenario: missing; name a file, such as scenario = "wifi.toml"')
    base_file = Path(where).parent / base
    text = read_scenario(base_file)
    normalised = _core.validate(text, str(base_file), base_file.parent)
    plan = Plan(
        file=where,
        name=_text(table, "name", where, Path(where).stem),
        description=_text(table, "description", where, ""),
        scenario=keys.with_names(_toml(text, str(base_file)), tomllib.loads(normalised)),
        folder=base_file.parent,
        seeds=_seeds(table.get("seeds", 1), where),
        keep=_keep(table.get("keep", []), where),
        factors=factors.read(table.get("factors", {}), where),
        design=design_factors.read(table["design"], where) if "design" in table else (),
    )
    repeated = [name for name in plan.factor_names() if plan.factor_names().count(name) > 1]
    if repeated:
        raise InputError(f'{where}: "{repeated[0]}" is in both factors and design; keep one')
    return plan


def _toml(text: str, where: str) -> TomlTable:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}") from error


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
        not isinstance(listed, list)
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
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
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
    if len(set(words)) == len(words) and max(map(len, words)) <= 100:
        return words
    return [f"cell{number:04}" for number in range(1, len(cells) + 1)]
