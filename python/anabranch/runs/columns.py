"""Tables as plain columns, which cost far less to make than frames."""

from __future__ import annotations

from collections.abc import Mapping
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


def frame(table: Columns) -> pl.DataFrame:
    """The table as a frame."""
    return pl.DataFrame([_series(name, each) for name, each in table.items()])


def _series(name: str, values: Column) -> pl.Series:
    if not isinstance(values, Words):
        return pl.Series(name, values)
    return pl.Series(name, values.words, pl.String).gather(values.index)
