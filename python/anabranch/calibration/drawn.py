"""Scenarios of the calibration that are drawn at random. Nobody chose them to agree with Linux."""

from __future__ import annotations

import random
from math import ceil, sqrt

from anabranch.calibration import case
from anabranch.calibration.case import Case
from anabranch.scenarios.classes import Direction
from anabranch.scenarios.scenario import (
    Blocks,
    Bulk,
    Connection,
    NetworkPath,
    Reverse,
    Scenario,
    Workload,
)

ONE_PATH_EVERY = 3
"""Every third scenario has one path, and the others have two."""

RATE_MBPS = (1.0, 30.0)
DELAY_MS = (1.0, 60.0)
LIMIT_PACKETS = (8.0, 200.0)
LOSS_PERCENT = (0.01, 1.0)
BUFFER_KB = (100.0, 4_000.0)
JITTER_OF_DELAY = (0.05, 1.0)
"""Reordering jitter as a share of the path's delay."""
LOSSY, REORDERING, FIXED_BUFFERS = 0.25, 0.2, 0.5
"""Shares of paths that lose or reorder packets, and of connections whose buffers are both fixed."""

SIZES_MB = {"64kB": 0.064, "1MB": 1.0, "8MB": 8.0}
_BLOCK = "8KiB"
_ENDLESS_S = 20
_LONGEST_S = 120


def draw(seed: int, index: int) -> Scenario:
    """The scenario with a number, counted from 0, of those drawn from a seed.

    It depends on `seed` and `index` alone.
    """
    draws = random.Random(f"anabranch calibrate {seed} {index}")
    upload = draws.random() < 0.5
    count = 1 if index % ONE_PATH_EVERY == ONE_PATH_EVERY - 1 else 2
    drawn = [_Path(draws, name) for name in ("a", "b")[:count]]
    workload, words, seconds = _workload(draws, sum(path.expected_mbps for path in drawn))
    send, receive = buffers(draws)
    direction: Direction = "upload" if upload else "download"
    connection = Connection(
        name="main",
        protocol="tcp" if count == 1 else "mptcp",
        direction=direction,
        congestion_control="cubic_linux",
        scheduler=None if count == 1 else "linux",
        host={"kind": "linux", "buffers": "socket"},
        send_buffer=send,
        receive_buffer=receive,
        workload=workload,
    )
    rates = " + ".join(f"{path.rate:g}" for path in drawn)
    return Scenario(
        name=f"{seed}-{index + 1:02} {rates} Mbit/s, {words} {direction}",
        description=f"Scenario {index + 1} of those drawn from seed {seed}.",
        duration=f"{seconds}s",
        paths=tuple(path.over(direction) for path in drawn),
        connections=(connection,),
    )


def cases(count: int, seed: int) -> list[Case]:
    """The first `count` scenarios that are drawn from a seed."""
    drawn = (draw(seed, index) for index in range(count))
    return [case.of(each, "drawn", each.name.split()[0]) for each in drawn]


class _Path:
    """The drawn properties of a path."""

    def __init__(self, draws: random.Random, name: str) -> None:
        self.name = name
        self.rate = log_uniform(draws, RATE_MBPS)
        self.delay = log_uniform(draws, DELAY_MS)
        self.limit = round(log_uniform(draws, LIMIT_PACKETS))
        is_lossy, loss = draws.random() < LOSSY, log_uniform(draws, LOSS_PERCENT)
        self.loss = loss if is_lossy else None
        reorders, share = draws.random() < REORDERING, log_uniform(draws, JITTER_OF_DELAY)
        self.jitter = round(share * self.delay, 3) if reorders else None

    @property
    def expected_mbps(self) -> float:
        """Rate that a congestion control can reach: of the link, or by its losses (Mathis 1997)."""
        if self.loss is None:
            return self.rate
        bits, rtt_s = 1448 * 8, 2e-3 * self.delay
        return min(self.rate, 1.22 * bits / (rtt_s * sqrt(self.loss / 100)) / 1e6)

    def over(self, direction: Direction) -> NetworkPath:
        """The path, whose losses and jitter are those of the direction of the data."""
        loss = None if self.loss is None else f"{self.loss:g}%"
        jitter = None if self.jitter is None else f"{self.jitter:g}ms"
        down = direction == "download"
        disturbed = not down and (loss or jitter)
        return NetworkPath(
            name=self.name,
            rate=f"{self.rate:g}Mbit/s",
            delay=f"{self.delay:g}ms",
            limit=f"{self.limit}packets",
            loss=loss if down else None,
            jitter=jitter if down else None,
            jitter_model="reordering" if jitter else None,
            reverse=Reverse(loss=loss, jitter=jitter) if disturbed else None,
        )


def _workload(draws: random.Random, expected_mbps: float) -> tuple[Workload, str, int]:
    """A workload, its name, and the duration of the run in s, which lets a transfer finish."""
    kind, size = draws.choice(("transfer", "endless", "blocks")), draws.choice(list(SIZES_MB))
    if kind == "endless":
        return Bulk(), "endless", _ENDLESS_S
    if kind == "blocks":
        return Blocks(block_size=_BLOCK), "blocks", _ENDLESS_S
    seconds = min(_LONGEST_S, 5 + ceil(3 * SIZES_MB[size] * 8 / expected_mbps))
    return Blocks(block_size=size, count=1), f"{size[:-2]} {size[-2:]}", seconds


def buffers(draws: random.Random) -> tuple[str | None, str | None]:
    """Send and receive buffer; `None` for both if the stack tunes them."""
    fixed = draws.random() < FIXED_BUFFERS
    send, receive = (f"{round(log_uniform(draws, BUFFER_KB))}kB" for _ in range(2))
    return (send, receive) if fixed else (None, None)


def log_uniform(draws: random.Random, bounds: tuple[float, float]) -> float:
    """A number whose logarithm is uniform between those of the bounds.

    It has three significant digits, so hosts whose power functions round differently agree.
    """
    low, high = bounds
    return float(f"{low * (high / low) ** draws.random():.3g}")
