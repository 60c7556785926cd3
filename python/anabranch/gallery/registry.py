"""The registry: texts, tiers and claims of entries, read from ``entries/*.toml``.

It is separate from the code that measures. An entry's file has its text, except the words of
quantities and of figures, and one TOML table for each claim::

    title = "Delay of 8 KiB blocks over WiFi, 3G, and both (NSDI 2012, Figure 7)"
    question = "Does Multipath TCP delay blocks less than TCP over the better path?"
    cites = ["NSDI'12"]
    quick = { seeds = 10, measured_s = 100 }
    uncertain = ["wifi_3g", "receive_buffer"]
    system = "NSDI'12"
    studied = ["remedies"]
    parameters = '''
    WiFi | <path.wifi> | NSDI'12
    '''
    notes = '''
    Goodput is {goodput[MPTCP]}, below the {goodput[TCP over WiFi]} of WiFi alone.

    Paragraphs have empty lines between them.
    '''

    [captions]
    "Delay of a block: *" = "Share of blocks delivered within a given delay."

    ["E1.3-m12-beats-regular"]
    statement = "With both mechanisms, delays are lower on average and vary less than without them."
    source = "NSDI'12, Fig. 7; CS244'15, result 3"
    bound = { at_least = 1.5, since = 2026-11-20, reason = "this project: read off a plot" }
    bounds.IQR = { above = 1, since = 2026-11-20, reason = "this project: any effect counts" }

Names in braces are keys of the entry's `words`, in notes also of its `measured_words`, and in a
claim also of the words that `claim` gives. `parameters` explains the rows of its table. A caption
belongs to the panels with its title, in which ``*`` stands for any text.

`bound` judges the quantities that name no bound. A string stands for another claim's bound:
``"E1.6-control"`` or ``"E1.3-m12-beats-regular IQR"``. `where` is the setting in which the claim is
judged, if its quantities do not name it. Several claims can share a table. ``calibration.toml``
belongs to `calibration.entry`.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any

from anabranch import forms
from anabranch.errors import InputError, unknown, visible
from anabranch.forms import NUMBER, TEXT, form, is_number, is_text, names, whole
from anabranch.gallery.data import filled, rows_of, template
from anabranch.gallery.systems import SYSTEMS
from anabranch.results import bounds
from anabranch.results.bounds import Bound
from anabranch.scenarios import loading

SOURCES: Mapping[str, str] = rows_of("references.toml", TEXT)
"""The sources in full, by the short names that claims and tables of parameters use."""
UNCERTAIN: Mapping[str, Mapping[str, str]] = rows_of("uncertain.toml", forms.rows(TEXT))
"""Groups of uncertain parameters: words, and a pattern of keys."""


# ---- bounds ---------------------------------------------------------------------------------

_KINDS: Mapping[str, Callable[..., Bound]] = {
    "at_least": bounds.at_least,
    "at_most": bounds.at_most,
    "above": bounds.above,
    "below": bounds.below,
    "within": lambda ends, *others: bounds.within(*ends, *others),
}
"""The keys of a bound that state its ends."""


def _is_range(given: Any) -> bool:
    is_pair = isinstance(given, list) and len(given) == 2
    return is_pair and all(map(is_number, given)) and given[0] <= given[1]


def _is_stated(given: Any) -> bool:
    ratio = r"\d{1,9}(\.\d{1,9})? / (?=.*[1-9])\d{1,9}(\.\d{1,9})?"
    is_ratio = isinstance(given, str) and re.fullmatch(ratio, given) is not None
    return is_number(given) or _is_range(given) or is_ratio


def _is_day(given: Any) -> bool:
    return type(given) is date


def _is_history(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(each, list) and len(each) == 2 and _is_day(each[0]) and is_text(each[1])
        for each in given
    )


_END = Annotated[float | None, NUMBER]


@dataclass(frozen=True, kw_only=True)
class _BoundRow:
    """A bound; one of the first five keys states its ends."""

    at_least: _END = None
    at_most: _END = None
    above: _END = None
    below: _END = None
    within: Annotated[Sequence[float] | None, form("[low, high]", _is_range)] = None
    since: Annotated[date, form("a day without quotes, as 2026-11-20", _is_day)]
    reason: Annotated[str, TEXT]
    unit: Annotated[str, TEXT] = ""
    basis: Annotated[str, TEXT] = ""
    """The meaning of the number."""
    source: Annotated[
        float | Sequence[float] | str | None,
        form('a number, [low, high], or a ratio as "70 / 366"', _is_stated),
    ] = None
    was: Annotated[
        Sequence[tuple[date, str]],
        form('earlier bounds, as [[2026-11-24, "at least 1"]]', _is_history),
    ] = ()


_bound_row = forms.row(_BoundRow)


def bound_of(place: str, table: dict[str, Any]) -> Bound:
    """A bound from its table. Errors begin with `place`.

    Raises:
        InputError: if the table has a mistake.
    """
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        given = ", ".join(map(forms.quoted, table)) or "none"
        raise InputError(f"{place} needs one of {', '.join(_KINDS)}; its keys are {given}")
    (kind,) = kinds
    if kind == "within" and "basis" in table:
        raise InputError(f"{place}: within takes no basis")
    row = _bound_row(place, table)
    reason = "; ".join((row.reason, *(f"until {day} {words}" for day, words in row.was)))
    basis = (row.basis,) if row.basis else ()
    found = _KINDS[kind](getattr(row, kind), row.since.isoformat(), reason, row.unit, *basis)
    match row.source:
        case None:
            return found
        case str() as ratio:
            numerator, denominator = map(float, ratio.split(" / "))
            return found.stating(numerator / denominator)
        case int() | float() as number:
            return found.stating(number)
        case ends:
            return found.stating(*ends)


# ---- entries and claims ---------------------------------------------------------------------


def _bound(place: str, given: Any) -> Bound | str:
    if isinstance(given, dict):
        return bound_of(place, given)
    if isinstance(given, str):
        return given
    raise InputError(f"{place} = {given!r} has to be a bound, or the name of one")


@dataclass(frozen=True)
class _ClaimTable:
    statement: Annotated[str, template]
    source: Annotated[str, template]
    where: Annotated[str, template] = ""
    bound: Annotated[Bound | str | None, _bound] = None
    bounds: Annotated[
        Mapping[str, Bound | str], forms.rows(_bound, "bounds by name, as bounds.mean")
    ] = field(default_factory=dict)

    def named_bounds(self) -> Mapping[str, Bound | str]:
        """The bounds by the names that quantities use; the name of `bound` is empty."""
        return {**({} if self.bound is None else {"": self.bound}), **self.bounds}


@dataclass(frozen=True)
class TierRow:
    """The size of a tier; see `gallery.entry.Tier`."""

    seeds: Annotated[int, whole(1)]
    measured_s: Annotated[int, whole(0)]
    """Simulated seconds after the warm-up; 0 if each scenario has its own duration."""
    warm_up_s: Annotated[int, whole(0)] = 5
    """Simulated seconds that metrics exclude."""


_POLICIES = ("congestion_control", "scheduler", "remedies", "path_manager")
_TIER = forms.row(TierRow)


@dataclass(frozen=True, kw_only=True)
class EntryRow:
    """The text and the tiers of an entry. All other keys of its file are claims."""

    title: Annotated[str, TEXT]
    question: Annotated[str, TEXT]
    """The question that the claims answer."""
    cites: Annotated[Sequence[str], names("source", SOURCES, "references.toml")]
    """The short names of sources."""
    headline: Annotated[str, TEXT] = ""
    """The claim whose measured value leads the report; by default the first claim."""
    quick: Annotated[TierRow, _TIER]
    full: Annotated[TierRow, _TIER] = TierRow(seeds=20, measured_s=100)
    uncertain: Annotated[Sequence[str], names("group", UNCERTAIN)] = ()
    """Groups of uncertain parameters, which `gallery.sensitivity` varies."""
    not_varied_because: Annotated[str, TEXT] = ""
    """Reason for which no parameter is varied, if `uncertain` is empty."""
    system: Annotated[str, forms.name("system", SYSTEMS)] = ""
    """The system that the source ran, if it was a kernel."""
    studied: Annotated[Sequence[str], names("policy", _POLICIES)] = ()
    """The keys of a connection whose policies the claims compare."""
    parameters: Annotated[str, template] = ""
    """The rows of the table of parameters; see `gallery.parameters`."""
    captions: Annotated[Mapping[str, str], forms.rows(template)] = field(default_factory=dict)
    """The captions of panels, by title; ``*`` in a title stands for any text."""
    notes: Annotated[str, template] = ""
    """Paragraphs with an empty line between them."""


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words, with its bounds."""

    place: str
    """The file and the claim, for errors."""
    statement: str
    source: str
    where: str
    """The setting in which the claim is judged."""
    bounds: Mapping[str, Bound]
    """The bounds by the names that quantities use; the name of `bound` is empty."""

    def words(
        self, given: Mapping[str, object], shared: Mapping[str, object]
    ) -> tuple[str, str, str]:
        """The statement, the source and the setting, with words in their braces.

        `shared` has words that other claims may need.

        Raises:
            InputError: if a word is missing or does not fit, or the claim has none of `given`.
        """
        texts = (self.statement, self.source, self.where)
        statement, source, where = filled(self.place, texts, given, shared)
        return statement, source, where

    def bound(self, name: str) -> Bound:
        """A bound by its name.

        Raises:
            InputError: if the claim does not have it.
        """
        if name not in self.bounds:
            raise InputError(f'{self.place} needs the key "{_key(name)}"')
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
        raise unknown("no file in gallery/entries has the claim", claim, claims)
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
    claims: dict[str, tuple[str, _ClaimTable]] = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        name, _, suffix = file.name.rpartition(".")
        if suffix != "toml":
            continue
        table = loading.toml_in(file.read_text(encoding="utf-8"), file.name)
        found = {key: table.pop(key) for key in list(table) if _is_claim(key, table[key])}
        row = entries[name.replace("_", "-")] = _entry(file.name, table)
        if row.studied and not row.system:
            raise InputError(f'{file.name} has the key "studied", so it needs the key "system"')
        for claim, each in found.items():
            place = f'{file.name}: "{visible(claim)}"'
            if claim in claims:
                raise InputError(f"{place} is also in {claims[claim][0]}")
            if not each.keys() & _CLAIM_KEYS and _has_tables_only(each):
                raise InputError(f'{place} is no claim: write names in quotes, as ["E1.3-x"]')
            claims[claim] = (place, _claim(place, each))
    return Registry(entries, dict(_claims(claims)))


