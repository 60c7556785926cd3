"""The engine and the emulated network, compiled."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any, Literal, final

__all__ = [
    "AckSample",
    "Assign",
    "Duplicate",
    "NewData",
    "Reinjection",
    "ScheduleContext",
    "Send",
    "Start",
    "SubflowId",
    "SubflowView",
    "Wait",
    "__version__",
    "analyse",
    "analyse_rules",
    "conform",
    "json_schema",
    "live_enter",
    "live_is_inside",
    "live_probe",
    "live_run",
    "live_stop_preferring",
    "parts",
    "policies",
    "run",
    "validate",
    "with_own",
]

__version__: str

def validate(toml: str, file: str, folder: str | os.PathLike[str] | None = None) -> str: ...
def with_own(
    toml: str,
    file: str,
    *,
    scheduler: str | None = None,
    congestion_control: str | None = None,
    path_manager: str | None = None,
) -> str: ...
def json_schema() -> str: ...
def parts() -> list[dict[str, Any]]: ...
def policies() -> list[dict[str, Any]]: ...
def run(
    toml: str,
    file: str,
    seed: int,
    *,
    pcap: str | None = None,
    pcap_limit: int | None = None,
    own_policies: Sequence[Mapping[str, Callable[..., Any] | None]] | None = None,
    tick: Callable[[int], object] | None = None,
) -> dict[str, object]: ...
def analyse(
    files: Sequence[str | os.PathLike[str]],
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]: ...
def conform(
    text: str, file: str, platform: str | None = None, live: bool = False
) -> dict[str, Any]: ...
def analyse_rules() -> list[tuple[str, str, str]]: ...
def live_enter(command: Sequence[str]) -> int: ...
def live_is_inside() -> bool: ...
def live_probe() -> list[dict[str, Any]]: ...
def live_run(
    toml: str,
    file: str,
    seed: int,
    client: str,
    server: str,
    pcap: str | None = None,
    pcap_limit: int | None = None,
) -> dict[str, Any]: ...
def live_stop_preferring() -> None: ...

@final
class SubflowId:
    """Names a subflow of a connection.

    Slots are reused, generations are not, so a stale name is recognised. Identifiers are ordered
    by slot.
    """

    def __new__(cls, slot: int, generation: int = 0) -> SubflowId: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: SubflowId, /) -> bool: ...
    def __le__(self, other: SubflowId, /) -> bool: ...
    def __gt__(self, other: SubflowId, /) -> bool: ...
    def __ge__(self, other: SubflowId, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def slot(self) -> int:
        """Index into the subflows that a policy sees, below 32."""
    @property
    def generation(self) -> int:
        """How many subflows used the slot before."""

@final
class SubflowView:
    """The state of one subflow: a copy."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def id(self) -> SubflowId:
        """Who this is."""
    @property
    def path(self) -> str | None:
        """Name of the path that it uses."""
    @property
    def local_address_id(self) -> int:
        """Identifier of the local address."""
    @property
    def remote_address_id(self) -> int:
        """Identifier of the remote address."""
    @property
    def usability(self) -> Literal["usable", "potentially_failed", "opening", "closed"]:
        """May it carry data? An unused slot is closed."""
    @property
    def backup(self) -> bool:
        """Either end marked it as backup."""
    @property
    def phase(self) -> Literal["open", "recovery", "loss"]:
        """Where loss recovery stands: nothing lost, fast recovery, after a timeout."""
    @property
    def mss(self) -> int:
        """Largest payload of one data segment, in bytes, options accounted for."""
    @property
    def cwnd(self) -> int:
        """Congestion window in bytes."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold in bytes; `UNLIMITED` before the first loss."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes sent and neither acknowledged nor deemed lost."""
    @property
    def room(self) -> int:
        """Bytes that congestion control lets the subflow send now."""
    @property
    def paced_window(self) -> int:
        """Bytes that Linux would pace out in a round-trip time, as of the last acknowledgement."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time; `None` before the first sample."""
    @property
    def rttvar_ns(self) -> int:
        """Round-trip time variation."""
    @property
    def min_rtt_ns(self) -> int | None:
        """Smallest round-trip time seen; `None` before the first sample."""
    @property
    def min_srtt_ns(self) -> int | None:
        """Smallest smoothed round-trip time; `None` before the first sample."""
    @property
    def receive_rtt_ns(self) -> int | None:
        """Smoothed round-trip time as a receiver of data sees it."""
    @property
    def loss_interval(self) -> int:
        """Bytes acknowledged since the last loss, or between the last two if that is more."""
    @property
    def bottleneck(self) -> int | Literal["unknown", "none"]:
        """The number of the bottleneck that it shares with others; unknown unless looked for."""
    def can_send(self) -> bool:
        """May it carry data, and does congestion control let it send a full segment now?"""
    def srtt_or_max_ns(self) -> int:
        """Smoothed round-trip time, or, if unknown, a time longer than any."""
    def in_slow_start(self) -> bool:
        """Is the window still below the slow-start threshold?"""

