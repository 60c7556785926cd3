"""Paired comparisons of two sets of runs.

A pair is two runs with the same seed in the same cell. Both runs have the same links and the same
randomness, so only the difference between the sets changes the results. Differences of pairs vary
less than the runs themselves.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.errors import InputError, unknown
from anabranch.files import write_file
from anabranch.reports.table import Table
from anabranch.results.estimates import Estimate, Sample, median, number
from anabranch.results.folder import Results
from anabranch.scenarios.keys import ARRAYS
from anabranch.scenarios.loading import toml_in
from anabranch.scenarios.scenario import TomlTable, in_line
from anabranch.sweeps.factors import short_names
from anabranch.words import listed

METRICS = {
    "goodput_mbps": "goodput (Mbit/s)",
    "delay_mean_ms": "mean delay (ms)",
    "delay_p95_ms": "p95 delay (ms)",
    "reinjections": "reinjections",
}
MAX_CELLS_SHOWN = 8
"""Largest number of cells in printed tables; with more, they show only the row of all cells."""

_IGNORED = ("name", "description")
"""Keys of a scenario that do not affect runs."""


@dataclass(frozen=True)
class Side:
    """One of the two sets of runs."""

    name: str
    runs: pl.DataFrame
    scenarios: Mapping[str, str]
    """TOML text of the scenarios, by name of the cell."""
    keys: tuple[str, ...]
    """Columns by which runs are paired."""


@dataclass(frozen=True)
class Difference:
    """The difference of a metric in one cell, or over all cells, from paired runs only."""

    cell: str | None
    """`None` means all cells. Then each cell counts once, with its median."""
    connection: str
    metric: str
    a: float
    """Median of the first set."""
    b: float
    difference: Estimate
    """Median of the paired differences, second minus first."""
    pairs: int


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a dataclass, without those that only claims need of an estimate."""
    return {key: value for key, value in fields if key not in ("interval", "sample")}


@dataclass(frozen=True)
class Comparison:
    """The differences between two sets of runs."""

    a: str
    b: str
    differences: tuple[Difference, ...]
    changed: tuple[str, ...]
    """Keys that differ between the scenarios, with both values as in a scenario file."""
    notes: tuple[str, ...]
    """Limitations of the comparison that a reader must know."""
    factors: tuple[str, ...] = ()
    """The factors whose values name the cells."""

    @property
    def pairs(self) -> int:
        """The number of pairs of runs, of all cells together."""
        return max((each.pairs for each in self.differences if each.cell is None), default=0)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len({each.cell for each in self.differences} - {None})

    @property
    def shows_cells(self) -> bool:
        """Whether printed tables have a row for each cell."""
        return 1 < self.cells <= MAX_CELLS_SHOWN

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Readable tables with their titles.

        A table for each metric has a row for each cell. If there is only one cell, or if there are
        many, a table for each connection has a row for each metric instead.
        """
        connections = list(dict.fromkeys(each.connection for each in self.differences))
        metrics = list(dict.fromkeys(each.metric for each in self.differences))
        for connection in connections:
            shown = [each for each in self.differences if each.connection == connection]
            of = f"{connection}: " if len(connections) > 1 else ""
            if not self.shows_cells:
                rows = [(_words(each.metric), each) for each in shown if each.cell is None]
                yield of.removesuffix(": "), _table("", rows)
                continue
            for metric in metrics:
                rows = [(each.cell or "all", each) for each in shown if each.metric == metric]
                yield f"{of}{_words(metric)}", _table(", ".join(self.factors) or "cell", rows)

    def frame(self) -> pl.DataFrame:
        """The differences as a frame, with the interval in the columns `low` and `high`."""
        return pl.DataFrame(
            [
                {
                    "cell": each.cell,
                    "connection": each.connection,
                    "metric": each.metric,
                    "a": each.a,
                    "b": each.b,
                    "difference": each.difference.value,
                    "low": each.difference.low,
                    "high": each.difference.high,
                    "pairs": each.pairs,
                }
                for each in self.differences
                if each.cell is None or self.cells > 1
            ],
            infer_schema_length=None,
        )

    def to_json(self) -> str:
        """The comparison as the text of a JSON object."""
        plain = dataclasses.asdict(self, dict_factory=_plain)
        return json.dumps(plain, indent=2, ensure_ascii=False)

    def save(self, file: Path) -> None:
        """Write the comparison as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        write_file(file, f"{self.to_json()}\n".encode())


