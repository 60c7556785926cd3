"""Batches of runs and their results. Finished runs are never lost or repeated."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.batches.journal import Journal
from anabranch.batches.making import Planned, make_all
from anabranch.batches.reduction import Task, keys, require_free_names
from anabranch.batches.tables import tables
from anabranch.results.collected import Collected
from anabranch.results.folder import PROVENANCE, Results, writing
from anabranch.results.provenance import describe_host
from anabranch.runs import executors
from anabranch.runs.executors import Meter, Progress


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
    require_free_names(tasks)
    with writing(folder), contextlib.closing(Journal(folder)) as journal:
        if journal.damage:
            warnings.warn(journal.damage, RuntimeWarning, stacklevel=2)
        before_s = _earlier_wall_s(folder)
        runs = [Planned(*each) for each in zip(tasks, keys(tasks), strict=True)]
        new = [run for run in runs if not journal.core.contains(run.key)]
        found = len(runs) - len(new)
        meter = Meter(on_progress, [run.cost for run in new], found)
        make_all(new, journal, meter, on)
        wall_s = time.perf_counter() - started
        effort = {
            "wall_s": round(wall_s, 2),
            "wall_all_s": round(wall_s + (before_s if found else 0), 2),
            "runs_found": found,
        }
        scenarios = Numbered(task.scenario for task in tasks)
        of_runs = [(number, run.key) for number, run in zip(scenarios.of_each, runs, strict=True)]
        found_tables = journal.collect(scenarios.distinct, of_runs)
        results = collect({**about, **effort}, tasks, scenarios.of_each, found_tables)
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


class Numbered:
    """The distinct objects of a list, and the number of each object of the list among them."""

    def __init__(self, objects: Iterable[_core.Scenario]) -> None:
        numbers: dict[int, int] = {}
        self.distinct: list[_core.Scenario] = []
        self.of_each: list[int] = []
        for each in objects:
            number = numbers.setdefault(id(each), len(numbers))
            if number == len(self.distinct):
                self.distinct.append(each)
            self.of_each.append(number)


def collect(
    about: dict[str, Any], tasks: Sequence[Task], scenario_of_run: Sequence[int], found: Collected
) -> Results:
    """The results of several runs: their concatenated tables and their provenance.

    `scenario_of_run` has the number of each run's scenario in `found`.
    """
    scenarios: dict[str, str] = {}
    starts: dict[int, list[str]] = {}
    runs = []
    for number, task, digest in zip(scenario_of_run, tasks, found.digests, strict=True):
        if task.cell not in scenarios:
            scenarios[task.cell] = task.scenario.to_toml()
        if number not in starts:
            starts[number] = task.starts
        runs.append(
            {"cell": task.cell, "seed": task.seed, "digest": digest, "starts": starts[number]}
        )
    effort = {
        "data_segments": sum(found.data_segments),
        "cpu_s": round(sum(found.cpu_s), 2),
    }
    provenance = {**describe_host(), **about, **effort, "runs": runs}
    notes = (json.loads(note) for note in dict.fromkeys(found.notes) if note)
    policies = [policy for note in notes for policy in note.get("custom_policies", ())]
    if policies:
        # Scenarios only name these policies: without them, the runs cannot be repeated.
        distinct = {json.dumps(policy): policy for policy in policies}
        provenance["custom_policies"] = list(distinct.values())
    return Results(
        provenance=provenance,
        scenarios=scenarios,
        **tables(tasks, scenario_of_run, found),
    )
