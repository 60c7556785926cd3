"""Deviation of virtual time from Linux: in each scenario, and as a distribution over scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.calibration.case import VIRTUAL
from anabranch.gallery import registry
from anabranch.results.bounds import Bound
from anabranch.results.estimates import Sample
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.flows import flows
from anabranch.scenarios.loading import settings_in

GOODPUT, COMPLETION, MEDIAN_DELAY, TAIL_DELAY, LONGEST_STALL = (
    "goodput_mbps",
    "completion_s",
    "delay_p50_ms",
    "delay_p95_ms",
    "stall_ms",
)
OUTPUT, DELAY, STALL = "goodput or completion time", "median delay", "longest stall"
"""Judged quantities.

A scenario has one of the first, one of the second, or both. If a path fails, it has the third
instead of the second.
"""

REGISTERED = {OUTPUT: "C-output", DELAY: "C-delay", STALL: "C-stall"}
"""The rows of the registry that the claims about a quantity share."""

BOUNDS = {
    what: (registry.row(name).bound("median"), registry.row(name).bound("p90"))
    for what, name in REGISTERED.items()
}
"""Bounds on absolute deviations in %, in the median of the scenarios and at the 90th percentile."""

ONE_PATH, TWO_PATHS, TOGETHER = "one path", "two paths", "together"

_AT_OWN_RATE = ("cbr", "on_off", "request_response")
"""Workloads whose goodput is their own choice, so that only their delays are compared."""


@dataclass(frozen=True)
class Pair:
    """A metric of one scenario: a value for each seed, of the engine and of Linux."""

    metric: str
    virtual: Sample
    linux: Sample

    @property
    def middle(self) -> tuple[float, float]:
        """The medians over seeds, of the engine and of Linux."""
        return float(np.median(self.virtual)), float(np.median(self.linux))

    @property
    def off_by(self) -> float:
        """The deviation of the engine from Linux, between the medians, in %."""
        virtual, linux = self.middle
        return (virtual / linux - 1) * 100

    @property
    def is_in_spread(self) -> bool:
        """Whether the engine's median is within the least and the largest value of Linux."""
        return bool(self.linux.min() <= self.middle[0] <= self.linux.max())


@dataclass(frozen=True)
class ComparedScenario:
    """A scenario, or one of its connections, with the metrics that both stacks have."""

    name: str
    paths: str
    output: Pair | None
    delay: Pair | None
    tail: Pair | None
    """The 95th percentile of the delay, which is shown and not judged."""
    stall: Pair | None
    is_unfinished: bool
    """Whether a transfer did not finish in every run, so that goodput replaces its completion."""

    def judged(self, what: str) -> Pair | None:
        """The metric that is judged as `OUTPUT`, `DELAY` or `STALL`."""
        return {OUTPUT: self.output, DELAY: self.delay, STALL: self.stall}[what]


@dataclass(frozen=True)
class DeviationDistribution:
    """The absolute deviations, in %, of several scenarios from Linux."""

    what: str
    paths: str
    scenarios: tuple[tuple[str, Pair], ...]
    """The names of the scenarios, and what was compared."""

    @property
    def errors(self) -> Sample:
        """The absolute deviations."""
        return np.array([abs(pair.off_by) for _, pair in self.scenarios])

    @property
    def median(self) -> float:
        """The median over the scenarios."""
        return float(np.median(self.errors))

    @property
    def p90(self) -> float:
        """The 90th percentile over the scenarios."""
        return float(np.percentile(self.errors, 90))

    @property
    def worst(self) -> tuple[str, float]:
        """The scenario with the largest deviation, and its signed deviation."""
        name, pair = self.scenarios[int(self.errors.argmax())]
        return name, pair.off_by

    def beyond(self, bound: Bound) -> list[tuple[str, Pair]]:
        """The scenarios whose deviation exceeds a bound."""
        return [(name, pair) for name, pair in self.scenarios if bound.is_above(abs(pair.off_by))]


def compared(results: Results) -> list[ComparedScenario]:
    """All scenarios, in order. A scenario with several connections has an element for each."""
    return [
        each
        for _, runs in results.runs.group_by("scenario", "connection", maintain_order=True)
        for each in _compared(runs, results.scenarios)
    ]


def distribution(results: Results, what: str, paths: str) -> DeviationDistribution:
    """The deviations of the scenarios over one path, two paths, or all.

    Raises:
        NothingMeasured: if there is no such scenario.
    """
    found = tuple(
        (each.name, pair)
        for each in compared(results)
        if paths in (TOGETHER, each.paths) and (pair := each.judged(what)) is not None
    )
    if not found:
        where = "" if paths == TOGETHER else f" over {paths}"
        raise NothingMeasured(f"no scenario{where} has a {what} of both the engine and Linux")
    return DeviationDistribution(what, paths, found)


def distributions(results: Results) -> list[DeviationDistribution]:
    """All distributions: of all quantities, over one path, two paths and together."""
    return [
        each
        for what in BOUNDS
        for paths in (ONE_PATH, TWO_PATHS, TOGETHER)
        for each in _found(results, what, paths)
    ]


def _found(results: Results, what: str, paths: str) -> Iterator[DeviationDistribution]:
    try:
        yield distribution(results, what, paths)
    except NothingMeasured:
        return


def _compared(runs: pl.DataFrame, scenarios: Mapping[str, str]) -> Iterator[ComparedScenario]:
    settings = settings_in(scenarios[runs["cell"][0]])
    name = runs["connection"][0]
    directions = flows(settings)
    (connection,) = (each for each in directions if each["name"] == name)
    kind = connection["workload"]["kind"]
    finite = kind == "blocks" and "count" in connection["workload"]
    completion = _pair(runs, COMPLETION) if finite else None
    output = None if kind in _AT_OWN_RATE else completion or _pair(runs, GOODPUT)
    fails = _fails(settings)
    has_delays = kind != "bulk" and connection["workload"].get("count") != 1 and not fails
    scenario = runs["scenario"][0]
    yield ComparedScenario(
        name=scenario if len(directions) == 1 else f"{scenario}, {name}",
        paths=_paths(connection),
        output=output,
        delay=_pair(runs, MEDIAN_DELAY) if has_delays else None,
        tail=_pair(runs, TAIL_DELAY) if has_delays else None,
        stall=_pair(runs, LONGEST_STALL) if fails else None,
        is_unfinished=finite and completion is None,
    )


def _fails(settings: Mapping[str, Any]) -> bool:
    """Whether a path of the scenario goes down."""
    changes = (change for path in settings.get("path", ()) for change in path.get("change", ()))
    return any(change.get("state") == "down" for change in changes)


def _paths(connection: Mapping[str, Any]) -> str:
    is_multipath = connection["protocol"] == "mptcp" and len(connection["paths"]) > 1
    return TWO_PATHS if is_multipath else ONE_PATH


def _pair(runs: pl.DataFrame, metric: str) -> Pair | None:
    """The metric of both stacks; `None` if a run lacks it, or if Linux has nothing."""
    is_virtual = runs["hosts"] == VIRTUAL
    sides = [runs.filter(is_virtual)[metric], runs.filter(~is_virtual)[metric]]
    if any(side.is_empty() or side.null_count() for side in sides):
        return None
    virtual, linux = (side.cast(pl.Float64).to_numpy() for side in sides)
    return Pair(metric, virtual, linux) if np.median(linux) > 0 else None


def seeds(results: Results) -> int:
    """The number of seeds, which give the spread of Linux if there are several."""
    return len(results.provenance["seeds"])
