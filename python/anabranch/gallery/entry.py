"""Gallery entries: cells, which are run with several seeds each.

An entry declares what is run (cells), what is claimed about it, and what is drawn. It contains
no protocol logic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.batches.reduction import Task
from anabranch.reports.figures import Panel
from anabranch.results.claims import Claim
from anabranch.results.folder import Factor, Results
from anabranch.results.provenance import build
from anabranch.runs.run import normalised
from anabranch.scenarios.scenario import Scenario

SEEDS_WITH_BLOCKS = 5
"""Delays of single blocks are kept for this many seeds; metrics are computed from all."""

START_SPREAD_US = 200_000
"""Connections start within the first 200 ms, at a time that depends on the seed (ours)."""

_GOLDEN = 0.6180339887498949  # fractions of its multiples spread evenly over [0, 1)


@dataclass(frozen=True)
class Tier:
    """How much is run."""

    name: str
    seeds: int
    measured_s: int
    """Simulated seconds after the warm-up."""
    warm_up_s: int = 5

    @property
    def duration(self) -> str:
        """Simulated time of one run, for a scenario."""
        return f"{self.warm_up_s + self.measured_s}s"

    @property
    def warm_up(self) -> str:
        """The time that metrics leave out, for a scenario."""
        return f"{self.warm_up_s}s"


@dataclass(frozen=True)
class Cell:
    """One combination of factors, which is run with every seed."""

    key: str
    """Unique in its entry, and fit for a file name."""
    scenario: Scenario
    factors: Mapping[str, Factor]
    keep_blocks: bool = False
    """Are the delays of single blocks kept, so that their distribution can be drawn?"""
    keep_samples: bool = False
    """Are the time series of all seeds kept, so that a claim can be judged by them?"""
    stacks: tuple[str, str] | None = None
    """Whose TCP client and server run, in real time; `None` in virtual time."""

    def task(self, seed: int) -> Task:
        """The run of this cell with a seed."""
        scenario = self.scenario.starting_at(start_time(seed))
        return Task(
            cell=self.key,
            factors=self.factors,
            toml=normalised(scenario),
            file=scenario.name,
            seed=seed,
            build=build(),
            keep_blocks=self.keep_blocks and seed <= SEEDS_WITH_BLOCKS,
            keep_samples=self.keep_samples or seed == 1,
            made_by=scenario.made_by(),
            stacks=self.stacks,
        )


@dataclass(frozen=True)
class Parameter:
    """A number that an experiment depends on, and who chose it."""

    name: str
    value: str
    source: str
    """A citation, or ``"ours"``."""


@dataclass(frozen=True)
class Overview:
    """The table of all cells in a report."""

    factors: Mapping[str, str]
    """Columns that tell cells apart, with their headings."""
    metrics: Mapping[str, str]
    """Columns shown as median over seeds with interval, with their headings."""
    path: str
    """The path whose share of the bytes is shown."""


@dataclass(frozen=True)
class Entry:
    """A published result, as an experiment with claims."""

    id: str
    title: str
    question: str
    references: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    quick: Tier
    full: Tier
    cells: Callable[[Tier], Sequence[Cell]]
    claims: tuple[Claim, ...]
    panels: tuple[Panel, ...]
    overview: Overview
    headline: str = ""
    """The claim whose measured number is told first; by default the first claim."""
    notes: Callable[[Results], Sequence[str]] = field(default=lambda _: ())
    """Paragraphs for the report, with measured numbers."""

    @property
    def is_live(self) -> bool:
        """Are some of its runs made in real time?"""
        return any(cell.stacks for cell in self.cells(self.quick))


def start_time(seed: int) -> str:
    """When connections start in the run with this seed."""
    return f"{round(seed * _GOLDEN % 1 * START_SPREAD_US)}us"
