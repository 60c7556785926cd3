"""Gallery entries and their execution: cells times seeds, reduced to results.

An entry declares what is run (cells), what is claimed about it, and what is drawn. It contains
no protocol logic.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from anabranch import metrics
from anabranch.claims import Claim
from anabranch.errors import IntegrityError
from anabranch.own import OwnPolicy
from anabranch.provenance import describe_host
from anabranch.results import Factor, Results
from anabranch.run import Job, Progress, Run, run_many
from anabranch.scenario import Scenario

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

    def job(self, seed: int) -> Job:
        """The run of this cell with a seed."""
        return Job(self.scenario.starting_at(start_time(seed)), seed, self.key)


@dataclass(frozen=True)
class Parameter:
    """A number that an experiment depends on, and who chose it."""

    name: str
    value: str
    source: str
    """A citation, or ``"ours"``."""


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure."""

    title: str
    caption: str
    """How to read it, for the report."""
    draw: Callable[[Results, Axes], None]


@dataclass(frozen=True)
class Overview:
    """The table of all cells in a report."""

    factors: Mapping[str, str]
    """Columns that tell cells apart, with their headings."""
    metrics: Mapping[str, str]
    """Columns shown as median over seeds with interval, with their headings."""
    path: str
    """The path whose share of the octets is shown."""
    coarse_model: Callable[[Mapping[str, Any]], str] | None = None
    """What a coarse model predicts for a row of `runs`; not a truth, a plausibility check."""


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
    notes: Callable[[Results], Sequence[str]] = field(default=lambda _: ())
    """Paragraphs for the report, with measured numbers."""


@dataclass(frozen=True)
class _Reduced:
    """What is kept of a run."""

    runs: pl.DataFrame
    subflows: pl.DataFrame
    links: pl.DataFrame
    blocks: pl.DataFrame | None
    samples: pl.DataFrame | None
    toml: str
    digest: str
    starts: list[str]
    own_policies: tuple[OwnPolicy, ...]


def start_time(seed: int) -> str:
    """When connections start in the run with this seed."""
    return f"{round(seed * _GOLDEN % 1 * START_SPREAD_US)}us"


def execute(
    entry: Entry,
    tier: Tier,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run all cells of an entry with the seeds 1 to `tier.seeds`.

    Raises:
        IntegrityError: if a connection failed or delivered wrong octets.
    """
    cells = {cell.key: cell for cell in entry.cells(tier)}
    seeds = range(1, tier.seeds + 1)
    jobs = [cell.job(seed) for cell in cells.values() for seed in seeds]

    def reduce(job: Job, run: Run) -> _Reduced:
        return _reduce(cells[job.cell], run, everything=False)

    started = time.perf_counter()
    reduced = run_many(jobs, reduce, on_progress=on_progress)
    about = {
        "entry": entry.id,
        "tier": tier.name,
        "seeds": list(seeds),
        "duration": tier.duration,
        "warm_up": tier.warm_up,
    }
    return _collect(about, jobs, reduced, time.perf_counter() - started)


def single(run: Run, name: str, wall_s: float) -> Results:
    """The results of one run of a user's scenario, with every block and sample."""
    scenario = Scenario(name=name, duration="0s", paths=(), connections=())
    reduced = _reduce(Cell(name, scenario, {}), run, everything=True)
    about = {
        "entry": None,
        "scenario": name,
        "description": run.settings["description"],
        "seeds": [run.seed],
        "duration": run.settings["duration"],
        "warm_up": run.settings["warm_up"],
    }
    return _collect(about, [Job(scenario, run.seed, name)], [reduced], wall_s)


def _reduce(cell: Cell, run: Run, *, everything: bool) -> _Reduced:
    rows = [metrics.connection_row(run, index) for index in range(run.connections.height)]
    for row in rows:
        _check_integrity(f"{cell.key}, seed {run.seed}", row, may_fail=everything)
    label = {"cell": cell.key, **cell.factors, "seed": run.seed}
    labels = [pl.lit(value).alias(name) for name, value in label.items()]

    def labelled(table: pl.DataFrame) -> pl.DataFrame:
        return table.select(*labels, pl.all())

    keep_blocks = everything or (cell.keep_blocks and run.seed <= SEEDS_WITH_BLOCKS)
    keep_samples = everything or run.seed == 1
    return _Reduced(
        runs=labelled(pl.DataFrame(rows, infer_schema_length=None)),
        subflows=labelled(metrics.subflow_rows(run)),
        links=labelled(metrics.link_rows(run)),
        blocks=labelled(metrics.block_rows(run)) if keep_blocks else None,
        samples=labelled(metrics.sample_rows(run)) if keep_samples else None,
        toml=run.toml,
        digest=run.digest,
        starts=[connection["start"] for connection in run.settings["connection"]],
        own_policies=run.own_policies,
    )


def _check_integrity(where: str, row: Mapping[str, Any], *, may_fail: bool) -> None:
    if row["corrupt_octets"]:
        raise IntegrityError(f"{where}: {row['corrupt_octets']} octets were delivered wrong")
    if row["failed"] and not may_fail:
        raise IntegrityError(f"{where}: {row['connection']} failed")


def _collect(
    about: dict[str, Any], jobs: Sequence[Job], reduced: Sequence[_Reduced], wall_s: float
) -> Results:
    scenarios: dict[str, str] = {}
    for job, each in zip(jobs, reduced, strict=True):
        scenarios.setdefault(job.cell, each.toml)
    runs = [
        {"cell": job.cell, "seed": job.seed, "digest": each.digest, "starts": each.starts}
        for job, each in zip(jobs, reduced, strict=True)
    ]
    provenance = {**describe_host(), **about, "wall_s": round(wall_s, 2), "runs": runs}
    if policies := dict.fromkeys(policy for each in reduced for policy in each.own_policies):
        # What the scenarios can only name: without these they do not repeat the runs.
        provenance["own_policies"] = [dataclasses.asdict(policy) for policy in policies]
    return Results(
        provenance=provenance,
        scenarios=scenarios,
        runs=_stack([each.runs for each in reduced]),
        subflows=_stack([each.subflows for each in reduced]),
        links=_stack([each.links for each in reduced]),
        blocks=_stack([each.blocks for each in reduced if each.blocks is not None]),
        samples=_stack([each.samples for each in reduced if each.samples is not None]),
    )


def _stack(tables: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
