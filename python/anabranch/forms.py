"""Forms of the values in TOML files. Errors are one line: place, value, and a valid form."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin, get_type_hints

from anabranch.errors import InputError, unknown, visible

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

Form = Callable[[str, Any], Any]
"""Checks a value of a file, and returns it as a row has it. Errors begin with the given place.

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


def is_text(given: Any) -> bool:
    """Whether a value is text that is not empty."""
    return isinstance(given, str) and given != ""


def is_number(given: Any) -> bool:
    """Whether a value is a finite number, which also fits a float."""
    is_real = isinstance(given, int | float) and not isinstance(given, bool)
    return is_real and abs(given) <= sys.float_info.max


TEXT = form("text", is_text)
NUMBER = form("a number", is_number)
BOOLEAN = form("true or false", lambda given: isinstance(given, bool))


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
        return {key: of(f"{place}.{quoted(key)}", each) for key, each in given.items()}

    return read


def check_keys(place: str, table: Iterable[str], valid: Iterable[str]) -> None:
    """Check the keys of a table.

    Raises:
        InputError: if one is unknown.
    """
    for key in table:
        if key not in valid:
            raise unknown(f"{place}: unknown key", key, valid)


def quoted(key: str) -> str:
    """A key as a file has it: in quotes, unless it is a word."""
    return key if re.fullmatch(r"[\w-]+", key) else f'"{visible(key)}"'


def row(of: type[T]) -> Callable[[str, Any], T]:
    """The form of a table that is a row: a dataclass whose fields are annotated with forms.

    The table needs the keys of all fields without a default. Fields without a form are not keys.
    """
    hints = get_type_hints(of, include_extras=True)
    forms = {
        key: hint.__metadata__[0] for key, hint in hints.items() if get_origin(hint) is Annotated
    }
    needed = [each.name for each in fields(of) if each.default is each.default_factory is MISSING]

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
