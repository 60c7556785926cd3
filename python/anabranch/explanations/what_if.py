"""Predict what changes of a scenario would help. Each runs with the scenario's own seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch import _core
from anabranch.explanations import linux, worth
from anabranch.explanations.pairs import Runs, changed, changed_connections, goodput_and_delays
from anabranch.reports.table import Table
from anabranch.results.estimates import Estimate, Sample, median, number
from anabranch.runs import executors
from anabranch.runs.executors import Meter, Progress
from anabranch.scenarios import custom, quantities
from anabranch.words import listed

SEEDS = 5
"""Default number of pairs."""
_FACTORS = (2, 4)
_MOST_PATHS = 4
"""Number of paths up to which each is tried as the only regular one."""


@dataclass(frozen=True)
class ScenarioChange:
    """A change of a scenario.

    Attributes:
        settings: Keys of every changed connection, and their new values.
        buffers: The factor by which it changes the buffers; 1 for other changes.
        count: Number of single changes that it consists of.
    """

    words: str
    settings: Mapping[str, Any]
    buffers: int = 1
    count: int = 1


@dataclass(frozen=True)
class SeedOutcomes:
    """The goodput in Mbit/s and quantiles of the block delay in ms, by seed."""

    goodput: Sample
    p50: Sample
    p95: Sample


@dataclass(frozen=True)
class Prediction:
    """The predicted effect of a change: medians of the differences of pairs.

    The delays are `None` if the workload has no blocks.

    Attributes:
        linux: Whether Linux has all policies of the changed scenario.
    """

    change: ScenarioChange
    linux: bool
    goodput: Estimate
    p50: Estimate | None
    p95: Estimate | None


@dataclass(frozen=True)
class WhatIf:
    """The predictions for a scenario, the best first.

    Attributes:
        seeds: Those of the pairs; a single one if nothing in the scenario is random.
        foreign: Policies of the unchanged scenario that Linux does not have.
        captured_mbps: Goodput of the capture, in Mbit/s, if the scenario is the twin of one.
    """

    base: SeedOutcomes
    seeds: Sequence[int]
    predictions: Sequence[Prediction]
    foreign: Sequence[str] = ()
    captured_mbps: float | None = None

    @property
    def base_mbps(self) -> float:
        """Goodput without a change, in Mbit/s: of the capture, or the median over the seeds."""
        if self.captured_mbps is not None:
            return self.captured_mbps
        return float(np.median(self.base.goodput))

    def about(self) -> str:
        """Derivation of the numbers, in a few sentences."""
        delays = ""
        if self.base.p50.size:
            p50, p95 = (number(float(np.median(each))) for each in (self.base.p50, self.base.p95))
            delays = f" and block delays of {p50} ms (median) and {p95} ms (95th percentile)"
        of = "" if self.captured_mbps is None else " of the capture"
        count = len(self.seeds)
        sample = (
            f"medians over {count} pairs of runs with equal seeds, with 95 % bootstrap intervals"
            if count > 1
            else "one pair of runs"
        )
        return (
            f"Differences from the {number(self.base_mbps)} Mbit/s{of}{delays}: {sample}. The rows "
            "are in the order of the goodput shown, and equal ones in that of the p95 delay. "
            "“Linux” marks changes after which Linux can do what the scenario says."
        )

    def table(self) -> Table:
        """A row for each change. The columns that order the rows stand first."""
        percent = 100 / self.base_mbps if self.base_mbps else 0.0
        has_delays = self.base.p50.size > 0
        every = self.predictions
        columns = [
            ("change", [each.change.words for each in every]),
            ("goodput %", [_difference(each.goodput, percent) for each in every]),
            ("p95 ms", [_difference(each.p95) for each in every] if has_delays else None),
            ("Linux", ["yes" if each.linux else "–" for each in every]),
            ("p50 ms", [_difference(each.p50) for each in every] if has_delays else None),
        ]
        shown = [(heading, cells) for heading, cells in columns if cells is not None]
        rows = zip(*(cells for _, cells in shown), strict=True)
        return Table(tuple(heading for heading, _ in shown), tuple(rows))

    def frame(self) -> pl.DataFrame:
        """The predictions as a frame."""
        return pl.DataFrame([_row(each, self.base_mbps) for each in self.predictions])

    def json(self) -> dict[str, Any]:
        """The predictions as plain values."""
        return {
            "seeds": list(self.seeds),
            "goodput_mbps": self.base_mbps,
            "changes": [
                {**_row(each, self.base_mbps), "settings": dict(each.change.settings)}
                for each in self.predictions
            ],
        }

    def best(self, *, linux: bool) -> Prediction | None:
        """Of the changes that help (see `worth.helps`), the one with the largest gain in goodput.

        With `linux`, among the changes that Linux can make.
        """
        among = [
            each
            for each in self.predictions
            if (each.linux or not linux) and worth.helps(self._improvement(each), each.change.count)
        ]
        return max(among, key=lambda each: each.goodput.value, default=None)

    def _improvement(self, each: Prediction) -> Estimate:
        """The ratio of the goodput with a change to that without."""

        def ratio(gain_mbps: float) -> float:
            if self.base_mbps == 0:
                return np.inf if gain_mbps > 0 else 1.0
            return 1 + gain_mbps / self.base_mbps

        gain = each.goodput
        return Estimate(ratio(gain.value), ratio(gain.low), ratio(gain.high), gain.seeds)

    def _none_helps(self, *, linux: bool) -> str:
        """Reason why no change helps, as the end of a sentence."""
        among = [each for each in self.predictions if each.linux or not linux]
        if any(worth.brings_enough(self._improvement(each), each.change.count) for each in among):
            return "significantly raises the goodput"
        return f"raises the goodput by {worth.BROUGHT}"

    def finding(self) -> str:
        """The best changes in one sentence."""
        on_linux, engine = self.best(linux=True), self.best(linux=False)
        if engine is None:
            return f"No change that was tried {self._none_helps(linux=False)}."
        words = f"Best change: {self._gain(engine)}"
        if engine.linux:
            return f"{words}, which Linux can do."
        if on_linux is not None:
            return f"{words}; as Linux can do it: {self._gain(on_linux)}."
        if self.foreign:
            # Advice is for scenarios: a capture has none but its twin.
            given = "" if self.captured_mbps is None else ", given the twin,"
            return (
                f"{words}. Linux does not have {listed(self.foreign)}; anabranch advise{given} "
                "says what Linux can do."
            )
        return (
            f"{words}, which Linux cannot do; no change that Linux can make "
            f"{self._none_helps(linux=True)}."
        )

    def _gain(self, best: Prediction) -> str:
        """A change with its gain, and those of the other sizes if it changes the buffers."""
        others = [
            f"× {each.change.buffers}: {self._percent(each)}"
            for each in self.predictions
            if each.change.buffers > 1 < best.change.buffers and each is not best
        ]
        return f"{best.change.words} ({'; '.join([self._percent(best), *others])})"

    def _percent(self, each: Prediction) -> str:
        percent = each.goodput.value / self.base_mbps * 100 if self.base_mbps else float("inf")
        return f"{'−' if percent < -0.5 else '+'}{abs(percent):.0f} %"


def changes(settings: Mapping[str, Any]) -> Iterator[ScenarioChange]:
    """The changes to try for the first Multipath TCP connection of a normalised scenario.

    Without one, the changes that apply to TCP for its first connection.
    """
    connection = changed_connections(settings)[0]
    yield from _buffers(connection)
    yield from _of_kind("congestion_control", connection)
    if connection["protocol"] != "mptcp":
        return
    yield from _of_kind("scheduler", connection)
    yield from _remedies(connection)
    paths = connection["paths"]
    if len(paths) < 2:
        return
    for path in paths:
        rest = [each for each in paths if each != path]
        yield ScenarioChange(f"without {path}", {"paths": rest})
    if len(paths) <= _MOST_PATHS:
        for path in paths:
            others = listed(each for each in paths if each != path)
            manager = {"kind": "backup", "regular": path}
            words = f"{others} as backup" + ("s" if len(paths) > 2 else "")
            yield ScenarioChange(words, {"path_manager": manager})


def _buffers(connection: Mapping[str, Any]) -> Iterator[ScenarioChange]:
    keys = [key for key in ("send_buffer", "receive_buffer") if key in connection]
    sizes = {key: quantities.size(connection[key], key) for key in keys}
    for factor in _FACTORS:
        larger = {key: f"{size * factor}B" for key, size in sizes.items()}
        if larger:
            yield ScenarioChange(f"buffers × {factor}", larger, factor)


def _of_kind(kind: str, connection: Mapping[str, Any]) -> Iterator[ScenarioChange]:
    for policy in _core.policies():
        name = str(policy["name"])
        if policy["kind"] == kind and name != linux.kind_of(connection[kind]):
            words = f"{name} ({kind.replace('_', ' ')})"
            yield ScenarioChange(words, {kind: name})


def _remedies(connection: Mapping[str, Any]) -> Iterator[ScenarioChange]:
    now = connection.get("remedies", {})
    names = [str(each["name"]) for each in _core.policies() if each["kind"] == "remedy"]
    for name in names:
        if name not in now:
            yield ScenarioChange(f"with {name}", {"remedies": {**now, name: True}})
    both = {"opportunistic_retransmission": True, "penalisation": True}
    if not both.keys() & now.keys():
        words = "with both remedies (M1, M2)"
        yield ScenarioChange(words, {"remedies": {**now, **both}}, count=len(both))
    if now:
        yield ScenarioChange("without remedies", {"remedies": {}}, count=len(now))


def predict(
    scenario: _core.Scenario,
    seeds: Sequence[int],
    on_progress: Callable[[Progress], None] | None = None,
    *,
    linux_only: bool = False,
) -> WhatIf:
    """Run a scenario and all changes of it with these seeds, on all cores.

    If nothing in the scenario is random, only with the first seed. With `linux_only`, only the
    changes after which Linux can do what the scenario says.

    Raises:
        InputError: if the user's own policy cannot be sent to another process.
    """
    custom.require_picklable(scenario)
    tried: list[tuple[ScenarioChange | None, _core.Scenario]] = [(None, scenario)]
    for change in changes(scenario.settings):
        new = changed(scenario, change.settings)
        if new is not None and not (linux_only and _foreign(new)):
            tried.append((change, new))
    with executors.opened(custom_policies=bool(scenario.policies)) as executor:
        runs = Runs(executor, goodput_and_delays)
        seeds = runs.seeds_that_differ(scenario, seeds)
        jobs = [(each, seed) for _, each in tried for seed in seeds]
        meter = Meter(on_progress, [each.cost for each, _ in jobs])
        results = runs.of(jobs, meter.made)
    rows = np.array(results, dtype=np.float64).reshape(len(tried), len(seeds), 3)
    base = _outcome(rows[0])
    predictions = [
        _prediction(change, not _foreign(each), base, _outcome(row))
        for (change, each), row in zip(tried, rows, strict=True)
        if change is not None
    ]
    ordered = sorted(predictions, key=_order(float(np.median(base.goodput))))
    return WhatIf(base, seeds, ordered, _foreign(scenario))


def _foreign(scenario: _core.Scenario) -> list[str]:
    """Policies of the changed connections that Linux does not have."""
    connections = changed_connections(scenario.settings)
    return [*dict.fromkeys(name for each in connections for name in linux.foreign(each))]


def _outcome(rows: Sample) -> SeedOutcomes:
    delays = rows[:, 1:]
    if np.isnan(delays).all():
        return SeedOutcomes(rows[:, 0], np.empty(0), np.empty(0))
    return SeedOutcomes(rows[:, 0], delays[:, 0], delays[:, 1])


def _prediction(
    change: ScenarioChange, linux: bool, base: SeedOutcomes, changed: SeedOutcomes
) -> Prediction:
    return Prediction(
        change,
        linux,
        median(changed.goodput - base.goodput, of="pairs"),
        _paired(base.p50, changed.p50),
        _paired(base.p95, changed.p95),
    )


def _paired(base: Sample, changed: Sample) -> Estimate | None:
    if base.size == 0 or base.size != changed.size:
        return None
    differences = changed - base
    differences = differences[~np.isnan(differences)]
    return median(differences, of="pairs") if differences.size else None


def _order(base_mbps: float) -> Callable[[Prediction], tuple[float, float]]:
    """The order of the rows, by the numbers as the table shows them."""
    percent = 100 / base_mbps if base_mbps else 0.0

    def key(each: Prediction) -> tuple[float, float]:
        delay = 0.0 if each.p95 is None else _rounded(each.p95.value)
        return -_rounded(each.goodput.value * percent), delay

    return key


def _row(each: Prediction, base_mbps: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "change": each.change.words,
        "linux": each.linux,
        "goodput_gain": each.goodput.value / base_mbps if base_mbps else None,
    }
    estimates = {
        "goodput_mbps": each.goodput, "delay_p50_ms": each.p50, "delay_p95_ms": each.p95,
    }  # fmt: skip
    for name, estimate in estimates.items():
        row[name] = None if estimate is None else estimate.value
        row[f"{name}_low"] = None if estimate is None else estimate.low
        row[f"{name}_high"] = None if estimate is None else estimate.high
    return row


def _difference(estimate: Estimate | None, scale: float = 1.0) -> str:
    if estimate is None:
        return "–"
    value, low, high = (
        _signed(each * scale) for each in (estimate.value, estimate.low, estimate.high)
    )
    return value if value == low == high else f"{value} [{low}, {high}]"


def _rounded(value: float) -> float:
    """A difference as tables show it: whole from 10 on, and otherwise with one decimal."""
    return round(value) if abs(value) >= 9.95 else round(value, 1)


def _signed(value: float) -> str:
    rounded = _rounded(value)
    if rounded == 0:
        return "0"
    text = f"{abs(rounded):,.0f}" if abs(value) >= 9.95 else f"{abs(rounded):.1f}"
    return ("+" if value > 0 else "−") + text
