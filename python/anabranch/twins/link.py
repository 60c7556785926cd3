"""The link behind a subflow: rate, delay, jitter, queue and losses.

A link sends one packet after the other: packet *i*, sent at *t*, leaves at
``D[i] = max(D[i-1], t[i]) + bytes[i] / rate`` (Lindley 1952). An acknowledgement comes a constant
time later. The rate is the one for which this time varies least. This uses every packet, whether
the queue is full or empty, and contains packet pairs and trains (Keshav 1991; Dovrolis 2001) as the
case of packets that were sent together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter
from scipy.optimize import minimize_scalar

from anabranch.analyze.records import Mask
from anabranch.results.estimates import Sample
from anabranch.twins.transmissions import Transmissions
from anabranch.twins.varying import Varying, varying

_ACK_BYTES = 72
"""An acknowledgement with timestamps and a DATA_ACK, which the way back transmits too."""
_TRAINS = (1, 2, 4, 8, 16, 32)
"""Numbers of acknowledgements in the trains that give the bounds of the rate."""
_AROUND = 0.2
"""Distance beyond the rates of trains within which the rate is sought, as a part of it (this
project)."""
_FIRST, _LONGER = 2_000, 4
"""Answers at the beginning of a capture that the first search uses, and how many times as many the
next one uses."""
_COARSE, _FINE, _NEAR = 1e-3, 2e-4, 5e-3
"""Relative steps of the first two searches, and the half width of the second. While a queue is not
empty, a rate that is wrong by one in a thousand puts it wrong by one packet after a thousand. The
misfit therefore has a minimum that becomes narrower with the length of the capture."""
_BLOCK, _STEADIER = 50, 0.5
"""Answers in whose times the rate is sought again, and the part of the misfit to which another rate
must reduce it (this project). One misclassified loss shifts all later times, and the best rate for
all of them hides that shift."""
_PARTS = 8
"""Parts of the capture whose rates are compared for the uncertainty."""
_LEAST_ANSWERS = 10
_MOSTLY = 0.5
"""Share of the packets that found a full queue and were lost, at least. The others are errors of
the model, or passed while the queue was nearly full (this project)."""
_NEAR_LIMIT = 0.8
"""Part of the limit from which losses count as the queue's, because the model of a queue that
dropped many packets can be a few packets off (this project)."""
_OVER, _BEYOND = 1.1, 0.1
"""Part of the limit beyond which packets cannot have passed, and the share of those near the limit
that may seem to (this project)."""
_UNFILLED = 2.0
"""Ratio of the assumed limit of a queue that never dropped to its longest length seen (this
project)."""
_LEAST_LIMIT = 20
_MANY_RUNS = 4
"""Runs of losses from which bursts can be told."""
_LONG_RUN = 1.4
"""Mean number of losses in a run from which losses come in bursts (this project)."""
_REORDERS = 0.003
"""Share of packets that arrived late from which jitter reorders (this project)."""
_SMOOTHED = 101
"""Answers over which slow changes of the delay are removed before jitter is measured."""
_BLUR = 2.0
"""Packets by which the queue of a link with a varying rate is uncertain (this project)."""
_SLOW_PACKETS, _SLOW = 10, 0.15
"""Spread of slow changes of the delay from which the rate varies: in packets, and as a part of the
round trip. A model that has misjudged a few losses is wrong by a few packets (this project)."""
_BASE = 0.02
"""Quantile of the constant times that is free of delayed acknowledgements and jitter."""


@dataclass(frozen=True)
class FittedValue:
    """A value with its standard error, in the same unit."""

    value: float
    error: float


@dataclass(frozen=True)
class LinkFindings:
    """Findings about the link of a subflow.

    Attributes:
        rate_mbps: In Mbit/s of IP packets.
        delay_ms: One way; half of the round trip, because the two ways cannot be told apart.
        spread_ms: Spread of quick changes of the delay: from the 5th to the 95th percentile.
        reorders: Whether packets overtook each other.
        limit: Packets in the queue when it dropped some.
        filled: Whether the queue was full. If not, `limit` is an assumption above what was seen.
        loss: Probability of a loss that the queue did not cause; 0 if none was seen.
        burst: Mean number of packets lost in a row; 1 if losses are independent.
        lost: Numbers of the packets that were lost so, from 1, of all that the host sent.
        packets: Number of the last packet that is known to be lost or not.
        drops: Number of packets that the full queue dropped.
    """

    rate_mbps: FittedValue
    delay_ms: FittedValue
    spread_ms: float
    reorders: bool
    limit: FittedValue
    filled: bool
    loss: FittedValue
    burst: float
    lost: tuple[int, ...]
    packets: int
    drops: int
    varying: Varying | None
    """The link's capacity over time, if no constant rate explains the acknowledgements."""


