"""Write your own schedulers, congestion controls and path managers in Python.

A policy is a class. Pass the class, or any callable that returns an object, to a connection of a
scenario. Each end of each connection gets its own scheduler and path manager. Each subflow gets its
own congestion control::

    class LowestRtt(Scheduler):
        def schedule(self, ctx: ScheduleContext) -> Decision:
            ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
            if not ready:
                return Wait()
            return Send(min(ready, key=lambda subflow: subflow.srtt_or_max_ns()))


    Connection(scheduler=LowestRtt, workload=Bulk())

Names and meanings are those of the built-in policies in Rust. A policy receives copies of the
engine's state. Times are integers in nanoseconds of virtual time, with names that end in ``_ns``.
Sizes are bytes. An exception ends the run, which then raises `anabranch.PolicyError` from it.

A run is a pure function of version, scenario, policies and seed if its policies take random numbers
only from the `rng` that they receive, and do not read clocks, the environment, or state that other
runs left behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Literal

from anabranch._core import (
    AckSample,
    Assign,
    Duplicate,
    LinuxView,
    NewData,
    Reinjection,
    ScheduleContext,
    Send,
    Start,
    SubflowId,
    SubflowView,
    Wait,
)

__all__ = [
    "UNLIMITED",
    "AckSample",
    "AddressAdded",
    "AddressAnnounced",
    "AddressChanged",
    "AddressWithdrawn",
    "Announce",
    "Assign",
    "Close",
    "CongestionControl",
    "CongestionEvent",
    "Decision",
    "Duplicate",
    "Established",
    "ExternalReduction",
    "Idle",
    "LinuxView",
    "LocalAddress",
    "Marked",
    "MssChanged",
    "NewData",
    "Open",
    "PathAction",
    "PathContext",
    "PathEvent",
    "PathManager",
    "Pending",
    "Probe",
    "Recovery",
    "Reinjection",
    "RemoteAddress",
    "ScheduleContext",
    "Scheduler",
    "Send",
    "SetPriority",
    "SocketAddress",
    "Start",
    "SubflowClosed",
    "SubflowEstablished",
    "SubflowId",
    "SubflowTimeout",
    "SubflowView",
    "SynLost",
    "Timeout",
    "Underused",
    "Undo",
    "Wait",
]

UNLIMITED = 2**64 - 1
"""The slow-start threshold before the first loss."""

# ---- schedulers -----------------------------------------------------------------------------

Pending = NewData | Reinjection
"""The data to send next."""

Decision = Send | Assign | Duplicate | Wait
"""A scheduler's answer."""


class Scheduler(ABC):
    """Chooses the subflow that carries the next data.

    Each end of a connection has its own object.
    """

    @abstractmethod
    def schedule(self, ctx: ScheduleContext) -> Decision:
        """Choose a subflow for the next segment. The engine calls this for each segment.

        The shared window or Nagle's algorithm may still keep the engine from sending. An impossible
        decision, such as a subflow without room, sends nothing and is counted as a bad decision.
        """

    def on_sent(self, subflow: SubflowId, byte_count: int) -> None:  # noqa: B027
        """The engine has mapped `byte_count` bytes of new data to `subflow`."""


# ---- congestion control ---------------------------------------------------------------------


@dataclass(frozen=True)
class SynLost:
    """The SYN or the SYN/ACK was lost: start with a window of one segment. RFC 5681 §3.1."""


@dataclass(frozen=True)
class Recovery:
    """Acknowledgements revealed a loss: fast recovery begins. RFC 5681 §3.2.

    Attributes:
        flight_size: Bytes to reduce from: bytes sent and not cumulatively acknowledged, or the
            congestion window if the host reduces from that.
    """

    now_ns: int
    flight_size: int


@dataclass(frozen=True)
class Marked:
    """The network marked packets (ECN) and lost none: reduce as for a loss. RFC 3168 §6.1.2.

    Attributes:
        flight_size: Bytes to reduce from, as in `Recovery`.
    """

    now_ns: int
    flight_size: int


