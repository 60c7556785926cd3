"""The twin as a scenario file, with the uncertainty of each value in a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.results.estimates import number
from anabranch.twins.link import FittedValue, LinkFindings
from anabranch.twins.observed import Observed, PathObservation

_LEAST_JITTER = 0.01
"""Spread of the delay from which a path has jitter, as a part of the round trip (this project)."""
_LEAST_JITTER_MS = 0.3
_MIDDLE = 1.8
"""A uniform distribution from −1 to 1 has its 5th and 95th percentiles this far apart."""
CONTROLS = {True: ("cubic_linux", "new_reno"), False: ("lia", "cubic", "new_reno")}
"""Congestion controls that are tried for a Linux host, and for another one; its default first."""
_SLACK_S = 1.0


@dataclass(frozen=True)
class PathOfTwin:
    """Values of one path; rates are Mbit/s, times ms, the queue packets.

    Attributes:
        link: Findings about its link, or those of another path if this one shows too little.
    """

    observation: PathObservation
    link: LinkFindings
    rate: float
    delay: float
    jitter: float
    limit: int


@dataclass(frozen=True)
class TwinValues:
    """The values of a twin. A buffer that is `None` is tuned by its host.

    Attributes:
        seen: The capture's findings.
        host: Behaviour of the hosts, as a scenario states it.
        scheduler: `None` for the host's default.
        remedies: Those of the sender, as a scenario writes them.
    """

    seen: Observed
    paths: tuple[PathOfTwin, ...]
    is_linux: bool
    congestion_control: str
    receive_buffer: int | None
    send_buffer: int | None
    scheduler: str | None = None
    remedies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_random(self) -> bool:
        """Whether runs with different seeds differ."""
        return any(each.jitter for each in self.paths)

    @property
    def reorders(self) -> bool:
        """Whether packets overtake each other, by chance."""
        return any(each.jitter and each.link.reorders for each in self.paths)


def first_guess(seen: Observed) -> TwinValues:
    """The twin that the estimates give directly."""
    hosts = seen.ends
    return TwinValues(
        seen=seen,
        paths=tuple(_path(each, seen) for each in seen.observations if _is_used(each)),
        is_linux=hosts.is_linux,
        congestion_control=CONTROLS[hosts.is_linux][0],
        receive_buffer=None if hosts.is_default or hosts.windows is None else hosts.windows[0],
        send_buffer=None,
    )


def _is_used(observation: PathObservation) -> bool:
    return observation.link is not None or observation.is_backup


def _path(observation: PathObservation, seen: Observed) -> PathOfTwin:
    link = observation.link or next(
        each.link for each in seen.observations if each.link is not None
    )
    least = max(_LEAST_JITTER_MS, _LEAST_JITTER * 2 * link.delay_ms.value)
    jitter = link.spread_ms / _MIDDLE if link.spread_ms > least else 0.0
    return PathOfTwin(
        observation=observation,
        link=link,
        rate=link.rate_mbps.value,
        delay=link.delay_ms.value + jitter / 2,
        jitter=jitter,
        limit=max(1, round(link.limit.value)),
    )


def to_toml(twin: TwinValues, name: str, *, draws: bool = False) -> str:
    """The scenario as text.

    Losses are those of the capture. With `draws`, each run draws as many at random.
    """
    return "\n".join(_lines(twin, name, draws)) + "\n"


def _lines(twin: TwinValues, name: str, draws: bool) -> Iterator[str]:
    seen = twin.seen
    finite = "size" in seen.ends.workload.settings or "count" in seen.ends.workload.settings
    seconds = seen.seconds * (1.5 if finite else 1) + (_SLACK_S if finite else 0)
    yield f"name = {_value(name)}"
    yield f'description = "The twin of a connection that lasted {seen.seconds:.3f} s."'
    yield f'duration = "{seconds * 1e3:.0f}ms"'
    for each in twin.paths:
        yield ""
        yield "[[path]]"
        yield from _path_lines(each, seen)
        if each.link.lost:
            yield from (_drawn_losses if draws else _seen_losses)(each.link, seen)
    yield ""
    yield "[[connection]]"
    yield 'name = "twin"'
    yield f"direction = {_value(seen.direction)}"
    yield from _host_lines(twin)
    yield f"workload = {_value(seen.ends.workload.settings)}  # {seen.ends.workload.because}"


def _path_lines(each: PathOfTwin, seen: Observed) -> Iterator[str]:
    link = each.observation.link
    yield f"name = {_value(each.observation.name)}  # {each.observation.addresses}"
    if seen.is_ipv6:
        yield 'family = "ipv6"'
    if link is None:
        yield "# It carried too little to be measured; these are the first path's values."
    if link is not None and link.varying is not None:
        yield from _trace_lines(each, seen)
    else:
        rate = "" if link is None else _error(link.rate_mbps, "Mbit/s")
        yield f'rate = "{each.rate * 1e3:.1f}kbit/s"{rate}'
    delay = "" if link is None else _error(link.delay_ms, "ms; half of the round trip")
    yield f'delay = "{each.delay * 1e3:.0f}us"{delay}'
    yield f'limit = "{each.limit}packets"{"" if link is None else _limit(each)}'
    if seen.fallback_after is not None:
        yield "# The connection fell back to TCP after about as many packets."
        yield (
            'middlebox = [{ kind = "strip_options", options = ["dss"], after_packets = '
            f"{seen.fallback_after} }}]"
        )
    if each.jitter:
        keys = {"jitter": f"{each.jitter * 1e3:.0f}us"}
        model = "reordering" if each.link.reorders else "fifo"
        yield f'jitter_model = "{model}"'
        yield from _one_way(keys, seen)


def _seen_losses(link: LinkFindings, seen: Observed) -> Iterator[str]:
    """The losses of the capture, packet by packet."""
    error = uncertainty(100 * link.loss.error, "percentage points")
    share = f"{number(100 * link.loss.value)} % ({error})"
    yield f"# These packets were lost, {share}. To draw losses in each run, write instead"
    for line in _drawn_losses(link, seen):
        yield f"# {line}"
    places = {"loss_trace.packets": link.packets, "loss_trace.lost": list(link.lost)}
    yield from _one_way(places, seen)


def _drawn_losses(link: LinkFindings, seen: Observed) -> Iterator[str]:
    """Losses with the probability that the capture shows."""
    loss = link.loss.value
    if link.burst > 1 and seen.direction == "download":
        to_good = 1 / link.burst
        to_bad = loss * to_good / (1 - loss)
        bursts = {"to_bad": f"{to_bad * 100:.4g}%", "to_good": f"{to_good * 100:.4g}%"}
        yield f"burst_loss = {_value(bursts)}"
    else:
        yield from _one_way({"loss": f"{loss * 100:.4g}%"}, seen)


def _trace_lines(each: PathOfTwin, seen: Observed) -> Iterator[str]:
    """The trace of a path, and the other direction at its mean rate."""
    link = each.observation.link
    assert link is not None
    assert link.varying is not None
    # The capture begins when the first SYN arrives, and the run when it is sent.
    before_ms = each.delay if seen.direction == "download" else 0.0
    before_ns = each.observation.data_s * 1e9 + before_ms * 1e6
    until_ns = (seen.seconds - each.observation.data_s) * 1e9
    trace = {"milliseconds": link.varying.milliseconds(before_ns, until_ns)}
    mean = f"{each.rate * 1e3:.1f}kbit/s"
    yield f"# The rate varies; the mean is {number(each.rate)} Mbit/s."
    if seen.direction == "download":
        yield f"trace = {_value(trace)}"
        yield f'reverse.rate = "{mean}"'
    else:
        yield f'rate = "{mean}"'
        yield f"reverse.trace = {_value(trace)}"


def _one_way(keys: dict[str, Any], seen: Observed) -> Iterator[str]:
    """Keys of the direction of the data."""
    prefix = "reverse." if seen.direction == "upload" else ""
    for key, value in keys.items():
        yield f"{prefix}{key} = {_value(value)}"


def _host_lines(twin: TwinValues) -> Iterator[str]:
    hosts = twin.seen.ends
    yield 'protocol = "mptcp"'
    backups = [each for each in twin.paths if each.observation.is_backup]
    if backups and len(backups) < len(twin.paths):
        regular = next(
            each.observation.name for each in twin.paths if not each.observation.is_backup
        )
        yield f"path_manager = {_value({'kind': 'backup', 'regular': regular})}"
    if twin.is_linux:
        yield 'host = { kind = "linux", buffers = "socket" }  # segments and windows look like it'
    if twin.scheduler is not None:
        yield f"scheduler = {_value(twin.scheduler)}{_because(twin)}"
    elif twin.is_linux:
        yield 'scheduler = "linux"  # the default of Linux; a capture does not show it'
    if twin.remedies:
        yield f"remedies = {_value(dict(twin.remedies))}{_because(twin)}"
    yield f"congestion_control = {_value(twin.congestion_control)}{_control_words(twin)}"
    if twin.receive_buffer is not None:
        yield f'receive_buffer = "{twin.receive_buffer}B"{_windows(twin)}'
    if twin.send_buffer is not None:
        yield (
            f'send_buffer = "{twin.send_buffer}B"  # at most about {hosts.in_flight:,.0f} bytes '
            "were unacknowledged"
        )


def _windows(twin: TwinValues) -> str:
    windows = twin.seen.ends.windows
    return "" if windows is None else "  # windows from {:,} to {:,} bytes".format(*windows)


def _because(twin: TwinValues) -> str:
    share = number(100 * twin.seen.reinjected)
    return f"  # {share} % of the data was sent again on another path"


def _control_words(twin: TwinValues) -> str:
    if twin.congestion_control == CONTROLS[twin.is_linux][0]:
        return "  # the default; no other explains the capture much better"
    return "  # explains the capture much better than the default"


def _limit(each: PathOfTwin) -> str:
    link = each.observation.link
    assert link is not None
    if link.filled:
        return f"  # ± {number(link.limit.error)}; it dropped {link.drops}"
    return f"  # assumed: it never dropped; the longest was {link.limit.value / 2:.0f}"


def _error(estimate: FittedValue, unit: str) -> str:
    return f"  # {uncertainty(estimate.error, unit)}"


def uncertainty(error: float, unit: str) -> str:
    """A standard error in words; one below 0.001 is "less than 0.001"."""
    return f"± less than 0.001 {unit}" if error < 0.001 else f"± {number(error)} {unit}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        lines = textwrap.wrap(", ".join(map(str, value)), 96)
        return "\n  ".join(["[", *lines]) + "\n]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
