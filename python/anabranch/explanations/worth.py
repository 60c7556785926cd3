"""Whether a change is worth making. `explain --what-if` and `advise` decide it alike."""

from __future__ import annotations

from anabranch.results.estimates import Estimate

WORTH = 1.05
"""Improvement that every change must bring. Runs of one scenario that take 10, 20 and 60 s differ
by up to 2 %, so smaller improvements would come and go with the duration (ours)."""
BROUGHT = f"{(WORTH - 1) * 100:.0f} %"


def brings_enough(gain: Estimate, changes: int) -> bool:
    """Whether this many changes bring together what they must, surely or not.

    `gain` is the ratio of what they bring to the present state.
    """
    least: float = WORTH**changes
    return changes > 0 and gain.value >= least


def helps(gain: Estimate, changes: int) -> bool:
    """Whether the changes bring what they must, and surely improve anything."""
    return brings_enough(gain, changes) and gain.low > 1
