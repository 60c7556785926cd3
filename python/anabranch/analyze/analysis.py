"""Captures: what Multipath TCP did in them, and what of it breaks RFC 8684.

Any capture will do: of this package's runs, of tcpdump or Wireshark; pcapng or pcap, of several
interfaces or several files. A subflow that was captured at several places is shown as the place
saw it that saw most of its payload, so retransmissions and reinjections are the sender's where its
side was captured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch import _core
from anabranch.errors import InputError
from anabranch.results.estimates import Sample
from anabranch.results.folder import parts, prepare_folder

TABLES = ("connections", "subflows", "segments", "events", "violations", "files")

DIRECTIONS = pl.Enum(["out", "in"])
"""``out`` is from who opened the connection, ``in`` is to it."""

KINDS = pl.Enum(["none", "new", "retransmission", "reinjection"])
"""Of a segment: without payload; new data; what its subflow carried before; data that was sent
before, as new bytes of this subflow."""


@dataclass(frozen=True)
class Analysis:
    """What captures show, in tables.

    Times are integers in nanoseconds of the capture's clock, sizes are bytes, ``_out`` and
    ``_in`` are the two directions (`DIRECTIONS`), and null stands for what is not known.

    Attributes:
        connections: One row for each connection, plain TCP included.
        subflows: One row for each TCP connection; ``connection`` is null for joins to nothing.
        segments: One row for each segment of Multipath TCP, in the order of time. ``dsn`` and
            ``data_ack`` are the full numbers, ``kind`` is one of `KINDS`, ``window`` is scaled.
        events: Handshakes, signals, resets, fallbacks.
        violations: What breaks RFC 8684, with the clause.
        files: One row for each file, with what is wrong with it.
        notes: What a reader must know before believing the tables.
    """

    connections: pl.DataFrame
    subflows: pl.DataFrame
    segments: pl.DataFrame
    events: pl.DataFrame
    violations: pl.DataFrame
    files: pl.DataFrame
    notes: tuple[str, ...]

    def data(self, connection: int, direction: str) -> pl.DataFrame:
        """The data that one host of a connection sent.

        Segments with ``seconds`` from the first packet of the connection, and ``start`` and ``end``
        in bytes from the beginning of the data.
        """
        about = self.connections.row(connection, named=True)
        rows = self._segments(connection, direction).filter(
            pl.col("len") > 0, pl.col("dsn").is_not_null()
        )
        start = _distance(rows["dsn"], about[f"base_{direction}"])
        return rows.with_columns(start=start, end=start + rows["len"].cast(pl.Int64))

    def acknowledgements(self, connection: int, direction: str) -> pl.DataFrame:
        """The DATA_ACKs of what `data` gives.

        They have ``seconds``, ``acked`` in bytes from the beginning of the data, and ``edge`` of
        the receive window, each of which never moves back.
        """
        about = self.connections.row(connection, named=True)
        other = "in" if direction == "out" else "out"
        rows = self._segments(connection, other).filter(pl.col("data_ack").is_not_null())
        acked = _distance(rows["data_ack"], about[f"base_{direction}"])
        edge = acked + rows["window"].cast(pl.Int64)
        return rows.with_columns(acked=acked.cum_max(), edge=edge.cum_max())

    def _segments(self, connection: int, direction: str) -> pl.DataFrame:
        begin = self.connections["begin_ns"][connection]
        rows = self.segments.filter(
            pl.col("connection") == connection, pl.col("direction") == direction
        )
        return rows.with_columns(seconds=(rows["time_ns"] - begin) / 1e9)

    def save(self, folder: Path, *, csv: bool = False) -> None:
        """Write every table as Parquet, or as CSV.

        Raises:
            InputError: if the folder cannot be written.
        """
        prepare_folder(folder)
        form = "csv" if csv else "parquet"
        with parts(folder, [f"{name}.{form}" for name in TABLES]) as files:
            for name in TABLES:
                table: pl.DataFrame = getattr(self, name)
                if csv:
                    table.write_csv(files[f"{name}.csv"])
                else:
                    table.write_parquet(files[f"{name}.parquet"], compression="zstd")


def analyze(
    *files: str | os.PathLike[str], on_progress: Callable[[int, int], object] | None = None
) -> Analysis:
    """Read captures, merged by time, and reconstruct their connections.

    `on_progress` is called now and then with the bytes read and to be read; files are read twice.
    A damaged file is read up to there: the column ``damage`` of `Analysis.files` says where.

    Raises:
        InputError: if a file cannot be read, or is no capture.
    """
    try:
        found = _core.analyse([os.fspath(file) for file in files], on_progress)
    except (OSError, ValueError) as error:
        raise InputError(f"{error}; name pcapng or pcap files") from error
    tables = {name: _frame(columns) for name, columns in found["tables"].items()}
    tables["connections"] = _with_goodput(tables["connections"])
    return Analysis(**tables, notes=tuple(found["notes"]))


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """A table of the core's, whose greatest numbers and empty words stand for null."""
    series = [_series(name, values) for name, values in columns.items()]
    return pl.DataFrame(series)


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, list):
        return pl.Series(name, values, dtype=pl.String).replace("", None)
    kind, data = values
    numbers = np.frombuffer(data, dtype=kind)
    if name in ("direction", "kind"):
        words = DIRECTIONS if name == "direction" else KINDS
        named = dict(enumerate(words.categories))
        return pl.Series(name, numbers).replace_strict(named, return_dtype=words)
    series = pl.Series(name, numbers)
    unknown = series == np.iinfo(numbers.dtype).max
    if name in _FLAGS:
        series = series.cast(pl.Boolean)
    return series.to_frame().select(pl.when(~unknown).then(pl.col(name)).alias(name))[name]


_FLAGS = ("has_checksums", "is_complete", "is_backup")


def _with_goodput(connections: pl.DataFrame) -> pl.DataFrame:
    """The table with the mean goodput in Mbit/s, between the first and the last data."""
    rates = []
    for way in ("out", "in"):
        lasted = pl.col(f"last_data_{way}_ns") - pl.col(f"first_data_{way}_ns")
        rate = pl.col(f"bytes_{way}") * 8e3 / lasted
        known = pl.when(lasted > 0).then(rate)
        rates.append(known.alias(f"goodput_{way}_mbps"))
    return connections.with_columns(rates)


def _distance(numbers: pl.Series, base: int | None) -> pl.Series:
    """How far data sequence numbers are behind `base`; they may have wrapped in between."""
    distance = numbers.to_numpy().astype(np.uint64) - np.uint64(base or 0)
    return pl.Series(distance.astype(np.int64))


def largest(analysis: Analysis, count: int) -> Sequence[tuple[int, str]]:
    """The directions of connections of Multipath TCP that carried most, most first."""
    rows = [
        (row[f"bytes_{way}"], row["connection"], way)
        for row in analysis.connections.iter_rows(named=True)
        if row["protocol"] == "MPTCP"
        for way in ("out", "in")
    ]
    drawn = sorted((row for row in rows if row[0] > 0), key=lambda row: (-row[0], row[1], row[2]))
    return [(connection, way) for _, connection, way in drawn[:count]]


def rates_mbps(seconds: Sample, byte_count: Sample, edges: Sample) -> Sample:
    """Bytes that fall between edges of time, as rates."""
    sums, _ = np.histogram(seconds, edges, weights=byte_count)
    return np.asarray(sums * 8 / 1e6 / np.diff(edges), dtype=np.float64)
