"""Fit the values that a capture shows only through what they do.

A twin is run in virtual time and captured at its sender, and the capture is read like that of the
network. If an estimator is biased, it is biased on both. The values are changed until the estimates
agree (indirect inference; Gouriéroux, Monfort and Renault 1993). The send buffer, which no segment
shows, is the size whose run is most like the capture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from anabranch import _core
from anabranch.errors import InputError
from anabranch.runs import executors
from anabranch.runs.executors import Meter, Progress
from anabranch.runs.run import Capture, cost, run_normalised
from anabranch.twin.link import Estimate, Link
from anabranch.twin.observed import Observed, read
from anabranch.twin.scenario import CONTROLS, Twin, first_guess, to_toml

SEEDS = 5
"""Runs that are laid beside the capture."""
_SNAP = 128
_ROUNDS = 4
_ROUND_SEEDS = 3
_MOST_STEP = 2.0
"""Largest factor by which a round changes a value."""
_SIGNIFICANT = 2.0
"""Standard errors from which a difference is corrected."""
_GOODPUT, _SHARE, _RTT, _IN_FLIGHT = 0.05, 0.05, 0.10, 0.15
"""Differences that count as one: relative, but the share's in parts of the whole (ours)."""
_LEAST_SHARE = 0.03
"""Share below which a path's round-trip time does not count."""
_GOOD, _GOOD_DEFAULT = 0.5, 1.0
"""Difference at which the hosts' defaults are kept: beside a receive buffer that a program chose,
and beside a default one. Few programs choose only one of the buffers (ours)."""
_BETTER = 0.5
"""Part of that difference that a choice must have to replace a default (ours)."""
_SIZES = np.geomspace(0.35, 1.4, 9)
"""Send buffers that are tried, as parts of the data in flight. Linux doubles what is asked for, and
charges overhead to it, so the sizes lie on both sides of 1."""
_NEARER = (0.88, 0.92, 0.96, 1.04, 1.08, 1.12)
"""Parts of the best of these that are tried after them, because goodput is about proportional to a
send buffer that limits it."""

Told = Callable[[Progress], None] | None


@dataclass(frozen=True)
class Fitted:
    """A twin with what its runs showed."""

    twin: Twin
    toml: str
    seeds: tuple[int, ...]
    runs: tuple[Observed, ...]


def fit(seen: Observed, file: str, name: str, seeds: Sequence[int], told: Told = None) -> Fitted:
    """The twin of an observed connection, and its runs with these seeds.

    Raises:
        InputError: if no path of the connection carried enough to be measured.
    """
    if all(each.link is None for each in seen.lanes):
        raise InputError(f"{file}: too few acknowledgements in order to measure a path")
    twin = _calibrated(first_guess(seen), file, told)
    twin = _with_hosts(twin, file, told)
    toml = to_toml(twin, name)
    runs = run_all([(toml, seed) for seed in seeds], file, told)
    return Fitted(twin, toml, tuple(seeds), tuple(runs))


def run_all(jobs: Sequence[tuple[str, int]], file: str, told: Told) -> list[Observed]:
    """What the captures of these runs, at the sender, show."""
    normalised = [(_core.validate(toml, file), seed) for toml, seed in jobs]
    costs = [cost(toml) for toml, _ in normalised]
    meter = Meter(told, costs)
    results: list[Observed | None] = [None] * len(jobs)

    with (
        executors.opened() as executor,
        tempfile.TemporaryDirectory(prefix="anabranch-twin-") as folder,
    ):

        def work(index: int) -> tuple[Observed, int]:
            toml, seed = normalised[index]
            return executor.call(_run, (toml, seed, file, Path(folder) / f"{index}.pcapng"))

        def done(index: int, result: tuple[Observed, int]) -> None:
            results[index], virtual_ns = result
            meter.made(index, virtual_ns)

        executors.call_all(executor, work, range(len(jobs)), costs, done)
    return [each for each in results if each is not None]


def _run(job: tuple[str, int, str, Path]) -> tuple[Observed, int]:
    toml, seed, file, capture = job
    run = run_normalised(toml, file, seed, Capture(capture, snap=_SNAP))
    try:
        return read([capture]), run.virtual_ns
    finally:
        capture.unlink()


def _calibrated(twin: Twin, file: str, told: Told) -> Twin:
    """The twin whose links are estimated like those of the capture."""
    for _ in range(_ROUNDS):
        jobs = [(to_toml(twin, "twin"), seed) for seed in range(1, _ROUND_SEEDS + 1)]
        runs = run_all(jobs, file, told)
        corrected = twin
        for index, path in enumerate(twin.paths):
            links = [_link_of(run, index) for run in runs]
            known = [each for each in links if each is not None]
            if path.lane.link is not None and known:
                changes = _corrections(path.lane.link, known, path.jitter, path.loss)
                values = {key: change(getattr(path, key)) for key, change in changes.items()}
                corrected = corrected.with_path(index, **values)
        if corrected == twin:
            break
        twin = corrected
    return twin


