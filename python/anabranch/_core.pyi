"""The compiled engine and emulated network."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any, Literal, final

__all__ = [
    "MODE_BIN_MS",
    "AckSample",
    "Assign",
    "Batch",
    "Duplicate",
    "Journal",
    "LinuxView",
    "NewData",
    "Record",
    "Reinjection",
    "Scenario",
    "ScheduleContext",
    "Send",
    "Shell",
    "Start",
    "SubflowId",
    "SubflowView",
    "Wait",
    "__version__",
    "_restored",
    "analyse",
    "analyse_begins_capture",
    "analyse_rules",
    "bits_per_second",
    "block_delays_ms",
    "byte_count",
    "collect",
    "conform",
    "json_schema",
    "live_enter",
    "live_is_inside",
    "live_objection",
    "live_probe",
    "live_run",
    "live_stop_preferring",
    "nanoseconds",
    "packets",
    "parts",
    "policies",
    "proxy",
    "reduce",
    "run",
    "scenarios_read",
    "shell_become",
]

__version__: str
MODE_BIN_MS: float

def _restored(text: str, file: str, policies: Mapping[str, Callable[..., Any]]) -> Scenario: ...
def bits_per_second(text: str) -> int: ...
def byte_count(text: str) -> int: ...
def nanoseconds(text: str) -> int: ...
def packets(text: str) -> int: ...
def json_schema() -> str: ...
def parts() -> list[dict[str, Any]]: ...
def policies() -> list[dict[str, Any]]: ...
def scenarios_read() -> int: ...
def run(
    scenario: Scenario,
    seed: int,
    *,
    pcap: tuple[str, int | None, str | None, int | None] | None = None,
    tick: Callable[[int], object] | None = None,
    ledger: bool = False,
) -> dict[str, object]: ...
def reduce(
    scenario: Scenario,
    tables: Mapping[str, Mapping[str, bytes]],
    counters: Sequence[Sequence[tuple[str, int]]],
    *,
    digest: str,
    virtual_ns: int,
    data_segments: int,
    cpu_s: float,
    note: str,
    keep_blocks: bool,
    keep_samples: bool,
    may_fail: bool,
    name: str | None,
) -> Record: ...
def collect(
    scenarios: Sequence[Scenario], runs: Sequence[tuple[int, Record]]
) -> dict[str, Any]: ...
def block_delays_ms(
    scenario: Scenario, tables: Mapping[str, Mapping[str, bytes]], flow: int
) -> list[float]: ...
def analyse(
    files: Sequence[tuple[str, str | os.PathLike[str]]],
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]: ...
def conform(
    text: str, file: str, platform: str | None = None, live: bool = False
) -> dict[str, Any]: ...
def analyse_begins_capture(begin: bytes) -> bool: ...
def analyse_rules() -> list[tuple[str, str, str]]: ...
def live_enter(command: Sequence[str]) -> int: ...
def live_is_inside() -> bool: ...
def live_objection(scenario: Scenario) -> str | None: ...
def live_probe() -> list[dict[str, Any]]: ...
def live_run(
    scenario: Scenario,
    seed: int,
    client: str,
    server: str,
    pcap: tuple[str, int | None, str | None, int | None] | None = None,
) -> dict[str, Any]: ...
def live_stop_preferring() -> None: ...
def proxy(arguments: Sequence[str], again: Sequence[str], to_qlog: Sequence[str]) -> int: ...
def shell_become(command: Sequence[str]) -> None: ...

@final
class Scenario:
    """A scenario that was read and checked. It does not change."""

    @staticmethod
    def parse(
        text: str,
        file: str,
        folder: str | os.PathLike[str] | None = None,
        settings: Sequence[tuple[str, Any]] = ...,
        option: str = "",
    ) -> Scenario:
        """Read a TOML text, whose name in messages is `file`, with changed keys."""
    @staticmethod
    def of(
        table: Mapping[str, Any], file: str, folder: str | os.PathLike[str] | None = None
    ) -> Scenario:
        """Read a scenario of plain values."""
    def with_settings(self, settings: Sequence[tuple[str, Any]], option: str = "") -> Scenario:
        """The scenario with changed keys. Messages about them begin with `option`."""
    def with_policies(self, policies: Mapping[str, Callable[..., Any]]) -> Scenario:
        """The scenario with the classes of the user's own policies, by name."""
    def with_file(self, file: str) -> Scenario:
        """The scenario with another name in messages."""
    def custom_policies(self) -> list[tuple[int, str, str]]:
        """The user's own policies that it names: index of the connection, kind and name."""
    def stacks(self) -> list[tuple[str, str | None, list[str]]]:
        """The name and the stack of each connection, and its keys that depart from that stack."""
    def to_toml(self) -> str:
        """The normalised scenario, with every default spelled out."""
    @property
    def cost(self) -> float:
        """Estimated cost of a run: the packets that all paths carry at their full rates."""
    @property
    def duration_ns(self) -> int:
        """Duration of a run."""
    @property
    def file(self) -> str:
        """The name in messages."""
    @property
    def name(self) -> str:
        """Name of the scenario."""
    @property
    def policies(self) -> dict[str, Callable[..., Any]]:
        """The classes of the user's own policies, by name."""
    @property
    def settings(self) -> dict[str, Any]:
        """The normalised scenario as plain values, which must not be changed."""
    @property
    def warm_up_ns(self) -> int:
        """Time at the beginning of the run that metrics exclude."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Record:
    """The results that are kept of a run."""

    def __new__(cls, data: bytes) -> Record: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def digest(self) -> str:
        """Digest of the run; empty for a live run."""
    @property
    def virtual_ns(self) -> int:
        """Simulated time."""

@final
class Journal:
    """The journal of a results folder: the records of finished runs by their keys of 32 bytes."""

    def __new__(cls, path: str | os.PathLike[str]) -> Journal: ...
    @property
    def damage(self) -> tuple[int, int] | None:
        """Number of lost bytes and of intact runs, if the file was damaged."""
    def keys(self) -> list[bytes]:
        """Keys of the finished runs."""
    def contains(self, key: bytes) -> bool:
        """Whether the run with this key is finished. If so, it counts as used."""
    def find(self, key: bytes) -> Record | None:
        """The record of the run with this key, or `None` if it is not finished."""
    def add(self, key: bytes, record: Record) -> None:
        """Append the record of a finished run."""
    def collect(
        self, scenarios: Sequence[Scenario], runs: Sequence[tuple[int, bytes]]
    ) -> dict[str, Any]:
        """The tables of finished runs: pairs of the number of a scenario and a key."""
    def keep_only_used(self) -> None:
        """Drop the runs that were neither looked up nor added since the journal was opened."""
    def sync(self) -> None:
        """Flush the journal to the disk."""

@final
class Batch:
    """Runs in threads, which need no interpreter lock. Each finished run is recorded."""

    def __new__(
        cls,
        journal: Journal,
        cells: Sequence[tuple[Scenario, str, bool]],
        jobs: Sequence[tuple[int, int, bytes, bool, bool, float]],
        workers: int,
    ) -> Batch: ...
    def progress(self) -> tuple[int, int, float]:
        """Number, simulated time in ns and total cost of the finished runs."""
    def wait(self, seconds: float) -> bool:
        """Wait until all threads have ended, but not longer. Returns whether they have."""
    def stop(self) -> None:
        """End the runs in progress, without a record of them, and wait for the threads."""
    def finish(self) -> None:
        """Wait for the threads, and raise the first exception of a run."""

@final
class Shell:
    """A program inside the network of a scenario."""

    def __new__(
        cls,
        scenario: Scenario,
        seed: int,
        helper: Sequence[str],
        client: str,
        terminal: int | None = None,
        pcap: tuple[str, int | None, str | None, int | None] | None = None,
    ) -> Shell: ...
    def is_over(self) -> bool: ...
    def paths(self) -> list[dict[str, Any]]: ...
    def set_path(self, path: int, up: bool) -> None:
        """Take a path up or down. Raises IndexError if there is no such path."""

    def terminate(self) -> None: ...
    def stop(self) -> None: ...
    def finish(self) -> dict[str, Any]: ...

@final
class SubflowId:
    """Identifies a subflow of a connection.

    Slots are reused and generations are not, so the engine recognises a stale identifier.
    Identifiers are ordered by slot.
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
        """Index into the subflows that a policy sees; below 32."""
    @property
    def generation(self) -> int:
        """Number of earlier subflows of the connection."""

