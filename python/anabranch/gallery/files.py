"""The TOML files of this package, and the words that stand in the braces of their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from string import Formatter
from typing import Any, TypeVar

from anabranch import forms
from anabranch.errors import InputError
from anabranch.scenarios import loading

T = TypeVar("T")


def data(file: str, of: Callable[[str, Any], T]) -> Mapping[str, T]:
    """A TOML file of this package with values of one form, by their names.

    Raises:
        InputError: if the file has a mistake.
    """
    text = files("anabranch.gallery").joinpath(file).read_text(encoding="utf-8")
    table = loading.toml_in(text, file)
    return {key: of(f'{file}: "{key}"', given) for key, given in table.items()}


def words_in(text: str) -> set[str]:
    """The words that stand in the braces of a text.

    Raises:
        ValueError: if braces have no word, or are not closed.
    """
    found = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    if not all(re.match(r"\w", field) for field in found):
        raise ValueError
    return {re.split(r"\W", field)[0] for field in found}


def template(place: str, given: Any) -> Any:
    """The form of text with words in braces, which code gives; see `filled`."""
    try:
        words_in(forms.TEXT(place, given))
    except ValueError as error:
        problem = f"{place} = {given!r} has braces without a word"
        raise InputError(f"{problem}; write {{{{ for a brace") from error
    return given


def filled(
    place: str, texts: Iterable[str], words: Mapping[str, object], shared: Mapping[str, object]
) -> list[str]:
    """Texts with words in their braces. `shared` has words that only other texts may need.

    Raises:
        InputError: if a word is missing or does not fit, or no text has one of `words`. The message
            begins with `place`.
    """
    texts = list(texts)
    needed = set[str]().union(*map(words_in, texts))
    given = {word: each for word, each in shared.items() if word in needed} | dict(words)
    for word in sorted(needed - given.keys()):
        raise InputError(f"{place} has {{{word}}}, which the entry's code does not give")
    for word in sorted(given.keys() - needed):
        raise InputError(f"{place} lacks {{{word}}}, which the entry's code gives")
    try:
        return [text.format(**given) for text in texts]
    except (InputError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error}") from error
