"""The twin's runs compared with the capture, as sentences, tables and plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.errors import NoTwinError
from anabranch.reports.table import Table
from anabranch.results.estimates import number
from anabranch.twins.fit import Fitted
from anabranch.twins.observed import Observed
from anabranch.twins.scenario import uncertainty
from anabranch.words import counted, listed

_NEAR = 0.05
"""Deviation of goodput up to which a twin is called close (this project)."""
_FAR = 0.10
"""Deviation of goodput, and of a path's share in parts of the whole, beyond which there is no twin:
twice what is called close (this project)."""


@dataclass(frozen=True)
class Row:
    """A quantity of the capture, and the same of the twin's runs.

    Attributes:
        twin: Median over the runs.
        low, high: Least and largest value of the runs.
    """

    quantity: str
    path: str
    unit: str
    capture: float
    twin: float
    low: float
    high: float

    @property
    def off_by(self) -> float | None:
        """Relative deviation of the twin; `None` if the capture has 0."""
        return self.twin / self.capture - 1 if self.capture else None


def rows(fitted: Fitted) -> list[Row]:
    """All quantities that are compared."""
    seen, runs = fitted.twin.seen, fitted.runs
    found = [
        _row("goodput", "all", "Mbit/s", seen, runs, lambda each: each.goodput_mbps),
        _row("out of order, median", "all", "kB", seen, runs, lambda each: each.reordering_kb[0]),
        _row("out of order, p95", "all", "kB", seen, runs, lambda each: each.reordering_kb[1]),
    ]
    for index, observation in enumerate(seen.observations):
        found += [
            _of_lane("goodput", "Mbit/s", seen, runs, index, lambda each: each.goodput_mbps),
            _of_lane("share", "%", seen, runs, index, lambda each: each.share * 100),
        ]
        if observation.rtt_ms is not None:
            found += [
                _of_lane("RTT, median", "ms", seen, runs, index, _rtt(0)),
                _of_lane("RTT, p95", "ms", seen, runs, index, _rtt(1)),
            ]
    return found


def _rtt(which: int) -> Callable[[Any], float]:
    return lambda observation: (
        float("nan") if observation.rtt_ms is None else float(observation.rtt_ms[which])
    )


def _of_lane(
    quantity: str,
    unit: str,
    seen: Observed,
    runs: Sequence[Observed],
    index: int,
    value: Callable[[Any], float],
) -> Row:
    def of(each: Observed) -> float:
        return value(each.observations[index]) if index < len(each.observations) else float("nan")

    return _row(quantity, seen.observations[index].name, unit, seen, runs, of)


def _row(
    quantity: str,
    path: str,
    unit: str,
    seen: Observed,
    runs: Sequence[Observed],
    value: Callable[[Observed], float],
) -> Row:
    values = np.array([value(each) for each in runs])
    values = values[~np.isnan(values)]
    if not values.size:
        values = np.zeros(1)
    low, twin, high = (float(np.quantile(values, part)) for part in (0, 0.5, 1))
    return Row(quantity, path, unit, value(seen), twin, low, high)


def finding(fitted: Fitted) -> list[str]:
    """Two sentences: what the twin is, and how far it is off."""
    seen = fitted.twin.seen
    count = len(fitted.twin.paths)
    (goodput,) = (
        each for each in rows(fitted) if each.quantity == "goodput" and each.path == "all"
    )
    off = goodput.off_by or 0.0
    close = "is close to" if abs(off) <= _NEAR else "differs from"
    runs = len(fitted.runs)
    median = f" in the median of {runs} runs" if runs > 1 else ""
    return [
        f"The capture shows {number(seen.goodput_mbps)} Mbit/s over {count} "
        f"path{'' if count == 1 else 's'} for {number(seen.seconds)} s.",
        f"The twin {close} it: {number(goodput.twin)} Mbit/s ({_percent(off)}){median}.",
    ]


def failure(fitted: Fitted) -> str | None:
    """Reason why the scenario is no twin of the capture; `None` if it is one."""
    off = []
    for each in rows(fitted):
        if each.quantity == "goodput" and each.path == "all" and abs(each.off_by or 0.0) > _FAR:
            off.append(f"goodput by {_percent(each.off_by or 0.0)}")
        points = each.twin - each.capture
        if each.quantity == "share" and abs(points) > 100 * _FAR:
            off.append(f"the share of {each.path} by {points:+.0f} points".replace("-", "−"))
    if not off:
        return None
    return (
        f"no twin: the best scenario that was found misses {listed(off)} (bound: "
        f"{_FAR * 100:.0f} % and {_FAR * 100:.0f} points)"
    )


def require_twin(fitted: Fitted, name: str) -> None:
    """Refuse a scenario that is no twin of the capture with this name.

    Raises:
        NoTwinError: with the reason.
    """
    reason = failure(fitted)
    if reason is not None:
        raise NoTwinError(f"{name}: {reason}")


def table(fitted: Fitted) -> Table:
    """A row for each quantity, with the range of the runs if there are several."""
    shown = []
    for each in rows(fitted):
        off = each.off_by
        if each.unit == "%":
            deviation = f"{_signed(each.twin - each.capture)} points"
        else:
            deviation = "–" if off is None else _percent(off)
        between = [f"{number(each.low)} to {number(each.high)}"] if len(fitted.runs) > 1 else []
        quantity = f"{each.quantity} ({each.unit})"
        both = (number(each.capture), number(each.twin))
        shown.append((quantity, each.path, *both, *between, deviation))
    runs = ("runs",) if len(fitted.runs) > 1 else ()
    return Table(("quantity", "path", "capture", "twin", *runs, "off by"), tuple(shown))


def paths(fitted: Fitted) -> Table:
    """A row for each value of each path, with its standard error."""
    shown: list[tuple[str, ...]] = []
    for each in fitted.twin.paths:
        link = each.observation.link
        if link is None:
            shown.append((each.observation.name, "everything", "assumed", "as the first path"))
            continue
        filled = f"it dropped {link.drops}" if link.filled else "assumed: never full"
        if link.varying is None:
            rate = uncertainty(link.rate_mbps.error, "Mbit/s")
        else:
            rate = "mean of a trace"
        delay = uncertainty(link.delay_ms.error, "ms")
        loss = uncertainty(link.loss.error * 100, "percentage points")
        shown += [
            (each.observation.name, "rate", f"{number(each.rate)} Mbit/s", rate),
            (each.observation.name, "delay", f"{number(each.delay)} ms", delay),
            (each.observation.name, "queue", counted(each.limit, "packet"), filled),
            (each.observation.name, "loss", f"{link.loss.value * 100:.3g} %", loss),
        ]
        if each.jitter:
            words = "reordering" if link.reorders else "in order"
            shown.append((each.observation.name, "jitter", f"{number(each.jitter)} ms", words))
    return Table(("path", "value", "estimate", "error"), tuple(shown))


def as_json(fitted: Fitted, files: Sequence[str]) -> dict[str, Any]:
    """The twin as plain values."""
    return {
        "files": [*files],
        "finding": finding(fitted),
        "failure": failure(fitted),
        "scenario": fitted.toml,
        "seeds": list(fitted.seeds),
        "paths": [_path_json(each) for each in fitted.twin.paths],
        "comparison": [
            {
                "quantity": each.quantity,
                "path": each.path,
                "unit": each.unit,
                "capture": each.capture,
                "twin": each.twin,
                "least": each.low,
                "largest": each.high,
            }
            for each in rows(fitted)
        ],
        "notes": list(fitted.twin.seen.notes),
    }


def _path_json(each: Any) -> dict[str, Any]:
    link = each.observation.link
    return {
        "name": each.observation.name,
        "addresses": each.observation.addresses,
        "rate_mbps": each.rate,
        "delay_ms": each.delay,
        "jitter_ms": each.jitter,
        "limit_packets": each.limit,
        "queue_was_full": link is not None and link.filled,
        "loss": each.link.loss.value,
        "lost_in_a_row": each.link.burst,
        "rate_error_mbps": None if link is None else link.rate_mbps.error,
        "rate_varies": link is not None and link.varying is not None,
        "delay_error_ms": None if link is None else link.delay_ms.error,
        "loss_error": None if link is None else link.loss.error,
    }


def _percent(part: float) -> str:
    return f"{_signed(part * 100)} %"


def _signed(value: float) -> str:
    text = f"{abs(value):.1f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text
