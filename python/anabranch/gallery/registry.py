"""The registry of claims: their statements, sources and bounds, read from ``entries/*.toml``.

It is apart from the code that measures. Each claim of an entry has a table, such as::

    ["E1.3-m12-beats-regular"]
    statement = "With both mechanisms, delays are lower on average and vary less than without them."
    source = "NSDI'12, Fig. 7; CS244'15, result 3"
    bound = { at_least = 1.5, since = 2026-11-20, reason = "this project: read off a plot" }
    bounds.IQR = { above = 1, since = 2026-11-20, reason = "this project: any effect counts" }

`bound` judges every quantity that does not name one of `bounds`. ``bounds_of`` names another claim
with the same bounds. A table that several claims share has words in braces, which each claim fills.

A bound is stated before the runs that it judges, with the day and the reason. If it changes
afterwards, `was` says until which day it was what. `source` is the source's own number in the unit
of the quantity, or the ends of its range; reports show it next to this project's. `basis` says what
a number means.

Two rules give bounds their width where a source states a number but no tolerance; this project
chose both:

* effect ± half: a source states an effect e, such as "12 % more". The bound is 0.5 e to 1.5 e.
* factor of two: a source states counts. The bound for their ratio is half to twice the ratio.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from anabranch.errors import InputError, unknown
from anabranch.results.bounds import Bound, above, at_least, at_most, below, within

_KINDS: Mapping[str, Callable[..., Bound]] = {
    "at_least": at_least,
    "at_most": at_most,
    "above": above,
    "below": below,
    "within": lambda ends, *others: within(*ends, *others),
}
"""The keys of a bound that state its ends."""


@dataclass(frozen=True)
class Row:
    """A claim in words, with its bounds."""

    statement: str
    source: str
    bounds: Mapping[str, Bound]
    """The bounds by the names that quantities use; the name of the claim's own bound is empty."""
    bounds_of: str
    """Name of the claim that has the bounds; empty if this one does."""


def _row(where: str, table: Mapping[str, Any]) -> Row:
    _check_keys(where, table, ("statement", "source"), ("bound", "bounds", "bounds_of"))
    own = {"": table["bound"]} if "bound" in table else {}
    bounds = {
        name: bound_of(f'{where}: the bound "{name}"', each)
        for name, each in (own | table.get("bounds", {})).items()
    }
    return Row(table["statement"], table["source"], bounds, table.get("bounds_of", ""))


def bound_of(where: str, table: Mapping[str, Any]) -> Bound:
    """A bound from its table, which the words `where` name in errors.

    Raises:
        InputError: if a key is missing or unknown.
    """
    kind = next((name for name in _KINDS if name in table), None)
    if kind is None:
        raise InputError(f"{where} needs one of {', '.join(_KINDS)}")
    _check_keys(where, table, (kind, "since", "reason"), ("unit", "source", "was", "basis"))
    former = (f"until {day} {words}" for day, words in table.get("was", ()))
    reason = "; ".join((table["reason"], *former))
    arguments = [table[kind], str(table["since"]), reason, table.get("unit", "")]
    if "basis" in table:
        arguments.append(table["basis"])
    return _KINDS[kind](*arguments).stating(*_stated(table.get("source", ())))


def _stated(source: Any) -> tuple[float, ...]:
    """The numbers of a source: one, the ends of a range, or a ratio as text."""
    if isinstance(source, str):
        numerator, denominator = map(float, source.split(" / "))
        return (numerator / denominator,)
    return tuple(source) if isinstance(source, list | tuple) else (source,)


def _check_keys(
    where: str, table: Mapping[str, Any], needed: Sequence[str], further: Sequence[str]
) -> None:
    for key in table:
        if key not in (*needed, *further):
            raise unknown(f"{where}: unknown key", key, (*needed, *further))
    for key in needed:
        if key not in table:
            raise InputError(f'{where} needs the key "{key}"')


def _read(folder: Traversable) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for file in folder.iterdir():
        if not file.name.endswith(".toml"):
            continue
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file.name}: {error}") from error
        for claim, table in tables.items():
            where = f'{file.name}: the claim "{claim}"'
            if claim in rows:
                raise InputError(f"{where} is also in another file")
            rows[claim] = _row(where, table)
    return rows


_ROWS = _read(files("anabranch.gallery.entries"))


def row(claim: str) -> Row:
    """The row of a claim, or the row that several claims share.

    Raises:
        InputError: if the registry does not have it.
    """
    if claim not in _ROWS:
        raise InputError(f'no file in gallery/entries has the claim "{claim}"')
    return _ROWS[claim]


def bound(claim: str, name: str) -> Bound:
    """A bound of a claim by its name, or a bound of another claim by both names.

    Raises:
        InputError: if the registry does not have it.
    """
    own = row(row(claim).bounds_of or claim).bounds
    if name in own:
        return own[name]
    other, _, of = name.partition(" ")
    if other not in _ROWS or of not in _ROWS[other].bounds:
        raise InputError(f'the claim "{claim}" has no bound "{name}" in gallery/entries')
    return _ROWS[other].bounds[of]


def bounds() -> dict[str, Bound]:
    """All bounds, by claim and name."""
    return {
        f"{claim} {name}".strip(): each
        for claim, found in _ROWS.items()
        for name, each in found.bounds.items()
    }
