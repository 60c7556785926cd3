"""The registry of metrics: the words and the unit of each column that entries judge or draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.errors import InputError
from anabranch.gallery import measures
from anabranch.gallery.measures import Values
from anabranch.results import estimates
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, NothingMeasured, Results

Levels = Mapping[str, Factor]
"""The levels of the factors that name the runs of a cell."""


@dataclass(frozen=True)
class Metric:
    """A column of the results of runs."""

    column: str
    label: str
    unit: str = ""
    scale: float = 1
    """Converts the column's values to the unit."""

    @property
    def heading(self) -> str:
        """The label with the unit, for axes and tables."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def called(self, label: str) -> Metric:
        """The same metric with another label."""
        return replace(self, label=label)

    def values(self, cell: Levels, **more: Factor) -> Values:
        """The values of a cell, one for each seed, in the unit."""
        return lambda results: results.values(self.column, **cell, **more) * self.scale

    def median(self, cell: Levels, **more: Factor) -> Measure:
        """The median over seeds, in the unit."""
        return measures.median(self.values(cell, **more))

    def mean(self, cell: Levels) -> Measure:
        """The mean over seeds, in the unit."""
        return measures.mean(self.values(cell))

    def ratio(self, above: Levels, below: Levels) -> Measure:
        """The ratio of the medians of two cells."""
        return measures.ratio(self._plain(above), self._plain(below))

    def distance(self, one: Levels, other: Levels) -> Measure:
        """The difference between the medians of two cells, in per cent of that of `other`."""
        return measures.distance(self._plain(one), self._plain(other))

    def difference(self, one: Levels, other: Levels) -> Measure:
        """The median of one cell less that of another, in the unit."""
        return measures.difference(self.values(one), self.values(other))

    def text(self, results: Results, cell: Levels) -> str:
        """The median over seeds with its interval and unit; a dash if no run measured it."""
        try:
            return self.median(cell)(results).text(self.unit)
        except NothingMeasured:
            return "–"

    def texts(self, results: Results, at: Callable[..., Levels]) -> Texts:
        """The texts of cells, by the levels that `at` takes."""
        return Texts(self, results, at)

    def number(self, results: Results, cell: Levels) -> float:
        """The median over seeds, in the unit."""
        return float(estimates.median(self.values(cell)(results)).value)

    def _plain(self, cell: Levels) -> Values:
        return lambda results: results.values(self.column, **cell)


@dataclass(frozen=True)
class Texts:
    """The texts of a metric in cells. Notes of entries name levels of factors: ``[MPTCP | 32]``."""

    metric: Metric
    results: Results
    at: Callable[..., Levels]
    cells: Sequence[Levels] = ()
    """The cells that notes can name. `Entry.notes` gives them."""

    def __call__(self, *levels: Factor) -> str:
        """The text of the cell with these levels."""
        return self.metric.text(self.results, self.at(*levels))

    def __getitem__(self, words: str | int) -> str:
        """The text of the cell with the levels that notes name; a dash if no run measured it.

        Raises:
            InputError: if no cell has them.
            TypeError: if the notes name too few levels, or too many.
        """
        words = " ".join(str(words).split())  # notes are wrapped
        wanted = self.at(*words.split(" | "))
        for cell in self.cells:
            if all(_is_named(cell.get(factor), level) for factor, level in wanted.items()):
                return self.metric.text(self.results, {factor: cell[factor] for factor in wanted})
        raise InputError(f"{self.metric.label} of [{words}]: no cell has these levels")

    def __format__(self, form: str) -> str:
        raise InputError(f"{self.metric.label} needs levels in brackets, as in {{x[MPTCP | 32]}}")


def _is_named(level: Factor | None, word: Factor) -> bool:
    """Whether a word of the notes means this level: ``32`` means 32.0."""
    if isinstance(level, str) or not isinstance(word, str):
        return level == word
    return re.fullmatch(r"-?\d+(\.\d+)?", word) is not None and level == float(word)


GOODPUT = Metric("goodput_mbps", "goodput", "Mbit/s")
TRANSFER = Metric("transfer_mbps", "goodput", "Mbit/s")
"""Goodput of a transfer that ends, from its start to the last byte."""
DUPLICATES = Metric("duplicate_mbps", "throughput − goodput", "Mbit/s")
VARIATION = Metric("goodput_cov", "variation")
MEAN = Metric("delay_mean_ms", "mean delay", "ms")
MEAN_OF_BLOCK = MEAN.called("mean delay of a block")
P50 = Metric("delay_p50_ms", "p50", "ms")
P95 = Metric("delay_p95_ms", "p95", "ms")
P99 = Metric("delay_p99_ms", "p99", "ms")
IQR = Metric("delay_iqr_ms", "IQR", "ms")
MODE = Metric("delay_mode_ms", "mode", "ms")
JITTER = Metric("jitter_p95_ms", "p95 jitter", "ms")
PAUSE_MS = Metric("recovery_ms", "longest pause", "ms")
PAUSE = Metric("recovery_ms", "longest pause", "s", 1e-3)
STALL = Metric("stall_ms", "longest stall", "ms")
STALL_S = Metric("stall_ms", "longest stall", "s", 1e-3)
COMPLETION = Metric("completion_s", "download time", "s")
REINJECTIONS = Metric("reinjections", "reinjections")
IDLE_RESTARTS = Metric("idle_restarts", "restarts after idle times")
OUT_OF_ORDER = Metric("out_of_order_mean_bytes", "out of order", "bytes")
OUT_OF_ORDER_KB = Metric("out_of_order_mean_bytes", "mean out of order", "kB", 1e-3)
OUT_OF_ORDER_SEGMENTS = Metric("out_of_order_segments", "segments out of order")
STRAY_SEGMENTS = Metric("stray_segments", "segments that need a search")
SEND_BUFFER_MB = Metric("send_buffer", "send buffer", "MB", 1e-6)
RECEIVE_BUFFER_MB = Metric("receive_buffer", "receive buffer", "MB", 1e-6)
COMPLETED = Metric("completed", "transfers completed", "%", 100)
DELIVERED = Metric("bytes_delivered", "bytes delivered")
WINDOW_LIMITED = Metric("window_limited_share", "time in which the window is full", "%", 100)
SEND_BUFFER_LIMITED = Metric(
    "send_buffer_limited_share", "time in which the send buffer is full", "%", 100
)
COUPLED = Metric("one_bottleneck_share", "share of time coupled")
LATENESS = Metric("late_p999_ms", "lateness p99.9", "ms")


def texts(results: Results, at: Callable[..., Levels], **metrics: Metric) -> dict[str, object]:
    """The texts of metrics in cells, by the names that notes use."""
    return {name: metric.texts(results, at) for name, metric in metrics.items()}


def waiting_ms(cell: Levels, rate: Metric = GOODPUT) -> Values:
    """Mean time that bytes wait for earlier bytes, for each seed, by Little's law."""
    return measures.derived(
        lambda waiting, mbps: waiting * 8e-3 / mbps, OUT_OF_ORDER.values(cell), rate.values(cell)
    )


def srtt_p95(path: str) -> Metric:
    """The 95th percentile of the smoothed round-trip time of a path."""
    return Metric(f"srtt_p95_ms_{path}", f"p95 sRTT of {path}", "ms")


def part(path: str) -> Metric:
    """A path's part of the bytes, from 0 to 1."""
    return Metric(f"share_{path}", f"{path}'s part of the bytes")


def share(path: str, name: str = "") -> Metric:
    """A path's share of the bytes in per cent; `name` is the path's in words."""
    return Metric(f"share_{path}", f"{name or path}'s share of the bytes", "%", 100)