@final
class SubflowView:
    """A copy of the state of one subflow."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def id(self) -> SubflowId:
        """Identifier of the subflow."""
    @property
    def path(self) -> str | None:
        """Name of the path that the subflow uses."""
    @property
    def local_address_id(self) -> int:
        """Identifier of the local address."""
    @property
    def remote_address_id(self) -> int:
        """Identifier of the remote address."""
    @property
    def usability(self) -> Literal["usable", "potentially_failed", "opening", "closed"]:
        """Whether the subflow may carry data. An unused slot is closed."""
    @property
    def backup(self) -> bool:
        """Whether either end marked the subflow as a backup."""
    @property
    def phase(self) -> Literal["open", "recovery", "loss"]:
        """State of loss recovery: no loss, fast recovery, or after a retransmission timeout."""
    @property
    def mss(self) -> int:
        """Largest payload of a data segment in bytes, after subtracting TCP options."""
    @property
    def cwnd(self) -> int:
        """Congestion window in bytes."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold in bytes; `UNLIMITED` before the first loss."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes sent that are neither acknowledged nor deemed lost."""
    @property
    def available_cwnd(self) -> int:
        """Bytes that congestion control allows the subflow to send now."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time; `None` before the first sample."""
    @property
    def rttvar_ns(self) -> int:
        """Round-trip time variation."""
    @property
    def min_rtt_ns(self) -> int | None:
        """Smallest measured round-trip time; `None` before the first sample."""
    @property
    def min_srtt_ns(self) -> int | None:
        """Smallest smoothed round-trip time; `None` before the first sample."""
    @property
    def receive_rtt_ns(self) -> int | None:
        """Smoothed round-trip time, measured while receiving data; `None` before the first sample.

        A sample lasts from an acknowledgement until the arrival of data that echoes its timestamp.
        """
    @property
    def loss_interval(self) -> int:
        """Bytes acknowledged since the last loss, or between the last two losses if larger."""
    @property
    def bottleneck(self) -> int | Literal["unknown", "none"]:
        """Number of the bottleneck that the subflow passes; equal numbers share a bottleneck.

        "none" means that its delays show no queue. "unknown" means that detection is off or has
        too few samples.
        """
    def can_send(self) -> bool:
        """Whether the subflow is usable and congestion control allows a full segment now."""
    def srtt_or_max_ns(self) -> int:
        """Smoothed round-trip time, or the largest possible time before the first sample."""
    def in_slow_start(self) -> bool:
        """Whether the congestion window is below the slow-start threshold."""