def link(sent: Transmissions, near_mbps: float | None = None) -> LinkFindings | None:
    """The link that explains when a subflow's data was acknowledged.

    `None` if fewer than ten acknowledgements tell. The rate is sought near `near_mbps`, if that is
    given: without it, the search takes most of the time.
    """
    packets, acked_ns = sent.answers
    if packets.size < _LEAST_ANSWERS:
        return None
    model = _Model(sent, packets, acked_ns)
    rate = model.rate() if near_mbps is None else model.rate_near(near_mbps / 8e3)
    constant = model.constants(rate)
    slow = median_filter(constant, _SMOOTHED, mode="nearest")
    base_ns = float(np.quantile(constant, _BASE))
    size = float(np.median(sent.packet_bytes))
    found = None
    if _spread(slow) > max(_SLOW_PACKETS * size / rate, _SLOW * base_ns):
        found = varying(sent, model.entered)
        base_ns, rate, spread_ns, slack = found.base_ns, found.rate, 0.0, _BLUR
        before = np.concatenate([[0.0], found.departures[:-1]])
        queue = model.queue(found.departures, np.maximum(before, model.time[model.entered]))
    else:
        spread_ns = _spread(constant - slow)
        slack = spread_ns * rate / size
        departures = model.departures(rate)
        queue = model.queue(departures, departures - sent.packet_bytes[model.entered] / rate)
        if slack < 1:
            # Packets that were misjudged before show as steps of the time, one packet high.
            steps = np.round((slow - base_ns) * rate / size)
            queue += np.round(np.interp(np.arange(queue.size), packets, steps))
    delay_ns = (base_ns - _ACK_BYTES / rate) / 2
    limit, filled, dropped = _limit(queue, sent.lost, slack)
    random = sent.lost & ~dropped
    loss, burst = _losses(random)
    error = model.error(rate) if found is None else rate / np.sqrt(_PARTS)
    return LinkFindings(
        rate_mbps=FittedValue(rate * 8e3, error * 8e3),
        delay_ms=FittedValue(max(0.0, delay_ns) / 1e6, spread_ns / np.sqrt(constant.size) / 2e6),
        spread_ms=spread_ns / 1e6,
        reorders=sent.reordered > _REORDERS,
        limit=limit,
        filled=filled,
        loss=loss,
        burst=burst,
        lost=tuple(sent.number[random].tolist()),
        packets=int(sent.number[-1]),
        drops=int(dropped.sum()),
        varying=found,
    )


def _spread(values: Sample) -> float:
    """From the 5th to the 95th percentile."""
    return float(np.quantile(values, 0.95) - np.quantile(values, 0.05))


