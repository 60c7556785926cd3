"""Captures: their Multipath TCP connections and violations of RFC 8684.

Reads pcapng and pcap captures from this package's runs, tcpdump and Wireshark, also of several
interfaces, in several files, compressed or from standard input. Views of one host complement each
other. If a subflow was captured at several places, the tables show it as the place that saw most of
its payload. If the sender's side was captured, this is that side, so retransmissions and
reinjections are those that the sender made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch import _core
from anabranch.analyze.given import File, readable
from anabranch.errors import InputError
from anabranch.files import parts, prepare_folder
from anabranch.results.estimates import Sample

TABLES = ("connections", "subflows", "segments", "events", "violations", "files")


@dataclass(frozen=True)
class Analysis:
    """The contents of captures as tables.

    Times are integers in nanoseconds of the capture's clock, and sizes are bytes. ``_out`` and
    ``_in`` are the two directions: from the host that opened the connection, and towards it. Null
    means unknown.

    Attributes:
        connections: One row for each connection, including plain TCP.
        subflows: One row for each TCP connection. ``connection`` is null for a join whose
            connection is not in the capture.
        segments: One row for each Multipath TCP segment, in the order of time. ``dsn`` and
            ``data_ack`` are full 64-bit numbers, and ``window`` is scaled. ``kind`` is ``none``
            without payload, ``new`` for data sent for the first time, ``retransmission`` for data
            that the same subflow carried before, and ``reinjection`` for data that was sent before,
            but not as these bytes of the subflow. ``sack_start`` and ``sack_end`` are the first
            SACK block, which reports a duplicate if ``is_dsack`` (RFC 2883).
        events: Handshakes, signals, resets, fallbacks.
        violations: Violations of RFC 8684 with their clauses.
        files: One row for each file, with a description of any damage. ``unread_packets`` could
            not be read, for the reasons in ``unread``, and ``without_options`` counts the segments
            whose TCP options were cut or are malformed: none of these is judged.
        notes: Limitations of the capture that affect the tables.
    """

    connections: pl.DataFrame
    subflows: pl.DataFrame
    segments: pl.DataFrame
    events: pl.DataFrame
    violations: pl.DataFrame
    files: pl.DataFrame
    notes: tuple[str, ...]

    def data(self, connection: int, direction: str) -> pl.DataFrame:
        """The data segments that one host of a connection sent.

        ``seconds`` counts from the first packet of the connection. ``start`` and ``end`` count
        bytes from the beginning of the data.
        """
        about = self.connections.row(connection, named=True)
        rows = self._segments(connection, direction).filter(
            pl.col("len") > 0, pl.col("dsn").is_not_null()
        )
        start = _distance(rows["dsn"], about[f"base_{direction}"])
        return rows.with_columns(start=start, end=start + rows["len"].cast(pl.Int64))

    def acknowledgements(self, connection: int, direction: str) -> pl.DataFrame:
        """The DATA_ACKs for the segments of `data`.

        ``seconds`` counts from the first packet of the connection. ``acked`` and ``edge``, the
        right edge of the receive window, count bytes from the beginning of the data. Both are
        running maxima, so they never decrease.
        """
        about = self.connections.row(connection, named=True)
        other = "in" if direction == "out" else "out"
        rows = self._segments(connection, other).filter(pl.col("data_ack").is_not_null())
        acked = _distance(rows["data_ack"], about[f"base_{direction}"])
        edge = acked + rows["window"].cast(pl.Int64)
        return rows.with_columns(acked=acked.cum_max(), edge=edge.cum_max())

    @property
    def standards(self) -> str:
        """The RFCs whose rules were applied, in words: RFC 6824 if a connection has version 0."""
        has_older = (self.connections["version"] == 0).any()
        return "RFC 8684 and RFC 6824" if has_older else "RFC 8684"

    @property
    def not_judged(self) -> int:
        """Number of packets that were not judged, because they could not be read in full."""
        columns = ("unread_packets", "without_options")
        return sum(int(self.files[name].sum()) for name in columns)

    def display_filter(self, connection: int) -> str:
        """The display filter with which Wireshark and tshark show a connection's packets.

        A join that begins after a failed handshake with the same addresses is shown as well.
        """
        rows = self.subflows.filter(pl.col("connection") == connection)
        return joined_filters([*map(subflow_filter, rows["initiator"], rows["listener"])])

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
        names = [f"{name}.{form}" for name in TABLES]
        with parts(folder, names, also=pl.exceptions.PolarsError) as files:
            for name in TABLES:
                table: pl.DataFrame = getattr(self, name)
                if csv:
                    table.write_csv(files[f"{name}.csv"])
                else:
                    table.write_parquet(files[f"{name}.parquet"], compression="zstd")


def analyze(*files: File, on_progress: Callable[[int, int], object] | None = None) -> Analysis:
    """Read captures, merge them by time, and reconstruct their connections.

    The file ``-`` is standard input. Captures may be compressed with gzip or Zstandard.
    `on_progress` is called repeatedly with the bytes read so far and the total; files are read
    twice. A damaged file is read up to the damage, which the column ``damage`` of `Analysis.files`
    locates.

    Raises:
        InputError: if a file cannot be read, or is not a capture.
    """
    with readable(files) as given:
        try:
            found = _core.analyse([(each.name, each.path) for each in given], on_progress)
        except (OSError, ValueError) as error:
            raise InputError(str(error)) from error
    tables = {name: _frame(columns) for name, columns in found["tables"].items()}
    tables["connections"] = _with_goodput(tables["connections"])
    return Analysis(**tables, notes=tuple(found["notes"]))


def subflow_filter(initiator: str, listener: str) -> str:
    """The display filter of Wireshark for the packets between two addresses with their ports."""
    ends = [end.rpartition(":") for end in (initiator, listener)]
    family = "ipv6" if initiator.startswith("[") else "ip"
    hosts = " && ".join(f"{family}.addr == {address.strip('[]')}" for address, _, _ in ends)
    ports = " && ".join(f"tcp.port == {port}" for _, _, port in ends)
    return f"({hosts} && {ports})"


def joined_filters(filters: Sequence[str]) -> str:
    """The display filter of Wireshark for the packets that any of these shows."""
    return " || ".join(filters)


def listed_packets(packets: str) -> list[int]:
    """The numbers in a cell of the column ``packets``."""
    return [int(number) for number in packets.split(", ")]


def packet_filter(numbers: Sequence[int]) -> str:
    """The display filter of Wireshark for packets with these numbers in their file."""
    if len(numbers) == 1:
        return f"frame.number == {numbers[0]}"
    return f"frame.number in {{{', '.join(map(str, numbers))}}}"


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """A table from the core. The largest value of a type and the empty string mean null."""
    series = [_series(name, values) for name, values in columns.items()]
    return pl.DataFrame(series)


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, list):
        return pl.Series(name, values, dtype=pl.String).replace("", None)
    kind, data = values
    if isinstance(kind, tuple):
        words = pl.Series(kind, dtype=pl.Enum(kind))
        return words.gather(np.frombuffer(data, dtype=np.uint8)).alias(name)
    numbers = np.frombuffer(data, dtype=kind)
    series = pl.Series(name, numbers)
    if name in _ALWAYS:
        return series
    unknown = series == np.iinfo(numbers.dtype).max
    if name in _FLAGS:
        series = series.cast(pl.Boolean)
    return series.to_frame().select(pl.when(~unknown).then(pl.col(name)).alias(name))[name]


_ALWAYS = ("time_ns", "file", "packet", "seq", "ack", "len")
"""Columns that every row has: their largest value is a number, and does not mean null."""
_FLAGS = ("has_checksums", "is_complete", "is_backup", "is_dsack")


def _with_goodput(connections: pl.DataFrame) -> pl.DataFrame:
    """The table with the goodput in Mbit/s, which every command shows.

    It is the acknowledged data over the time from the connection's first packet until the last
    acknowledgement of new data. At either host, this is the time that a run measures without
    warm-up: from the opening of the connection until the last byte has arrived.
    """
    rates = []
    for way in ("out", "in"):
        last = pl.col(f"last_acked_{way}_ns")
        lasted = last - pl.col("begin_ns")
        known = pl.when(last > pl.col("begin_ns"), pl.col(f"acked_{way}") > 0)
        rate = known.then(pl.col(f"acked_{way}") * 8e3 / lasted)
        rates.append(rate.alias(f"goodput_{way}_mbps"))
    return connections.with_columns(rates)


def _distance(numbers: pl.Series, base: int | None) -> pl.Series:
    """Distances of data sequence numbers from `base`, modulo 2**64."""
    distance = numbers.to_numpy().astype(np.uint64) - np.uint64(base or 0)
    return pl.Series(distance.astype(np.int64))


def largest(analysis: Analysis, count: int) -> Sequence[tuple[int, str]]:
    """The `count` directions of Multipath TCP connections that carried most, largest first."""
    rows = [
        (row[f"bytes_{way}"], row["connection"], way)
        for row in analysis.connections.iter_rows(named=True)
        if row["protocol"] == "MPTCP"
        for way in ("out", "in")
    ]
    drawn = sorted((row for row in rows if row[0] > 0), key=lambda row: (-row[0], row[1], row[2]))
    return [(connection, way) for _, connection, way in drawn[:count]]


def rates_mbps(seconds: Sample, byte_count: Sample, edges: Sample) -> Sample:
    """Rates of the bytes that fall between successive edges of time."""
    sums, _ = np.histogram(seconds, edges, weights=byte_count)
    return np.asarray(sums * 8 / 1e6 / np.diff(edges), dtype=np.float64)
