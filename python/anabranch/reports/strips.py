"""Strips: a condition's value, interval, band and bound on one line, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from anabranch.results.claims import Measured

_WIDTH, _HEIGHT = 240, 14
_MARGIN = 0.08
"""Free space at both ends, relative to the width of the values."""


def strip(measured: Measured) -> Markup:
    """The strip of a condition; empty if a number is not finite.

    The tinted part is the range in which the value has to lie. The wide bar is the band, the narrow
    bar the interval, the dot the value, and a diamond the source's own number.
    """
    estimate, bound = measured.estimate, measured.condition.bound
    band = measured.band or (estimate.value, estimate.value)
    shown = [estimate.low, estimate.high, *band, *bound.ends, *bound.stated]
    if not all(map(math.isfinite, shown)):
        return Markup("")
    place = _scale(shown)
    low, high = (min(max(place(end), 0), _WIDTH) for end in (bound.low, bound.high))
    parts = [
        _bar("range", low, high, _HEIGHT),
        _bar("band", place(band[0]), place(band[1]), 8),
        _bar("interval", place(estimate.low), place(estimate.high), 3),
    ]
    parts += [_diamond(place(each)) for each in bound.stated]
    dot = f'<circle class="value" cx="{place(estimate.value):.1f}" cy="{_HEIGHT / 2:g}" r="3"/>'
    return Markup(
        f'<svg class="strip" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f"{''.join(parts)}{dot}</svg>"
    )


class _Scale:
    """Maps values to places on a strip. Infinity is beyond its ends."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        if math.isinf(value):
            return math.copysign(10 * _WIDTH, value)
        return (value - self.low) / (self.high - self.low) * _WIDTH


def _scale(values: Iterable[float]) -> _Scale:
    """The scale on which all values are visible."""
    low, high = min(values), max(values)
    margin = (high - low or abs(high) or 1.0) * _MARGIN
    return _Scale(low - margin, high + margin)


def _bar(name: str, left: float, right: float, height: int) -> str:
    return (
        f'<rect class="{name}" x="{left:.1f}" y="{(_HEIGHT - height) / 2:g}" '
        f'width="{max(right - left, 0.5):.1f}" height="{height}"/>'
    )


def _diamond(x: float) -> str:
    middle, arm = _HEIGHT / 2, 4.5
    corners = ((x - arm, middle), (x, middle - arm), (x + arm, middle), (x, middle + arm))
    points = " ".join(f"{across:.1f},{down:.1f}" for across, down in corners)
    return f'<polygon class="stated" points="{points}"/>'
