"""Outages and changes of paths during a run, for drawings over time, and the paths' capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.reports import figures
from anabranch.scenarios.quantities import nanoseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 12
"""Changes of a path beyond this number, such as those of a trace, would hide the curves."""
_LIGHT = 0.13
_WORDS = {"suspend": "suspended", "resume": "up"}
"""The state of a path after these changes. All other changes are named after the new state."""

_BITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}


@dataclass(frozen=True)
class Outage:
    """An interval in which a path carries nothing."""

    path: str
    state: str
    """``"down"`` or ``"suspended"``."""
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Step:
    """A moment at which a path changes."""

    path: str
    at_s: float
    words: str
    """The new values, such as ``"rate 2Mbit/s"``."""


def outages(scenario: Mapping[str, Any]) -> Iterator[Outage]:
    """The outages in a normalised scenario, by path."""
    end = nanoseconds(scenario["duration"]) / 1e9
    for path in scenario["path"]:
        state, since = "up", 0.0
        for at, change in _in_order(path):
            new = _WORDS.get(change.get("state", state), change.get("state", state))
            if new == state:
                continue
            if state != "up":
                yield Outage(path["name"], state, since, at)
            state, since = new, at
        if state != "up":
            yield Outage(path["name"], state, since, end)


def steps(scenario: Mapping[str, Any]) -> Iterator[Step]:
    """The changes of rate, delay, jitter and loss in a normalised scenario, by path."""
    for path in scenario["path"]:
        for at, change in _in_order(path):
            keys = (key for key in ("rate", "delay", "jitter", "loss") if key in change)
            if new := [f"{key} {change[key]}" for key in keys]:
                yield Step(path["name"], at, ", ".join(new))


def _in_order(path: Mapping[str, Any]) -> list[tuple[float, Mapping[str, Any]]]:
    changes = [(nanoseconds(change["at"]) / 1e9, change) for change in path.get("change", ())]
    return sorted(changes, key=lambda change: change[0])


def shade(
    axes: Axes,
    scenario: Mapping[str, Any],
    colours: Mapping[str, str] | None = None,
    shift_s: float = 0,
) -> None:
    """Shade outages, and mark changes with a line, in a drawing over time in seconds.

    The scenario is normalised. `colours` gives the colour of each path; the default is grey.
    `shift_s` is the time that the drawing shows as 0.
    """
    colours = colours or {}
    left, right = axes.get_xlim()
    for outage in outages(scenario):
        axes.axvspan(
            outage.begin_s - shift_s, outage.end_s - shift_s, zorder=0.5, linewidth=0,
            color=colours.get(outage.path, figures.GREY), alpha=_LIGHT,
            label=f"{outage.path} {outage.state}",
        )  # fmt: skip
    found = list(steps(scenario))
    for step in found:
        if sum(each.path == step.path for each in found) > _MOST_LINES:
            continue
        colour = colours.get(step.path, figures.GREY)
        axes.axvline(step.at_s - shift_s, color=colour, linewidth=0.9, linestyle=(0, (1, 2)))
        axes.annotate(
            f"{step.path}: {step.words}", (step.at_s - shift_s, 0.98), rotation=90, ha="right",
            xycoords=axes.get_xaxis_transform(), va="top", fontsize=7, color=colour,
        )  # fmt: skip
    axes.set_xlim(left, right)


def capacity_mbps(scenario: Mapping[str, Any], connection: Mapping[str, Any]) -> float | None:
    """The mean capacity of a connection's paths after the warm-up, in Mbit/s.

    `None` if a path follows a trace, shares a bottleneck, or changes in one direction only.
    """
    names = connection["paths"][: 1 if connection["protocol"] == "tcp" else None]
    rates = [_mean_mbps(scenario, path) for path in scenario["path"] if path["name"] in names]
    known = [rate for rate in rates if rate is not None]
    # The two directions of an upload's path may differ.
    whole = len(known) == len(names) and connection["direction"] == "download"
    return sum(known) if whole else None


def _mean_mbps(scenario: Mapping[str, Any], path: Mapping[str, Any]) -> float | None:
    begin, end = (nanoseconds(scenario[key]) / 1e9 for key in ("warm_up", "duration"))
    changes = _in_order(path)
    one_way = any(each.get("applies_to", "both") != "both" for _, each in changes)
    if "rate" not in path or "via" in path or one_way:
        return None
    away = [each for each in outages(scenario) if each.path == path["name"]]
    total, rate, since = 0.0, _mbps(path["rate"]), begin
    for at, change in [*changes, (end, {})]:
        until = min(max(at, begin), end)
        up = (
            until
            - since
            - sum(max(0.0, min(until, each.end_s) - max(since, each.begin_s)) for each in away)
        )
        total, since = total + rate * up, until
        rate = _mbps(change["rate"]) if "rate" in change else rate
    return total / (end - begin)


def _mbps(rate: str) -> float:
    number = rate.rstrip("/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return float(number) * _BITS[rate[len(number) :].strip()] / 1e6
