"""The TOML files of this package, and the words that stand in the braces of their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from string import Formatter
from typing import Any, TypeVar

from anabranch import forms
from anabranch.errors import InputError, visible
from anabranch.scenarios import loading

T = TypeVar("T")


def rows_of(file: str, form: Callable[[str, Any], T]) -> Mapping[str, T]:
    """The values of a TOML file of this package, which have one form, by their names.

    Raises:
        InputError: if the file has a mistake.
    """
    text = files("anabranch.gallery").joinpath(file).read_text(encoding="utf-8")
    table = loading.toml_in(text, file)
    return {key: form(f'{file}: "{visible(key)}"', given) for key, given in table.items()}


def words_in(text: str) -> set[str]:
    """The words that stand in the braces of a text, without their levels and formats.

    Raises:
        ValueError: if a brace names no word, or is not closed.
    """
    words = set()
    for _, field, spec, conversion in Formatter().parse(text):
        if field is None:
            continue
        word = re.fullmatch(r"(\w+)(\[[^\]]*\])?", field)
        if word is None or conversion or "{" in str(spec):
            given = f"{field}!{conversion}" if conversion else f"{field}:{spec}".rstrip(":")
            raise ValueError(f"{{{given}}} names no word")
        words.add(word[1])
    return words


def template(place: str, given: Any) -> Any:
    """The form of text whose braces name words; the entry's code gives these words."""
    try:
        words_in(forms.TEXT(place, given))
    except ValueError as error:
        hint = "write words as {paths} or {paths:.1f}, and a brace as {{"
        raise InputError(f"{place}: {error}; {hint}") from error
    return given


def filled(
    place: str, texts: Iterable[str], words: Mapping[str, object], shared: Mapping[str, object]
) -> list[str]:
    """Texts with words in their braces. `shared` has words that only other texts may need.

    Raises:
        InputError: if a word is missing, does not fit, or is given twice, or no text has one of
            `words`. The message begins with `place`.
    """
    texts = list(texts)
    needed = set[str]().union(*map(words_in, texts))
    for word in sorted(words.keys() & shared.keys()):
        raise InputError(f"{place}: the entry's code gives {{{word}}} twice")
    given = {word: each for word, each in shared.items() if word in needed} | dict(words)
    for word in sorted(needed - given.keys()):
        raise InputError(f"{place} has {{{word}}}, which the entry's code does not give")
    for word in sorted(given.keys() - needed):
        raise InputError(f"{place} lacks {{{word}}}, which the entry's code gives")
    try:
        return [text.format(**given) for text in texts]
    except (InputError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {error}") from error
