"""The sender's data in flight on each subflow, after each segment of a capture.

A capture near the sender of data shows what is in flight on each subflow, the shared receive
window, and which data it waits for. `anabranch.explanations` and `anabranch.twins` read it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from anabranch.analyze import records
from anabranch.analyze.analysis import Analysis
from anabranch.analyze.records import ConnectionRecord, Mask, Numbers, Subflow, flags, maybe, whole
from anabranch.words import counted, listed

LEAST_SEGMENTS = 20
"""Data segments below which a capture says nothing."""
MOST_SUBFLOWS = 64
"""Largest number of subflows of a connection that are followed: those that carried most."""
_TIMEOUT_NS = 200_000_000
"""RFC 6298 §2.4 has a minimum of one second; Linux's is 200 ms."""
_TRAIN = 8
"""Most acknowledgements over which the rate of a path is measured."""
_LEVEL_NS, _LEVEL_RTTS = 3_000_000_000, 32
"""Time and round-trip times after which constant data in flight has another cause than a congestion
window. CUBIC stays within a segment of its origin for at most 2 · 0.4^(−1/3) = 2.7 s (RFC 9438
§4.2). NewReno with delayed acknowledgements grows by a segment in at most two round-trip times."""
_BUSY = 0.9
"""Share of the path's rate from which the path may be the limit."""
_PEAK = 0.9
"""A path's rate is this quantile of the rates of trains, which excludes compressed trains."""
_LARGEST_SEGMENT = 1460
_FIRST_TIMEOUT_NS = 1_000_000_000
"""RFC 6298 §2: the retransmission timeout of a SYN."""
_AT_ONCE, _NOT_AT_ONCE = 1 / 16, 1 / 4
"""Parts of the handshake's round-trip time before which, and after which, an answer shows on which
side the capture was made (this project)."""
_SHORT = 0.25
"""The quantile of times that is called short."""
_LONGEST_NS = 1 << 62
"""Times beyond this are damage."""
_MOSTLY = 0.9
"""Share of the acknowledgements whose window must be known, to know whether it was full."""
_ELSEWHERE = 0.02
"""Subflows are missing in the capture if those in it did not carry this share of the data."""


class Hidden(Exception):
    """The capture does not show what the sender did. The message says why."""


def seen(analysis: Analysis, about: ConnectionRecord, direction: str) -> Rows:
    """The rows of one direction of a connection.

    Raises:
        Hidden: if the connection is plain TCP, or if the capture does not show its sender.
    """
    if about.protocol != "MPTCP":
        fallback = f", fallen back ({about.fallback})" if about.fallback else ""
        raise Hidden(f"plain TCP{fallback}; only Multipath TCP has subflows to follow")
    base = about.ways[direction].base
    rows = Rows(analysis, about, direction, base or 0)
    count = int(rows.is_data.sum())
    if base is None or count < LEAST_SEGMENTS:
        if not count and about.fallback:
            raise Hidden(
                f"plain TCP from its first data, fallen back ({about.fallback}); only Multipath "
                "TCP has subflows to follow"
            )
        if rows.unnumbered > count:
            raise Hidden(
                f"{counted(rows.unnumbered, 'data segment')} without a data sequence number; "
                "capture whole headers (a snap length of 128)"
            )
        states = {each.state for each in rows.subflows}
        if not count and states <= {"not answered", "reset"}:
            raise Hidden(f"no data: its handshake was {listed(sorted(states), 'or')}")
        raise Hidden(f"{count} data segments; too few to tell anything")
    if not (rows.is_ack & (rows.data_ack >= 0)).any():
        raise Hidden("no acknowledgements; capture both directions")
    if not rows.is_near_sender():
        raise Hidden(
            "captured near the receiver of the data, where the reasons of the sender do not show; "
            "capture at the sender"
        )
    return rows


