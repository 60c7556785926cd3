"""The registry: titles, questions, sources and claims of entries, read from ``entries/*.toml``.

It is separate from the code that measures. An entry's file has its title, question and sources, and
a row for each claim, which is a table of TOML::

    title = "Delay of 8 KiB blocks over WiFi, 3G, and both (NSDI 2012, Figure 7)"
    question = "Does Multipath TCP delay blocks less than TCP over the better path?"
    cites = ["NSDI'12"]

    ["E1.3-m12-beats-regular"]
    statement = "With both mechanisms, delays are lower on average and vary less than without them."
    source = "NSDI'12, Fig. 7; CS244'15, result 3"
    bound = { at_least = 1.5, since = 2026-11-20, reason = "this project: read off a plot" }
    bounds.IQR = { above = 1, since = 2026-11-20, reason = "this project: any effect counts" }

`bound` judges every quantity that names none of `bounds`. The bound of another claim is named as
``"E1.6-control"`` or ``"E1.3-m12-beats-regular IQR"``. Several claims can share a row; each fills
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

import math
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
from anabranch.gallery.references import SOURCES
from anabranch.results.bounds import Bound, above, at_least, at_most, below, within

_KINDS: Mapping[str, Callable[..., Bound]] = {
    "at_least": at_least,
    "at_most": at_most,
    "above": above,
    "below": below,
    "within": lambda ends, *others: within(*ends, *others),
}
"""The keys of a bound that state its ends."""

_Form = tuple[str, Callable[[Any], bool]]
"""A form of values in words, and whether a value has it."""


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _is_text(given: Any) -> bool:
    return isinstance(given, str) and given != ""


def _is_range(given: Any) -> bool:
    is_pair = isinstance(given, list) and len(given) == 2
    return is_pair and all(map(_is_number, given)) and given[0] <= given[1]


def _is_stated(given: Any) -> bool:
    is_ratio = isinstance(given, str) and re.fullmatch(r"\d+(\.\d+)? / \d+(\.\d+)?", given)
    return _is_number(given) or _is_range(given) or bool(is_ratio)


def _is_history(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(each, list) and len(each) == 2 and _is_day(each[0]) and _is_text(each[1])
        for each in given
    )


def _is_day(given: Any) -> bool:
    return type(given) is date


_TEXT: _Form = ("text", _is_text)
_OF_ENTRIES: Mapping[str, _Form] = {
    "cites": (
        "a list of names",
        lambda given: isinstance(given, list) and all(map(_is_text, given)),
    ),
}
_OF_CLAIMS: Mapping[str, _Form] = {
    "bound": ("a bound, or the name of one", lambda given: isinstance(given, dict | str)),
    "bounds": ("bounds by name, as bounds.mean", lambda given: isinstance(given, dict)),
}
_OF_BOUNDS: Mapping[str, _Form] = {
    **dict.fromkeys(_KINDS, ("a number", _is_number)),
    "within": ("[low, high]", _is_range),
    "since": ("a day without quotes, as 2026-11-20", _is_day),
    "was": ('earlier bounds, as [[2026-11-24, "at least 1"]]', _is_history),
    "source": ('a number, [low, high], or a ratio as "70 / 366"', _is_stated),
}
"""The forms of values that are no text, by key."""


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
        for word in sorted(needed - given.keys()):
            raise InputError(f"{self.where} has {{{word}}}, which claim() does not give")
        for word in sorted(given.keys() - needed):
            raise InputError(f"{self.where} lacks {{{word}}}, which claim() gives")
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
        raise unknown("unknown claim", claim, claims, "gallery/entries/*.toml")
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
        _check(file.name, words, ("title", "question", "cites"), ("headline",), _OF_ENTRIES)
        for each in words["cites"]:
            if each not in SOURCES:
                raise unknown(
                    f"{file.name}: cites: unknown source", each, SOURCES, "references.toml"
                )
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
    _check(where, table, ("statement", "source"), ("bound", "bounds"), _OF_CLAIMS)
    for key in ("statement", "source"):
        if re.search("[{}]", re.sub(r"\{\w+\}", "", table[key])):
            raise InputError(f"{where}: {key} = {table[key]!r} has braces without a word")


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
        given = ", ".join(table)
        raise InputError(f"{where} needs one of {', '.join(_KINDS)}; its keys are {given}")
    (kind,) = kinds
    basis = () if kind == "within" else ("basis",)
    further = ("unit", "source", "was", *basis)
    _check(where, table, (kind, "since", "reason"), further, _OF_BOUNDS)
    former = (f"until {day} {words}" for day, words in table.get("was", ()))
    reason = "; ".join((table["reason"], *former))
    arguments = [table[kind], table["since"].isoformat(), reason, table.get("unit", "")]
    found = _KINDS[kind](*arguments, *(table[key] for key in basis if key in table))
    return found.stating(*_stated(table.get("source", ())))


def _stated(source: Any) -> tuple[float, ...]:
    """The numbers of a source: one, the ends of a range, or a ratio as text."""
    if isinstance(source, str):
        numerator, denominator = map(float, source.split(" / "))
        return (numerator / denominator,)
    return tuple(source) if isinstance(source, list | tuple) else (source,)


def _check(
    where: str,
    table: Mapping[str, Any],
    needed: Sequence[str],
    further: Sequence[str],
    forms: Mapping[str, _Form],
) -> None:
    """Check the keys of a table, and that each value has its form: text, unless `forms` has one."""
    for key, value in table.items():
        if key not in (*needed, *further):
            raise unknown(f"{where}: unknown key", key, (*needed, *further))
        form, fits = forms.get(key, _TEXT)
        if not fits(value):
            raise InputError(f"{where}: {key} = {value!r} has to be {form}")
    for key in needed:
        if key not in table:
            raise InputError(f'{where} needs the key "{key}"')