def folders(a: Results, b: Results, names: tuple[str, str]) -> Comparison:
    """Compare two results by cells with equal factors, or with equal names if there are no factors.

    Raises:
        InputError: if no run of one set has a partner in the other.
    """
    keys = _common_factors(a, b)
    if not keys:
        single = a.runs["cell"].n_unique() == b.runs["cell"].n_unique() == 1
        keys = () if single else ("cell",)
    return _compare(
        Side(names[0], a.runs, a.scenarios, keys), Side(names[1], b.runs, b.scenarios, keys)
    )


def levels(results: Results, factor: str, a: str, b: str) -> Comparison:
    """Compare two levels of a factor, which may have its short name.

    Cells are paired if all their other factors are equal.

    Raises:
        InputError: if there is no such factor or level.
    """
    names = _factors(results)
    factor = dict(zip(short_names(names), names, strict=True)).get(factor, factor)
    if factor not in names:
        raise unknown("--by: unknown factor", factor, names)
    text = results.runs[factor].cast(pl.String)
    keys = tuple(name for name in names if name != factor)
    sides = []
    for level in (a, b):
        if level not in text.to_list():
            raise unknown(f"--by {factor}: unknown level", level, text.unique(maintain_order=True))
        sides.append(Side(level, results.runs.filter(text == level), results.scenarios, keys))
    return _compare(*sides)


def _factors(results: Results) -> tuple[str, ...]:
    """Columns that identify cells: the columns before the seed."""
    columns = results.runs.columns
    return tuple(columns[1 : columns.index("seed")])


def _common_factors(a: Results, b: Results) -> tuple[str, ...]:
    """The factors of both results, or none if their factors differ."""
    return _factors(a) if set(_factors(a)) == set(_factors(b)) else ()


def _compare(a: Side, b: Side) -> Comparison:
    on = [*a.keys, "connection", "seed"]
    paired = a.runs.join(b.runs, on=on, how="inner", suffix=" of b", maintain_order="left")
    ambiguous = any(side.runs.select(on).is_duplicated().any() for side in (a, b))
    if ambiguous or paired.is_empty():
        raise InputError(
            f"{a.name} and {b.name} cannot be paired by {listed(on)}; compare results with the "
            "same plan, seeds and connections"
        )
    cells = paired.select("cell", pl.col("cell of b")).unique(maintain_order=True)
    changed, notes = _scenario_changes(a, b, list(cells.iter_rows()))
    return Comparison(
        a=a.name,
        b=b.name,
        differences=tuple(_differences(_with_pair_names(paired, a.keys))),
        changed=changed,
        notes=(*_unpaired(a, b, on, paired.height), *notes),
        factors=tuple(short_names(a.keys)),
    )


