"""Gallery entries: the code of published experiments, which are cells, claims and drawings.

Each cell runs with several seeds. Claims state what the results should show, and panels draw the
results. An entry contains no protocol logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from anabranch.batches.reduction import Task
from anabranch.errors import InputError, unknown
from anabranch.gallery.claims import Unnamed
from anabranch.gallery.data import filled
from anabranch.gallery.metrics import Metric, Texts
from anabranch.gallery.panels import Drawings
from anabranch.gallery.parameters import Parameter, parameters, quoted, with_shared_rows
from anabranch.gallery.registry import SOURCES, UNCERTAIN, EntryRow
from anabranch.gallery.systems import Source, source_of
from anabranch.live.hosts import Hosts
from anabranch.reports.figures import Panel
from anabranch.reports.table import Table
from anabranch.results.claims import Claim
from anabranch.results.folder import Factor, Results
from anabranch.results.provenance import build
from anabranch.scenarios import loading
from anabranch.scenarios.scenario import Connection, NetworkPath, Scenario

SEEDS_WITH_BLOCKS = 5
"""This many seeds keep the delays of single blocks. All seeds contribute to metrics."""

START_SPREAD_US = 200_000
"""Connections start within the first 200 ms, at a time that depends on the seed."""

_GOLDEN = 0.6180339887498949  # fractions of its multiples spread evenly over [0, 1)


@dataclass(frozen=True)
class Tier:
    """The size of an experiment: its seeds and the duration of a run."""

    name: str
    seeds: int
    measured_s: int = 0
    """Simulated seconds after the warm-up; 0 if each scenario has its own duration."""
    warm_up_s: int = 5

    @property
    def duration(self) -> str:
        """Simulated time of one run, in the notation of a scenario."""
        return f"{self.warm_up_s + self.measured_s}s"

    @property
    def warm_up(self) -> str:
        """The time that metrics exclude, in the notation of a scenario."""
        return f"{self.warm_up_s}s"

    def scenario(
        self,
        name: str,
        paths: Iterable[NetworkPath],
        connections: Connection | Iterable[Connection],
        **others: Any,
    ) -> Scenario:
        """A scenario of this duration and warm-up, unless `others` have different ones."""
        several = (connections,) if isinstance(connections, Connection) else tuple(connections)
        times = {"duration": self.duration, "warm_up": self.warm_up}
        return Scenario(name=name, paths=tuple(paths), connections=several, **(times | others))

    def cell(
        self,
        factors: Mapping[str, Factor],
        paths: Iterable[NetworkPath],
        connections: Connection | Iterable[Connection],
        *,
        words: Iterable[str] = (),
        name: str = "",
        keep_blocks: bool = False,
        keep_samples: bool = False,
        keep_starts: bool = False,
        **others: Any,
    ) -> Cell:
        """A cell with a scenario of this tier, whose key and name consist of `words`.

        By default, the words are the levels of the factors. `name` is another name. With
        `keep_starts`, the seeds do not change the times at which connections start.
        """
        levels = tuple(words) or tuple(map(str, factors.values()))
        scenario = self.scenario(name or ", ".join(levels), paths, connections, **others)
        return Cell(
            key_of(*levels),
            ScenarioText(scenario.name, loading.of(scenario).to_toml())
            if keep_starts
            else scenario,
            factors,
            keep_blocks=keep_blocks,
            keep_samples=keep_samples,
        )


class Factors:
    """The names of the factors of an entry's cells. Calls with levels give a cell's factors."""

    def __init__(self, *names: str, **defaults: Factor) -> None:
        self._names = (*names, *defaults)
        self._defaults = defaults

    def __call__(self, *levels: Factor, **named: Factor) -> dict[str, Factor]:
        """The factors of a cell, in the order of their names.

        Raises:
            TypeError: if a level is missing, or there are too many.
        """
        given = dict(zip(self._names, levels, strict=False))
        found = self._defaults | given | named
        if found.keys() != set(self._names) or len(given) < len(levels) or given.keys() & named:
            raise TypeError(f"the factors are {', '.join(self._names)}; given: {levels}, {named}")
        return {name: found[name] for name in self._names}

    def every(
        self, *levels: Factor | Iterable[Factor], **named: Factor | Iterable[Factor]
    ) -> list[dict[str, Factor]]:
        """The factors of several cells: one for each combination of these levels."""
        given = dict(zip(self._names, levels, strict=False)) | named
        several = [
            (level,) if isinstance(level, str | float | int) else level for level in given.values()
        ]
        return [self(**dict(zip(given, case, strict=True))) for case in product(*several)]


Cells = Callable[["Tier"], "Sequence[Cell]"]
"""The cells of an entry, or a part of them."""


def grid(cell: Callable[..., Cell], **levels: Iterable[Any]) -> Cells:
    """The cells of all combinations of levels, each made by `cell` from a tier and named levels.

    The levels of the last name follow each other.
    """
    return lambda tier: [
        cell(tier, **dict(zip(levels, case, strict=True))) for case in product(*levels.values())
    ]


def joined(*parts: Cells) -> Cells:
    """The cells of several parts, one part after the other."""
    return lambda tier: [cell for part in parts for cell in part(tier)]


def key_of(*words: str) -> str:
    """The key of a cell, usable as a file name, from the words that identify the cell."""
    return "_".join(words).lower().translate(str.maketrans(" +,", "---", "()"))


@dataclass(frozen=True)
class ScenarioText:
    """A scenario as text, which the seeds do not change."""

    name: str
    toml: str
    """The normalised scenario."""


@dataclass(frozen=True)
class SeededScenario:
    """A scenario that each seed draws, such as a random traffic matrix."""

    name: str
    of_seed: Callable[[int], Scenario]
    """The scenario of a seed, with the times at which its connections start."""


@dataclass(frozen=True)
class Cell:
    """One combination of factors. It runs once with every seed."""

    key: str
    """Unique in the entry and usable as a file name."""
    scenario: Scenario | ScenarioText | SeededScenario
    """The connections of a `Scenario` start at a time that depends on the seed."""
    factors: Mapping[str, Factor]
    keep_blocks: bool = False
    """Whether to keep the delays of single blocks, from which panels draw distributions."""
    keep_samples: bool = False
    """Whether to keep the time series of all seeds, for claims that need them."""
    hosts: Hosts | None = None
    """The hosts of a live run; `None` in virtual time."""
    may_fail: bool = False
    """Whether a connection may fail."""
    source: Source | None = None
    """The source on whose system the cell runs; `None` for this engine."""

    def on(self, source: Source) -> Cell:
        """The cell on the system of a source."""
        return replace(self, source=source)

    def task(self, seed: int) -> Task:
        """The run of this cell with a seed."""
        if isinstance(self.scenario, ScenarioText):
            scenario = loading.of_text(self.scenario.toml, self.scenario.name)
        elif isinstance(self.scenario, SeededScenario):
            scenario = loading.of(self.scenario.of_seed(seed))
        else:
            scenario = loading.of(self.scenario.starting_at(start_time(seed)))
        if self.source is not None:
            scenario = self.source.system.scenario(scenario, self.source.studied)
        return Task(
            cell=self.key,
            factors=self.factors,
            scenario=scenario,
            seed=seed,
            build=build(),
            keep_blocks=self.keep_blocks and seed <= SEEDS_WITH_BLOCKS,
            keep_samples=self.keep_samples or seed == 1,
            may_fail=self.may_fail,
            hosts=self.hosts,
        )


class Overview:
    """The columns of a report's table of all cells."""

    def __init__(self, factors: str, path: str, metrics: Sequence[Metric]) -> None:
        """Name the factors that distinguish the cells, as ``curve; kib: size (KiB)``.

        `path` is the path whose share of the bytes the table shows. Each metric has its median over
        seeds and its interval.
        """
        pairs = (part.partition(": ") for part in factors.split("; "))
        self.factors = {name: heading or name for name, _, heading in pairs}
        self.path = path
        self.metrics = metrics


