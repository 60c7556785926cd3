"""Many runs, none of them lost or made twice, and the results that they add up to."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.batches.journal import Journal
from anabranch.batches.reduction import Reduced, Task, make
from anabranch.results.folder import PROVENANCE, TABLES, Results, writing
from anabranch.results.provenance import describe_host
from anabranch.runs import executors
from anabranch.runs.executors import Executor, Meter, Progress
from anabranch.runs.run import cost
from anabranch.scenarios import own
from anabranch.scenarios.quantities import nanoseconds

_LIVE_COST = 2e6
"""Packets that can be simulated in a second; what a second of real time costs, then."""


def execute(
    about: dict[str, Any],
    tasks: Sequence[Task],
    folder: Path,
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Make the runs that the folder does not hold yet, and write the results of all to it.

    Each run is recorded in the folder's journal when it is finished, those that probably take
    longest are started first, and the results are in the order of `tasks`. `on` is the address of
    a Dask scheduler, all local cores unless given; `about` goes into the provenance.

    Warns if the journal was damaged.

    Raises:
        InputError: if the folder cannot be written, an own policy cannot be handed to a process,
            or the address cannot be used.
        IntegrityError: if a connection failed or delivered wrong bytes.
        PolicyError: if a policy of the user's own raised an exception.
    """
    started = time.perf_counter()
    executors.check_address(on)
    with writing(folder), contextlib.closing(Journal(folder)) as journal:
        if journal.damage:
            warnings.warn(journal.damage, RuntimeWarning, stacklevel=2)
        before_s = _earlier_wall_s(folder)
        found, reduced = _make_new(tasks, journal, on, on_progress)
        wall_s = time.perf_counter() - started
        effort = {
            "wall_s": round(wall_s, 2),
            "wall_all_s": round(wall_s + (before_s if found else 0), 2),
            "runs_found": found,
        }
        results = collect({**about, **effort}, tasks, reduced)
        results.save(folder)
        journal.keep_only_used()
    return results


def _earlier_wall_s(folder: Path) -> float:
    """Wall time of earlier attempts that came to their end and left results in the folder.

    What an interrupted attempt took is not known.
    """
    try:
        return float(json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))["wall_all_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _make_new(
    tasks: Sequence[Task],
    journal: Journal,
    on: str | None,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[int, list[Reduced]]:
    """All runs in their order, and how many of them the journal held."""
    keys = [task.key() for task in tasks]
    reduced = {index: run for index, key in enumerate(keys) if (run := journal.find(key))}
    found = len(reduced)
    new = [index for index in range(len(tasks)) if index not in reduced]
    costs = [_cost(tasks[index]) for index in new]
    meter = Meter(on_progress, costs, found)

    def done(position: int, run: Reduced) -> None:
        reduced[new[position]] = run
        meter.made(position, run.virtual_ns)

    def make_these(positions: Sequence[int], executor: Executor) -> None:
        def work(position: int) -> Reduced:
            run = executor.call(make, tasks[new[position]])
            journal.add(keys[new[position]], run)  # in this thread: also when others have failed
            return run

        chosen = [costs[position] for position in positions]
        executors.call_all(
            executor, work, positions, chosen, lambda index, run: done(positions[index], run)
        )

    virtual = [position for position, index in enumerate(new) if not tasks[index].stacks]
    live = [position for position, index in enumerate(new) if tasks[index].stacks]
    if virtual:
        own_policies = [made_by for at in virtual if (made_by := tasks[new[at]].made_by)]
        for made_by in own_policies:
            own.require_picklable(made_by)
        with executors.opened(on, own_policies=bool(own_policies)) as executor:
            make_these(virtual, executor)
    if live:
        # One after the other: they share the processor with nobody, least of all each other.
        with executors.opened(workers=1) as executor:
            make_these(live, executor)
    return found, [reduced[index] for index in range(len(tasks))]


def _cost(task: Task) -> float:
    """What a run costs: in proportion to the bytes it carries, or to the time it lasts."""
    if task.stacks is None:
        return cost(task.toml)
    return _LIVE_COST * nanoseconds(task.settings["duration"]) / 1e9


def collect(about: dict[str, Any], tasks: Sequence[Task], reduced: Sequence[Reduced]) -> Results:
    """The results of some runs: their tables, one above the other, and where they come from."""
    scenarios: dict[str, str] = {}
    for task in tasks:
        scenarios.setdefault(task.cell, task.toml)
    runs = [
        {"cell": task.cell, "seed": task.seed, "digest": each.digest, "starts": task.starts}
        for task, each in zip(tasks, reduced, strict=True)
    ]
    effort = {
        "segments": sum(each.segments for each in reduced),
        "cpu_s": round(sum(each.cpu_s for each in reduced), 2),
    }
    provenance = {**describe_host(), **about, **effort, "runs": runs}
    if policies := dict.fromkeys(policy for each in reduced for policy in each.own_policies):
        # What the scenarios can only name: without these they do not repeat the runs.
        provenance["own_policies"] = [dataclasses.asdict(policy) for policy in policies]
    return Results(
        provenance=provenance,
        scenarios=scenarios,
        **{name: _stack([getattr(each, name) for each in reduced]) for name in TABLES},
    )


def _stack(tables: list[pl.DataFrame]) -> pl.DataFrame:
    # The first one keeps the columns, should all be empty.
    filled = [tables[0], *(table for table in tables[1:] if not table.is_empty())]
    return pl.concat(filled, how="diagonal_relaxed")
