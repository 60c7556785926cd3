"""Intervals are those of SciPy to the last bit."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap as by_scipy

from anabranch.results.bootstrap import Bootstrap, median
from conftest import ratio_of_medians

RNG = np.random.default_rng(1)


def mean(sample: Any, axis: int) -> Any:
    return np.mean(sample, axis=axis)


def expected(
    statistic: Callable[..., Any], samples: list[Any], method: Any, resamples: int, batch: int
) -> tuple[float, float]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = by_scipy(
            samples, statistic, confidence_level=0.95, n_resamples=resamples, batch=batch,
            method=method, vectorized=True, rng=np.random.default_rng(8684),
        ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)


@pytest.mark.parametrize("size", [2, 3, 4, 10, 11, 60])
@pytest.mark.parametrize("draw", [lambda n: RNG.normal(5, 1, n), lambda n: RNG.integers(0, 3, n)])
def test_intervals_are_those_of_scipy(size: int, draw: Callable[[int], Any]) -> None:
    one, two = draw(size).astype(float), RNG.normal(3, 1, size + 1)
    for statistic, samples in ((median, [one]), (mean, [one]), (ratio_of_medians, [one, two])):
        for resamples, batch in ((999, 999), (999, 250)):
            with np.errstate(all="ignore"):
                made = Bootstrap(statistic, samples, resamples, batch)
                found = [made.percentile_interval(0.95), made.bca_interval(0.95)]
            wanted = [
                expected(statistic, samples, method, resamples, batch)
                for method in ("percentile", "BCa")
            ]
            np.testing.assert_array_equal(found, wanted)
