"""Aims of advice: goals with weights, and a measure of how far a run reaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch import _core
from anabranch.errors import InputError, unknown
from anabranch.explanations.pairs import changed_connections, changed_flows, goodput_and_delays
from anabranch.runs.columns import column
from anabranch.runs.run import Run
from anabranch.scenarios import loading
from anabranch.scenarios.quantities import nanoseconds
from anabranch.words import listed

Numbers = npt.NDArray[np.float64]
_NEVER = 1e9
"""Delay in ms if no block is delivered: longer than any run."""
Goals = Mapping[str, float]
"""The weight of each goal."""


@dataclass(frozen=True)
class Goal:
    """Something to improve.

    Attributes:
        key: Key of the quantity in JSON.
        words: The quantity, with its unit.
        least: Smallest value that a ratio distinguishes (this project).
        is_cost: Whether less is better.
    """

    name: str
    key: str
    words: str
    least: float
    is_cost: bool = True


GOALS = {
    each.name: each
    for each in (
        Goal("throughput", "goodput_mbps", "goodput Mbit/s", 1e-3, is_cost=False),
        Goal("latency", "delay_p95_ms", "p95 delay ms", 0.1),
        Goal("failover", "pause_s", "pause s", 1e-3),
    )
}
"""All goals, in the order of the values of a run."""


def parsed(texts: Sequence[str]) -> Goals:
    """The goals of the option ``--for``, such as ``["throughput=2,latency"]``.

    Raises:
        InputError: if a goal is unknown or given twice, or if a weight is no positive number.
    """
    weights: dict[str, float] = {}
    for text in ",".join(texts).split(","):
        name, equals, weight = (part.strip() for part in text.partition("="))
        if name not in GOALS:
            raise unknown("--for: unknown goal", name, GOALS)
        if name in weights:
            raise InputError(f"--for: {name} is given twice; give each goal once")
        weights[name] = _weight(name, weight) if equals else 1.0
    return weights


def _weight(name: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = np.nan
    if not 0 < weight < np.inf:
        raise InputError(
            f'--for: {name}: the weight "{text}" is not a number above zero; write {name}=2'
        )
    return weight


def text(goals: Goals) -> str:
    """The goals in words, such as ``"throughput (weight 2) and latency"``."""
    return listed(
        name if weight == 1 else f"{name} (weight {weight:g})" for name, weight in goals.items()
    )


def variants(scenario: _core.Scenario, goals: Goals) -> list[_core.Scenario]:
    """The scenarios to run for these goals: the scenario, and for failover one for each path.

    In each of the latter, a path of the changed connections goes down, unnoticed, in the middle of
    the measured time, and stays down.
    """
    if "failover" not in goals:
        return [scenario]
    settings = scenario.settings
    used = {name for each in changed_connections(settings) for name in each["paths"]}
    failing = (path["name"] for path in settings["path"] if path["name"] in used)
    return [scenario, *(_without(scenario, name) for name in failing)]


def _without(scenario: _core.Scenario, name: str) -> _core.Scenario:
    settings = scenario.settings
    failure_ns = _failure_ns(settings)
    (path,) = (each for each in settings["path"] if each["name"] == name)
    earlier = [each for each in path["change"] if nanoseconds(each["at"]) <= failure_ns]
    change = [*earlier, {"at": f"{failure_ns}ns", "state": "down"}]
    return loading.changed(scenario, {f"path.{name}.change": change})


def _failure_ns(settings: Mapping[str, Any]) -> int:
    warm_up, duration = (nanoseconds(settings[key]) for key in ("warm_up", "duration"))
    return (warm_up + duration) // 2


def measured(run: Run) -> tuple[float, float, float]:
    """Goodput (Mbit/s), 95th percentile of the blocks' delays (ms), and longest pause (s).

    The pause is the longest time without a delivered block from the middle of the measured time on.
    """
    goodput, _, p95 = goodput_and_delays(run)
    return goodput, p95, max(_pause_s(run, flow) for flow in changed_flows(run))


def _pause_s(run: Run, flow: int) -> float:
    since = _failure_ns(run.settings)
    blocks = run.tables["blocks"]
    delivered = column(blocks, "delivered_ns")[column(blocks, "connection") == flow]
    is_complete = bool(column(run.tables["connections"], "completed")[flow])
    end = [] if is_complete else [run.virtual_ns]
    times = np.array([since, *np.sort(delivered[delivered > since]), *end], dtype=np.int64)
    return float(np.diff(times).max(initial=0)) / 1e9


def of_variants(rows: Numbers) -> Numbers:
    """The values of a candidate from those of its variants (seeds × variants × goals).

    The pause is the longest of those after each failure.
    """
    values = rows[:, 0].copy()
    if rows.shape[1] > 1:
        values[:, 2] = rows[:, 1:, 2].max(axis=1)
    return values


def gains(goals: Goals, values: Numbers, now: Numbers) -> Numbers:
    """For each seed, the weighted geometric mean of the improvements over the present state.

    The improvement of a value is its ratio to the present one; for delays and pauses, the reverse.
    """
    values, now = (np.where(np.isnan(each), _NEVER, each) for each in (values, now))
    logs = np.zeros(len(values))
    for index, goal in enumerate(GOALS.values()):
        if goal.name in goals:
            new, old = (np.maximum(each[:, index], goal.least) for each in (values, now))
            ratio = np.log(new / old)
            logs += goals[goal.name] * (-ratio if goal.is_cost else ratio)
    gain: Numbers = np.exp(logs / sum(goals.values()))
    return gain
