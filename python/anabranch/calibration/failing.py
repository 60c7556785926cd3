"""Scenarios of the calibration whose paths fail, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from anabranch.calibration import case
from anabranch.calibration.case import Case
from anabranch.calibration.drawn import ONE_PATH_EVERY, buffers, log_uniform
from anabranch.scenarios.classes import AppliesTo, Direction
from anabranch.scenarios.scenario import (
    Blocks,
    Cbr,
    Change,
    Connection,
    NetworkPath,
    Scenario,
    Workload,
)

GROUP = "failing"
RATE_MBPS = (2.0, 20.0)
DELAY_MS = (5.0, 60.0)
LIMIT_PACKETS = (30.0, 150.0)
EXPECTED_S = (4.0, 8.0)
"""Time that a transfer takes if no path fails."""
OUTAGE_S = (0.2, 6.0)
MOST_FAILURES = 3
FOR_GOOD, ONE_DIRECTION, STREAM = 0.25, 0.3, 1 / 3
"""Shares of failures that last or concern one direction, and of connections with a paced stream."""

_STREAM_S = 18
_LONGEST_S = 45
_BLOCK_BYTES = 8192


@dataclass(frozen=True)
class _Failure:
    """An outage of a path."""

    path: str
    start_s: float
    end_s: float | None
    """`None` if the path does not return."""
    applies_to: AppliesTo

    def changes(self) -> Iterator[Change]:
        yield Change(at=f"{self.start_s:g}s", state="down", applies_to=self.applies_to)
        if self.end_s is not None:
            yield Change(at=f"{self.end_s:g}s", state="up", applies_to=self.applies_to)


def draw(seed: int, index: int) -> Scenario:
    """The scenario with a number, counted from 0, of those drawn from a seed.

    It depends on `seed` and `index` alone.
    """
    draws = random.Random(f"anabranch calibrate failing {seed} {index}")
    names = ("a",) if index % ONE_PATH_EVERY == ONE_PATH_EVERY - 1 else ("a", "b")
    direction: Direction = "upload" if draws.random() < 0.5 else "download"
    rates = {name: log_uniform(draws, RATE_MBPS) for name in names}
    failures = _failures(draws, names)
    workload, words, seconds = _workload(draws, rates, failures)
    send, receive = buffers(draws)
    paths = tuple(
        NetworkPath(
            name=name,
            rate=f"{rate:g}Mbit/s",
            delay=f"{log_uniform(draws, DELAY_MS):g}ms",
            limit=f"{round(log_uniform(draws, LIMIT_PACKETS))}packets",
            changes=tuple(
                change for each in failures if each.path == name for change in each.changes()
            ),
        )
        for name, rate in rates.items()
    )
    connection = Connection(
        name="main",
        protocol="tcp" if len(names) == 1 else "mptcp",
        direction=direction,
        stack="linux-6.12",
        send_buffer=send,
        receive_buffer=receive,
        workload=workload,
    )
    summed = " + ".join(f"{rate:g}" for rate in rates.values())
    count = f"{len(failures)} failure{'' if len(failures) == 1 else 's'}"
    return Scenario(
        name=f"f{seed}-{index + 1:02} {summed} Mbit/s, {words} {direction}, {count}",
        description=f"Scenario {index + 1} with failures of those drawn from seed {seed}.",
        duration=f"{seconds}s",
        paths=paths,
        connections=(connection,),
    )


def cases(count: int, seed: int) -> list[Case]:
    """The first `count` scenarios that are drawn from a seed."""
    drawn = (draw(seed, index) for index in range(count))
    return [case.of(each, GROUP, each.name.split()[0]) for each in drawn]


def _failures(draws: random.Random, names: tuple[str, ...]) -> list[_Failure]:
    """One to three failures. One path at most fails for good, and only if there is another one."""
    found: list[_Failure] = []
    start = draws.uniform(1.0, 2.5)
    for _ in range(draws.randint(1, MOST_FAILURES)):
        path = draws.choice(names)
        length = log_uniform(draws, OUTAGE_S)
        lasts = draws.random() < FOR_GOOD
        one_way = draws.random() < ONE_DIRECTION
        side: AppliesTo = draws.choice(("forward", "reverse")) if one_way else "both"
        pause = draws.uniform(0.5, 4.0)
        before = [each for each in found if each.path == path]
        is_alone = all(each.end_s is not None for each in found) and len(names) > 1
        if all(each.end_s is not None and each.end_s < start for each in before):
            start = round(start, 2)
            end = None if lasts and is_alone else round(start + length, 2)
            found.append(_Failure(path, start, end, side))
        start += pause
    return found


def _workload(
    draws: random.Random, rates: dict[str, float], failures: list[_Failure]
) -> tuple[Workload, str, int]:
    """The data to carry, in words as well, and the time to watch it in s.

    A stream has a rate that the slowest path can carry.
    """
    is_stream, share = draws.random() < STREAM, draws.uniform(0.4, 0.8)
    expected_s = draws.uniform(*EXPECTED_S)
    if is_stream:
        rate = float(f"{share * min(rates.values()):.2g}")
        return Cbr(rate=f"{rate:g}Mbit/s", block_size=f"{_BLOCK_BYTES}B"), "stream", _STREAM_S
    megabytes = round(sum(rates.values()) * expected_s / 8, 1)
    outages = sum(each.end_s - each.start_s for each in failures if each.end_s is not None)
    slowest_s = megabytes * 8 / min(rates.values())
    seconds = min(_LONGEST_S, ceil(5 + outages * 2 + min(slowest_s, 3 * expected_s)))
    return Blocks(block_size=f"{megabytes:g}MB", count=1), f"{megabytes:g} MB", seconds
