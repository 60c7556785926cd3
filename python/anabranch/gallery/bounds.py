"""The bounds of all claims, read from ``bounds.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from anabranch.results.bounds import Bound, above, at_least, at_most, below, within

_KINDS: Mapping[str, Callable[..., Bound]] = {
    "at_least": at_least,
    "at_most": at_most,
    "above": above,
    "below": below,
    "within": lambda ends, *others: within(*ends, *others),
}
"""The keys of a row that state its ends."""


def _bound(row: Mapping[str, Any]) -> Bound:
    kind = next(name for name in _KINDS if name in row)
    former = (f"until {day} {words}" for day, words in row.get("was", ()))
    reason = "; ".join((row["reason"], *former))
    arguments = [row[kind], str(row["since"]), reason, row.get("unit", "")]
    if "basis" in row:
        arguments.append(row["basis"])
    return _KINDS[kind](*arguments).stating(*_stated(row.get("source", ())))


def _stated(source: Any) -> tuple[float, ...]:
    """The numbers of a source: one, the ends of a range, or a ratio as text."""
    if isinstance(source, str):
        numerator, denominator = map(float, source.split(" / "))
        return (numerator / denominator,)
    return tuple(source) if isinstance(source, list | tuple) else (source,)


def _read() -> dict[str, Bound]:
    text = files("anabranch.gallery").joinpath("bounds.toml").read_text(encoding="utf-8")
    return {key: _bound(row) for key, row in tomllib.loads(text).items()}


BOUNDS = _read()
"""Bounds by claim, and by quantity where a claim has different bounds for its quantities."""