@final
class NewData:
    """Data that has never been sent."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def bytes(self) -> int:
        """Number of bytes that have never been sent."""

@final
class Reinjection:
    """Data that was sent before and must be sent again on another subflow."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def already_on(self) -> frozenset[int]:
        """Slots of the subflows that have carried this data."""

@final
class LinuxView:
    """The information that schedulers of Linux use besides."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def paced_windows(self) -> list[int]:
        """Bytes that pacing would send on each subflow in one round-trip time, by slot.

        The values are those of each subflow's last acknowledgement.
        """
    @property
    def sent_memory(self) -> list[int]:
        """Memory of the data sent on each subflow and not acknowledged cumulatively, by slot.

        Lost data and data beyond a hole count.
        """
    @property
    def full(self) -> frozenset[int]:
        """Slots of the subflows with full send buffers. Empty if subflows have none."""
    @property
    def begins_fragment(self) -> bool | None:
        """Whether the new data begins a page fragment.

        None if the host does not keep what was written in page fragments, as Linux does.
        """
    @property
    def unsent_memory(self) -> int:
        """Memory of the data that was never sent, on a host whose send buffer charges segments.

        On other hosts, the number of its bytes.
        """

@final
class ScheduleContext:
    """The state that a scheduler can see."""

    @property
    def now_ns(self) -> int:
        """Current time."""
    @property
    def pending(self) -> NewData | Reinjection:
        """The data to send next."""
    @property
    def subflows(self) -> tuple[SubflowView, ...]:
        """The connection's subflows, including closed slots."""
    @property
    def with_room(self) -> frozenset[int]:
        """Slots of the subflows that can send a full segment now."""
    @property
    def available_window(self) -> int:
        """Bytes that the shared receive window still allows."""
    @property
    def window(self) -> int:
        """Bytes that may be outstanding at the data level.

        This is the shared receive window, or the send buffer if that is smaller.
        """
    @property
    def assigned(self) -> list[int]:
        """Bytes assigned to each subflow but not yet sent, by slot."""
    @property
    def blocked(self) -> int:
        """Number of times that a full window or send buffer stopped a subflow that had room."""
    @property
    def linux(self) -> LinuxView:
        """More, for schedulers that follow Linux."""
    @property
    def rng(self) -> Random:
        """This scheduler's random numbers; their seed derives from the run's seed."""
    def candidates(self) -> list[SubflowView]:
        """The usable regular subflows, or the usable backups if no regular subflow is usable."""
    def eligible(self) -> list[SubflowView]:
        """The usable subflows that have not carried the pending data.

        These are the regular subflows, or the backups if no regular subflow qualifies.
        """
    def fastest(self) -> SubflowView | None:
        """The candidate with the lowest smoothed round-trip time, with or without room."""
    def has_carried(self, subflow: SubflowView | SubflowId) -> bool:
        """Whether the subflow has already carried the pending data."""