@dataclass(frozen=True)
class Timeout:
    """The retransmission timer expired. RFC 5681 §3.1.

    Attributes:
        flight_size: Bytes to reduce from, as they were before the timeout.
        first: Whether this is the first timeout for the same data. Only the first lowers the
            slow-start threshold.
    """

    now_ns: int
    flight_size: int
    first: bool


@dataclass(frozen=True)
class Undo:
    """The last reduction was spurious: no data had been lost. RFC 4015."""


@dataclass(frozen=True)
class Idle:
    """The subflow sent nothing for longer than the retransmission timeout. RFC 5681 §4.1."""

    idle_ns: int
    rto_ns: int


@dataclass(frozen=True)
class Underused:
    """The sender did not use the full window for a retransmission timeout. RFC 2861 §3.2.

    Attributes:
        used: Largest number of bytes outstanding in that time.
    """

    used: int


@dataclass(frozen=True)
class MssChanged:
    """The segment size changed."""

    mss: int


CongestionEvent = SynLost | Recovery | Marked | Timeout | Undo | Idle | Underused | MssChanged
"""An event, other than an acknowledgement, that changes the window."""

ExternalReduction = Literal["halve_both", "halve_keep_slow_start", "halve_keep_unset"]
"""Form in which a remedy reduces the window: that of the NSDI 2012 paper, or of the CoNEXT 2013
paper."""


class CongestionControl(ABC):
    """Owns the congestion window of one subflow. The engine creates it with a `Start`.

    The engine reads `cwnd` and `ssthresh` after every call. In the calls, `peers` are views of all
    subflows of the connection, and `me` is the index of this subflow. Its view shows the state
    before the event.
    """

    cwnd: int
    """Congestion window in bytes; at least one segment."""
    ssthresh: int
    """Slow-start threshold in bytes; `UNLIMITED` before the first loss."""

    @abstractmethod
    def on_ack(self, sample: AckSample, me: int, peers: tuple[SubflowView, ...]) -> None:
        """An acknowledgement of new data arrived outside recovery."""

    @abstractmethod
    def on_congestion_event(
        self, event: CongestionEvent, me: int, peers: tuple[SubflowView, ...]
    ) -> None:
        """The window must change for a reason other than an acknowledgement."""

    @abstractmethod
    def on_external_reduction(self, reduction: ExternalReduction) -> None:
        """A remedy asks for a smaller window."""


# ---- path managers --------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalAddress:
    """An address of this host. Identifier 0 is the address that the connection was opened from."""

    id: int
    address: IPv4Address | IPv6Address


@dataclass(frozen=True)
class SocketAddress:
    """An address and a TCP port."""

    address: IPv4Address | IPv6Address
    port: int


@dataclass(frozen=True)
class RemoteAddress:
    """An address of the peer. Identifier 0 is the address that the connection was opened to.

    Attributes:
        end: The address, and the port that accepts joins.
    """

    id: int
    end: SocketAddress


@dataclass(frozen=True)
class Established:
    """The connection can open further subflows.

    Attributes:
        initiator: Whether this host opened the connection.
        local: This host's addresses.
        remote: The peer's address and port with identifier 0.
    """

    initiator: bool
    local: tuple[LocalAddress, ...]
    remote: SocketAddress


@dataclass(frozen=True)
class SubflowEstablished:
    """A new subflow can carry data."""

    id: SubflowId


@dataclass(frozen=True)
class SubflowTimeout:
    """The retransmission timer of a subflow expired.

    Attributes:
        in_a_row: Number of timeouts since the last acknowledgement of new data, starting at 1.
    """

    id: SubflowId
    in_a_row: int


@dataclass(frozen=True)
class SubflowClosed:
    """A subflow has ended, or could not be opened.

    Attributes:
        id: The subflow, or `None` if it was never created.
        retry: Whether to try another subflow between the same addresses. `soon`: it carried data,
            or the peer reset it to start again. `later`: it carried no data, or the peer reported a
            temporary obstacle. `never`: the peer reported a permanent obstacle. RFC 8684 §3.6.
        reopens: Whether the host's kernel would open another subflow. Linux would not, until the
            interface comes up again.
    """

    id: SubflowId | None
    local_address_id: int
    remote: SocketAddress
    retry: Literal["soon", "later", "never"]
    reopens: bool


