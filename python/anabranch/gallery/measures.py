"""Measures for the conditions of claims and for panels: statistics of values, one for each seed.

Values are functions of results, so that the same quantity can be judged, drawn and described.
`by_seed` makes them from a function that an entry defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from anabranch.results import estimates
from anabranch.results.claims import Measure
from anabranch.results.estimates import Estimate, Sample
from anabranch.results.folder import NothingMeasured, Results

if TYPE_CHECKING:
    import polars as pl

P = ParamSpec("P")

Values = Callable[[Results], Sample]
"""Measures a quantity once for each seed, or for each setting of a design."""


def by_seed(function: Callable[Concatenate[Results, P], Sample]) -> Callable[P, Values]:
    """The function with its results last: what it measures, to be applied to results later."""

    @wraps(function)
    def values(*arguments: P.args, **named: P.kwargs) -> Values:
        return lambda results: function(results, *arguments, **named)

    return values


def per_seed(rows: pl.DataFrame, value: pl.Expr, nothing: str) -> Sample:
    """An expression over the rows of each seed, in the order of the seeds.

    Raises:
        NothingMeasured: if no seed has a value; the message is `nothing`.
    """
    found = rows.group_by("seed").agg(value.alias("value")).sort("seed")["value"].drop_nulls()
    if found.is_empty():
        raise NothingMeasured(nothing)
    return found.to_numpy().astype(np.float64)


def in_words(
    results: Results, cases: Iterable[str], measure: Callable[[str], Measure], unit: str = ""
) -> str:
    """Each case with its estimate, such as ``"LIA 3 [2, 4] s, OLIA 5 [4, 6] s"``."""
    return ", ".join(f"{case} {measure(case)(results).text(unit)}" for case in cases)


def derived(function: Callable[..., Any], *values: Values) -> Values:
    """A function of several values, for each seed."""
    return lambda results: np.asarray(function(*(each(results) for each in values)))


def part_of(one: Values, *others: Values) -> Values:
    """The part of `one` in the sum of all, for each seed."""
    return derived(lambda value, *rest: value / sum(rest, start=value), one, *others)


def estimate(statistic: Callable[..., Any], *samples: Values, of: str = "seeds") -> Measure:
    """A statistic of several values; see `estimates.estimate`."""

    def measure(results: Results) -> Estimate:
        return estimates.estimate(statistic, *(values(results) for values in samples), of=of)

    return measure


def median(values: Values, scale: float = 1, of: str = "seeds") -> Measure:
    """The median of values, times `scale`."""
    return lambda results: estimates.median(values(results) * scale, of)


def mean(values: Values, scale: float = 1, of: str = "seeds") -> Measure:
    """The mean of values, times `scale`."""
    return lambda results: estimates.mean(values(results) * scale, of)


def of_medians(function: Callable[..., Any], *samples: Values, of: str = "seeds") -> Measure:
    """A function of the medians of several values."""
    return _of_centres(np.median, function, samples, of)


def of_means(function: Callable[..., Any], *samples: Values, of: str = "seeds") -> Measure:
    """A function of the means of several values."""
    return _of_centres(np.mean, function, samples, of)


def _of_centres(
    centre: Callable[..., Any], function: Callable[..., Any], samples: Iterable[Values], of: str
) -> Measure:
    def statistic(*drawn: Any, axis: int) -> Any:
        return function(*(centre(each, axis=axis) for each in drawn))

    return estimate(statistic, *samples, of=of)


def ratio(above: Values, below: Values, of: str = "seeds") -> Measure:
    """The ratio of two medians."""
    return of_medians(np.divide, above, below, of=of)


def mean_ratio(above: Values, below: Values) -> Measure:
    """The ratio of two means."""
    return of_means(np.divide, above, below)


def difference(one: Values, other: Values, of: str = "seeds") -> Measure:
    """The median of `one` less that of `other`."""
    return of_medians(np.subtract, one, other, of=of)


def distance(one: Values, other: Values, of: str = "seeds") -> Measure:
    """The difference of two medians, in per cent of the median of `other`."""
    return of_medians(lambda a, b: abs(a / b - 1) * 100, one, other, of=of)


def smallest(values: Values) -> Measure:
    """The value of the worst seed, where more is better."""
    return lambda results: estimates.estimate(np.min, values(results))


def ratio_of_ratios(a: Values, b: Values, c: Values, d: Values) -> Measure:
    """The ratio (a / b) / (c / d) of medians."""
    return of_medians(lambda a, b, c, d: (a / b) / (c / d), a, b, c, d)


def over_sum(one: Values, *others: Values) -> Measure:
    """The median of `one` over the sum of the medians of the others."""
    return of_medians(lambda first, *rest: first / np.sum(rest, axis=0), one, *others)


def over_largest(one: Values, *others: Values) -> Measure:
    """The median of `one` over the largest of the medians of the others."""
    return of_medians(lambda first, *rest: first / np.max(rest, axis=0), one, *others)


def over_smallest(one: Values, *others: Values) -> Measure:
    """The median of `one` over the smallest of the medians of the others."""
    return of_medians(lambda first, *rest: first / np.min(rest, axis=0), one, *others)