@final
class Send:
    """Send the next segment on this subflow."""

    def __new__(cls, subflow: SubflowView | SubflowId) -> Send: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def subflow(self) -> SubflowId:
        """The subflow to send on."""

@final
class Assign:
    """Assign the data of the next segment to this subflow, which sends it when it has room.

    The engine asks about the following data at once. Assigned data counts against the shared window
    and uses it to the last byte. The first data of a connection and reinjected data cannot be
    assigned in advance: they wait for room.
    """

    def __new__(cls, subflow: SubflowView | SubflowId) -> Assign: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def subflow(self) -> SubflowId:
        """The subflow that gets the data."""

@final
class Duplicate:
    """Send the next segment on all of these subflows.

    The engine sends it at once on one subflow that has room, and copies on the others when they
    have room.
    """

    def __new__(cls, subflows: Iterable[SubflowView | SubflowId]) -> Duplicate: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def slots(self) -> frozenset[int]:
        """Slots of the subflows."""

@final
class Wait:
    """Send nothing now.

    The engine asks again at `until_ns`, but at the earliest in one millisecond. It also asks
    whenever a segment arrives or the application writes. A scheduler that waits while nothing is in
    flight on any usable subflow could wait forever. The engine then chooses the subflow with the
    lowest round-trip time, and counts a bad decision.
    """

    def __new__(cls, until_ns: int | None = None) -> Wait: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def until_ns(self) -> int | None:
        """The latest time at which to ask again; `None` without a limit."""

@final
class Start:
    """The initial parameters of a subflow's congestion control."""

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
        """This subflow's random numbers; their seed derives from the run's seed."""

@final
class AckSample:
    """An acknowledgement of new data on the subflow."""

    @property
    def now_ns(self) -> int:
        """Arrival time of the acknowledgement."""
    @property
    def acked(self) -> int:
        """Bytes that were newly acknowledged cumulatively."""
    @property
    def rtt_ns(self) -> int | None:
        """Round-trip time sample, if the acknowledgement provides one."""
    @property
    def srtt_ns(self) -> int:
        """Smoothed round-trip time."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes in flight after the acknowledgement."""
    @property
    def snd_una(self) -> int:
        """First unacknowledged byte, counted from the start of the subflow."""
    @property
    def snd_nxt(self) -> int:
        """Next byte to send, counted from the start of the subflow."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the congestion window, not application or receiver, limited the sender."""
