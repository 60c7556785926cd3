"""Packet-delivery traces in Mahimahi's format, made from rates over time or from random numbers.

A trace is a list of delivery opportunities: their times in whole milliseconds, never decreasing.
Each opportunity delivers `OPPORTUNITY_BYTES`. The trace repeats, and its last time is its period.

All arithmetic is on whole numbers, so equal input gives equal traces on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path

from anabranch.errors import InputError
from anabranch.files import reading
from anabranch.words import counted

OPPORTUNITY_BYTES = 1504
"""Bytes of one opportunity: Mahimahi's ``PACKET_SIZE``."""

MOST_OPPORTUNITIES = 10_000_000
"""Maximum length of a trace: 20 minutes at 100 Mbit/s. It keeps files below 100 MB."""

TIME_UNITS = {"s": 10**6, "ms": 10**3, "us": 1}
"""Microseconds in each unit of time."""
RATE_UNITS = {"Mbit/s": 10**6, "kbit/s": 10**3, "bit/s": 1, "MB/s": 8 * 10**6, "kB/s": 8 * 10**3}
"""Bits per second in each unit of a rate."""

LEVELS = (Fraction(1, 4), Fraction(5, 8), Fraction(1), Fraction(11, 8), Fraction(7, 4))
"""Rates of a synthetic trace, relative to its mean (this project). Their mean is 1."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_LONGEST_NUMBER = 40

STEP_US = 100_000
"""Time between two draws of a synthetic trace (this project)."""
LONGEST_US = 86_400 * 10**6
"""Maximum length of a synthetic trace: a day."""
STAY_US = 1_000_000
"""Mean time between two moves of a synthetic trace to a neighbouring level (this project)."""


@dataclass(frozen=True)
class Rates:
    """A rate over time. Each rate holds until the next time, and the last rate until `end_us`."""

    times_us: tuple[int, ...]
    """Times in microseconds, increasing from 0."""
    bits_per_second: tuple[int, ...]
    end_us: int

    @property
    def mean(self) -> Fraction:
        """The mean rate in bit/s."""
        ends = (*self.times_us[1:], self.end_us)
        spans = zip(self.times_us, ends, self.bits_per_second, strict=True)
        return Fraction(sum((end - start) * rate for start, end, rate in spans), self.end_us)


def read_rates(file: Path, time_unit: str, rate_unit: str) -> Rates:
    """The rates in a file with two columns, time and rate.

    Semicolons, commas or blanks separate the columns.

    Blank lines and lines that begin with ``#`` do not count, and the first other line may be a
    heading. The trace begins at the first time, and the last rate holds as long as the rate before
    it.

    Raises:
        InputError: if the file cannot be read, or a line is wrong. The message names the line.
    """
    with reading(file, "name a file with times and rates"):
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    written = [
        (f"{file}: line {number}", _words(line))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if written and not any(re.match(r"[\d+\-.\"']", word) for word in written[0][1]):
        del written[0]
    rows: list[tuple[int, int]] = []
    for where, words in written:
        rows.append(_row(where, words, rows, time_unit, rate_unit))
    if len(rows) < 2:
        raise InputError(
            f"{file}: {counted(len(rows), 'line')} with a rate; a trace needs at least two"
        )
    times, rates = zip(*rows, strict=True)
    if not any(rates):
        raise InputError(f"{file}: all rates are 0; a trace delivers something")
    starts = tuple(time - times[0] for time in times)
    return Rates(starts, rates, 2 * starts[-1] - starts[-2])


def _words(line: str) -> list[str]:
    separator = next((each for each in ";," if each in line), None)
    return [word.strip() for word in line.split(separator)]


def _row(
    where: str, words: Sequence[str], rows: list[tuple[int, int]], time_unit: str, rate_unit: str
) -> tuple[int, int]:
    """Time in microseconds and rate in bit/s of a line."""
    if len(words) != 2:
        raise InputError(
            f"{where}: {counted(len(words), 'column')}; a line has a time in {time_unit} and a "
            f"rate in {rate_unit}, such as 0.5,8.25"
        )
    time, rate = (_number(word) for word in words)
    if time is None:
        raise InputError(f'{where}: "{words[0]}" is not a time; write a number of {time_unit}')
    if rate is None or rate < 0:
        raise InputError(
            f'{where}: "{words[1]}" is not a rate; write a number of {rate_unit} from 0 up'
        )
    at = round(time * TIME_UNITS[time_unit])
    if rows and at <= rows[-1][0]:
        raise InputError(
            f'{where}: time "{words[0]}" is not after the time before; times increase by at least '
            "1 us"
        )
    return at, round(rate * RATE_UNITS[rate_unit])


def _number(word: str) -> Fraction | None:
    fits = len(word) <= _LONGEST_NUMBER and _NUMBER.fullmatch(word)
    return Fraction(word) if fits else None


def synthetic(mean: int, duration_us: int, seed: int) -> Rates:
    """Random rates with this mean in bit/s.

    Every 100 ms the rate may move to a neighbouring one of five levels: 0.25, 0.625, 1, 1.375 and
    1.75 times the mean. It moves once a second on average, up or down with equal probability, and
    stays if there is no such level. It starts at the middle level. Afterwards all rates are scaled
    to the exact mean.
    """
    draw = random.Random(seed).random
    count = max(1, round(Fraction(duration_us, STEP_US)))
    level, levels = LEVELS.index(Fraction(1)), []
    for _ in range(count):
        levels.append(level)
        chance = draw() * STAY_US
        if chance < STEP_US:
            level += 1 if chance * 2 < STEP_US else -1
            level = min(max(level, 0), len(LEVELS) - 1)
    scale = mean * count / sum((LEVELS[each] for each in levels), Fraction(0))
    rates = tuple(round(LEVELS[each] * scale) for each in levels)
    return Rates(tuple(range(0, count * STEP_US, STEP_US)), rates, count * STEP_US)


def opportunities(rates: Rates, slot_ms: int = 1) -> list[int]:
    """The delivery opportunities of these rates, in ms.

    An opportunity comes as soon as the rates amount to its bytes, at the end of a slot of
    `slot_ms`. A last opportunity stands at the end of the rates, whose length is the period.

    Raises:
        InputError: if the trace would be too long, or shorter than a millisecond.
    """
    count = rates.mean * rates.end_us / (8 * 10**6 * OPPORTUNITY_BYTES)
    if count > MOST_OPPORTUNITIES:
        raise InputError(
            f"the rates give more than {MOST_OPPORTUNITIES:,} delivery opportunities; use less "
            "time or a lower rate"
        )
    slot_us = 1000 * slot_ms
    end = rates.end_us // slot_us * slot_ms
    if end == 0:
        raise InputError(f"the rates last {rates.end_us} us; a trace lasts at least {slot_ms} ms")
    needed = 8 * 10**6 * OPPORTUNITY_BYTES  # in bit/s × us
    missing, times = needed, []
    spans = pairwise((*rates.times_us, rates.end_us))
    for (start, stop), rate in zip(spans, rates.bits_per_second, strict=True):
        left = (stop - start) * rate
        while left >= missing:
            left -= missing
            moment = stop - left // rate  # rounded up to whole microseconds
            times.append(min(end, -(-moment // slot_us) * slot_ms))
            missing = needed
        missing -= left
    if not times:
        raise InputError(
            f"the rates deliver less than {OPPORTUNITY_BYTES} bytes, one opportunity; use more "
            "time or a higher rate"
        )
    if times[-1] < end:
        times.append(end)
    return times


def to_file(times: Iterable[int]) -> str:
    """The trace as a file of Mahimahi: a line for each opportunity."""
    return "".join(f"{time}\n" for time in times)


def in_line(times: Iterable[int]) -> str:
    """The trace as the value of ``trace.milliseconds`` in a scenario, such as ``"0 3*2 9"``."""
    counts = ((time, sum(1 for _ in same)) for time, same in groupby(times))
    return " ".join(f"{time}*{count}" if count > 1 else str(time) for time, count in counts)
