"""One direction of a scenario's link, in plain numbers, and its changes during the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.scenarios.quantities import bits_per_second, byte_count, nanoseconds

FULL_PACKET = 1500
"""Size in bytes of the packets by which limits in different units are compared."""

UNLIMITED = 1_000_000
"""Packets in a queue that is never full."""


@dataclass(frozen=True)
class Link:
    """One direction of a link.

    Attributes:
        rate: Rate in bit/s.
        limit: Capacity of the queue as in scenarios, such as ``"54packets"`` or ``"80ms"``.
        discipline: The queue discipline, as in normalised scenarios.
        delay_s: Propagation delay in s.
        jitter_s: Amplitude of the jitter in s.
        keeps_order: Whether jitter leaves the order of packets as it is.
        loss: Probability of losing a packet.
        burst_loss: Probabilities of the Gilbert-Elliott channel, by their keys in scenarios.
        mtu: Largest IP packet in bytes.
        is_down: Whether the link drops all packets.
    """

    rate: int
    limit: str
    discipline: Mapping[str, Any]
    delay_s: float
    jitter_s: float
    keeps_order: bool
    loss: float
    burst_loss: Mapping[str, float] | None
    mtu: int
    is_down: bool = False

    def limit_bytes(self) -> int | None:
        """The capacity of the queue in bytes; `None` if it is unlimited."""
        if self.limit == "infinite":
            return None
        if self.limit.endswith("packets"):
            return int(self.limit.removesuffix("packets")) * FULL_PACKET
        if self.limit.endswith("s"):
            time_ns = nanoseconds(self.limit)
            return max(FULL_PACKET, self.rate * time_ns // 8_000_000_000)
        return byte_count(self.limit)

    def limit_packets(self) -> int | None:
        """The capacity of the queue in full packets, rounded up; `None` if it is unlimited."""
        size = self.limit_bytes()
        return None if size is None else -(-size // FULL_PACKET)

    def after(self, change: Mapping[str, Any]) -> Link:
        """The link after a change of its path."""
        new: dict[str, Any] = {
            field: read(change[key])
            for key, (field, read) in _CHANGEABLE.items()
            if change.get(key) is not None
        }
        if change.get("state") in ("up", "down"):
            new["is_down"] = change["state"] == "down"
        return dataclasses.replace(self, **new)


def links(path: Mapping[str, Any]) -> tuple[Link, Link]:
    """The forward and the reverse direction of a path of a normalised scenario.

    A direction that follows a trace has the mean rate of the trace.
    """
    burst = path.get("burst_loss")
    forward = _link(path, path, None if burst is None else _each(burst))
    return forward, _link(path["reverse"], path, None)


def mean_rate(milliseconds: str) -> int:
    """The mean rate in bit/s of a trace, written as in normalised scenarios."""
    opportunities, last = 0, 0
    for each in milliseconds.split():
        time, _, count = each.partition("*")
        opportunities += int(count or 1)
        last = int(time)
    return opportunities * _OPPORTUNITY_BYTES * 8000 // last


_OPPORTUNITY_BYTES = 1504


def seconds(text: str) -> float:
    """A duration in s."""
    return nanoseconds(text) / 1e9


def milliseconds(seconds: float) -> str:
    """A duration as tc and Mininet take it."""
    return f"{seconds * 1e3:.9g}ms"


def share(text: str) -> float:
    """A probability, such as ``"1%"``."""
    return float(text.removesuffix("%")) / 100


_CHANGEABLE = {
    "rate": ("rate", bits_per_second),
    "delay": ("delay_s", seconds),
    "jitter": ("jitter_s", seconds),
    "loss": ("loss", share),
}
"""Keys of a change, with the field of `Link` and the function that reads the value."""


def _link(
    direction: Mapping[str, Any], path: Mapping[str, Any], burst_loss: Mapping[str, float] | None
) -> Link:
    trace = direction.get("trace")
    rate = bits_per_second(direction["rate"]) if trace is None else mean_rate(trace["milliseconds"])
    return Link(
        rate,
        direction["limit"],
        path["queue"],
        seconds(direction["delay"]),
        seconds(direction["jitter"]),
        path["jitter_model"] == "fifo",
        share(direction["loss"]),
        burst_loss,
        byte_count(path["mtu"]),
    )


def _each(probabilities: Mapping[str, str]) -> dict[str, float]:
    return {key: share(value) for key, value in probabilities.items()}
