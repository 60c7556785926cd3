"""Fit the parameters that are observable only through their effects.

A twin is run in virtual time and captured at its sender, and the capture is read like that of the
network. If an estimator is biased, it is biased on both. The values are changed until the estimates
agree (indirect inference; Gouriéroux, Monfort and Renault 1993). The send buffer, which no segment
shows, is the size whose run is most like the capture. Losses are those of the capture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import _core
from anabranch.errors import InputError
from anabranch.runs import executors
from anabranch.runs.executors import Meter, Progress
from anabranch.runs.run import Capture, run_scenario
from anabranch.scenarios import loading
from anabranch.twins.link import LinkFindings
from anabranch.twins.observed import Observed, read
from anabranch.twins.scenario import CONTROLS, PathOfTwin, TwinValues, first_guess, to_toml

SEEDS = 5
"""Runs that are compared with the capture."""
_SNAP = 128
_ROUNDS = 4
_ROUND_SEEDS = 3
_BATCHES = 6
"""Batches of runs among which those are sought in which the same paths carry data."""
_MOST_STEP = 2.0
"""Largest factor by which a round changes a value."""
_GOODPUT, _SHARE, _RTT, _IN_FLIGHT, _REINJECTED = 0.05, 0.05, 0.10, 0.15, 0.005
"""Differences that count as one: relative, but shares in parts of the whole (this project)."""
_SHOWN = 0.001
"""Share of reinjected data from which more than timeouts reinject (this project)."""
_REMEDIES: tuple[Mapping[str, Any], ...] = tuple(
    {**m1, **m2}
    for m1 in ({}, {"opportunistic_retransmission": True})
    for m2 in ({}, {"penalisation": "conext13"}, {"penalisation": "nsdi12"})
    if m1 or m2
)
"""The remedies that are tried: M1, M2 in both forms, and both."""
_TWICE = 0.05
"""Share of reinjected data from which a redundant scheduler is tried (this project)."""
_LEAST_SHARE = 0.03
"""Share below which a path's round-trip time does not count."""
_GOOD, _GOOD_DEFAULT = 0.5, 1.0
"""Difference at which the hosts' defaults are kept: with a receive buffer that a program chose, and
with a default one. Few programs choose only one of the buffers (this project)."""
_BETTER = 0.5
"""Part of that difference that a choice must have to replace a default (this project)."""
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

    twin: TwinValues
    toml: str
    seeds: tuple[int, ...]
    runs: tuple[Observed, ...]


def fit(seen: Observed, file: str, name: str, count: int = SEEDS, told: Told = None) -> Fitted:
    """The twin of an observed connection, and `count` of its runs, or one if all are equal.

    Raises:
        InputError: if no path of the connection carried enough to be measured.
    """
    if all(each.link is None for each in seen.observations):
        raise InputError(f"{file}: too few acknowledgements in order to measure a path")
    twin = _with_hosts(first_guess(seen), file, told)
    # The effect of jitter on the estimates depends on how full the queues are.
    twin = _calibrated(twin, file, told)
    (runs,) = _runs([twin], count, file, told)
    return Fitted(twin, to_toml(twin, name), tuple(runs), tuple(runs.values()))


def run_all(
    jobs: Sequence[tuple[str, int]], file: str, told: Told, rates_mbps: Sequence[float] = ()
) -> list[Observed]:
    """Findings from the captures of these runs, at the sender.

    `rates_mbps` are about the rates of the paths.
    """
    scenarios = [loading.of_text(toml, file) for toml, _ in jobs]
    costs = [scenario.cost for scenario in scenarios]
    meter = Meter(told, costs)

    with (
        executors.opened() as executor,
        tempfile.TemporaryDirectory(prefix="anabranch-twin-") as folder,
    ):

        def make(index: int) -> tuple[Observed, int]:
            capture = Path(folder) / f"{index}.pcapng"
            return executor.call(_run, (scenarios[index], jobs[index][1], capture, rates_mbps))

        return executors.make_all(executor, make, range(len(jobs)), costs, meter.made)