@dataclass(frozen=True)
class Experiment:
    """The code of an entry: cells, measures and drawings."""

    design: Cells
    """The cells on this engine."""
    named_claims: Mapping[str, Unnamed]
    """The claims by name, without statements and bounds, which the file of the entry has."""
    drawings: Drawings
    """The drawings of the panels, by title. The file has their captions."""
    overview: Overview | Callable[[Results], Table]
    """The report's table of all cells."""
    words: Mapping[str, object] = field(default_factory=dict)
    """Words for the braces of the text and of the claims."""
    measured_words: Callable[[Results], Mapping[str, object]] = field(default=lambda _: {})
    """Words with measured numbers, for the braces of the notes."""
    finding: Callable[[Results], Sequence[str]] | None = None
    """Sentences that lead the report, instead of the measured value of the claim `headline`."""
    summary: Callable[[Results], Table] | None = None
    """A table that follows the finding."""
    uncited: tuple[str, ...] = ()
    """References in full, if `references.toml` does not have them."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Further facts about the runs, for their provenance."""

    def with_row(self, name: str, row: EntryRow) -> Entry:
        """The entry of this name, whose file has this content.

        Raises:
            InputError: if the file lacks a claim, or a claim a word, or the headline is no claim.
        """
        if row.headline and row.headline not in self.named_claims:
            raise InputError(f'the entry {name}: headline = "{row.headline}" is none of its claims')
        groups = (UNCERTAIN[group] for group in row.uncertain)
        return Entry(
            **{each.name: getattr(self, each.name) for each in fields(Experiment)},
            id=name,
            row=row,
            claims=tuple(claim(key, self.words) for key, claim in self.named_claims.items()),
            quick=Tier("quick", **vars(row.quick)),
            full=Tier("full", **vars(row.full)),
            uncertain_parameters={word: key for each in groups for word, key in each.items()},
            source=source_of(row.system, row.studied) if row.system else None,
        )


