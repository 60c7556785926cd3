"""The parts of a loss that a sentence names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_Loss = TypeVar("_Loss")
_Name = TypeVar("_Name")

NAMED = 0.15
"""Share of a loss from which sentences name a part of it (this project)."""


def grouped(
    losses: Sequence[_Loss],
    name: Callable[[_Loss], _Name],
    size: Callable[[_Loss], float],
    least: float,
) -> list[_Name]:
    """The names whose losses are at least this large together; the largest in any case."""
    sums: dict[_Name, float] = {}
    for loss in losses:
        sums[name(loss)] = sums.get(name(loss), 0.0) + size(loss)
    return [each for each in sums if sums[each] >= min(least, max(sums.values()))]
