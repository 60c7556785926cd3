"""What the sender of a connection had in flight on each subflow, after each segment of a capture.

A capture near the sender of data shows what is in flight on each subflow, the shared receive
window, and which data it waits for. `anabranch.explanations` and `anabranch.twins` read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anabranch.analyze.analysis import Analysis

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST_SEGMENTS = 20
"""Data segments below which a capture says nothing."""
_TIMEOUT_NS = 200_000_000
"""RFC 6298 §2.4 has a minimum of one second; Linux' is 200 ms."""
_TRAIN = 8
"""Acknowledgements over which the rate of a path is measured."""
_PEAK = 0.9
"""A path's rate is this quantile of the rates of trains, which excludes compressed trains."""
_LARGEST_SEGMENT = 1460


class Hidden(Exception):
    """The capture does not show what the sender did. The message says why."""


def seen(analysis: Analysis, about: Mapping[str, Any], direction: str) -> Rows:
    """The rows of one direction of a connection; `about` is its row of the table.

    Raises:
        Hidden: if the connection is plain TCP, or if the capture does not show its sender.
    """
    if about["protocol"] != "MPTCP":
        fallback = f", fallen back ({about['fallback']})" if about["fallback"] else ""
        raise Hidden(f"plain TCP{fallback}; only Multipath TCP has subflows to follow")
    rows = Rows(analysis, about["connection"], direction, about[f"base_{direction}"])
    if rows.is_data.sum() < LEAST_SEGMENTS:
        raise Hidden(f"{rows.is_data.sum()} data segments; too few to tell anything")
    if not (rows.is_ack & (rows.data_ack >= 0)).any():
        raise Hidden("no acknowledgements; capture both directions")
    if not rows.is_near_sender():
        raise Hidden(
            "captured near the receiver of the data, where the reasons of the sender do not show; "
            "capture at the sender"
        )
    return rows


class Rows:
    """The segments of one connection in the order of time, and the sender's state after each."""

    def __init__(self, analysis: Analysis, connection: int, direction: str, base: int) -> None:
        mine = analysis.segments.filter(pl.col("connection") == connection)
        self.table = mine.sort("time_ns", "file", "packet")
        self.events = analysis.events
        known = analysis.subflows.drop_nulls("rtt_ns").select("subflow", "rtt_ns")
        self.first_rtt_ns: dict[int, int] = dict(known.rows())
        self.time = self.table["time_ns"].to_numpy().astype(np.int64)
        self.subflow = self.table["subflow"].to_numpy().astype(np.int64)
        self.length = self.table["len"].to_numpy().astype(np.int64)
        outbound = (self.table["direction"] == direction).to_numpy()
        has_dsn = self.table["dsn"].is_not_null().to_numpy()
        self.is_data: Mask = outbound & (self.length > 0) & has_dsn
        self.is_ack: Mask = ~outbound
        dsn = _relative(self.table["dsn"], base)
        data_ack = _relative(self.table["data_ack"], base)
        self.data_ack = np.where(self.is_ack, data_ack, -1)
        window = self.table["window"].fill_null(0).to_numpy().astype(np.int64)
        self.dsn = np.where(self.is_data, dsn, -1)
        self.una = np.maximum.accumulate(np.maximum(self.data_ack, 0))
        edges = np.where(self.is_ack & (self.data_ack >= 0), self.data_ack + window, 0)
        self.edge = np.maximum.accumulate(edges)
        self.nxt = np.maximum.accumulate(np.where(self.is_data, dsn + self.length, 0))
        self.mss = _usual(self.length[self.is_data])
        self.until = np.append(self.time[1:], self.time[-1:])

    def is_near_sender(self) -> bool:
        """Whether data is answered a round-trip time after it passes, and not at once.

        At the sender, some data follows an acknowledgement at once, or no answer is much quicker
        than that of the handshake. At the receiver, some acknowledgement follows data at once.
        """
        for subflow in np.unique(self.subflow[self.is_data]):
            flight = Flight(self, int(subflow))
            answer, reaction = flight.answer_ns(), flight.reaction_ns()
            if answer is not None:
                least = self.first_rtt_ns.get(int(subflow), 0) // 2
                return reaction is None or answer > reaction or answer > least > 0
        return False

    def carrier(self) -> Numbers:
        """The subflow that carried the oldest unacknowledged data, after each row."""
        new = self.is_data & (self.table["kind"] == "new").to_numpy()
        order = np.argsort(self.dsn[new], kind="stable")
        starts, carriers = self.dsn[new][order], self.subflow[new][order]
        if not starts.size:
            return np.full(self.time.shape, -1)
        places = np.clip(np.searchsorted(starts, self.una, side="right") - 1, 0, None)
        found: Numbers = carriers[places]
        return found

    def backup(self, subflow: int, *, is_backup: bool) -> Mask:
        """Whether the subflow was a backup, after each row: by MP_JOIN, and later by MP_PRIO."""
        found = np.full(self.time.shape, is_backup)
        signals = self.events.filter(pl.col("subflow") == subflow, pl.col("event") == "mp_prio")
        for row in signals.iter_rows(named=True):
            found[self.time >= row["time_ns"]] = row["detail"] == "backup"
        return found


