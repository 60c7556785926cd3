"""Rows and columns of an analysis, by type. What a capture does not show is `None`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.analyze.analysis import Analysis

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Way:
    """One direction of a connection.

    Attributes:
        sent: Bytes of data.
        acked: Bytes that the receiver acknowledged.
        base: Data sequence number of the first byte; `None` if no number is in the capture.
        goodput_mbps: As in every command; `None` without acknowledged data.
    """

    sent: int
    acked: int
    base: int | None
    goodput_mbps: float | None


@dataclass(frozen=True)
class ConnectionRecord:
    """A row of `Analysis.connections`.

    Attributes:
        fallback: Why it fell back to TCP, if it did.
        is_complete: Whether the capture has all of its data.
        ways: By direction.
    """

    number: int
    protocol: str
    fallback: str | None
    state: str | None
    initiator: str
    listener: str
    begin_ns: int
    is_complete: bool
    ways: Mapping[str, Way]

    @property
    def larger(self) -> str:
        """The direction with more data."""
        return max(("out", "in"), key=lambda way: (self.ways[way].sent, self.ways[way].acked))


@dataclass(frozen=True)
class Subflow:
    """A row of `Analysis.subflows`.

    Attributes:
        rtt_ns: Round-trip time of the handshake; `None` if that is not in the capture.
        sent: Bytes by direction, without retransmissions.
        missing: Bytes by direction that were acknowledged on the subflow, and not captured.
    """

    number: int
    state: str
    initiator: str
    listener: str
    is_backup: bool
    begin_ns: int
    end_ns: int
    rtt_ns: int | None
    sent: Mapping[str, int]
    missing: Mapping[str, int]

    @property
    def name(self) -> str:
        """Number and both ends."""
        return f"subflow {self.number} ({self.initiator} – {self.listener})"


def connections(analysis: Analysis) -> list[ConnectionRecord]:
    """All connections, including plain TCP."""
    return [_connection(row) for row in analysis.connections.iter_rows(named=True)]


def subflows(analysis: Analysis, connection: int) -> list[Subflow]:
    """The subflows of a connection, in the order of their numbers."""
    mine = analysis.subflows.filter(pl.col("connection") == connection)
    return [_subflow(row) for row in mine.iter_rows(named=True)]


def _connection(row: Mapping[str, Any]) -> ConnectionRecord:
    ways = {
        way: Way(
            sent=row[f"bytes_{way}"],
            acked=row[f"acked_{way}"],
            base=row[f"base_{way}"],
            goodput_mbps=row[f"goodput_{way}_mbps"],
        )
        for way in ("out", "in")
    }
    return ConnectionRecord(
        number=row["connection"],
        protocol=row["protocol"],
        fallback=row["fallback"],
        state=row["state"],
        initiator=row["initiator"],
        listener=row["listener"],
        begin_ns=row["begin_ns"],
        is_complete=row["is_complete"],
        ways=ways,
    )


def _subflow(row: Mapping[str, Any]) -> Subflow:
    return Subflow(
        number=row["subflow"],
        state=row["state"],
        initiator=row["initiator"],
        listener=row["listener"],
        is_backup=bool(row["is_backup"]),
        begin_ns=row["begin_ns"],
        end_ns=row["end_ns"],
        rtt_ns=row["rtt_ns"],
        sent={way: row[f"bytes_{way}"] for way in ("out", "in")},
        missing={way: row[f"missing_{way}"] for way in ("out", "in")},
    )


@dataclass(frozen=True)
class Maybe:
    """Numbers of which the capture may lack some. Only `or_else` gives all of them."""

    known: Mask
    _values: Numbers

    def or_else(self, missing: int) -> Numbers:
        """The numbers, with `missing` in place of those that the capture lacks."""
        return np.where(self.known, self._values, missing)

    def of(self, rows: Mask) -> Numbers:
        """The known numbers of these rows."""
        return self._values[rows & self.known]


def maybe(column: pl.Series, base: int = 0) -> Maybe:
    """A column with nulls, as distances from `base` modulo 2**64."""
    values = column.fill_null(0).to_numpy().astype(np.uint64) - np.uint64(base)
    return Maybe(column.is_not_null().to_numpy(), values.astype(np.int64))


def whole(column: pl.Series) -> Numbers:
    """A column that has a number in every row."""
    assert column.null_count() == 0, f"each row has {column.name}"
    return column.to_numpy().astype(np.int64)


def flags(column: pl.Series, wanted: str) -> Mask:
    """The rows in which a column has this word."""
    return (column == wanted).fill_null(value=False).to_numpy()