def _runs(
    twins: Sequence[TwinValues], count: int, file: str, told: Told
) -> list[dict[int, Observed]]:
    """Of each of these twins of a capture, `count` runs by seed, or one if all are equal.

    They are the first runs in which every path that carried data in the capture carries some. If
    there is no such run, they are the first runs. Where packets overtake each other, chance decides
    whether a path carries data: Linux closes a joining subflow whose first data overtakes the end
    of its handshake.
    """
    found: list[dict[int, Observed]] = [{} for _ in twins]
    for batch in range(_BATCHES):
        jobs = [
            (place, 1 + batch * count + more)
            for place, twin in enumerate(twins)
            if batch == 0 or (twin.reorders and len(_alike(twin.seen, found[place])) < count)
            for more in range(count if twin.is_random else 1)
        ]
        if not jobs:
            break
        texts = [(to_toml(twins[place], "twin"), seed) for place, seed in jobs]
        rates = [path.rate for path in twins[0].paths]
        for (place, seed), run in zip(jobs, run_all(texts, file, told, rates), strict=True):
            found[place][seed] = run
    chosen = [_alike(twin.seen, runs) or runs for twin, runs in zip(twins, found, strict=True)]
    return [dict(list(runs.items())[:count]) for runs in chosen]


def _alike(seen: Observed, runs: dict[int, Observed]) -> dict[int, Observed]:
    """The runs in which each path carries data that did so in the capture."""
    carrying = [
        place
        for place, observation in enumerate(seen.observations)
        if observation.share > _LEAST_SHARE
    ]
    return {
        seed: run
        for seed, run in runs.items()
        if all(
            place < len(run.observations) and run.observations[place].share > 0
            for place in carrying
        )
    }


def _run(job: tuple[_core.Scenario, int, Path, Sequence[float]]) -> tuple[Observed, int]:
    scenario, seed, capture, rates_mbps = job
    run = run_scenario(scenario, seed, Capture(capture, snap=_SNAP))
    try:
        return read([capture], rates_mbps=rates_mbps), run.virtual_ns
    finally:
        capture.unlink()


def _calibrated(twin: TwinValues, file: str, told: Told) -> TwinValues:
    """The twin whose jitter and delays are estimated like those of the capture."""
    for _ in range(_ROUNDS if twin.is_random else 0):
        (found,) = _runs([twin], _round_seeds(twin), file, told)
        paths = tuple(
            _corrected(path, [_link_of(run, index) for run in found.values()])
            for index, path in enumerate(twin.paths)
        )
        if paths == twin.paths:
            break
        twin = replace(twin, paths=paths)
    return twin


def _link_of(run: Observed, index: int) -> LinkFindings | None:
    return run.observations[index].link if index < len(run.observations) else None


def _corrected(path: PathOfTwin, found: Sequence[LinkFindings | None]) -> PathOfTwin:
    """The path, with corrected jitter and delay if its runs differ from the capture."""
    wanted = path.observation.link
    # A link that seems to vary has no estimate of its jitter.
    known = [each for each in found if each is not None and each.varying is None]
    if wanted is None or not known or not path.jitter:
        return path
    ratio = _ratio(wanted.spread_ms, [each.spread_ms for each in known])
    off_ms = wanted.delay_ms.value - float(np.mean([each.delay_ms.value for each in known]))
    if abs(ratio - 1) <= 0.05 and abs(off_ms) <= 0.01 * wanted.delay_ms.value:
        return path
    return replace(path, jitter=path.jitter * ratio, delay=max(0.0, path.delay + off_ms))


def _ratio(wanted: float, found: Sequence[float]) -> float:
    mean = float(np.mean(found))
    return float(np.clip(wanted / mean, 1 / _MOST_STEP, _MOST_STEP)) if mean > 0 else _MOST_STEP


