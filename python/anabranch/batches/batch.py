"""Batches of runs and their results. Finished runs are never lost or repeated."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anabranch.batches.journal import Journal
from anabranch.batches.reduction import Reduced, Task, make
from anabranch.batches.tables import tables
from anabranch.results.folder import PROVENANCE, Results, writing
from anabranch.results.provenance import describe_host
from anabranch.runs import executors
from anabranch.runs.executors import Executor, Meter, Progress
from anabranch.scenarios import custom

_LIVE_COST = 2e6
"""Cost of a second of real time, in packets: about as many as virtual time simulates in 1 s."""


def execute(
    about: dict[str, Any],
    tasks: Sequence[Task],
    folder: Path,
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Make the runs that are missing in the folder, and write the results of all runs to it.

    Each finished run is recorded in the folder's journal. The runs that probably take longest
    start first. The results are in the order of `tasks`. `on` is the address of a Dask scheduler;
    by default the runs use all local cores. `about` goes into the provenance.

    Warns if the journal was damaged.

    Raises:
        InputError: if the folder cannot be written, the address is unusable, or the user's own
            policy cannot be sent to another process.
        IntegrityError: if a connection failed or delivered wrong bytes.
        PolicyError: if the user's own policy raised an exception.
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
    """Wall time of earlier complete attempts that left results in the folder.

    The duration of an interrupted attempt is unknown.
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
    """The number of runs that the journal held, and all runs in their order."""
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
            journal.add(keys[new[position]], run)  # in this thread, even if other runs have failed
            return run

        chosen = [costs[position] for position in positions]
        executors.call_all(
            executor, work, positions, chosen, lambda index, run: done(positions[index], run)
        )

    live = [position for position, index in enumerate(new) if _needs_real_time(tasks[index])]
    virtual = [position for position in range(len(new)) if position not in set(live)]
    if virtual:
        scenarios = [tasks[new[at]].scenario for at in virtual]
        for scenario in scenarios:
            custom.require_picklable(scenario)
        custom_policies = any(scenario.policies for scenario in scenarios)
        with executors.opened(on, custom_policies=custom_policies) as executor:
            make_these(virtual, executor)
    if live:
        # Live runs must not share the processor, so they run one after another.
        with executors.opened(workers=1) as executor:
            make_these(live, executor)
    return found, [reduced[index] for index in range(len(tasks))]


def _needs_real_time(task: Task) -> bool:
    return task.hosts is not None and task.hosts.need_real_time


def _cost(task: Task) -> float:
    """Cost of a run, proportional to the bytes it carries, or in real time to its duration."""
    if task.hosts is None:
        return task.scenario.cost
    return _LIVE_COST * task.scenario.duration_ns / 1e9


def collect(about: dict[str, Any], tasks: Sequence[Task], reduced: Sequence[Reduced]) -> Results:
    """The results of several runs: their concatenated tables and their provenance."""
    scenarios: dict[str, str] = {}
    for task in tasks:
        scenarios.setdefault(task.cell, task.scenario.to_toml())
    runs = [
        {"cell": task.cell, "seed": task.seed, "digest": each.digest, "starts": task.starts}
        for task, each in zip(tasks, reduced, strict=True)
    ]
    effort = {
        "data_segments": sum(each.data_segments for each in reduced),
        "cpu_s": round(sum(each.cpu_s for each in reduced), 2),
    }
    provenance = {**describe_host(), **about, **effort, "runs": runs}
    if policies := dict.fromkeys(policy for each in reduced for policy in each.custom_policies):
        # Scenarios only name these policies: without them, the runs cannot be repeated.
        provenance["custom_policies"] = [dataclasses.asdict(policy) for policy in policies]
    return Results(
        provenance=provenance,
        scenarios=scenarios,
        **tables(tasks, reduced),
    )
