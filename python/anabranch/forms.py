"""Forms of the values in TOML files. A wrong value gives one line with its place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

from anabranch.errors import InputError, unknown

T = TypeVar("T")

Form = Callable[[str, Any], Any]
"""Takes a place for errors and a value of a file. Returns the value that a row has.

Raises:
    InputError: if the value has another form.
"""


def form(words: str, fits: Callable[[Any], bool]) -> Form:
    """The form of values that fit, in words."""

    def check(place: str, given: Any) -> Any:
        if not fits(given):
            raise InputError(f"{place} = {given!r} has to be {words}")
        return given

    return check


def is_number(given: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


TEXT = form("text", lambda given: isinstance(given, str) and given != "")
NUMBER = form("a number", is_number)
SWITCH = form("true or false", lambda given: isinstance(given, bool))


def whole(least: int) -> Form:
    """The form of whole numbers that are not below `least`."""
    return form(f"a whole number from {least}", lambda given: type(given) is int and given >= least)


def name(what: str, valid: Iterable[str], listed_by: str = "") -> Form:
    """The form of one of these names."""

    def check(place: str, given: Any) -> Any:
        if TEXT(place, given) not in valid:
            raise unknown(f"{place}: unknown {what}", given, valid, listed_by)
        return given

    return check


def names(what: str, valid: Iterable[str], listed_by: str = "") -> Form:
    """The form of a list of such names."""
    one = name(what, valid, listed_by)

    def check(place: str, given: Any) -> Any:
        if not isinstance(given, list):
            raise InputError(f"{place} = {given!r} has to be a list of names")
        return [one(place, each) for each in given]

    return check


def rows(of: Form, words: str = "a table") -> Form:
    """The form of a table whose values have one form."""

    def read(place: str, given: Any) -> Any:
        if not isinstance(given, dict):
            raise InputError(f"{place} = {given!r} has to be {words}")
        return {key: of(f"{place}.{_quoted(key)}", each) for key, each in given.items()}

    return read


def check_keys(place: str, table: Iterable[str], valid: Iterable[str]) -> None:
    """Check the keys of a table.

    Raises:
        InputError: if one is unknown.
    """
    for key in table:
        if key not in valid:
            raise unknown(f"{place}: unknown key", key, valid)


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


def row(of: type[T]) -> Callable[[str, Any], T]:
    """The form of a table that is a row: a dataclass whose fields are annotated with forms.

    Fields without a default are needed. A field without a form is no key of the table.
    """
    hints = get_type_hints(of, include_extras=True)
    forms = {
        key: hint.__metadata__[0] for key, hint in hints.items() if get_origin(hint) is Annotated
    }
    own = fields(of)  # type: ignore[arg-type]
    needed = [each.name for each in own if each.default is each.default_factory is MISSING]

    def read(place: str, given: Any) -> T:
        if not isinstance(given, dict):
            raise InputError(f"{place} = {given!r} has to be a table")
        check_keys(place, given, forms)
        values = {key: forms[key](f"{place}: {key}", each) for key, each in given.items()}
        for key in needed:
            if key not in values:
                raise InputError(f'{place} needs the key "{key}"')
        return of(**values)

    return read
