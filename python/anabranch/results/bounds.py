"""Bounds: the range in which the quantity of a condition has to lie, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from anabranch.results.estimates import Estimate
from anabranch.words import counted


@dataclass(frozen=True)
class Bound:
    """A range of values, with the day on which it was stated and the reason for it."""

    low: float
    high: float
    is_strict: bool
    """Whether the ends themselves lie outside the range."""
    since: str
    """The day on which the range was stated, as ``YYYY-MM-DD``."""
    reason: str
    """The origin of the numbers, and what they replace if they changed."""
    unit: str = ""
    basis: str = ""
    """The meaning of a number, such as ``"90 % of the sum of rates"``, for the text of a check."""
    stated: tuple[float, ...] = ()
    """The source's own number for the quantity, or the ends of its range; empty if it has none."""

    def stating(self, *stated: float) -> Bound:
        """The same range, with the source's own number or the ends of the source's range."""
        return replace(self, stated=stated)

    @property
    def stated_words(self) -> str:
        """The source's own number in words; empty if it has none."""
        return " to ".join(f"{value:.3g}" for value in self.stated)

    def is_below(self, value: float) -> bool:
        """Whether the value lies below the range."""
        return value < self.low or (self.is_strict and value == self.low)

    def is_above(self, value: float) -> bool:
        """Whether the value lies above the range."""
        return value > self.high or (self.is_strict and value == self.high)

    @property
    def ends(self) -> tuple[float, ...]:
        """The finite ends of the range."""
        return tuple(end for end in (self.low, self.high) if math.isfinite(end))

    @property
    def inequality(self) -> str:
        """The range without its unit, such as ``"≥ 3"`` or ``"0.4 to 0.6"``."""
        if math.isinf(self.high):
            return f"{'>' if self.is_strict else '≥'} {self.low:g}"
        if math.isinf(self.low):
            return f"{'<' if self.is_strict else '≤'} {self.high:g}"
        return f"{self.low:g} to {self.high:g}"

    @property
    def text(self) -> str:
        """The range in words, such as ``"1.06 to 1.18 (source: 1.12)"``."""
        words = f"{self.inequality}{f' {self.unit}' if self.unit else ''}"
        words = f"{words}, {self.basis}" if self.basis else words
        return f"{words} (source: {self.stated_words})" if self.stated else words

    def distance(self, value: float) -> float:
        """Distance of the value from the nearest end of the range: negative inside of it."""
        return max(self.low - value, value - self.high)

    def more_samples(self, estimate: Estimate) -> int | None:
        """Number of further seeds that would decide whether the quantity lies in the range.

        The estimate's interval contains an end of the range. An interval shrinks with the square
        root of the number of seeds. If the value stays where it is, an arm of length `a` that
        reaches across an end at distance `d` from the value needs ``(a / d)²`` times the seeds.
        `None` if the value equals an end: no number of seeds is then enough.
        """
        factor = 1.0
        for end in self.ends:
            if not estimate.low <= end <= estimate.high:
                continue
            inner = estimate.low if end <= estimate.value else estimate.high
            if end == estimate.value or math.isinf(inner):
                return None
            factor = max(factor, ((inner - estimate.value) / (end - estimate.value)) ** 2)
        return max(1, math.ceil(estimate.seeds * factor) - estimate.seeds)

    def as_json(self) -> dict[str, Any]:
        """The range as a part of ``claims.json``; `None` is an end that does not exist."""
        return {
            "low": self.low if math.isfinite(self.low) else None,
            "high": self.high if math.isfinite(self.high) else None,
            "strict": self.is_strict,
            "unit": self.unit,
            "stated": list(self.stated),
            "since": self.since,
            "reason": self.reason,
        }


def at_least(low: float, since: str, reason: str, unit: str = "", basis: str = "") -> Bound:
    """The range from `low` up."""
    return Bound(low, math.inf, False, since, reason, unit, basis)


def at_most(high: float, since: str, reason: str, unit: str = "", basis: str = "") -> Bound:
    """The range up to `high`."""
    return Bound(-math.inf, high, False, since, reason, unit, basis)


def above(low: float, since: str, reason: str, unit: str = "", basis: str = "") -> Bound:
    """The range above `low`, which itself lies outside."""
    return Bound(low, math.inf, True, since, reason, unit, basis)


def below(high: float, since: str, reason: str, unit: str = "", basis: str = "") -> Bound:
    """The range below `high`, which itself lies outside."""
    return Bound(-math.inf, high, True, since, reason, unit, basis)


def within(low: float, high: float, since: str, reason: str, unit: str = "") -> Bound:
    """The closed range from `low` to `high`."""
    return Bound(low, high, False, since, reason, unit)


def words_for_more(more: int | None, sample: str) -> str:
    """The answer of `Bound.more_samples` in words; `sample` is ``"seeds"`` or ``"settings"``."""
    if more is None:
        return f"no number of {sample} would decide"
    noun = sample.removesuffix("s")
    return f"about {counted(more, f'more {noun}')} would decide"