def _with_pair_names(paired: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """The pairs, with cells named by the keys that both sides share."""
    if not keys:
        return paired.with_columns(cell=pl.lit("all"))
    values = [pl.col(key).cast(pl.String) for key in keys]
    return paired.with_columns(cell=pl.concat_str(values, separator=", "))


def _differences(paired: pl.DataFrame) -> Iterator[Difference]:
    shares = [name for name in paired.columns if name.startswith("share_")]
    metrics = [each for each in (*METRICS, *shares) if f"{each} of b" in paired.columns]
    for of_connection in paired.partition_by("connection", maintain_order=True):
        connection = of_connection["connection"][0]
        for metric in metrics:
            measured = of_connection.drop_nulls([metric, f"{metric} of b"])
            cells = measured.partition_by("cell", maintain_order=True)
            samples = [(cell["cell"][0], *_columns(cell, metric)) for cell in cells]
            for name, of_a, of_b in samples:
                yield _difference(name, connection, metric, of_a, of_b, of_b - of_a, of_a.size)
            if samples:
                yield _over_all(connection, metric, [each[1:] for each in samples])


def _over_all(connection: str, metric: str, samples: list[tuple[Sample, Sample]]) -> Difference:
    pairs = sum(of_a.size for of_a, _ in samples)
    if len(samples) == 1:
        of_a, of_b = samples[0]
        return _difference(None, connection, metric, of_a, of_b, of_b - of_a, pairs)
    return _difference(
        None,
        connection,
        metric,
        np.array([np.median(of_a) for of_a, _ in samples]),
        np.array([np.median(of_b) for _, of_b in samples]),
        np.array([np.median(of_b - of_a) for of_a, of_b in samples]),
        pairs,
    )


def _difference(
    cell: str | None,
    connection: str,
    metric: str,
    a: Sample,
    b: Sample,
    differences: Sample,
    pairs: int,
) -> Difference:
    medians = float(np.median(a)), float(np.median(b))
    return Difference(cell, connection, metric, *medians, median(differences), pairs)


def _columns(cell: pl.DataFrame, metric: str) -> tuple[Sample, Sample]:
    return (
        cell[metric].to_numpy().astype(np.float64),
        cell[f"{metric} of b"].to_numpy().astype(np.float64),
    )


def _unpaired(a: Side, b: Side, on: list[str], pairs: int) -> Iterator[str]:
    seeds = [sorted(set(side.runs["seed"])) for side in (a, b)]
    if seeds[0] != seeds[1]:
        common = len(set(seeds[0]) & set(seeds[1]))
        yield f"the seeds differ: {len(seeds[0])} in A, {len(seeds[1])} in B, {common} in both"
    for name, one, other in (("A", a, b), ("B", b, a)):
        alone = one.runs.join(other.runs, on=on, how="anti").height
        if alone and seeds[0] == seeds[1]:
            have = "has" if alone == 1 else "have"
            yield f"{alone} of {alone + pairs} rows of {name} {have} no partner"


def _scenario_changes(
    a: Side, b: Side, cells: list[tuple[str, str]]
) -> tuple[tuple[str, ...], list[str]]:
    """Differences between the scenarios of paired cells, and warnings about them."""
    changes: dict[str, set[str]] = {}
    for of_a, of_b in cells:
        if of_a in a.scenarios and of_b in b.scenarios:
            before, after = _scenario(a, of_a), _scenario(b, of_b)
            for key, words in _changes(before, after):
                changes.setdefault(key, set()).add(words)
    changed = tuple(
        f"{key}: {next(iter(words)) if len(words) == 1 else f'{len(words)} different changes'}"
        for key, words in changes.items()
    )
    notes = []
    links = [key for key in changes if key.split(".")[0] in ("path", "cross_traffic")]
    if links:
        notes.append(
            f"the links differ ({', '.join(links[:3])}{', …' if links[3:] else ''}): "
            "paired runs use different networks"
        )
    if times := [key for key in ("duration", "warm_up") if key in changes]:
        notes.append(f"{listed(times)} differ: paired runs were measured over different times")
    return changed, notes


def _scenario(side: Side, cell: str) -> TomlTable:
    name = f"{side.name}: scenarios/{cell}.toml"
    return toml_in(side.scenarios[cell], name, "; make the results again")


def _changes(before: Any, after: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Keys of a scenario whose values differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            if key or name not in _IGNORED:
                inner = f"{key}.{name}" if key else name
                yield from _changes(before.get(name), after.get(name), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            names = {each.get("name") for each in pair} if key in ARRAYS else set()
            step = f".{names.pop()}" if len(names) == 1 else f"[{index}]"
            yield from _changes(*pair, key + step)
    elif before != after:
        yield key, f"{_value(before)} → {_value(after)}"


def _value(value: Any) -> str:
    return "not set" if value is None else in_line(value)


def _words(metric: str) -> str:
    return METRICS.get(metric, f"share of {metric.removeprefix('share_')}")


def _table(names: str, rows: Sequence[tuple[str, Difference]]) -> Table:
    headings = (names, "A", "B", "B − A [95 %]", "relative")
    return Table(headings, tuple((name, *_numbers(each)) for name, each in rows))


def _numbers(each: Difference) -> tuple[str, ...]:
    relative = each.difference.value / each.a * 100 if each.a else None
    return (
        number(each.a),
        number(each.b),
        each.difference.text(),
        "–" if relative is None else f"{relative:+.1f} %".replace("-", "−"),
    )