def _link_of(run: Observed, index: int) -> Link | None:
    return run.lanes[index].link if index < len(run.lanes) else None


def _corrections(
    wanted: Link, found: Sequence[Link], jitter: float, loss: float
) -> dict[str, Callable[[float], float]]:
    """How to change the values of a path whose runs do not show what the capture does."""
    changes: dict[str, Callable[[float], float]] = {}
    if jitter:
        ratio = _ratio(wanted.spread_ms, [each.spread_ms for each in found])
        off_ms = wanted.delay_ms.value - float(np.mean([each.delay_ms.value for each in found]))
        if abs(ratio - 1) > 0.05 or abs(off_ms) > 0.01 * wanted.delay_ms.value:
            changes["jitter"] = lambda value: value * ratio
            changes["delay"] = lambda value: max(0.0, value + off_ms)
    if loss and _differ(wanted.loss, [each.loss for each in found]):
        off = wanted.loss.value - float(np.mean([each.loss.value for each in found]))
        changes["loss"] = lambda value: max(0.0, value + off)
    return changes


def _ratio(wanted: float, found: Sequence[float]) -> float:
    mean = float(np.mean(found))
    return float(np.clip(wanted / mean, 1 / _MOST_STEP, _MOST_STEP)) if mean > 0 else _MOST_STEP


def _differ(wanted: Estimate, found: Sequence[Estimate]) -> bool:
    mean = float(np.mean([each.value for each in found]))
    error = np.mean([each.error**2 for each in found]) / len(found)
    return bool(abs(wanted.value - mean) > _SIGNIFICANT * np.sqrt(wanted.error**2 + error))


def _with_hosts(twin: Twin, file: str, told: Told) -> Twin:
    """The twin with the congestion control and the send buffer that explain the capture.

    Both stay at the host's defaults unless a run with other ones is much more like the capture.
    """
    seen = twin.seen
    (now,) = _differences([twin], file, told)
    if now < (_GOOD_DEFAULT if seen.ends.is_default else _GOOD):
        return twin
    sizes = [round(part * seen.ends.in_flight) for part in _SIZES]
    is_bulk = seen.ends.workload.settings["kind"] == "bulk"
    buffers = [replace(twin, send_buffer=size) for size in sizes if size > 0 and is_bulk]
    others = CONTROLS[twin.is_linux][1:]
    controls = [replace(twin, congestion_control=each) for each in others]
    found = _differences([*controls, *buffers], file, told)
    for tried, differences, part in (
        (controls, found[: len(controls)], _BETTER),
        (buffers, found[len(controls) :], _BETTER if seen.ends.is_default else 1.0),
    ):
        best = int(np.argmin(differences)) if differences else 0
        if differences and differences[best] < part * now:
            return _refined(tried[best], differences[best], file, told)
    return twin


def _refined(twin: Twin, difference: float, file: str, told: Told) -> Twin:
    """The twin with a send buffer near its own that explains the capture best."""
    if twin.send_buffer is None:
        return twin
    sizes = [round(part * twin.send_buffer) for part in _NEARER]
    near = [replace(twin, send_buffer=size) for size in sizes]
    found = [difference, *_differences(near, file, told)]
    return [twin, *near][int(np.argmin(found))]


def _differences(twins: Sequence[Twin], file: str, told: Told) -> list[float]:
    """How far each of these twins of the same capture is from it: the mean over a few runs."""
    seeds = range(1, 1 + (_ROUND_SEEDS if twins[0].is_random else 1))
    runs = run_all([(to_toml(each, "twin"), seed) for each in twins for seed in seeds], file, told)
    found = np.array([difference(twins[0].seen, run) for run in runs])
    means: list[float] = found.reshape(len(twins), -1).mean(axis=1).tolist()
    return means


def difference(seen: Observed, run: Observed) -> float:
    """How far a run is from the capture: root mean square of the differences; 1 is a bound each."""
    if run.goodput_mbps == 0:
        return float("inf")
    parts = [
        (run.goodput_mbps / seen.goodput_mbps - 1) / _GOODPUT,
        (run.ends.in_flight / seen.ends.in_flight - 1) / _IN_FLIGHT,
    ]
    for lane, other in zip(seen.lanes, run.lanes, strict=False):
        parts.append((other.share - lane.share) / _SHARE)
        if lane.rtt_ms is not None and other.rtt_ms is not None and lane.share > _LEAST_SHARE:
            parts.append((other.rtt_ms[0] / lane.rtt_ms[0] - 1) / _RTT)
    return float(np.sqrt(np.mean(np.square(parts))))