@dataclass(frozen=True, kw_only=True)
class Entry(Experiment):
    """A published result, reproduced as an experiment with claims."""

    id: str
    """The name in the catalogue."""
    row: EntryRow
    """The content of the entry's file."""
    claims: tuple[Claim, ...]
    """The claims with their statements and bounds."""
    quick: Tier
    """The size without options."""
    full: Tier
    """The size with ``--full``."""
    uncertain_parameters: Mapping[str, str]
    """Parameters that the sources leave open or state roughly: words, and a pattern of keys."""
    source: Source | None
    """The system of a source that ran a kernel. The cells run on it, and it is judged."""

    @property
    def references(self) -> tuple[str, ...]:
        """The sources in full."""
        found = (*self.uncited, *(SOURCES[name] for name in self.row.cites))
        return found or ("This project: an experiment without a source.",)

    def cells(self, tier: Tier) -> Sequence[Cell]:
        """The cells on the system that the claims judge: that of the source, or this engine."""
        cells = self.design(tier)
        return [cell.on(self.source) for cell in cells] if self.source else cells

    def parameter_table(self) -> tuple[Parameter, ...]:
        """The system, and the parameters with the settings that they quote from the scenarios.

        The tiers differ only in durations and in the number of settings of a design.

        Raises:
            InputError: if the text of the table has a mistake.
        """
        scenarios = {cell.key: cell.task(1).scenario.settings for cell in self.cells(self.quick)}
        try:
            table = with_shared_rows(self.row.parameters)
            (text,) = filled("parameters", [table], {}, self.words)
            rows = quoted(parameters(text), scenarios)
        except InputError as error:
            raise InputError(f"the entry {self.id}: {error}") from error
        if self.source is None:
            return rows
        return (Parameter("system", self.source.system.name, self.source.says), *rows)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The panels, with their captions.

        Raises:
            InputError: if a panel has no caption, or a caption has a mistake.
        """
        return tuple(
            Panel(title, self._filled("captions", self._caption(title)), draw)
            for title, draw in self.drawings.items()
        )

    def _caption(self, title: str) -> str:
        for pattern, caption in self.row.captions.items():
            if fnmatchcase(title, pattern):
                return caption
        valid = self.row.captions
        raise unknown(f"the entry {self.id}: captions: none of the panel", title, valid)

    def notes(self, results: Results) -> list[str]:
        """Paragraphs of the report, with measured numbers.

        Raises:
            InputError: if the text of the notes has a mistake.
        """
        cells = [cell.factors for cell in self.cells(self.quick)]
        measured = {
            word: replace(each, cells=cells) if isinstance(each, Texts) else each
            for word, each in self.measured_words(results).items()
        }
        text = self._filled("notes", self.row.notes, measured)
        return [" ".join(each.splitlines()) for each in text.strip().split("\n\n") if each]

    def _filled(self, key: str, text: str, measured: Mapping[str, object] | None = None) -> str:
        """A text with words in its braces."""
        (found,) = filled(f"the entry {self.id}: {key}", [text], measured or {}, self.words)
        return found

    @property
    def is_live(self) -> bool:
        """`True` if the entry has runs in real time."""
        return any(cell.hosts for cell in self.cells(self.quick))


def start_time(seed: int) -> str:
    """The time at which connections start in the run with this seed."""
    return f"{round(seed * _GOLDEN % 1 * START_SPREAD_US)}us"