@final
class NewData:
    """Data that was never sent."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def bytes(self) -> int:
        """Bytes never sent."""

@final
class Reinjection:
    """Data that was sent, and must go out again on another subflow."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def already_on(self) -> frozenset[int]:
        """Slots of the subflows that have carried it."""

@final
class ScheduleContext:
    """All that a scheduler may look at."""

    @property
    def now_ns(self) -> int:
        """Now."""
    @property
    def pending(self) -> NewData | Reinjection:
        """What is to be sent."""
    @property
    def subflows(self) -> tuple[SubflowView, ...]:
        """The connection's subflows; includes closed slots."""
    @property
    def window_room(self) -> int:
        """Bytes that the shared receive window still admits."""
    @property
    def window(self) -> int:
        """Bytes that may be outstanding at data level."""
    @property
    def assigned(self) -> list[int]:
        """Bytes assigned to each subflow, by slot, that it has not sent yet."""
    @property
    def blocked(self) -> int:
        """How often a subflow had room and the shared window or send buffer left it nothing."""
    @property
    def rng(self) -> Random:
        """This scheduler's own, seeded by the run."""
    def candidates(self) -> list[SubflowView]:
        """The usable regular subflows, or the backups if no regular one is usable."""
    def eligible(self) -> list[SubflowView]:
        """The same without those that have carried what is pending: who may carry it now."""
    def fastest(self) -> SubflowView | None:
        """The candidate with the lowest smoothed round-trip time, whether it has room or not."""
    def has_carried(self, subflow: SubflowView | SubflowId) -> bool:
        """Is what is pending data that the subflow has carried?"""

@final
class Send:
    """Send the next segment on this subflow."""

    def __new__(cls, subflow: SubflowView | SubflowId) -> Send: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def subflow(self) -> SubflowId:
        """Which."""

@final
class Assign:
    """The next segment's data is this subflow's, which sends it when it has room.

    What follows is asked about at once. What is assigned uses the shared window to its last byte.
    The very first data, and data that is sent again, wait for room.
    """

    def __new__(cls, subflow: SubflowView | SubflowId) -> Assign: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def subflow(self) -> SubflowId:
        """Which."""

@final
class Duplicate:
    """Send it on all of these, at once on one that has room, and copies when the others have."""

    def __new__(cls, subflows: Iterable[SubflowView | SubflowId]) -> Duplicate: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def slots(self) -> frozenset[int]:
        """Slots of the subflows."""

@final
class Wait:
    """Send nothing now.

    Asked again at `until_ns` (a millisecond from now at the earliest), and before that whenever a
    segment arrives or the application writes. Whoever waits while nothing is in flight on any
    usable subflow could wait for ever: the engine then goes by the lowest round-trip time.
    """

    def __new__(cls, until_ns: int | None = None) -> Wait: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def until_ns(self) -> int | None:
        """When to ask again at the latest."""

@final
class Start:
    """What a new subflow starts with."""

    @property
    def mss(self) -> int:
        """Sender maximum segment size in bytes."""
    @property
    def initial_window(self) -> int:
        """Initial window in bytes. RFC 6928."""
    @property
    def local(self) -> IPv4Address | IPv6Address:
        """The subflow's local address."""
    @property
    def remote(self) -> IPv4Address | IPv6Address:
        """The subflow's remote address."""
    @property
    def rng(self) -> Random:
        """This subflow's own, seeded by the run."""

@final
class AckSample:
    """New data was acknowledged on the subflow."""

    @property
    def now_ns(self) -> int:
        """When the acknowledgement arrived."""
    @property
    def acked(self) -> int:
        """Bytes newly acknowledged cumulatively."""
    @property
    def rtt_ns(self) -> int | None:
        """A round-trip time, if one could be taken."""
    @property
    def srtt_ns(self) -> int:
        """Smoothed round-trip time."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes in flight after the acknowledgement."""
    @property
    def snd_una(self) -> int:
        """First subflow byte not acknowledged, from the start of the subflow."""
    @property
    def snd_nxt(self) -> int:
        """Next subflow byte to send, likewise."""
    @property
    def cwnd_limited(self) -> bool:
        """Did the window, rather than the application or the receiver, limit the sender?"""