class _Model:
    """The packets that entered the link's queue, and the answers to some of them."""

    def __init__(self, sent: Transmissions, packets: np.ndarray, acked_ns: np.ndarray) -> None:
        self.sent = sent
        self.entered = np.flatnonzero(~sent.lost)
        self.begin_ns = int(sent.sent_ns[0])
        self.time: Sample = (sent.sent_ns - self.begin_ns).astype(np.float64)
        self.answered = np.searchsorted(self.entered, packets)
        self.packets = packets
        self.acked: Sample = (acked_ns - self.begin_ns).astype(np.float64)

    def departures(self, rate: float) -> Sample:
        """When each packet that was not lost left the link, in ns, at a rate in bytes per ns."""
        service = self.sent.packet_bytes[self.entered] / rate
        work = np.cumsum(service)
        idle: Sample = np.maximum.accumulate(self.time[self.entered] - (work - service))
        return idle + work

    def constants(self, rate: float) -> Sample:
        """The time from each answered packet's departure to its acknowledgement, in ns."""
        return self.acked - self.departures(rate)[self.answered]

    def _misfit(self, rate: float, of: Mask | slice = slice(None)) -> float:
        constant = self.constants(rate)[of]
        return float(np.abs(constant - np.median(constant)).mean())

    def rate(self) -> float:
        """The rate that explains the acknowledgements best, in bytes per ns."""
        rate = self._narrowed(self._best(_grid(*self._bounds(), _COARSE), _FIRST))
        return self._steadier(rate)

    def rate_near(self, rate: float) -> float:
        """The rate near this one that explains the acknowledgements best."""
        return self._sought(rate, slice(None))

    def _best(self, rates: list[float], count: int) -> float:
        """The rate with the least misfit of the first answers."""
        return min(rates, key=lambda rate: self._misfit(rate, slice(0, count)))

    def _narrowed(self, rate: float) -> float:
        """The best rate near one, by more and more answers in smaller and smaller steps."""
        count, width, step = _FIRST, _NEAR, _FINE
        while True:
            rate = self._best(_grid(rate * (1 - width), rate * (1 + width), step), count)
            if count >= self.acked.size:
                return self._sought(rate, slice(None), step)
            count *= _LONGER
            width, step = 5 * step, step / _LONGER

    def _steadier(self, rate: float) -> float:
        """A rate near one for which the times within blocks of answers vary much less, if any."""
        rates = _grid(rate * (1 - _NEAR), rate * (1 + _NEAR), _FINE)
        best = min(rates, key=self._unsteadiness)
        best = _minimum(self._unsteadiness, best, _FINE)
        enough = self._unsteadiness(best) < _STEADIER * self._unsteadiness(rate)
        return best if enough else rate

    def _unsteadiness(self, rate: float) -> float:
        """Median distance of the times from the median of their block of answers."""
        constant = self.constants(rate)
        blocks = constant[: constant.size // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
        if not blocks.size:
            return self._misfit(rate)
        return float(np.median(np.abs(blocks - np.median(blocks, axis=1, keepdims=True))))

    def _bounds(self) -> tuple[float, float]:
        """The least and the largest rate that trains of acknowledgements suggest."""
        found: list[float] = []
        covered = np.cumsum(self.sent.packet_bytes[self.entered])[self.answered]
        for train in _TRAINS:
            if self.acked.size <= train:
                break
            lasted = self.acked[train:] - self.acked[:-train]
            carried = covered[train:] - covered[:-train]
            rates = carried[lasted > 0] / lasted[lasted > 0]
            if rates.size:
                found += np.quantile(rates, (0.25, 0.97)).tolist()
        return min(found) / (1 + _AROUND), max(found) * (1 + _AROUND)

    def _sought(self, guess: float, of: Mask | slice, within: float = _FINE) -> float:
        """The best rate within a relative distance of a guess."""
        return _minimum(lambda rate: self._misfit(rate, of), guess, within)

    def error(self, rate: float) -> float:
        """Standard error of the rate: from parts of the capture, each with a rate of its own."""
        parts = np.array_split(np.arange(self.acked.size), _PARTS)
        rates = []
        for part in parts:
            if part.size >= _LEAST_ANSWERS:
                of = np.zeros(self.acked.size, dtype=bool)
                of[part] = True
                rates.append(self._sought(rate, of))
        return float(np.std(rates) / np.sqrt(len(rates))) if len(rates) > 1 else rate * _AROUND

    def queue(self, departures: Sample, starts: Sample) -> Sample:
        """Number of packets that waited when each packet arrived, without the one in transmission.

        Packets that were not lost leave at `departures`, and their transmission begins at `starts`.
        """
        before = np.searchsorted(self.entered, np.arange(self.time.size))
        begun = np.maximum.accumulate(np.minimum(starts, departures))
        started = np.searchsorted(begun, self.time, side="right")
        waiting: Sample = np.maximum(before - started, 0).astype(np.float64)
        return waiting


def _minimum(of: Callable[[float], float], guess: float, within: float) -> float:
    """Argument at which a function of a rate is least within a relative distance of a guess."""
    low, high = np.log(guess) - within, np.log(guess) + within
    found = minimize_scalar(lambda log_rate: of(float(np.exp(log_rate))), bounds=(low, high),
                            method="bounded", options={"xatol": within / 200})  # fmt: skip
    return float(np.exp(found.x))


def _grid(low: float, high: float, step: float) -> list[float]:
    """Values from `low` to `high` in equal relative steps."""
    values: list[float] = np.geomspace(low, high, 2 + int(np.log(high / low) / step)).tolist()
    return values


def _limit(queue: Sample, lost: Mask, slack: float) -> tuple[FittedValue, bool, Mask]:
    """The queue's limit, whether it was reached, and the packets that were dropped there.

    `slack` is the uncertainty of `queue` in packets.
    """
    longest = float(queue[~lost].max(initial=0.0)) + 1
    least = _exact(queue, lost) if slack < 1 else _blurred(queue, lost, slack)
    dropped: Mask = lost & (queue >= least) & (queue > 0)
    if dropped.any():
        at = queue[dropped]
        dropped |= lost & (queue >= _NEAR_LIMIT * np.median(at))
        spread = float(np.std(at) / np.sqrt(at.size)) if at.size > 1 else 1.0
        return FittedValue(max(1.0, float(np.median(at))), max(spread, 0.5)), True, dropped
    assumed = max(_UNFILLED * longest, _LEAST_LIMIT)
    return FittedValue(assumed, assumed - longest), False, dropped


def _exact(queue: Sample, lost: Mask) -> float:
    """The shortest queue from which most packets are lost, or infinity."""
    levels = np.unique(queue[lost])
    arrived = np.array([(queue >= level).sum() for level in levels])
    gone = np.array([(lost & (queue >= level)).sum() for level in levels])
    full = levels[gone >= _MOSTLY * arrived]
    return float(full.min(initial=np.inf))


def _blurred(queue: Sample, lost: Mask, slack: float) -> float:
    """Length of a queue from which losses are drops of the queue, if lengths are blurred.

    It is below the length at most losses. If many packets passed a longer queue, it is infinity.
    """
    if not lost.any():
        return np.inf
    long = queue[lost & (queue >= queue[lost].max() / 2)]
    level = float(np.median(long))
    near = queue >= _NEAR_LIMIT * level
    beyond = ~lost & (queue > _OVER * level + 1 + slack)
    if long.size < 2 or beyond.sum() > _BEYOND * near.sum():
        return np.inf
    return _NEAR_LIMIT * level - slack


def _losses(lost: Mask) -> tuple[FittedValue, float]:
    """The probability of a random loss, and the mean number of packets lost in a row."""
    count, total = int(lost.sum()), lost.size
    runs = int((np.diff(lost.astype(np.int8), prepend=0) == 1).sum())
    probability = count / total
    error = np.sqrt(max(count, 1)) / total
    length = count / runs if runs else 1.0
    return FittedValue(
        probability, error
    ), length if runs >= _MANY_RUNS and length >= _LONG_RUN else 1.0
