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
from anabranch.results.estimates import Estimate, Sample, ratio_of_medians
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


def ratio(above: Values, below: Values, of: str = "seeds") -> Measure:
    """The ratio of two medians."""
    return estimate(ratio_of_medians, above, below, of=of)


def mean_ratio(above: Values, below: Values) -> Measure:
    """The ratio of two means."""
    return estimate(lambda a, b, axis: np.mean(a, axis=axis) / np.mean(b, axis=axis), above, below)


def difference(one: Values, other: Values, of: str = "seeds") -> Measure:
    """The median of `one` less that of `other`."""
    return estimate(
        lambda a, b, axis: np.median(a, axis=axis) - np.median(b, axis=axis), one, other, of=of
    )


def distance(one: Values, other: Values, of: str = "seeds") -> Measure:
    """The difference of two medians, in per cent of the median of `other`."""
    return estimate(
        lambda a, b, axis: abs(ratio_of_medians(a, b, axis) - 1) * 100, one, other, of=of
    )


def smallest(values: Values, scale: float = 1) -> Measure:
    """The value of the worst seed, times `scale`, where more is better."""
    return lambda results: estimates.estimate(np.min, values(results) * scale)


def ratio_of_ratios(a: Values, b: Values, c: Values, d: Values) -> Measure:
    """The ratio (a / b) / (c / d) of medians."""

    def statistic(a: Any, b: Any, c: Any, d: Any, axis: int) -> Any:
        return ratio_of_medians(a, b, axis) / ratio_of_medians(c, d, axis)

    return estimate(statistic, a, b, c, d)


def over_sum(one: Values, *others: Values) -> Measure:
    """The median of `one` over the sum of the medians of the others."""
    return estimate(_over(np.sum), one, *others)


def over_largest(one: Values, *others: Values) -> Measure:
    """The median of `one` over the largest of the medians of the others."""
    return estimate(_over(np.max), one, *others)


def over_smallest(one: Values, *others: Values) -> Measure:
    """The median of `one` over the smallest of the medians of the others."""
    return estimate(_over(np.min), one, *others)


def _over(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def statistic(one: Any, *others: Any, axis: int) -> Any:
        medians = [np.median(each, axis=axis) for each in others]
        return np.median(one, axis=axis) / reduce(medians, axis=0)

    return statistic