@dataclass(frozen=True)
class AddressAnnounced:
    """The peer has announced an address. RFC 8684 §3.4.1.

    Attributes:
        remote: The address, and the port that accepts joins.
    """

    remote: SocketAddress
    remote_address_id: int


@dataclass(frozen=True)
class AddressWithdrawn:
    """The peer has withdrawn an address that it had announced. RFC 8684 §3.4.2."""

    remote_address_id: int


@dataclass(frozen=True)
class AddressAdded:
    """This host has a new address. This event does not occur in scenarios.

    Attributes:
        local: The address, with a previously unused identifier.
        remote: The peer's addresses, starting with the one that the connection was opened to.
    """

    local: LocalAddress
    remote: tuple[RemoteAddress, ...]


@dataclass(frozen=True)
class AddressChanged:
    """The interface with a local address went down or came back up."""

    local_address_id: int
    usable: bool


PathEvent = (
    Established
    | SubflowEstablished
    | SubflowTimeout
    | SubflowClosed
    | AddressAnnounced
    | AddressWithdrawn
    | AddressAdded
    | AddressChanged
)
"""An event that the engine reports to a path manager."""


@dataclass(frozen=True)
class Open:
    """Open a subflow. `SubflowEstablished` or `SubflowClosed` reports the outcome.

    Attributes:
        backup: Ask the peer to treat the subflow as a backup. RFC 8684 §3.3.8.
    """

    local: LocalAddress
    remote: SocketAddress
    remote_address_id: int = 0
    backup: bool = False


@dataclass(frozen=True)
class Close:
    """Close a subflow.

    Attributes:
        reset: Reset the subflow because its path has become useless, instead of finishing in order.
    """

    subflow: SubflowId
    reset: bool = False


@dataclass(frozen=True)
class SetPriority:
    """Make a subflow a backup or a regular subflow.

    Attributes:
        signalled: Ask the peer to do the same, with MP_PRIO. Otherwise the change applies only to
            the data that this host sends.
    """

    subflow: SubflowId
    backup: bool
    signalled: bool = True


@dataclass(frozen=True)
class Announce:
    """Announce an address of this host to the peer until the peer echoes it. RFC 8684 §3.4.1."""

    local: LocalAddress


@dataclass(frozen=True)
class Remove:
    """Tell the peer on a remaining subflow that an address is no longer usable."""

    local_address_id: int


@dataclass(frozen=True)
class Probe:
    """Send copies of the newest data in flight on a subflow, to measure its path.

    The transfer does not depend on these copies.

    Attributes:
        count: Number of segments; fewer are sent if less data is in flight.
        bytes: Payload bytes of each segment.
    """

    subflow: SubflowId
    count: int
    bytes: int


PathAction = Open | Close | SetPriority | Announce | Remove | Probe
"""An action that a path manager requests."""


@dataclass(frozen=True)
class PathContext:
    """The state that a path manager can see.

    Attributes:
        subflows: The connection's subflows, including closed slots.
        rng: This path manager's random numbers; their seed derives from the run's seed.
    """

    now_ns: int
    subflows: tuple[SubflowView, ...]
    rng: Random


class PathManager(ABC):
    """Decides which subflows exist. Each end of a connection has its own object.

    After each call, the engine calls `poll_action` until it returns `None`, and then
    `poll_timeout`.
    """

    @abstractmethod
    def handle_event(self, ctx: PathContext, event: PathEvent) -> None:
        """Handle an event."""

    def handle_timeout(self, ctx: PathContext) -> None:  # noqa: B027
        """Handle the expiry of the deadline from `poll_timeout`."""

    @abstractmethod
    def poll_action(self) -> PathAction | None:
        """Return the next action, or `None` if there is none."""

    def poll_timeout(self) -> int | None:
        """Return when to call `handle_timeout`, in ns of virtual time, or `None` for never."""
        return None
