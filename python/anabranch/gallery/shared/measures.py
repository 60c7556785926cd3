"""Measures for the conditions of claims: medians, and ratios and distances of medians."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from anabranch.results.bounds import Bound
from anabranch.results.claims import Condition, Measure, each
from anabranch.results.estimates import Estimate, estimate, median, ratio_of_medians
from anabranch.results.folder import Factor, Results


def median_of(metric: str, factors: Mapping[str, Factor], scale: float = 1) -> Measure:
    """The median over seeds of a metric, times `scale`, for the runs with these factors."""

    def measure(results: Results) -> Estimate:
        return median(results.values(metric, **factors) * scale)

    return measure


def ratio_of(metric: str, above: Mapping[str, Factor], below: Mapping[str, Factor]) -> Measure:
    """The ratio of a metric's medians over seeds: runs `above` over runs `below`."""

    def measure(results: Results) -> Estimate:
        return ratio_of_medians(results.values(metric, **above), results.values(metric, **below))

    return measure


def distance_of(metric: str, one: Mapping[str, Factor], other: Mapping[str, Factor]) -> Measure:
    """The difference between a metric's medians, in per cent of the median of `other`."""

    def measure(results: Results) -> Estimate:
        return estimate(distance, results.values(metric, **one), results.values(metric, **other))

    return measure


def distance(a: Any, b: Any, axis: int) -> Any:
    """The difference of two medians, in per cent of the median of `b`; for `estimates.estimate`."""
    return abs(np.median(a, axis=axis) / np.median(b, axis=axis) - 1) * 100


def ratio_of_ratios(a: Any, b: Any, c: Any, d: Any, axis: int) -> Any:
    """The ratio (a / b) / (c / d) of medians; for `estimates.estimate`."""
    middle = [np.median(each, axis=axis) for each in (a, b, c, d)]
    return (middle[0] / middle[1]) / (middle[2] / middle[3])


def at_every_buffer(
    words: str,
    buffers: Iterable[int],
    buffer_unit: str,
    measure: Callable[[int], Measure],
    bound: Bound,
) -> tuple[Condition, ...]:
    """One condition for each of the `buffers`, whose sizes are in `buffer_unit`."""
    return each(
        f"{words} at every buffer",
        (Condition(f"{words} at {size} {buffer_unit}", measure(size), bound) for size in buffers),
    )


def least(quantity: str, cases: Mapping[str, Measure], bound: Bound) -> Condition:
    """The condition on the smallest of several quantities. The report names this quantity.

    The interval is corrected for the number of quantities among which the smallest was found.
    """

    def find(results: Results) -> tuple[str, Estimate]:
        measured = {words: measure(results) for words, measure in cases.items()}
        return min(measured.items(), key=lambda case: case[1].value)

    return Condition(
        quantity,
        lambda results: find(results)[1].among(len(cases)),
        bound,
        describe=lambda results: f"smallest of {len(cases)}: {find(results)[0]}",
    )