class Flight:
    """What is in flight on one subflow, after each row of the connection."""

    def __init__(self, rows: Rows, subflow: int) -> None:
        self.rows = rows
        mine = rows.subflow == subflow
        self.data: Mask = mine & rows.is_data
        self.acks: Mask = mine & rows.is_ack
        self.any_data = bool(self.data.any())
        seq = _unwrapped(rows.table["seq"], self.data)
        origin = int(rows.table["seq"].to_numpy()[self.data][0]) if self.any_data else 0
        self.end = np.where(self.data, seq + rows.length, 0)
        self.nxt = np.maximum.accumulate(self.end)
        self._origin = origin
        acknowledged = np.where(self.acks, self._sent_place("ack"), 0)
        self.una = np.maximum.accumulate(np.maximum(acknowledged, 0))
        self.outstanding = self.nxt - self.una
        again = (rows.table["kind"] == "retransmission").to_numpy()
        self.again: Mask = self.data & again
        self.has_room = self._has_room()

    def _sent_place(self, column: str) -> Numbers:
        """Sequence numbers of the data's sender as bytes from its first; -1 if they are none of it.

        They lie within half the number space below the end of the data.
        """
        numbers = self.rows.table[column]
        values = numbers.fill_null(0).to_numpy().astype(np.int64) - self._origin
        behind = (self.nxt - values) % (1 << 32)
        known = numbers.is_not_null().to_numpy() & (behind < 1 << 31)
        places: Numbers = np.where(known, self.nxt - behind, -1)
        return places

    def sacked(self, *, twice: bool) -> tuple[Numbers, Numbers]:
        """Begin and end of each acknowledgement's first SACK block; -1 if it has none.

        With `twice`, the block reports data that arrived twice (D-SACK, RFC 2883), otherwise not.
        """
        wanted = (
            self.acks & (self.rows.table["is_dsack"] == twice).fill_null(value=False).to_numpy()
        )
        places = (self._sent_place("sack_start"), self._sent_place("sack_end"))
        start, end = (np.where(wanted, each, -1)[self.acks] for each in places)
        return start, end

    def _has_room(self) -> Mask:
        """Whether less is in flight than after the last transmission, by a segment or more."""
        places = np.where(self.data, np.arange(self.data.size), -1)
        last = np.maximum.accumulate(places)
        level = np.where(last >= 0, self.outstanding[np.clip(last, 0, None)], 0)
        room: Mask = (self.outstanding + self.rows.mss <= level) | (last < 0)
        return room

    def recovering(self) -> Mask:
        """From a retransmission until everything sent before it was acknowledged."""
        point = np.maximum.accumulate(np.where(self.again, self.nxt, 0))
        found: Mask = self.una < point
        return found

    def silent(self) -> Mask:
        """Before retransmissions that follow a pause as long as a timeout."""
        found = np.zeros(self.data.shape, dtype=bool)
        rows = np.flatnonzero(self.data | self.acks)
        if rows.size < 2:
            return found
        before, after = rows[:-1], rows[1:]
        pause = self.rows.time[after] - self.rows.time[before] >= _TIMEOUT_NS
        timed_out = pause & self.again[after] & (self.outstanding[before] > 0)
        for start, stop in zip(before[timed_out], after[timed_out], strict=True):
            found[start:stop] = True
        return found

    def path_rate(self) -> float:
        """The rate of the path in bytes per ns, from the spacing of acknowledgements.

        Acknowledgements of data that left the bottleneck back to back arrive at its rate.
        """
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        time, una = self.rows.time[acked], self.una[acked]
        train = min(_TRAIN, acked.size - 1)
        if train < 1:
            return 0.0
        lasted = time[train:] - time[:-train]
        rates = (una[train:] - una[:-train])[lasted > 0] / lasted[lasted > 0]
        return float(np.quantile(rates, _PEAK)) if rates.size else 0.0

    def answer_ns(self) -> int | None:
        """The shortest time from data to the acknowledgement that covers it."""
        sent = np.flatnonzero(self.data & ~self.again)
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        if not sent.size or not acked.size:
            return None
        places = np.searchsorted(self.end[sent], self.una[acked], side="left")
        known = places < sent.size
        gaps = self.rows.time[acked[known]] - self.rows.time[sent[places[known]]]
        gaps = gaps[gaps >= 0]
        return int(gaps.min()) if gaps.size else None

    def reaction_ns(self) -> int | None:
        """The shortest time from an acknowledgement to the next data of the subflow."""
        sent = np.flatnonzero(self.data)
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        places = np.searchsorted(sent, acked)
        known = places < sent.size
        if not known.any():
            return None
        gaps = self.rows.time[sent[places[known]]] - self.rows.time[acked[known]]
        return int(gaps.min())


def _usual(lengths: Numbers) -> int:
    """The usual length of a full segment. Offloading shows several segments as one."""
    if not lengths.size:
        return 1
    values, counts = np.unique(lengths, return_counts=True)
    return min(int(values[np.argmax(counts)]), _LARGEST_SEGMENT)


def _relative(numbers: pl.Series, base: int) -> Numbers:
    """Data sequence numbers as bytes from the beginning of the data; -1 if there is none."""
    missing = numbers.is_null().to_numpy()
    values = numbers.fill_null(0).to_numpy().astype(np.uint64) - np.uint64(base)
    return np.where(missing, -1, values.astype(np.int64))


def _unwrapped(numbers: pl.Series, wanted: Mask) -> Numbers:
    """32-bit sequence numbers of the wanted rows as distances from the first of them."""
    values = numbers.to_numpy().astype(np.int64)
    found = np.zeros(values.shape, dtype=np.int64)
    mine = values[wanted]
    if mine.size:
        steps = (np.diff(mine) + (1 << 31)) % (1 << 32) - (1 << 31)
        found[wanted] = np.concatenate([[0], np.cumsum(steps)])
    return found
