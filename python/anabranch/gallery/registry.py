"""The registry: titles, questions, sources and claims of entries, read from ``entries/*.toml``.

It is apart from the code that measures. The file of an entry has a table for each claim::

    title = "Delay of 8 KiB blocks over WiFi, 3G, and both (NSDI 2012, Figure 7)"
    question = "Does Multipath TCP delay blocks less than TCP over the better path?"
    cites = ["NSDI'12"]

    ["E1.3-m12-beats-regular"]
    statement = "With both mechanisms, delays are lower on average and vary less than without them."
    source = "NSDI'12, Fig. 7; CS244'15, result 3"
    bound = { at_least = 1.5, since = 2026-11-20, reason = "this project: read off a plot" }
    bounds.IQR = { above = 1, since = 2026-11-20, reason = "this project: any effect counts" }

`bound` judges every quantity that names none of `bounds`. The bound of another claim is named as
``"E1.6-control"`` or ``"E1.3-m12-beats-regular IQR"``. Several claims can share a table; each fills
the words in its braces. ``calibration.toml`` belongs to `calibration.entry`.

A bound is stated before the runs that it judges, with the day and the reason. If it changes, `was`
lists the earlier bounds in words, each with its last day. The `source` of a bound is the source's
own number in the unit of the quantity, or the ends of its range; reports show it next to this
project's. `basis` says what a number means.

Two rules give bounds their width where a source states a number but no tolerance; this project
chose both:

* effect ± half: a source states an effect e, such as "12 % more". The bound is 0.5 e to 1.5 e.
* factor of two: a source states counts. The bound for their ratio is half to twice the ratio.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
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
class EntryRow:
    """An entry in words."""

    title: str
    question: str
    """The question that the claims answer."""
    cites: Sequence[str]
    """The short names of sources, which ``references.toml`` has."""
    headline: str = ""
    """The claim whose measured value leads the report; by default the first claim."""


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words, with its bounds."""

    where: str
    """The file and the claim, for errors."""
    statement: str
    source: str
    bounds: Mapping[str, Bound]
    """The bounds by the names that quantities use; the name of `bound` is empty."""

    def words(self, given: Mapping[str, object]) -> tuple[str, str]:
        """The statement and the source, with the given words in their braces.

        Raises:
            InputError: if the words are not those in the braces.
        """
        needed = set(re.findall(r"\{(\w+)\}", self.statement + self.source))
        if needed != given.keys():
            raise InputError(f"{self.where} has the words {needed or '{}'}, and gets {set(given)}")
        return self.statement.format(**given), self.source.format(**given)

    def bound(self, name: str) -> Bound:
        """A bound by its name.

        Raises:
            InputError: if the claim does not have it.
        """
        if name not in self.bounds:
            raise InputError(f'{self.where} needs the key "{_key(name)}"')
        return self.bounds[name]


@dataclass(frozen=True)
class Registry:
    """The rows of all entries and claims, by their names."""

    entries: Mapping[str, EntryRow]
    claims: Mapping[str, ClaimRow]


def entry(name: str) -> EntryRow:
    """The row of an entry.

    Raises:
        InputError: if the registry does not have it, or has a mistake.
    """
    if name not in registered().entries:
        raise InputError(f"the entry {name} has no file in gallery/entries")
    return registered().entries[name]


def row(claim: str) -> ClaimRow:
    """The row of a claim, or the row that several claims share.

    Raises:
        InputError: if the registry does not have it, or has a mistake.
    """
    claims = registered().claims
    if claim not in claims:
        raise unknown("unknown claim", claim, claims, listed_by="gallery/entries/*.toml")
    return claims[claim]


@cache
def registered() -> Registry:
    """The registry.

    Raises:
        InputError: if a file has a mistake.
    """
    return read(files("anabranch.gallery.entries"))


