"""The registry: texts, tiers and claims of entries, read from ``entries/*.toml``.

It is separate from the code that measures. An entry's file has all of its text, and one TOML
table for each claim::

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

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from anabranch.errors import InputError, unknown
from anabranch.results import bounds
from anabranch.results.bounds import Bound
from anabranch.words import listed

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def data(file: str) -> Mapping[str, Any]:
    """A TOML file of this package, parsed."""
    return tomllib.loads(files("anabranch.gallery").joinpath(file).read_text(encoding="utf-8"))


SOURCES: Mapping[str, str] = data("references.toml")
"""The sources in full, by the short names that claims and tables of parameters use."""
UNCERTAIN: Mapping[str, Mapping[str, str]] = data("uncertain.toml")
"""Groups of uncertain parameters: words, and a pattern of keys."""
SYSTEMS: Mapping[str, Mapping[str, str]] = data("systems.toml")
"""The systems that sources ran; see `gallery.systems`."""


# ---- the form of the files ------------------------------------------------------------------


def _one_of(file: str, valid: Mapping[str, Any]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in valid:
            raise ValueError(str(unknown("unknown name", name, valid, file)))
        return name

    return AfterValidator(check)


def _has_words(text: str) -> str:
    if re.search("[{}]", re.sub(r"\{\w+(:[^{}]*)?\}", "", text)):
        raise ValueError("braces need a word between them, as in {paths}")
    return text


def _has_whole_braces(text: str) -> str:
    _ = list(Formatter().parse(text))  # raises ValueError
    return text


def _in_order(ends: list[float]) -> list[float]:
    if ends[0] > ends[1]:
        raise ValueError("should be [low, high]")
    return ends


_Text = Annotated[str, Field(min_length=1)]
_Sentence = Annotated[_Text, AfterValidator(_has_words)]
_Template = Annotated[_Text, AfterValidator(_has_whole_braces)]
_Number = Annotated[float, Field(allow_inf_nan=False)] | int
_Ends = Annotated[list[_Number], Field(min_length=2, max_length=2), AfterValidator(_in_order)]
_DayAndWords = Annotated[tuple[date, _Text], Field(strict=False)]
_Policy = Literal["congestion_control", "scheduler", "remedies", "path_manager"]
_Ratio = Annotated[str, Field(pattern=r"^\d+(\.\d+)? / \d+(\.\d+)?$")]
_KINDS: Mapping[str, Callable[..., Bound]] = {
    "at_least": bounds.at_least,
    "at_most": bounds.at_most,
    "above": bounds.above,
    "below": bounds.below,
    "within": lambda ends, *others: bounds.within(*ends, *others),
}
"""The keys of a bound that state its ends."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BoundRow(_Table):
    """A bound; one of the first five keys states its ends."""

    at_least: _Number | None = None
    at_most: _Number | None = None
    above: _Number | None = None
    below: _Number | None = None
    within: _Ends | None = None
    since: date
    reason: _Text
    unit: _Text = ""
    basis: _Text = ""
    source: _Number | _Ends | _Ratio | None = None
    was: list[_DayAndWords] = []

    @model_validator(mode="after")
    def _has_one_kind(self) -> BoundRow:
        kinds = self.model_fields_set & _KINDS.keys()
        if len(kinds) != 1:
            raise ValueError(f"needs exactly one of {', '.join(_KINDS)}")
        if self.basis and "within" in kinds:
            raise ValueError("within takes no basis")
        return self

    def bound(self) -> Bound:
        """The bound that the row states."""
        (kind,) = self.model_fields_set & _KINDS.keys()
        reason = "; ".join((self.reason, *(f"until {day} {words}" for day, words in self.was)))
        basis = (self.basis,) if self.basis else ()
        found = _KINDS[kind](getattr(self, kind), self.since.isoformat(), reason, self.unit, *basis)
        match self.source:
            case None:
                return found
            case str(ratio):
                numerator, denominator = map(float, ratio.split(" / "))
                return found.stating(numerator / denominator)
            case list(ends):
                return found.stating(*ends)
            case number:
                return found.stating(number)


class _ClaimTable(_Table):
    statement: _Sentence
    source: _Sentence
    where: _Sentence = ""
    bound: BoundRow | _Text | None = None
    bounds: Mapping[str, BoundRow | _Text] = {}

    @model_validator(mode="before")
    @classmethod
    def _is_a_claim(cls, table: Any) -> Any:
        is_nested = isinstance(table, dict) and {*map(type, table.values())} == {dict}
        if is_nested and not table.keys() & cls.model_fields.keys():
            raise ValueError('is no claim: write names in quotes, as ["E1.3-x"]')
        return table

    def named_bounds(self) -> Mapping[str, BoundRow | str]:
        """The bounds by the names that quantities use; the name of `bound` is empty."""
        return {**({"": self.bound} if self.bound else {}), **self.bounds}


class TierRow(_Table):
    """The size of a tier; see `gallery.entry.Tier`."""

    seeds: Annotated[int, Field(gt=0)]
    measured_s: int
    warm_up_s: int = 5


