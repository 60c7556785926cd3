"""Sweeps of a scenario over all combinations of factors, with several seeds each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from anabranch.batches import batch
from anabranch.batches.reduction import Task, require_free_names
from anabranch.live import support
from anabranch.live.hosts import Hosts
from anabranch.results.folder import Results
from anabranch.runs.executors import Progress
from anabranch.sweeps.plan import Plan


def sweep(
    plan: str | os.PathLike[str] | Plan,
    out: str | os.PathLike[str],
    *,
    on: str | None = None,
    hosts: Hosts | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run a sweep, given as a plan or as the name of its TOML file; write and return its results.

    A second call with the same folder `out` makes only the missing runs. `on` is the address of a
    Dask scheduler (``dask://HOST:PORT``); by default the sweep runs on all local cores.
    With `hosts` the runs are live.

    Raises:
        ScenarioError: if the scenario of a cell is wrong.
        InputError: if the plan is wrong or the folder cannot be written.
        IntegrityError: if a run delivered wrong bytes.
    """
    planned = plan if isinstance(plan, Plan) else Plan.read(plan)
    tasks = tasks_of(planned, hosts)
    about = {
        "entry": None,
        "sweep": planned.name,
        "description": planned.description,
        "plan": planned.file,
        "factors": planned.factor_names(),
        "seeds": list(planned.all_seeds),
        "duration": tasks[0].settings["duration"],
        "warm_up": tasks[0].settings["warm_up"],
    }
    return batch.execute(about, tasks, Path(out), on=on, on_progress=on_progress)


def tasks_of(planned: Plan, hosts: Hosts | None) -> list[Task]:
    """The runs of a plan, checked before the first of them. With `hosts` they are live.

    Raises:
        ScenarioError: if the scenario of a cell is wrong.
        InputError: if a factor does not fit, or the hosts cannot run the scenario of a cell.
    """
    tasks = [replace(task, hosts=hosts) for task in planned.tasks()]
    if hosts is not None:
        for task in tasks:
            support.require_possible(hosts, task.scenario)
    require_free_names(tasks)
    return tasks