def read(folder: Traversable) -> Registry:
    """The registry in the files of a folder.

    Raises:
        InputError: if a file has a mistake.
    """
    entries: dict[str, EntryRow] = {}
    tables: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        name, _, suffix = file.name.rpartition(".")
        if suffix != "toml":
            continue
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file.name}: {error}") from error
        words = {key: each for key, each in found.items() if not isinstance(each, dict)}
        _check_keys(file.name, words, ("title", "question", "cites"), ("headline",))
        entries[name.replace("_", "-")] = EntryRow(**words)
        for claim in [key for key in found if key not in words]:
            where = f'{file.name}: "{claim}"'
            if claim in tables:
                raise InputError(f"{where} is also in {tables[claim][0]}")
            _check_claim(where, found[claim])
            tables[claim] = (where, found[claim])
    return Registry(entries, _claims(tables))


def _claims(tables: Mapping[str, tuple[str, Mapping[str, Any]]]) -> Mapping[str, ClaimRow]:
    """The claims, each with its place and its table; bounds can be those of other claims."""
    own = {
        claim: {
            name: bound_of(f"{where}: {_key(name)}", given) if isinstance(given, dict) else given
            for name, given in _bounds(table).items()
        }
        for claim, (where, table) in tables.items()
    }

    def resolved(where: str, name: str, given: object) -> Bound:
        claim, _, of = str(given).partition(" ")
        found = given if isinstance(given, Bound) else own.get(claim, {}).get(of)
        if not isinstance(found, Bound):
            raise InputError(f"{where}: {_key(name)} = {given!r} is neither a bound nor names one")
        return found

    return {
        claim: ClaimRow(
            where,
            table["statement"],
            table["source"],
            {name: resolved(where, name, given) for name, given in own[claim].items()},
        )
        for claim, (where, table) in tables.items()
    }


def _check_claim(where: str, table: Mapping[str, Any]) -> None:
    if "statement" not in table and all(isinstance(each, dict) for each in table.values()):
        raise InputError(f'{where} is no claim: write names in quotes, as ["E1.3-x"]')
    _check_keys(where, table, ("statement", "source"), ("bound", "bounds"))
    for key in ("statement", "source"):
        if not isinstance(table[key], str):
            raise InputError(f"{where}: {key} = {table[key]!r} has to be text")
    if not isinstance(table.get("bounds", {}), dict):
        raise InputError(f"{where}: bounds have names, as bounds.mean")


def _bounds(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The bounds of a table by name, as the file has them."""
    own = {"": table["bound"]} if "bound" in table else {}
    return {**own, **table.get("bounds", {})}


def _key(name: str) -> str:
    """The key of a bound."""
    return f"bounds.{name}" if name else "bound"


def bound_of(where: str, table: Mapping[str, Any]) -> Bound:
    """A bound from its table. Errors begin with `where`.

    Raises:
        InputError: if the table has a mistake.
    """
    kinds = [name for name in _KINDS if name in table]
    if len(kinds) != 1:
        raise InputError(f"{where} needs one of {', '.join(_KINDS)}")
    (kind,) = kinds
    basis = () if kind == "within" else ("basis",)
    _check_keys(where, table, (kind, "since", "reason"), ("unit", "source", "was", *basis))
    try:
        former = (f"until {day} {words}" for day, words in table.get("was", ()))
        reason = "; ".join((table["reason"], *former))
        arguments = [table[kind], date.isoformat(table["since"]), reason, table.get("unit", "")]
        found = _KINDS[kind](*arguments, *(table[key] for key in basis if key in table))
        if found.low > found.high:
            raise ValueError("the low end is above the high end")
        return found.stating(*_stated(table.get("source", ())))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} is no valid bound: {error}") from error


def _stated(source: Any) -> tuple[float, ...]:
    """The numbers of a source: one, the ends of a range, or a ratio as text."""
    if isinstance(source, str):
        numerator, denominator = map(float, source.split(" / "))
        return (numerator / denominator,)
    return tuple(source) if isinstance(source, list | tuple) else (source,)


def _check_keys(
    where: str, table: Mapping[str, Any], needed: Sequence[str], further: Sequence[str] = ()
) -> None:
    for key in table:
        if key not in (*needed, *further):
            raise unknown(f"{where}: unknown key", key, (*needed, *further))
    for key in needed:
        if key not in table:
            raise InputError(f'{where} needs the key "{key}"')
