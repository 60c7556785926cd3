"""Tables as plain columns, which cost far less to make than frames.

A run of a large sweep is reduced to plain columns. The frames of all runs are built at once, by
`stacked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl


@dataclass(frozen=True)
class Words:
    """A column of text.

    Attributes:
        words: The texts that occur.
        index: The index in `words` of each row.
    """

    words: tuple[str, ...]
    index: npt.NDArray[np.uint32]


Column = npt.NDArray[Any] | Words
Columns = Mapping[str, Column]


def column(table: Columns | pl.DataFrame, name: str) -> npt.NDArray[Any]:
    """A column, of numbers or of text."""
    found = table[name]
    return np.asarray(found.words)[found.index] if isinstance(found, Words) else np.asarray(found)


def height(table: Columns) -> int:
    """Number of rows."""
    first = next(iter(table.values()))
    return len(first.index if isinstance(first, Words) else first)


def frame(table: Columns) -> pl.DataFrame:
    """The table as a frame."""
    return stacked([table])


def stacked(tables: Sequence[Columns]) -> pl.DataFrame:
    """The rows of all tables, which have the same columns, as one frame."""
    return pl.DataFrame([_stacked(name, [table[name] for table in tables]) for name in tables[0]])


def _stacked(name: str, parts: Sequence[Any]) -> pl.Series:
    if not isinstance(parts[0], Words):
        return pl.Series(name, np.concatenate(parts))
    offsets: dict[tuple[str, ...], int] = {}
    words: list[str] = []
    for part in parts:
        if part.words not in offsets:
            offsets[part.words] = len(words)
            words += part.words
    index = np.concatenate([part.index + np.uint32(offsets[part.words]) for part in parts])
    return pl.Series(name, words, pl.String).gather(index)
