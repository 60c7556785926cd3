"""The tables of runs, as the compiled core collects them, as frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

_WORDS = "word"
_NO_WORD = 2**32 - 1

_OF_SUBFLOW = (
    "subflow", "path", "cwnd", "ssthresh", "bytes_in_flight", "srtt_ns", "bottleneck",
    "queue_packets", "queue_bytes", "subflow_bytes_received",
)  # fmt: skip
"""Columns of the samples that are null at times without a subflow."""


class Collected:
    """The result of `_core.collect`, with frames instead of plain columns."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.digests: list[str] = found["digests"]
        self.data_segments: list[int] = found["data_segments"]
        self.cpu_s: list[float] = found["cpu_s"]
        self.notes: list[str] = found["notes"]
        """Texts that were kept with the runs."""
        self.columns: list[tuple[str, ...]] = [tuple(names) for names in found["columns"]]
        """Columns of ``runs`` that the runs of each scenario have, in their order."""
        self._words: list[str] = found["words"]
        self._tables: dict[str, Any] = found["tables"]

    def names(self) -> set[str]:
        """The columns of all tables."""
        return {name for _, columns in self._tables.values() for name in columns}

    def heights(self, name: str) -> npt.NDArray[np.uint32]:
        """The number of rows of each run in a table."""
        return np.frombuffer(self._tables[name][0], np.uint32)

    def frame(self, name: str, *, compact: bool = False) -> pl.DataFrame:
        """The rows of all runs in a table. This works once, and frees the plain columns.

        With `compact`, text is an enumeration, which takes a fraction of the memory.
        """
        _, columns = self._tables[name]
        words = pl.Series(self._words, dtype=pl.Enum(self._words) if compact else pl.String)
        series = []
        for key in list(columns):
            kind, data = columns.pop(key)
            series.append(self._series(key, kind, data, words))
        frame = pl.DataFrame(series)
        if name == "samples":
            absent = pl.col("path_name").is_null()
            return frame.with_columns(pl.when(~absent).then(pl.col(_OF_SUBFLOW)).name.keep())
        return frame

    @staticmethod
    def _series(name: str, kind: str, data: bytes, words: pl.Series) -> pl.Series:
        if kind == _WORDS:
            index = pl.Series(name, np.frombuffer(data, np.uint32))
            if (index == _NO_WORD).any():
                index = index.replace(_NO_WORD, None)
            return words.gather(index).rename(name)
        values = np.frombuffer(data, kind)
        if kind != "<f8":
            return pl.Series(name, values)
        reals = pl.Series(name, values, nan_to_null=True)
        # A metric that no run has is a column without a type.
        return reals.cast(pl.Null) if reals.null_count() == len(reals) else reals