class EntryRow(_Table):
    """The text and the tiers of an entry. All other keys of its file are claims."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _ClaimTable] = Field(init=False)

    title: _Text
    question: _Text
    """The question that the claims answer."""
    cites: list[Annotated[str, _one_of("references.toml", SOURCES)]]
    """The short names of sources."""
    headline: _Text = ""
    """The claim whose measured value leads the report; by default the first claim."""
    quick: TierRow
    full: TierRow = TierRow(seeds=20, measured_s=100)
    uncertain: list[Annotated[str, _one_of("uncertain.toml", UNCERTAIN)]] = []
    """Groups of uncertain parameters, which `gallery.sensitivity` varies."""
    not_varied_because: _Text = ""
    """Reason for which no parameter is varied, if `uncertain` is empty."""
    system: Annotated[str, _one_of("systems.toml", SYSTEMS)] = ""
    """The system that the source ran, if it was a kernel."""
    studied: list[_Policy] = []
    """The keys of a connection whose policies the claims compare."""
    parameters: _Template = ""
    """The rows of the table of parameters; see `gallery.parameters`."""
    captions: Mapping[str, _Template] = {}
    """The captions of panels, by title; ``*`` in a title stands for any text."""
    notes: _Template = ""
    """Paragraphs with an empty line between them."""

    @model_validator(mode="after")
    def _studied_needs_a_system(self) -> EntryRow:
        if self.studied and not self.system:
            raise ValueError("studied needs a system")
        return self


# ---- the rows in use ------------------------------------------------------------------------


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
            InputError: if a word is missing, or none of the braces has a given word.
        """
        text = "\n".join((self.statement, self.source, self.where))
        words = {word: each for word, each in shared.items() if word in words_in(text)}
        words.update(given)
        check_words(self.place, text, words)
        statement, source, where = text.format(**words).split("\n")
        return statement, source, where

    def bound(self, name: str) -> Bound:
        """A bound by its name.

        Raises:
            InputError: if the claim does not have it.
        """
        if name not in self.bounds:
            raise InputError(f'{self.place} needs the key "{_key(name)}"')
        return self.bounds[name]


def check_words(place: str, text: str, given: Mapping[str, object]) -> None:
    """Check that the words given for a text are those in its braces.

    Raises:
        InputError: if they are not.
    """
    needed = words_in(text)
    for word in sorted(needed - given.keys()):
        raise InputError(f"{place} has {{{word}}}, which the entry's code does not give")
    for word in sorted(given.keys() - needed):
        raise InputError(f"{place} lacks {{{word}}}, which the entry's code gives")


def words_in(text: str) -> set[str]:
    """The words that stand in the braces of a text."""
    return set(re.findall(r"\{(\w+)", text))


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
    tables: dict[str, tuple[str, _ClaimTable]] = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        name, _, suffix = file.name.rpartition(".")
        if suffix != "toml":
            continue
        row = entries[name.replace("_", "-")] = _entry(file)
        for claim, table in (row.model_extra or {}).items():
            if claim in tables:
                raise InputError(f'{file.name}: "{claim}" is also in {tables[claim][0]}')
            tables[claim] = (f'{file.name}: "{claim}"', table)
    return Registry(entries, dict(_claims(tables)))


def _entry(file: Traversable) -> EntryRow:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return EntryRow.model_validate(table)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file.name}: {error}") from error
    except ValidationError as error:
        raise _mistake(file.name, table, error.errors()) from error


def _mistake(file: str, table: Any, errors: Sequence[ErrorDetails]) -> InputError:
    """The first mistake of a file in words: an unknown key, if there is one."""
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    first, last = (str(error["loc"][end]) if error["loc"] else "" for end in (0, -1))
    if first and not _is_known(first) and error["type"] != "value_error":
        return unknown(f"{file}: unknown key", first, EntryRow.model_fields)
    path, value = _found(table, error)
    place = ": ".join((file, *(f'"{key}"' if "." in key else key for key in path)))
    if error["type"] == "missing":
        return InputError(f'{place} needs the key "{last}"')
    if error["type"] == "extra_forbidden":
        forms = {"quick": TierRow, "full": TierRow}
        form = forms.get(first, _ClaimTable if len(path) == 2 else BoundRow)
        return unknown(f"{place.removesuffix(f': {last}')}: unknown key", last, form.model_fields)
    if isinstance(value, dict):
        return InputError(f"{place}: {_message(error)}")
    alike = dict.fromkeys(_message(each) for each in errors if _found(table, each)[0] == path)
    return InputError(f"{place} = {json.dumps(value, default=str)}: {listed(alike, 'or')}")


def _message(error: ErrorDetails) -> str:
    words = error["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    words = words.replace("valid dictionary", "table")
    return words[0].lower() + words[1:]


def _is_known(key: str) -> bool:
    """`True` for a key of an entry, and for a name of a claim, which has a dot or a hyphen."""
    return key in EntryRow.model_fields or re.search("[.-]", key) is not None


def _found(table: Any, error: ErrorDetails) -> tuple[list[str], Any]:
    """The keys that lead to a mistake, and the value that they lead to."""
    path = []
    for key in error["loc"]:
        if isinstance(table, dict) and key in table:  # others are names of types
            table = table[key]
            path.append(str(key))
    return path, table


def _claims(tables: Mapping[str, tuple[str, _ClaimTable]]) -> Iterator[tuple[str, ClaimRow]]:
    """The claims with their names; bounds can be those of other claims."""
    stated = {
        (claim, name): row.bound()
        for claim, (_, table) in tables.items()
        for name, row in table.named_bounds().items()
        if isinstance(row, BoundRow)
    }
    for claim, (place, table) in tables.items():
        bounds = {}
        for name, row in table.named_bounds().items():
            other, _, of = row.partition(" ") if isinstance(row, str) else (claim, "", name)
            if (other, of) not in stated:
                names = f"{_key(name)} = {row!r} names no bound of a claim"
                own = "{ above = 1, since = 2026-11-20, reason = 'this project: …' }"
                raise InputError(f"{place}: {names}; a bound of its own is a table, as {own}")
            bounds[name] = stated[other, of]
        yield claim, ClaimRow(place, table.statement, table.source, table.where, bounds)


def _key(name: str) -> str:
    """The key of a bound."""
    return f"bounds.{name}" if name else "bound"
