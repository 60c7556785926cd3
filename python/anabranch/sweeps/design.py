"""Space-filling experimental designs: points in a space of factors.

A point has a coordinate between 0 and 1 for each factor. `Range.scaled` converts coordinates to
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
"""One row for each point, one column for each factor."""

Kind = Literal["wsp", "lhs", "sobol"]

_CANDIDATES_PER_POINT = 25
_BISECTIONS = 40


@dataclass(frozen=True)
class Range:
    """A factor that varies continuously."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"

    def scaled(self, coordinates: Points) -> Points:
        """Values for coordinates between 0 and 1."""
        if self.scale == "log":
            logs = np.log(self.low) + coordinates * np.log(self.high / self.low)
            return np.asarray(np.exp(logs), dtype=np.float64)
        return np.asarray(self.low + coordinates * (self.high - self.low), dtype=np.float64)


def points(kind: Kind, count: int, dimensions: int, seed: int) -> Points:
    """`count` points that fill the unit cube with this number of dimensions."""
    if kind == "wsp":
        return wsp(count, dimensions, seed)
    from scipy.stats import qmc  # the import is slow

    rng = np.random.default_rng(seed)
    if kind == "lhs":
        return np.asarray(qmc.LatinHypercube(dimensions, rng=rng).random(count), dtype=np.float64)
    sobol = qmc.Sobol(dimensions, rng=rng)
    return np.asarray(sobol.random_base2(max(0, (count - 1).bit_length()))[:count])


def wsp(count: int, dimensions: int, seed: int) -> Points:
    """A space-filling design by selection: Santiago, Claeys-Bruno, Sergent, 2012 ("WSP").

    The algorithm starts with many random candidates and keeps one. It drops all candidates within a
    certain distance of that one, keeps the nearest of the rest, and repeats. The distance is chosen
    so that `count` points remain.
    """
    rng = np.random.default_rng(seed)
    candidates = rng.random((max(200, _CANDIDATES_PER_POINT * count), dimensions))
    low, high = 0.0, float(np.sqrt(dimensions))
    kept = np.arange(len(candidates))
    for _ in range(_BISECTIONS):
        distance = (low + high) / 2
        selected = _select(candidates, distance)
        if len(selected) >= count:
            low, kept = distance, selected
        else:
            high = distance
        if len(kept) == count:
            break
    # One distance step can drop several candidates at once: cut the last selected ones.
    return candidates[kept[:count]]


def _select(candidates: Points, distance: float) -> npt.NDArray[np.int64]:
    centre = np.full(candidates.shape[1], 0.5)
    left = np.ones(len(candidates), dtype=bool)
    current = int(((candidates - centre) ** 2).sum(axis=1).argmin())
    selected = []
    while True:
        selected.append(current)
        squared = ((candidates - candidates[current]) ** 2).sum(axis=1)
        left &= squared >= distance**2
        left[current] = False
        if not left.any():
            return np.array(selected, dtype=np.int64)
        current = int(np.where(left, squared, np.inf).argmin())


def least_distance(design: Points) -> float:
    """Smallest distance between two points, a measure of how well a design fills its space."""
    squared = ((design[:, None, :] - design[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return float(np.sqrt(squared.min()))
