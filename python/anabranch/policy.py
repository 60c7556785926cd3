"""Policies of your own: schedulers, congestion controls and path managers written in Python.

A policy is a class. A scenario takes the class (or anything that makes one when it is called), and
every end of every connection gets an object of its own, every subflow in the case of a congestion
control::

    class LowestRtt(Scheduler):
        def schedule(self, ctx: ScheduleContext) -> Decision:
            ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
            if not ready:
                return Wait()
            return Send(min(ready, key=lambda subflow: subflow.srtt_or_max_ns()))


    Connection(scheduler=LowestRtt, workload=Bulk())

Names and meanings are those of the engine's own policies in Rust. What a policy sees are copies.
Times are integers in nanoseconds of virtual time and end in ``_ns``; sizes are bytes. An
exception ends the run, which then raises `anabranch.PolicyError` from it.

A run stays a pure function of version, scenario, policies and seed as long as policies draw random
numbers from the `rng` that they are handed, and do not look at clocks, at the environment, or at
what other runs left behind.
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
"""What is to be sent."""

Decision = Send | Assign | Duplicate | Wait
"""What a scheduler wants."""


class Scheduler(ABC):
    """Chooses the subflow that carries the next data; one object for each end of a connection."""

    @abstractmethod
    def schedule(self, ctx: ScheduleContext) -> Decision:
        """Choose for the next segment; called again for each segment.

        What is chosen is not always sent: the shared window or Nagle's algorithm may forbid it. A
        decision that cannot be carried out, such as to send on a subflow without room, sends
        nothing and is counted as a bad one.
        """

    def on_sent(self, subflow: SubflowId, byte_count: int) -> None:  # noqa: B027
        """`bytes` of new data were mapped to `subflow`."""


# ---- congestion control ---------------------------------------------------------------------


@dataclass(frozen=True)
class SynLost:
    """The SYN, or its answer, was lost: begin with one segment. RFC 5681 §3.1."""


@dataclass(frozen=True)
class Recovery:
    """Loss was detected by acknowledgements: fast recovery begins. RFC 5681 §3.2.

    Attributes:
        flight_size: Bytes sent and not cumulatively acknowledged.
    """

    now_ns: int
    flight_size: int


@dataclass(frozen=True)
class Marked:
    """Packets were marked on their way, none was lost: reduce as for a loss. RFC 3168 §6.1.2.

    Attributes:
        flight_size: Bytes sent and not cumulatively acknowledged.
    """

    now_ns: int
    flight_size: int


@dataclass(frozen=True)
class Timeout:
    """The retransmission timer expired. RFC 5681 §3.1.

    Attributes:
        flight_size: Bytes outstanding before the timeout.
        first: The first of a series for the same data: only that one lowers the threshold.
    """

    now_ns: int
    flight_size: int
    first: bool


@dataclass(frozen=True)
class Undo:
    """The last reduction was not needed: nothing had been lost. RFC 4015."""


@dataclass(frozen=True)
class Idle:
    """Nothing was sent for longer than the retransmission timeout. RFC 5681 §4.1."""

    idle_ns: int
    rto_ns: int


@dataclass(frozen=True)
class Underused:
    """The window was not used for a retransmission timeout. RFC 2861 §3.2.

    Attributes:
        used: Bytes outstanding at the most.
    """

    used: int


@dataclass(frozen=True)
class MssChanged:
    """The segment size changed."""

    mss: int


CongestionEvent = SynLost | Recovery | Marked | Timeout | Undo | Idle | Underused | MssChanged
"""Something that moves the window other than an acknowledgement."""

ExternalReduction = Literal["halve_both", "halve_keep_slow_start"]
"""How a remedy wants the window reduced: in the form of NSDI 2012, or of CoNEXT 2013."""


class CongestionControl(ABC):
    """Owns the congestion window of one subflow; made with a `Start` for each subflow.

    The engine reads `cwnd` and `ssthresh` after every call. In the calls, `peers` are the views of
    all subflows of the connection and `me` is the index of this one, whose view is older than the
    event.
    """

    cwnd: int
    """Congestion window in bytes; one segment at least."""
    ssthresh: int
    """Slow-start threshold in bytes; `UNLIMITED` before the first loss."""

    @abstractmethod
    def on_ack(self, sample: AckSample, me: int, peers: tuple[SubflowView, ...]) -> None:
        """New data was acknowledged outside of recovery."""

    @abstractmethod
    def on_congestion_event(
        self, event: CongestionEvent, me: int, peers: tuple[SubflowView, ...]
    ) -> None:
        """Loss, marks, a timeout, an undo, idleness, or another segment size."""

    @abstractmethod
    def on_external_reduction(self, reduction: ExternalReduction) -> None:
        """A remedy asks for a smaller window."""


# ---- path managers --------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalAddress:
    """An address of this host; identifier 0 is the one that the connection was opened from."""

    id: int
    address: IPv4Address | IPv6Address


@dataclass(frozen=True)
class SocketAddress:
    """An address and a TCP port."""

    address: IPv4Address | IPv6Address
    port: int


@dataclass(frozen=True)
class RemoteAddress:
    """An address of the peer's; identifier 0 is the one that the connection was opened to.

    Attributes:
        end: The address, and the port that takes joins.
    """

    id: int
    end: SocketAddress


@dataclass(frozen=True)
class Established:
    """The connection can carry further subflows.

    Attributes:
        initiator: Did this host open the connection?
        local: This host's addresses.
        remote: The peer's address and port, identifier 0.
    """

    initiator: bool
    local: tuple[LocalAddress, ...]
    remote: SocketAddress


@dataclass(frozen=True)
class SubflowEstablished:
    """A further subflow can carry data."""

    id: SubflowId


@dataclass(frozen=True)
class SubflowTimeout:
    """The retransmission timer of a subflow expired.

    Attributes:
        in_a_row: How often since anything was acknowledged, from 1.
    """

    id: SubflowId
    in_a_row: int


@dataclass(frozen=True)
class SubflowClosed:
    """A subflow has ended, or could not be opened.

    Attributes:
        id: `None` if it never came to exist.
        retry: Is another to be tried between the same addresses? `later` if it carried no data, or
            the peer says that something stands in the way for now; `never` if for good. RFC 8684
            §3.6.
    """

    id: SubflowId | None
    local_address_id: int
    remote: SocketAddress
    retry: Literal["soon", "later", "never"]


@dataclass(frozen=True)
class AddressAnnounced:
    """The peer has announced an address. RFC 8684 §3.4.1.

    Attributes:
        remote: The address, and the port that takes joins.
    """

    remote: SocketAddress
    remote_address_id: int


@dataclass(frozen=True)
class AddressWithdrawn:
    """The peer takes an address back that it had announced. RFC 8684 §3.4.2."""

    remote_address_id: int


@dataclass(frozen=True)
class AddressAdded:
    """This host has a further address. Does not happen in scenarios.

    Attributes:
        local: The address, with an identifier that no other has had.
        remote: The peer's addresses, the one that the connection was opened to first.
    """

    local: LocalAddress
    remote: tuple[RemoteAddress, ...]


@dataclass(frozen=True)
class AddressChanged:
    """The interface with a local address went down, or came back up."""

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
"""What a path manager is told."""


@dataclass(frozen=True)
class Open:
    """Open a subflow; what becomes of it is told by an event.

    Attributes:
        backup: Ask for it to be a backup. RFC 8684 §3.3.8.
    """

    local: LocalAddress
    remote: SocketAddress
    remote_address_id: int = 0
    backup: bool = False


@dataclass(frozen=True)
class Close:
    """Close a subflow.

    Attributes:
        reset: Reset it, because the path is of no use any more, rather than finish in order.
    """

    subflow: SubflowId
    reset: bool = False


@dataclass(frozen=True)
class SetPriority:
    """Make a subflow a backup, or a regular one.

    Attributes:
        signalled: Have the peer do likewise, by MP_PRIO; otherwise only what this host sends is
            concerned.
    """

    subflow: SubflowId
    backup: bool
    signalled: bool = True


@dataclass(frozen=True)
class Announce:
    """Tell the peer an address of this host, until it says that it heard. RFC 8684 §3.4.1."""

    local: LocalAddress


@dataclass(frozen=True)
class Remove:
    """Tell the peer that an address can be used no more, on whatever subflow remains."""

    local_address_id: int


@dataclass(frozen=True)
class Probe:
    """Send copies of the newest data under way on a subflow; nothing depends on them.

    Attributes:
        count: Segments; fewer if less data is under way.
        bytes: Payload bytes of each.
    """

    subflow: SubflowId
    count: int
    bytes: int


PathAction = Open | Close | SetPriority | Announce | Remove | Probe
"""What a path manager wants."""


@dataclass(frozen=True)
class PathContext:
    """All that a path manager may look at.

    Attributes:
        subflows: The connection's subflows; includes closed slots.
        rng: This path manager's own, seeded by the run.
    """

    now_ns: int
    subflows: tuple[SubflowView, ...]
    rng: Random


class PathManager(ABC):
    """Decides which subflows exist; one object for each end of a connection.

    After each call the engine polls actions until `None`, and then the deadline.
    """

    @abstractmethod
    def handle_event(self, ctx: PathContext, event: PathEvent) -> None:
        """Something changed."""

    def handle_timeout(self, ctx: PathContext) -> None:  # noqa: B027
        """The deadline of `poll_timeout` has passed."""

    @abstractmethod
    def poll_action(self) -> PathAction | None:
        """The next thing to do."""

    def poll_timeout(self) -> int | None:
        """When to call `handle_timeout`, in ns of virtual time."""
        return None
