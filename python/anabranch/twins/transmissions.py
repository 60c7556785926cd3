"""Fate of each data packet of a subflow: lost, or delivered and acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anabranch.analyze.flights import Flight, Rows
from anabranch.analyze.records import Mask, Numbers, Subflow
from anabranch.results.estimates import Sample

_MTU = 1500
_IPV4_HEADERS = 76
"""IPv4, TCP with timestamps, and DSS with a 64-bit data sequence number and a 32-bit DATA_ACK."""
_IPV6_MORE = 20
_SLOWER_OPTIONS = 24
"""Most bytes of headers that a full segment has more or less than `_IPV4_HEADERS`."""
_TOO_SOON = 0.9
"""Part of the least RTT in which no retransmission can be acknowledged (this project)."""
_AT_ONCE = 2.5
"""Full segments up to which an acknowledgement is taken to answer the last of them at once."""


@dataclass(frozen=True)
class Transmissions:
    """The data packets of one subflow in the order of sending, and its acknowledgements.

    Attributes:
        sent_ns: When each packet passed the capture.
        start: Its first byte on the subflow, from the subflow's first data.
        end: The byte after its last.
        packet_bytes: Its length as an IP packet, with headers as they usually are.
        number: Its place among all packets that its host sent on the subflow, from 1.
        lost: Whether it was lost: its data was sent again, and that was needed.
        again: Whether it is a retransmission.
        ack_ns, acked: When acknowledgements arrived, and up to which byte they go.
        sacked: Where the first SACK block of each begins, if it is not a D-SACK; else -1.
        twice: Begin and end of the D-SACK of each; -1 if it has none.
    """

    sent_ns: Numbers
    start: Numbers
    end: Numbers
    packet_bytes: Sample
    number: Numbers
    lost: Mask
    again: Mask
    ack_ns: Numbers
    acked: Numbers
    sacked: Numbers
    twice: tuple[Numbers, Numbers]
    mss: int
    least_rtt_ns: int

    @cached_property
    def answers(self) -> tuple[Numbers, Numbers]:
        """Packets that were acknowledged at once and in order, and when.

        The acknowledgement advances by at most two segments, to the end of a packet, over data that
        was sent once. Those of a repaired hole, and those that a timer delayed, say nothing about
        the link.
        """
        before = np.concatenate([[0], self.acked[:-1]])
        advance = self.acked - before
        repeated = np.sort(self.start[self.again])
        repairs = np.searchsorted(repeated, self.acked) > np.searchsorted(repeated, before)
        prompt = (advance > 0) & (advance <= _AT_ONCE * self.mss) & ~repairs
        first = np.flatnonzero(~self.again)
        ends = self.end[first]
        places = np.searchsorted(ends, self.acked[prompt])
        known = places < first.size
        known[known] = ends[places[known]] == self.acked[prompt][known]
        packets = first[places[known]]
        return packets, self.ack_ns[prompt][known]

    @cached_property
    def needed(self) -> Mask:
        """Of each packet, whether it is a retransmission of a packet that was lost.

        It is not if its acknowledgement came sooner than a round-trip time later, or if the
        receiver reports that the data arrived twice (D-SACK, RFC 2883 §4).
        """
        places = np.searchsorted(self.acked, self.start, side="right")
        answered = places < self.acked.size
        when = self.ack_ns[np.clip(places, 0, max(0, self.acked.size - 1))]
        soon = answered & (when - self.sent_ns < _TOO_SOON * self.least_rtt_ns)
        found: Mask = self.again & ~soon
        found[self._twice()] = False
        return found

    def _twice(self) -> list[int]:
        """The retransmissions of which a D-SACK reports that their data had arrived before."""
        start, end = self.twice
        found = []
        for row in np.flatnonzero(end > 0):
            before = np.searchsorted(self.sent_ns, self.ack_ns[row])
            same = self.again[:before] & (self.start[:before] < end[row])
            places = np.flatnonzero(same & (self.end[:before] > start[row]))
            found += places[-1:].tolist()
        return found

    @cached_property
    def reordered(self) -> float:
        """Share of the packets that arrived after a later one, without being lost.

        A SACK block beyond the acknowledgement shows a hole. If nothing had to be sent again, the
        packet in the hole was late.
        """
        holes = np.unique(self.acked[self.sacked > self.acked])
        late = ~np.isin(holes, self.start[self.needed]) & (holes < self.acked[-1])
        return float(late.sum()) / max(1, self.end.size)


def transmissions(rows: Rows, subflow: Subflow, *, ipv6: bool) -> Transmissions | None:
    """The packets of a subflow that carried data; `None` if nothing shows what became of them."""
    flight = Flight(rows, subflow.number)
    data = np.flatnonzero(flight.data)
    # Of later packets, the capture does not show what became of them.
    unknown = np.flatnonzero(flight.end[data] > flight.una[-1])
    data = data[: unknown[0]] if unknown.size else data
    if not data.size:
        return None
    acks = np.flatnonzero(flight.acks)
    end, length = flight.end[data], rows.length[data]
    headers = _MTU - rows.mss
    usual = _IPV4_HEADERS + (_IPV6_MORE if ipv6 else 0)
    if abs(headers - usual) > _SLOWER_OPTIONS:
        headers = usual
    # Offloading shows several packets as one.
    count = np.maximum(1, -(-rows.length // rows.mss))
    sent = np.cumsum(np.where((rows.subflow == subflow.number) & ~rows.is_ack, count, 0))
    found = Transmissions(
        sent_ns=rows.time[data],
        start=end - length,
        end=end,
        packet_bytes=(length + count[data] * headers).astype(np.float64),
        number=(sent - count + 1)[data],
        lost=np.zeros(data.size, dtype=bool),
        again=flight.again[data],
        ack_ns=rows.time[acks],
        acked=flight.una[acks],
        sacked=flight.sacked(twice=False)[0],
        twice=flight.sacked(twice=True),
        mss=rows.mss,
        least_rtt_ns=flight.answer_ns() or subflow.rtt_ns or 0,
    )
    found.lost[:] = _lost(found)
    return found


def _lost(sent: Transmissions) -> Mask:
    """The packets whose data had to be sent again."""
    lost = np.zeros(sent.end.size, dtype=bool)
    latest: dict[int, int] = {}
    first = np.flatnonzero(~sent.again)
    for index in np.flatnonzero(sent.again):
        start = int(sent.start[index])
        before = latest.get(start)
        if before is None:
            place = int(np.searchsorted(sent.start[first], start, side="right")) - 1
            before = int(first[place]) if place >= 0 else None
        if before is not None and sent.needed[index]:
            lost[before] = True
        latest[start] = int(index)
    return lost
