"""Bootstrap confidence intervals, with the numbers of `scipy.stats.bootstrap` to the last bit.

`scipy.stats` takes longer to import than most reports take to make. Most estimates are medians of
one sample. They are computed faster here, because all samples of one size are resampled by the same
random numbers, and a median depends only on how often each element was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Sample = npt.NDArray[np.float64]

Statistic = Callable[..., Any]
"""Takes one array for each sample and a keyword `axis`, along which it works."""

_SEED = 8684  # seed of the resampling, so that equal runs give equal intervals
_AT_ONCE = 4_000_000
"""Numbers that are in memory at once while medians are computed."""


class Bootstrap:
    """The statistics of many resamples of some samples.

    `batch` is the number of resamples that are drawn at once; the random numbers depend on it.
    """

    def __init__(
        self, statistic: Statistic, samples: Sequence[Sample], resamples: int, batch: int
    ) -> None:
        self._statistic = statistic
        self._samples = samples
        self._is_median = statistic is median and not any(np.isnan(each).any() for each in samples)
        if self._is_median:
            (sample,) = samples
            drawn = _medians(sample, _draws(sample.size, resamples, batch))
        else:
            drawn = np.concatenate(list(self._resampled(resamples, batch)))
        self._ordered = np.sort(drawn)

    def percentile_interval(self, confidence: float) -> tuple[float, float]:
        """The interval between two percentiles of the resampled statistics."""
        alpha = (1 - confidence) / 2
        return self._quantile(alpha), self._quantile(1 - alpha)

    def bca_interval(self, confidence: float) -> tuple[float, float]:
        """The bias-corrected and accelerated interval (Efron & Tibshirani 1993, 14.3 and 15.4).

        It is NaN if the statistics hardly vary.
        """
        from scipy.special import ndtr, ndtri  # the import takes a tenth of a second

        value = self._statistic(*self._samples, axis=-1)
        below = np.count_nonzero(self._ordered < value) + np.count_nonzero(self._ordered <= value)
        bias = ndtri(below / (2 * self._ordered.size))
        acceleration = self._acceleration()
        z = float(ndtri((1 - confidence) / 2))
        ends = (ndtr(bias + each / (1 - acceleration * each)) for each in (bias + z, bias - z))
        low, high = map(self._quantile, ends)
        return low, high

    def _resampled(self, resamples: int, batch: int) -> Iterator[Any]:
        rng = np.random.default_rng(_SEED)
        for size in _batches(resamples, batch):
            drawn = (each[rng.integers(0, each.size, (size, each.size))] for each in self._samples)
            yield self._statistic(*drawn, axis=-1)

    def _acceleration(self) -> Any:
        numerators, denominators = [], []
        for index, sample in enumerate(self._samples):
            without = self._jackknife(index)
            influence = (sample.size - 1.0) * (np.mean(without, keepdims=True) - without)
            numerators.append(np.sum(influence**3) / float(sample.size) ** 3)
            denominators.append(np.sum(influence**2) / float(sample.size) ** 2)
        return 1 / 6 * sum(numerators) / sum(denominators) ** (3 / 2)

    def _jackknife(self, index: int) -> Sample:
        """The statistic without each single element of a sample."""
        sample = self._samples[index]
        if self._is_median:
            return _medians_without_one(sample)
        others = ~np.eye(sample.size, dtype=bool)
        each_without = np.broadcast_to(sample, others.shape)[others]
        samples: list[Any] = [
            np.broadcast_to(other, (sample.size, other.size)) for other in self._samples
        ]
        samples[index] = each_without.reshape(sample.size, sample.size - 1)
        found: Sample = self._statistic(*samples, axis=-1)
        return found

    def _quantile(self, share: float) -> float:
        """A quantile of the resampled statistics, interpolated linearly."""
        if np.isnan(share) or np.isnan(self._ordered[-1]):
            return float("nan")
        count = self._ordered.size
        at = np.float64(share) * count + (1 - np.float64(share))
        below = int(at // 1) - 1
        weight = at % 1
        low, high = self._ordered[below], self._ordered[min(below + 1, count - 1)]
        return float((1 - weight) * low + weight * high)


def median(sample: Any, axis: int) -> Any:
    """The median, as a statistic."""
    return np.median(sample, axis=axis)


def _batches(total: int, batch: int) -> Iterator[int]:
    for begin in range(0, total, batch):
        yield min(batch, total - begin)


@lru_cache(maxsize=1)
def _draws(elements: int, resamples: int, batch: int) -> npt.NDArray[np.uint16]:
    """Times that each resample drew each element, for samples of `elements` elements."""
    rng = np.random.default_rng(_SEED)
    counts = np.empty((resamples, elements), np.uint16)
    begin = 0
    for size in _batches(resamples, batch):
        drawn = rng.integers(0, elements, (size, elements))
        drawn += (np.arange(size) * elements)[:, None]
        of_batch = np.bincount(drawn.ravel(), minlength=size * elements)
        counts[begin : begin + size] = of_batch.reshape(size, elements)
        begin += size
    return counts


def _medians(sample: Sample, draws: npt.NDArray[np.uint16]) -> Sample:
    """The median of each resample."""
    order = np.argsort(sample)
    ordered = sample[order]
    middles = (sample.size + 1) // 2, sample.size // 2 + 1
    medians = []
    step = max(1, _AT_ONCE // sample.size)
    for begin in range(0, len(draws), step):
        drawn = np.cumsum(draws[begin : begin + step].take(order, axis=1), axis=1, dtype=np.int32)
        low, high = (ordered[(drawn >= middle).argmax(axis=1)] for middle in middles)
        medians.append(np.mean([low, high], axis=0))
    return np.concatenate(medians)


def _medians_without_one(sample: Sample) -> Sample:
    """The median of a sample without each single element, in the order of the elements."""
    order = np.argsort(sample)
    ordered = sample[order]
    removed = np.arange(sample.size)
    left = sample.size - 1
    places = ((left - 1) // 2, left // 2)
    low, high = (ordered[place + (place >= removed)] for place in places)
    medians = np.empty(sample.size)
    medians[order] = np.mean([low, high], axis=0)
    return medians