def _with_hosts(twin: TwinValues, file: str, told: Told) -> TwinValues:
    """The twin with the remedies, the congestion control and the send buffer of the capture.

    They stay at the host's defaults unless a run with other ones is much more like the capture.
    """
    seen = twin.seen
    good = _GOOD_DEFAULT if seen.ends.is_default else _GOOD
    (now,) = _differences([twin], file, told)
    if now >= good and seen.reinjected > _SHOWN:
        twin, now = _reinjecting(twin, now, file, told)
    if now < good:
        return twin
    sizes = [round(part * seen.ends.in_flight) for part in _SIZES]
    is_bulk = seen.ends.workload.settings["kind"] == "bulk"
    buffers = [replace(twin, send_buffer=size) for size in sizes if size > 0 and is_bulk]
    others = CONTROLS[twin.is_linux][1:]
    controls = [replace(twin, congestion_control=each) for each in others]
    found = _differences([*controls, *buffers], file, told)
    bests = [
        group[int(np.argmin(off))]
        for group, off in ((controls, found[: len(controls)]), (buffers, found[len(controls) :]))
        if group
    ]
    # One run of each finds these. With jitter, that run may be close to the capture by chance.
    now, *found = _differences([twin, *bests], file, told, _ROUND_SEEDS)
    parts = [1.0 if each.send_buffer and not seen.ends.is_default else _BETTER for each in bests]
    better = [
        (off, each) for off, part, each in zip(found, parts, bests, strict=True) if off < part * now
    ]
    if not better:
        return twin
    off, best = min(better, key=lambda each: each[0])
    return _refined(best, off, file, told)


def _reinjecting(twin: TwinValues, now: float, file: str, told: Told) -> tuple[TwinValues, float]:
    """The twin with the mechanism whose reinjections match the capture, and its difference.

    The candidates are remedies, and a scheduler that sends data twice. If none of them is much
    more like the capture, the twin stays as it is.
    """
    tried = [replace(twin, remedies=each) for each in _REMEDIES]
    if twin.seen.reinjected > _TWICE:
        tried.append(replace(twin, scheduler="redundant"))
    found = _differences(tried, file, told)
    best = int(np.argmin(found))
    return (tried[best], found[best]) if found[best] < _BETTER * now else (twin, now)


def _round_seeds(twin: TwinValues) -> int:
    """Number of runs of a choice. Jitter in order differs little from run to run."""
    return _ROUND_SEEDS if twin.reorders else 1


def _refined(twin: TwinValues, difference: float, file: str, told: Told) -> TwinValues:
    """The twin with a send buffer near its own that explains the capture best."""
    if twin.send_buffer is None:
        return twin
    sizes = [round(part * twin.send_buffer) for part in _NEARER]
    near = [replace(twin, send_buffer=size) for size in sizes]
    found = [difference, *_differences(near, file, told, _ROUND_SEEDS)]
    return [twin, *near][int(np.argmin(found))]


def _differences(twins: Sequence[TwinValues], file: str, told: Told, seeds: int = 1) -> list[float]:
    """Distance of each of these twins from the capture that they share: the mean over a few runs.

    A twin whose runs differ has at least `seeds` of them.
    """
    found = _runs(twins, max(seeds, *map(_round_seeds, twins)), file, told)
    return [
        float(np.mean([difference(twin.seen, run) for run in runs.values()]))
        for twin, runs in zip(twins, found, strict=True)
    ]


def difference(seen: Observed, run: Observed) -> float:
    """Distance of a run from the capture: root mean square of differences; 1 is a bound each."""
    if run.goodput_mbps == 0:
        return float("inf")
    parts = [
        (run.goodput_mbps / seen.goodput_mbps - 1) / _GOODPUT,
        (run.ends.in_flight / seen.ends.in_flight - 1) / _IN_FLIGHT,
    ]
    if max(seen.reinjected, run.reinjected) > _SHOWN:
        parts.append((run.reinjected - seen.reinjected) / _REINJECTED)
    for observation, other in zip(seen.observations, run.observations, strict=False):
        parts.append((other.share - observation.share) / _SHARE)
        if (
            observation.rtt_ms is not None
            and other.rtt_ms is not None
            and observation.share > _LEAST_SHARE
        ):
            parts.append((other.rtt_ms[0] / observation.rtt_ms[0] - 1) / _RTT)
    return float(np.sqrt(np.mean(np.square(parts))))