class Rows:
    """The segments of one connection in the order of time, and the sender's state after each.

    Times count from the first of these segments, in ns.
    """

    def __init__(
        self, analysis: Analysis, about: ConnectionRecord, direction: str, base: int
    ) -> None:
        mine = analysis.segments.filter(pl.col("connection") == about.number)
        table = mine.sort("time_ns", "file", "packet")
        self.direction = direction
        self.about = about
        self.events = analysis.events.filter(pl.col("connection") == about.number)
        self._origin_ns = int(table["time_ns"][0]) if table.height else 0
        since = table["time_ns"].to_numpy().astype(np.uint64) - np.uint64(self._origin_ns)
        self.time: Numbers = np.minimum(since, _LONGEST_NS).astype(np.int64)
        self.subflow = whole(table["subflow"])
        self.length = whole(table["len"])
        self.seq, self.ack = whole(table["seq"]), whole(table["ack"])
        self.is_new, self.is_again, self.is_reinjected = (
            flags(table["kind"], kind) for kind in ("new", "retransmission", "reinjection")
        )
        self.window = maybe(table["window"])
        self.sack = maybe(table["sack_start"]), maybe(table["sack_end"])
        self.is_dsack = table["is_dsack"].fill_null(value=False).to_numpy()
        outbound = flags(table["direction"], direction)
        self.is_ack: Mask = ~outbound
        sent, acknowledged = maybe(table["dsn"], base), maybe(table["data_ack"], base)
        self.is_data: Mask = outbound & (self.length > 0) & sent.known
        self.dsn = np.where(self.is_data, sent.or_else(-1), -1)
        self.data_ack = np.where(self.is_ack, acknowledged.or_else(-1), -1)
        self._continue_after_fallback(outbound)
        self.unnumbered = int((outbound & (self.length > 0) & ~self.is_data).sum())
        self.una = np.maximum.accumulate(np.maximum(self.data_ack, 0))
        shows_edge = self.is_ack & (self.data_ack >= 0) & self.window.known
        self.edge = np.maximum.accumulate(
            np.where(shows_edge, self.data_ack + self.window.or_else(0), 0)
        )
        self.nxt = np.maximum.accumulate(np.where(self.is_data, self.dsn + self.length, 0))
        self.mss = _usual(self.length[self.is_data])
        self.until = np.append(self.time[1:], self.time[-1:])
        known = records.subflows(analysis, about.number)
        self.subflows: list[Subflow] = sorted(
            sorted(known, key=lambda each: -each.sent[direction])[:MOST_SUBFLOWS],
            key=lambda each: each.number,
        )
        self.left_out = len(known) - len(self.subflows)
        self._missing = sum(each.missing[direction] for each in known)

    def since(self, time_ns: int) -> int:
        """A time of the capture's clock, as ns from the first segment."""
        return max(-_LONGEST_NS, min(time_ns - self._origin_ns, _LONGEST_NS))

    def _continue_after_fallback(self, outbound: Mask) -> None:
        """Number the data and its acknowledgements after a fallback, where TCP goes on.

        RFC 8684 §3.7: the rest of the data is the rest of the bytes of the subflow that is left.
        """
        fallbacks = self.events.filter(pl.col("event") == "fallback")
        if not fallbacks.height:
            return
        subflow = int(fallbacks["subflow"][0])
        since = self.since(int(fallbacks["time_ns"][0]))
        mine = self.subflow == subflow
        numbered = np.flatnonzero(mine & self.is_data)
        if not numbered.size:
            return
        last = numbered[np.argmax(self.dsn[numbered])]
        place, seq = int(self.dsn[last]), int(self.seq[last])

        def places(numbers: Numbers) -> Numbers:
            steps = (numbers - seq + (1 << 31)) % (1 << 32) - (1 << 31)
            return _continuous(place + steps, 1 << 32)

        after = mine & (self.time >= since)
        sent = np.flatnonzero(after & outbound & (self.length > 0) & ~self.is_data)
        self.dsn[sent] = places(self.seq[sent])
        self.is_data[sent] = True
        acks = np.flatnonzero(after & self.is_ack & (self.data_ack < 0))
        acknowledged = places(self.ack[acks])
        # Before the place of the fallback, only DATA_ACKs count.
        self.data_ack[acks] = np.where(acknowledged >= self.dsn[numbered].min(), acknowledged, -1)

    @property
    def knows_window(self) -> bool:
        """Whether the capture shows when the receive window was full.

        Without the handshake of a subflow, the scale of its windows is unknown (RFC 7323 §2.2), and
        data on subflows that were not captured fills the window too.
        """
        told = self.is_ack & (self.data_ack >= 0)
        known = (told & self.window.known).sum()
        return bool(known >= _MOSTLY * told.sum()) and self.elsewhere <= _ELSEWHERE

    @cached_property
    def elsewhere(self) -> float:
        """Share of the acknowledged data that no subflow in the capture carried.

        Data that was acknowledged on a subflow in the capture and is missing there was lost by the
        capture, and not carried elsewhere. Data before the first in the capture does not count.
        """
        starts = self.dsn[self.is_data]
        low, high = int(starts[0]), int(self.una[-1])
        if high <= low:
            return 0.0
        ends = starts + self.length[self.is_data]
        covered = _union(np.clip(starts, low, high), np.clip(ends, low, high))
        return max(0, high - low - covered - self._missing) / (high - low)

    @property
    def hides_subflows(self) -> bool:
        """Whether subflows of the connection are missing in the capture."""
        return self.elsewhere > _ELSEWHERE

    def is_near_sender(self) -> bool:
        """Whether data is answered a round-trip time after it passes, and not at once.

        The handshake shows the round-trip time. If that does not decide, the order does: at the
        sender, data follows acknowledgements, and at the receiver, acknowledgements follow data.
        """
        counts = {each.number: int((self.subflow == each.number).sum()) for each in self.subflows}
        for subflow in sorted(self.subflows, key=lambda each: -counts[each.number]):
            flight = Flight(self, subflow.number)
            answer, rtt = flight.answer_ns(_SHORT), subflow.rtt_ns
            if answer is None:
                continue
            # A longer handshake may have repeated its SYN.
            if rtt is not None and rtt < _FIRST_TIMEOUT_NS:
                if answer > rtt * _NOT_AT_ONCE:
                    return True
                if answer < rtt * _AT_ONCE:
                    return False
            after_data, after_ack = flight.turns_ns()
            return after_ack is None or after_data > after_ack
        return False

    def carrier(self) -> Numbers:
        """The subflow that carried the oldest unacknowledged data, after each row."""
        new = self.is_data & self.is_new
        order = np.argsort(self.dsn[new], kind="stable")
        starts, carriers = self.dsn[new][order], self.subflow[new][order]
        if not starts.size:
            return np.full(self.time.shape, -1)
        places = np.clip(np.searchsorted(starts, self.una, side="right") - 1, 0, None)
        found: Numbers = carriers[places]
        return found

    def backup(self, subflow: Subflow) -> Mask:
        """Whether the subflow was a backup, after each row: by MP_JOIN, and later by MP_PRIO."""
        found = np.full(self.time.shape, subflow.is_backup)
        mine = (pl.col("subflow") == subflow.number) & (pl.col("event") == "mp_prio")
        for time_ns, detail in self.events.filter(mine)["time_ns", "detail"].rows():
            found[self.time >= self.since(time_ns)] = detail == "backup"
        return found


