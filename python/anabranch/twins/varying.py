"""The capacity of a link whose rate varies, as a trace of delivery opportunities.

While packets wait, a link sends at its rate. Acknowledgements show when packets left it. While the
link is idle, it could have sent as before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.results.estimates import Sample
from anabranch.twins.transmissions import Transmissions

OPPORTUNITY_BYTES = 1504
"""Bytes that a delivery opportunity of a trace sends (docs/scenarios.md)."""
_RECENT = 21
"""Acknowledgements whose median rate fills the time in which a link was idle."""


@dataclass(frozen=True)
class Varying:
    """When packets left a link, and what it could have sent.

    Attributes:
        base_ns: The shortest time from sending to acknowledgement.
        rate: Mean rate in bytes per ns.
        departures: When each packet that was not lost left, in ns from the subflow's first data, in
            the order of sending.
        times, capacity: What the link could have sent by when, in ns and bytes.
    """

    base_ns: float
    rate: float
    departures: Sample
    times: Sample
    capacity: Sample

    def milliseconds(self, before_ns: float, until_ns: float) -> str:
        """The opportunities as a scenario writes them: ``"0 3*2 9"``.

        They begin `before_ns` before the subflow's first data, and end `until_ns` after it. There,
        the first and the last rate continue.
        """
        first, last = self.times[0], self.times[-1]
        times = np.concatenate([[first - before_ns], self.times, [max(last, until_ns)]])
        more = self.rate * np.array([before_ns, max(0.0, until_ns - last)])
        capacity = np.concatenate(
            [[self.capacity[0] - more[0]], self.capacity, [self.capacity[-1] + more[1]]]
        )
        grid = np.arange(int((times[-1] - times[0]) / 1e6) + 1)
        sums = np.interp(grid * 1e6 + times[0], times, capacity - capacity[0])
        counts = np.diff(np.floor(sums / OPPORTUNITY_BYTES), prepend=0).astype(np.int64)
        # The last time is the period, so it needs an opportunity.
        counts[-1] = max(1, counts[-1])
        return " ".join(
            f"{at}*{counts[at]}" if counts[at] > 1 else str(at) for at in np.flatnonzero(counts)
        )


def varying(sent: Transmissions, entered: np.ndarray) -> Varying:
    """The link of a subflow, from its acknowledgements. `entered` are the packets not lost."""
    packets, acked_ns = sent.answers
    base_ns = float((acked_ns - sent.sent_ns[packets]).min())
    begin_ns = int(sent.sent_ns[0])
    sent_at = (sent.sent_ns[entered] - begin_ns).astype(np.float64)
    sizes = sent.packet_bytes[entered]
    work = np.cumsum(sizes)

    order = np.argsort(sent.end[entered], kind="stable")
    ends, sums = sent.end[entered][order], np.cumsum(sizes[order])
    count = np.searchsorted(ends, sent.acked, side="right")
    done = _delivered(np.where(count > 0, sums[np.maximum(count, 1) - 1], 0.0), float(sizes.mean()))
    left = np.maximum.accumulate(np.maximum((sent.ack_ns - begin_ns) - base_ns, 0.0))
    new = np.diff(done, prepend=0) > 0
    done, left = done[new], left[new]

    departures = np.maximum(np.interp(work, done, left), sent_at)
    times, capacity = _capacity(done, left, work, sent_at)
    rate = float((capacity[-1] - capacity[0]) / max(1.0, times[-1] - times[0]))
    return Varying(base_ns, rate, departures, times, capacity)


def _delivered(acked: Sample, size: float) -> Sample:
    """Data delivered by the time of each acknowledgement, in bytes of packets.

    While a hole is open, each repeated acknowledgement says that one more packet arrived.
    """
    places = np.arange(acked.size)
    is_new = np.diff(acked, prepend=-1) > 0
    latest = np.maximum.accumulate(np.where(is_new, places, 0))
    following = np.flatnonzero(is_new)
    after = np.searchsorted(following, places, side="right")
    limit = np.where(after < following.size, acked[following[after % following.size]], acked)
    found: Sample = np.minimum(acked + (places - latest) * size, np.maximum(limit, acked))
    return found


def _capacity(done: Sample, left: Sample, work: Sample, sent_at: Sample) -> tuple[Sample, Sample]:
    """Points of the sum of what the link could have sent.

    It was busy from when it had a packet until an acknowledged one left. Until then it was idle.
    """
    before = np.concatenate([[0.0], done[:-1]])
    last = np.concatenate([[0.0], left[:-1]])
    following = np.clip(np.searchsorted(work, before, side="right"), 0, sent_at.size - 1)
    start = np.minimum(np.maximum(last, sent_at[following]), left)
    carried, busy = done - before, left - start
    rates = np.where(busy > 0, carried / np.where(busy > 0, busy, 1), np.nan)
    idle = np.maximum(start - last, 0)
    filled = idle * _recent(rates)
    steps = np.stack([filled, carried], axis=1).ravel()
    times = np.stack([start, left], axis=1).ravel()
    return np.maximum.accumulate(times), np.cumsum(steps)


def _recent(rates: Sample) -> Sample:
    """Of each place, the median of the known rates around it; 0 if there are none."""
    padded = np.pad(rates, _RECENT // 2, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, _RECENT)
    known = ~np.isnan(windows).all(axis=1)
    found = np.zeros(rates.size)
    found[known] = np.nanmedian(windows[known], axis=1)
    return found