_entry, _claim = forms.row(EntryRow), forms.row(_ClaimTable)
_CLAIM_KEYS = _ClaimTable.__annotations__.keys()


def _is_claim(key: str, given: Any) -> bool:
    """Whether a table is meant as a claim, and not as a misspelt table of the entry."""
    if not isinstance(given, dict) or key in EntryRow.__annotations__:
        return False
    is_named = re.search("[.-]", key) is not None
    return is_named or bool(given.keys() & _CLAIM_KEYS) or _has_tables_only(given)


def _has_tables_only(table: dict[str, Any]) -> bool:
    return {*map(type, table.values())} == {dict}


def _claims(found: Mapping[str, tuple[str, _ClaimTable]]) -> Iterator[tuple[str, ClaimRow]]:
    """The claims with their names; bounds can be those of other claims."""
    stated = {
        (claim, name): bound
        for claim, (_, table) in found.items()
        for name, bound in table.named_bounds().items()
    }
    for claim, (place, table) in found.items():
        own = {}
        for name, given in table.named_bounds().items():
            other, _, of = given.partition(" ") if isinstance(given, str) else (claim, "", name)
            bound = stated.get((other, of))
            if not isinstance(bound, Bound):
                raise InputError(
                    f"{place}: {_key(name)} = {given!r} is neither a bound nor names one"
                )
            own[name] = bound
        yield claim, ClaimRow(place, table.statement, table.source, table.where, own)


def _key(name: str) -> str:
    """The key of a bound."""
    return f"bounds.{forms.quoted(name)}" if name else "bound"
