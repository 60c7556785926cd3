"""Many runs, none of them lost or made twice, and the results that they add up to."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from anabranch import executors, own
from anabranch.executors import Meter, Progress
from anabranch.journal import Journal
from anabranch.provenance import describe_host
from anabranch.reduction import Reduced, Task, make
from anabranch.results import TABLES, Results
from anabranch.run import cost


def execute(
    about: dict[str, Any],
    tasks: Sequence[Task],
    journal: Journal,
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Make the runs that the journal does not hold yet, and collect the results of all.

    Each run is recorded when it is finished, those that probably take longest are started first,
    and the results are in the order of `tasks`. `on` is the address of a Dask scheduler, all
    local cores unless given; `about` goes into the provenance.

    Raises:
        InputError: if the journal cannot be written, an own policy cannot be handed to a process,
            or the address cannot be used.
        IntegrityError: if a connection failed or delivered wrong octets.
        PolicyError: if a policy of the user's own raised an exception.
    """
    started = time.perf_counter()
    keys = [task.key() for task in tasks]
    reduced = {index: run for index, key in enumerate(keys) if (run := journal.find(key))}
    new = [index for index in range(len(tasks)) if index not in reduced]
    costs = [cost(tasks[index].toml) for index in new]
    meter = Meter(on_progress, costs, found=len(reduced))

    has_own = any(tasks[index].made_by for index in new)
    for index in new:
        own.require_picklable(tasks[index].made_by or [])
    if new:
        with executors.opened(on, own_policies=has_own) as executor:

            def work(index: int) -> Reduced:
                run = executor.call(make, tasks[index])
                journal.add(keys[index], run)  # here, so that a run ending after Ctrl-C counts
                return run

            def done(position: int, run: Reduced) -> None:
                reduced[new[position]] = run
                meter.made(position, run.virtual_ns)

            executors.call_all(executor, work, new, costs, done)
    about = {
        **about,
        "wall_s": round(time.perf_counter() - started, 2),
        "runs_found": len(tasks) - len(new),
    }
    return collect(about, tasks, [reduced[index] for index in range(len(tasks))])


def collect(about: dict[str, Any], tasks: Sequence[Task], reduced: Sequence[Reduced]) -> Results:
    """The results of some runs: their tables, one above the other, and where they come from."""
    scenarios: dict[str, str] = {}
    for task in tasks:
        scenarios.setdefault(task.cell, task.toml)
    runs = [
        {"cell": task.cell, "seed": task.seed, "digest": each.digest, "starts": task.starts}
        for task, each in zip(tasks, reduced, strict=True)
    ]
    provenance = {**describe_host(), **about, "runs": runs}
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