class Flight:
    """Data in flight on one subflow, after each row of the connection."""

    def __init__(self, rows: Rows, subflow: int) -> None:
        self.rows = rows
        mine = rows.subflow == subflow
        self.data: Mask = mine & rows.is_data
        self.acks: Mask = mine & rows.is_ack
        self.any_data = bool(self.data.any())
        seq = _unwrapped(rows.seq, self.data)
        self.end = np.where(self.data, seq + rows.length, 0)
        self.nxt = np.maximum.accumulate(self.end)
        self._origin = int(rows.seq[self.data][0]) if self.any_data else 0
        acknowledged = np.where(self.acks, self._sent_place(rows.ack), 0)
        self.una = np.maximum.accumulate(np.maximum(acknowledged, 0))
        self.outstanding = self.nxt - self.una
        self.again: Mask = self.data & rows.is_again
        self.has_room = self._has_room()

    def _sent_place(self, numbers: Numbers) -> Numbers:
        """Sequence numbers of the data's sender as bytes from its first; -1 if they are none of it.

        They lie within half the number space below the end of the data.
        """
        behind = (self.nxt - (numbers - self._origin)) % (1 << 32)
        places: Numbers = np.where(behind < 1 << 31, self.nxt - behind, -1)
        return places

    def sacked(self, *, twice: bool) -> tuple[Numbers, Numbers]:
        """Begin and end of each acknowledgement's first SACK block; -1 if it has none.

        With `twice`, the block reports data that arrived twice (D-SACK, RFC 2883), otherwise not.
        """
        start, end = (
            np.where(
                each.known & (self.rows.is_dsack == twice), self._sent_place(each.or_else(0)), -1
            )[self.acks]
            for each in self.rows.sack
        )
        return start, end

    def _has_room(self) -> Mask:
        """Whether less is in flight than after the last full segment, by a segment or more.

        A short segment shows no limit of the network: it ends what there was to send, and Nagle's
        algorithm may send it long after the others.
        """
        full = self.data & (self.rows.length >= _usual(self.rows.length[self.data]))
        places = np.where(full, np.arange(self.data.size), -1)
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

    @cached_property
    def is_alone(self) -> Mask:
        """Whether all unacknowledged data is in flight on this subflow, after each row."""
        found: Mask = self.outstanding + self.rows.mss > self.rows.nxt - self.rows.una
        return found

    def is_level(self, rtt_ns: int) -> Mask:
        """Whether its data in flight is constant for longer than a congestion window would be.

        Without losses, and below the rate of the path, congestion windows grow.
        """
        found = np.zeros(self.data.shape, dtype=bool)
        sent = np.flatnonzero(self.data)
        if not sent.size:
            return found
        times = self.rows.time
        # The largest in flight of each round trip, and when the data in flight had other sizes.
        begins = np.flatnonzero(np.diff(times[sent] // max(1, rtt_ns), prepend=-1))
        peaks = np.maximum.reduceat(self.outstanding[sent], begins)
        starts = np.append(sent[begins], self.data.size - 1)
        again = np.add.reduceat(self.again[sent].astype(np.int64), begins) > 0
        least = max(_LEVEL_NS, _LEVEL_RTTS * rtt_ns)
        busy = _BUSY * self.path_rate()
        for first, last in _level_runs(peaks, again, self.rows.mss):
            place, end = starts[first], starts[last]
            lasted = times[end] - times[place]
            if lasted >= least and self.una[end] - self.una[place] < busy * lasted:
                found[place : end + 1] = True
        return found

    @cached_property
    def _train(self) -> int:
        """Acknowledgements of data that left back to back: half of those of a flight."""
        acked = np.diff(self.una[self.acks], prepend=0)
        acked = acked[acked > 0]
        if acked.size < 2:
            return 0
        flight = float(np.quantile(self.outstanding[self.data], _PEAK))
        return min(_TRAIN, acked.size - 1, int(flight / float(np.median(acked)) / 2))

    @property
    def shows_rate(self) -> bool:
        """Whether acknowledgements follow each other closely enough to show the path's rate."""
        return self._train > 0

    def path_rate(self) -> float:
        """The rate of the path in bytes per ns, from the spacing of acknowledgements.

        Acknowledgements of data that left the bottleneck back to back arrive at its rate.
        """
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        time, una = self.rows.time[acked], self.una[acked]
        train = min(max(1, self._train), acked.size - 1)
        if train < 1:
            return 0.0
        lasted = time[train:] - time[:-train]
        rates = (una[train:] - una[:-train])[lasted > 0] / lasted[lasted > 0]
        return float(np.quantile(rates, _PEAK)) if rates.size else 0.0

    def answer_ns(self, quantile: float = 0.0) -> int | None:
        """The shortest time from data to the acknowledgement that covers it, or a quantile."""
        sent = np.flatnonzero(self.data & ~self.again)
        acked = np.flatnonzero(self.acks & (np.diff(self.una, prepend=0) > 0))
        if not sent.size or not acked.size:
            return None
        # The sender's own queue may drop a packet before the capture, and send it later.
        sent = sent[np.argsort(self.end[sent], kind="stable")]
        places = np.searchsorted(self.end[sent], self.una[acked], side="left")
        known = places < sent.size
        gaps = self.rows.time[acked[known]] - self.rows.time[sent[places[known]]]
        gaps = gaps[gaps >= 0]
        return int(np.quantile(gaps, quantile)) if gaps.size else None

    def turns_ns(self) -> tuple[float, float | None]:
        """The usual time since the last data before an acknowledgement, and the reverse."""
        acks = self.acks & (np.diff(self.una, prepend=0) > 0)
        after_data = self._since(acks, self.data)
        return after_data or 0.0, self._since(self.data, acks)

    def _since(self, these: Mask, others: Mask) -> float | None:
        """The median time since the last of the other rows before these."""
        last = np.maximum.accumulate(np.where(others, np.arange(others.size), -1))
        places = np.flatnonzero(these & (last >= 0))
        if not places.size:
            return None
        return float(np.median(self.rows.time[places] - self.rows.time[last[places]]))


def _level_runs(peaks: Numbers, again: Mask, most: int) -> list[tuple[int, int]]:
    """First and last place, of which the last is outside, of peaks that differ by at most `most`.

    Losses end a run.
    """
    runs: list[tuple[int, int]] = []
    first, low, high = 0, int(peaks[0]), int(peaks[0])
    for place, (peak, is_again) in enumerate(zip(peaks.tolist(), again.tolist(), strict=True)):
        low, high = min(low, peak), max(high, peak)
        if is_again or high - low > most:
            runs.append((first, place))
            first, low, high = place + is_again, peak, peak
    return [*runs, (first, len(peaks))]


def _usual(lengths: Numbers) -> int:
    """The usual length of a full segment. Offloading shows several segments as one."""
    if not lengths.size:
        return 1
    values, counts = np.unique(lengths, return_counts=True)
    return min(int(values[np.argmax(counts)]), _LARGEST_SEGMENT)


def _union(starts: Numbers, ends: Numbers) -> int:
    """Number of integers in the union of these ranges."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    before = np.concatenate([starts[:1], reach[:-1]])
    return int(np.maximum(reach - np.maximum(starts, before), 0).sum())


def _continuous(numbers: Numbers, period: int) -> Numbers:
    """Numbers modulo `period` that change by less than half of it from one to the next."""
    if not numbers.size:
        return numbers
    steps = (np.diff(numbers) + period // 2) % period - period // 2
    return np.asarray(numbers[0] + np.concatenate([[0], np.cumsum(steps)]), dtype=np.int64)


def _unwrapped(numbers: Numbers, wanted: Mask) -> Numbers:
    """32-bit sequence numbers of the wanted rows as distances from the first of them."""
    found = np.zeros(numbers.shape, dtype=np.int64)
    mine = numbers[wanted]
    if mine.size:
        found[wanted] = _continuous(mine, 1 << 32) - mine[0]
    return found
