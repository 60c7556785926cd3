"""Statistics over seeds, or over the settings of a design, with bootstrap confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from anabranch.results import bootstrap
from anabranch.results.bootstrap import Bootstrap

Sample = bootstrap.Sample

CONFIDENCE = 0.95
RESAMPLES = 4999
_LARGE = 2000
"""Larger samples get fewer resamples and no BCa, the cost of which grows with their square."""
_FEWEST_RESAMPLES = 999


@dataclass(frozen=True)
class Estimate:
    """A number measured over seeds, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    seeds: int
    """Size of the smallest sample. With one seed, the interval is a single value."""
    sample: str = "seeds"
    """The elements of the sample: ``"seeds"``, or ``"settings"`` of a design."""

    interval: Callable[[float], tuple[float, float]] | None = field(
        default=None, compare=False, repr=False
    )
    """The interval at another confidence; `None` if the interval is a single value."""

    def among(self, count: int) -> Estimate:
        """The estimate as one of `count` whose intervals hold together with 95 % confidence.

        Bonferroni: each interval holds with 1 − 5 % / `count`.
        """
        if count == 1 or self.interval is None:
            return self
        low, high = self.interval(1 - (1 - CONFIDENCE) / count)
        return replace(self, low=min(low, self.low), high=max(high, self.high))

    def text(self, unit: str = "") -> str:
        """The estimate for a table, such as ``"4.12 [4.05, 4.20] Mbit/s"``."""
        value, low, high = (number(each) for each in (self.value, self.low, self.high))
        interval = "" if value == low == high else f" [{low}, {high}]"
        return f"{value}{interval}{f' {unit}' if unit else ''}"


_NOISE = 1e-9
"""Smallest number that a quantity of this project can have in its unit."""


def number(value: float) -> str:
    """A number with three or four significant digits, without an exponent where possible.

    Below `_NOISE` it is the rounding error of a difference, and 0 is meant.
    """
    if not np.isfinite(value):
        return str(value)
    if abs(value) < _NOISE:
        value = 0.0
    sign, size = "−" if value < 0 else "", abs(value)
    if size >= 1000:
        return f"{sign}{size:,.0f}"
    if size >= 100:
        return f"{sign}{size:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{sign}{size:.2f}"
    return f"{sign}{size:.3g}"


def percent(share: float) -> str:
    """A share of the time as a percentage with one decimal."""
    return f"{share * 100:.1f} %"


def median(sample: Sample, of: str = "seeds") -> Estimate:
    """Median over a sample."""
    return estimate(bootstrap.median, sample, of=of)


def mean(sample: Sample, of: str = "seeds") -> Estimate:
    """Mean over a sample."""
    return estimate(lambda a, axis: np.mean(a, axis=axis), sample, of=of)


def estimate(statistic: Callable[..., Any], *samples: Sample, of: str = "seeds") -> Estimate:
    """A statistic of samples with its bootstrap interval.

    `statistic` takes one array for each sample and a keyword `axis`, along which it works. `of`
    says what the elements of the samples are. The interval is bias-corrected and accelerated
    (BCa). The percentile interval is used instead if samples hardly vary, because BCa is undefined
    then, and if one has more than 2,000 elements, because there the correction is negligible.

    Raises:
        ValueError: if a sample is empty.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if any(array.size == 0 for array in arrays):
        raise ValueError("an estimate needs at least one seed")
    value = float(statistic(*arrays, axis=-1))
    seeds = min(array.size for array in arrays)
    if seeds == 1 or all(np.ptp(array) == 0 for array in arrays):
        return Estimate(value, value, value, seeds, of)
    interval = partial(_interval, statistic, arrays)
    low, high = interval(CONFIDENCE)
    return Estimate(value, min(low, value), max(high, value), seeds, of, interval)


def _interval(
    statistic: Callable[..., Any], arrays: Sequence[Sample], confidence: float
) -> tuple[float, float]:
    if statistic is bootstrap.median:
        return _interval_of_median(arrays[0].tobytes(), confidence)
    return _resampled(statistic, arrays, confidence)


@lru_cache(maxsize=256)  # figures and tables of a report show the same medians
def _interval_of_median(sample: bytes, confidence: float) -> tuple[float, float]:
    return _resampled(bootstrap.median, [np.frombuffer(sample)], confidence)


def _resampled(
    statistic: Callable[..., Any], arrays: Sequence[Sample], confidence: float
) -> tuple[float, float]:
    drawn = RESAMPLES * _LARGE  # numbers at once, and in total, as long as that is enough
    largest = max(array.size for array in arrays)
    resamples = min(RESAMPLES, max(_FEWEST_RESAMPLES, drawn // largest))
    batch = max(1, min(resamples, drawn // largest))
    with np.errstate(all="ignore"):
        resampled = Bootstrap(statistic, arrays, resamples, batch)
        low = high = np.nan
        if largest <= _LARGE:
            low, high = resampled.bca_interval(confidence)
        if not (np.isfinite(low) and np.isfinite(high)):
            low, high = resampled.percentile_interval(confidence)
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    return float("-inf"), float("inf")
