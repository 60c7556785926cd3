"""Criteria for worthwhile changes, which `explain --what-if` and `advise` share."""

from __future__ import annotations

from anabranch.results.estimates import Estimate

WORTH = 1.05
"""Improvement that every change must bring. Runs of one scenario that take 10, 20 and 60 s differ
by up to 2 %, so a smaller improvement may depend on the duration (this project)."""
BROUGHT = f"{(WORTH - 1) * 100:.0f} %"


def brings_enough(gain: Estimate, changes: int) -> bool:
    """Whether the mean gain reaches the minimum for this many changes, whatever its interval.

    `gain` is the ratio of the goal's value with the changes to its value without them.
    """
    least: float = WORTH**changes
    return changes > 0 and gain.value >= least


def helps(gain: Estimate, changes: int) -> bool:
    """Whether the gain reaches its minimum, and its whole interval is an improvement."""
    return brings_enough(gain, changes) and gain.low > 1
