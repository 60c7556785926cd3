"""Runs of a scenario and of changes of it with equal seeds.

All random draws of the network have the same values in such runs, so differences come from the
change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from anabranch import _core
from anabranch.errors import AnabranchError
from anabranch.results import metrics
from anabranch.runs import executors
from anabranch.runs.executors import Executor
from anabranch.runs.run import Run, run_scenario
from anabranch.scenarios import loading
from anabranch.scenarios.flows import flows

_T = TypeVar("_T")

Job = tuple[_core.Scenario, int]
"""A scenario and a seed."""


def changed_connections(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The connections that changes apply to: those with Multipath TCP, or all if there is none."""
    multipath = [each for each in settings["connection"] if each["protocol"] == "mptcp"]
    return multipath or list(settings["connection"])


def changed(scenario: _core.Scenario, new: Mapping[str, Any]) -> _core.Scenario | None:
    """A scenario with these keys of all changed connections set.

    The value `None` removes a key. The result is `None` if the change contradicts other settings.
    """
    settings = scenario.settings
    affected = [each["name"] for each in changed_connections(settings)]
    connections = []
    for each, infers in zip(settings["connection"], _infers_hystart(scenario), strict=True):
        keys = dict(each)
        if each["name"] in affected:
            keys |= {"hystart": None} if infers and "congestion_control" in new else {}
            keys |= new
        connections.append({key: keys[key] for key in keys if keys[key] is not None})
    try:
        table = {**settings, "connection": connections}
        return loading.of_table(table, scenario.file, policies=scenario.policies)
    except AnabranchError:
        return None


@lru_cache(maxsize=16)
def _infers_hystart(scenario: _core.Scenario) -> list[bool]:
    """For each connection of a scenario, whether `hystart` has its default.

    The default depends on the congestion control, so it changes with it.
    """
    settings = scenario.settings
    bare = [
        {key: value for key, value in each.items() if key != "hystart"}
        for each in settings["connection"]
    ]
    inferred = _core.Scenario.of({**settings, "connection": bare}, scenario.file).settings
    pairs = zip(settings["connection"], inferred["connection"], strict=True)
    return [stated["hystart"] == default["hystart"] for stated, default in pairs]


def goodput_and_delays(run: Run) -> tuple[float, float, float]:
    """Goodput of the changed connections in Mbit/s, and two quantiles of their blocks' delays.

    The quantiles are the median and the 95th percentile in ms; NaN without delivered blocks.
    """
    directions = changed_flows(run)
    rows = metrics.connection_rows(run)
    goodput = sum(rows[index]["goodput_mbps"] for index in directions)
    delays = [metrics.delays_ms(run, index) for index in directions]
    all_delays = np.concatenate(delays)
    if not all_delays.size:
        return goodput, np.nan, np.nan
    p50, p95 = np.percentile(all_delays, (50, 95))
    return goodput, float(p50), float(p95)


def changed_flows(run: Run) -> list[int]:
    """Numbers of the flows of the changed connections in the tables of a run."""
    names = {each["name"] for each in changed_connections(run.settings)}
    return [
        index
        for index, flow in enumerate(flows(run.settings))
        if flow["name"] in names or flow["name"].rsplit(" ", 1)[0] in names
    ]


class Runs(Generic[_T]):
    """Makes runs on all cores, and keeps what `reduce` makes of each: no run is made twice."""

    def __init__(self, executor: Executor, reduce: Callable[[Run], _T]) -> None:
        self._executor = executor
        self._reduce = reduce
        self._made: dict[Job, _T] = {}

    def seeds_that_differ(self, scenario: _core.Scenario, seeds: Sequence[int]) -> Sequence[int]:
        """These seeds, or only the first one if nothing in a scenario is random.

        That is so if the first two give the same.
        """
        first = self.of([(scenario, seed) for seed in seeds[:2]], lambda *_: None)
        return seeds if len(first) < 2 or not _is_same(*first) else seeds[:1]

    def of(self, jobs: Sequence[Job], on_made: Callable[[int, int], None]) -> list[_T]:
        """The reduced runs of the jobs, in their order.

        `on_made` is called with the index of each job, and the simulated time in nanoseconds; 0 if
        the run was made before.
        """
        first = {job: index for index, job in reversed([*enumerate(jobs)])}
        new = [index for job, index in first.items() if job not in self._made]
        for index in range(len(jobs)):
            if index not in new:
                on_made(index, 0)
        costs = [jobs[index][0].cost for index in new]

        def make(index: int) -> tuple[_T, int]:
            run = self._executor.call(_run, jobs[index])
            return self._reduce(run), run.virtual_ns

        made = executors.make_all(
            self._executor, make, new, costs, lambda at, virtual_ns: on_made(new[at], virtual_ns)
        )
        self._made.update(zip((jobs[index] for index in new), made, strict=True))
        return [self._made[job] for job in jobs]


def _is_same(a: object, b: object) -> bool:
    """Whether two reduced runs are equal; no number equals no number."""
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def _run(job: Job) -> Run:
    return run_scenario(*job)
