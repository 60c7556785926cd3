"""Scenarios as typed objects.

The objects here only hold values and write them as TOML. The compiled core alone reads
scenarios: it fills in defaults, checks values, and explains errors. A field that is `None` is
left out of the TOML, so that the core's default holds; `anabranch schema` prints all keys with
their defaults.

Quantities are strings with a unit, as in the file: ``"8Mbit/s"``, ``"20ms"``, ``"54packets"``,
``"200KiB"`` (1024 octets each; ``kB`` is 1000), ``"1%"``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from anabranch import policy
from anabranch.scenarios import own

TomlTable = dict[str, Any]
"""A TOML table as plain Python values."""


def _key(name: str) -> Any:
    """A required field that is called `name` in TOML."""
    return dataclasses.field(metadata={"key": name})


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A packet-delivery trace, as :class:`Path` takes one in place of the name of a file."""

    milliseconds: str
    """Times of the delivery opportunities, such as ``"0 3 7*2"``; the last is the period."""


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The direction from client to server of a path.

    Rate or trace, delay and limit default to those of the forward direction, jitter and loss to
    zero.
    """

    rate: str | None = None
    trace: str | Trace | None = None
    delay: str | None = None
    limit: str | None = None
    jitter: str | None = None
    loss: str | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a path at the time `at`, counted from the start of the run."""

    at: str
    rate: str | None = None
    delay: str | None = None
    jitter: str | None = None
    loss: str | None = None
    state: str | None = None
    """``"up"``, ``"down"``, ``"suspend"`` or ``"resume"``."""
    applies_to: str | None = None
    """``"forward"``, ``"reverse"`` or ``"both"``."""
    noticed: bool | None = None
    """The client's host notices that the path goes down or comes up, as its interface would."""


@dataclass(frozen=True, kw_only=True)
class BurstLoss:
    """A channel with a good and a bad state (Gilbert and Elliott), from server to client."""

    to_bad: str
    to_good: str
    loss_in_bad: str | None = None
    loss_in_good: str | None = None


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The discipline of a path's queues: ``"drop_tail"``, ``"codel"`` or ``"red"``."""

    kind: str | None = None
    target: str | None = None
    interval: str | None = None
    min_packets: int | None = None
    max_packets: int | None = None
    max_probability: str | None = None
    weight: str | None = None


@dataclass(frozen=True, kw_only=True)
class Middlebox:
    """A box between the link and the server that changes, delays, answers or drops what it sees.

    ``"strip_options"`` (with `options`, `segments`, `after_packets`, `applies_to`), ``"nat"``
    (`idle_timeout`, `rebind_at`), ``"rewrite_isn"``, ``"split_segments"`` (`size`, `options_on`),
    ``"coalesce"`` (`size`, `delay`), ``"rewrite_payload"`` (`change`, `octets`, `at`,
    `applies_to`), ``"proactive_ack"`` (`window`), ``"normalise"``, ``"hole_refusal"``,
    ``"blackhole_options"`` (`syns`), ``"shrink_window"`` (`every`, `for_`, `to`, `refuse`,
    `applies_to`) or ``"bare_segments"`` (`probability`, `applies_to`); docs/middleboxes.md
    describes them.
    """

    kind: str
    from_: str | None = dataclasses.field(default=None, metadata={"key": "from"})
    """From when on it is there."""
    until: str | None = None
    options: tuple[str, ...] | None = None
    segments: tuple[str, ...] | None = None
    after_packets: int | None = None
    applies_to: str | None = None
    """``"forward"``, ``"reverse"`` or ``"both"``."""
    idle_timeout: str | None = None
    rebind_at: str | None = None
    size: str | None = None
    options_on: str | None = None
    """``"all"`` pieces or the ``"first"``."""
    delay: str | None = None
    change: str | None = None
    """``"replace"``, ``"insert"`` or ``"remove"``."""
    octets: int | None = None
    at: str | None = None
    window: str | None = None
    syns: str | None = None
    """``"mptcp"``, ``"mp_join"`` or ``"all"``."""
    every: str | None = None
    """Mean time between two periods with a small window."""
    for_: str | None = dataclasses.field(default=None, metadata={"key": "for"})
    """Mean length of such a period."""
    to: str | None = None
    """The most that a host offers meanwhile."""
    refuse: bool | None = None
    """The host also refuses data beyond its small window."""
    probability: str | None = None
    """Probability that a segment gets a bare companion."""


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path between client and server; its own fields describe the direction to the client."""

    name: str
    delay: str
    """One-way propagation delay."""
    limit: str
    """Of the queue: packets, octets, milliseconds or ``"infinite"``."""
    rate: str | None = None
    trace: str | Trace | None = None
    """Instead of `rate`: the name of a file in Mahimahi's format, or the trace itself."""
    jitter: str | None = None
    """The delay varies uniformly by ± this much, forward only."""
    jitter_model: str | None = None
    """``"fifo"``, which keeps the order of packets, or ``"reordering"``."""
    loss: str | None = None
    """Probability of losing a packet, forward only."""
    mtu: str | None = None
    family: str | None = None
    """Of the addresses of both hosts on it: ``"ipv4"`` or ``"ipv6"``."""
    burst_loss: BurstLoss | None = None
    queue: Queue | None = None
    via: str | None = None
    """A path listed before, whose link this path's packets cross too: a shared bottleneck."""
    reverse: Reverse | None = None
    middleboxes: tuple[Middlebox, ...] = dataclasses.field(
        default=(), metadata={"key": "middlebox"}
    )
    """Between the link and the server, the first next to the link."""
    changes: tuple[Change, ...] = dataclasses.field(default=(), metadata={"key": "change"})


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Something that is drawn anew each time, where a plain value would be constant.

    ``"uniform"`` from `min` to `max`, ``"exponential"`` with a `mean`, ``"pareto"`` with a `mean`
    and a `shape` (the exponent of its tail, above 1), or ``"lognormal"`` with a `median` and a
    `sigma` (the standard deviation of the natural logarithm). Sizes and durations are strings with
    a unit, counts are integers.
    """

    kind: str
    min: str | int | None = None
    max: str | int | None = None
    mean: str | int | None = None
    shape: float | None = None
    median: str | int | None = None
    sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Data as fast as the connection takes it, without end or `size` octets."""

    size: str | None = None

    kind = "bulk"


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Blocks of equal size, written as fast as the connection takes them, each one timed."""

    block_size: str | None = None
    count: int | None = None

    kind = "blocks"


@dataclass(frozen=True, kw_only=True)
class SharedBottleneckDetection:
    """RFC 8382: find out which subflows share bottlenecks, and couple only those."""

    loss_threshold: str | None = None
    """Losses above this rate show a bottleneck whatever the delays are."""


@dataclass(frozen=True, kw_only=True)
class Cbr:
    """Blocks of equal size, one each time it is due at `rate`, each one timed."""

    rate: str
    block_size: str | None = None
    count: int | None = None

    kind = "cbr"


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Bursts, each written at once and timed, an `interval` from start to start.

    A burst is due whether or not the one before was delivered, but waits until the stack has
    accepted that whole.
    """

    burst_size: str | Distribution
    interval: str | Distribution
    count: int | None = None

    kind = "on_off"


@dataclass(frozen=True, kw_only=True)
class RequestResponse:
    """Requests, each of which brings a number of responses: a closed loop over one connection.

    The receiver of a connection's data asks, its sender responds. A round is timed from the first
    octet of the request to the last one of the responses. A think time later the next one begins,
    but no sooner than an `interval` after the start of the one before.
    """

    request_size: str | Distribution
    response_size: str | Distribution
    responses: int | Distribution | None = None
    """How many to each request."""
    think_time: str | Distribution | None = None
    interval: str | Distribution | None = None
    count: int | None = None

    kind = "request_response"


Workload = Bulk | Blocks | Cbr | OnOff | RequestResponse
"""What a connection sends."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A connection that the client opens over the first of `paths`.

    Buffers are counted in payload octets at data level, so ``"32KiB"`` is a window of 32768
    octets, unless `host` counts otherwise.

    A scheduler or path manager is a name, a table such as ``{"kind": "ecf", "beta": 0.5}``, or a
    class of your own (see `anabranch.policy`); a congestion control a name, a table of uncoupled
    ones by path, or a class of your own. `remedies` holds those that are switched on, such as
    ``{"opportunistic_retransmission": True, "penalisation": "conext13"}``. ``anabranch policies``
    lists all names and parameters.
    """

    workload: Workload
    name: str | None = None
    paths: tuple[str, ...] | None = None
    protocol: str | None = None
    direction: str | None = None
    start: str | None = None
    host: str | TomlTable | None = None
    """What the hosts do where hosts differ: ``"linux"``, ``"rfc"``, or with buffers that are what a
    program asks Linux for ``{"kind": "linux", "buffers": "socket"}``: it doubles them, counts
    overhead, offers with Multipath TCP half of the receive buffer until each subflow has brought
    data, and acknowledges every segment while its window opens and 16 more."""
    send_buffer: str | None = None
    receive_buffer: str | None = None
    congestion_control: (
        str | dict[str, str] | Callable[[policy.Start], policy.CongestionControl] | None
    ) = None
    scheduler: str | TomlTable | Callable[[], policy.Scheduler] | None = None
    path_manager: str | TomlTable | Callable[[], policy.PathManager] | None = None
    remedies: TomlTable | None = None
    shared_bottleneck_detection: SharedBottleneckDetection | None = None
    nagle: bool | None = None
    keep_alive: str | None = None
    """Idle time after which a host asks whether its peer is there; by default it never asks."""
    dss_checksum: bool | None = None
    allow_join_initial_addr_port: bool | None = None
    """May subflows be opened to the address and port of the first? If not, only to announced
    ones, which a server has where the paths are of both families (RFC 8684 §3.1, the C flag)."""
    late_fallback: bool | None = None
    ecn: bool | None = None
    sack: bool | None = None
    """Do the hosts use selective acknowledgements (RFC 2018)?"""
    timestamps: bool | None = None
    """Do the hosts use TCP timestamps (RFC 7323)?"""
    hystart: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CrossTraffic:
    """UDP traffic on a path, beside the connections: real packets that nobody answers.

    TCP cross-traffic is a connection with ``protocol="tcp"`` and, say, an :class:`OnOff` workload.
    """

    path: str
    rate: str
    """While on, counted in IP packets."""
    name: str | None = None
    direction: str | None = None
    """``"download"``, from server to client, or ``"upload"``."""
    packet_size: str | None = None
    """Of each IP packet, its 28 octets of headers included."""
    on: str | Distribution | None = None
    """Length of each on period; with `off`."""
    off: str | Distribution | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An experiment: paths between a client and a server, and the connections over them."""

    name: str
    duration: str
    """Simulated time."""
    paths: tuple[Path, ...] = _key("path")
    connections: tuple[Connection, ...] = _key("connection")
    description: str | None = None
    warm_up: str | None = None
    """Time at the beginning that metrics leave out."""
    sample_interval: str | None = None
    cross_traffic: tuple[CrossTraffic, ...] = ()

    def to_toml(self) -> str:
        """The scenario as the text of a TOML file."""
        return to_toml(_table(self))

    def starting_at(self, start: str) -> Scenario:
        """The same scenario with every connection opened at the time `start`."""
        connections = (dataclasses.replace(each, start=start) for each in self.connections)
        return dataclasses.replace(self, connections=tuple(connections))

    def made_by(self) -> own.MadeBy | None:
        """What makes the policies of each connection; `None` if none is the user's own."""
        made_by: own.MadeBy = [
            {kind: _factory(getattr(connection, kind)) for kind in own.KINDS}
            for connection in self.connections
        ]
        has_own = any(factory is not None for each in made_by for factory in each.values())
        return made_by if has_own else None


def _factory(chosen: object) -> own.Factory | None:
    return chosen if callable(chosen) else None


def to_toml(table: TomlTable) -> str:
    """A scenario that is given as plain values, as the text of a TOML file."""
    return "\n".join(_lines(table)).strip() + "\n"


def toml_keys(kind: type) -> dict[str, str]:
    """The names in TOML of the fields of one of the classes here, by field name."""
    return {field.name: field.metadata.get("key", field.name) for field in dataclasses.fields(kind)}


_WRITTEN = (str, dict)
"""What a policy is in a scenario unless it is the user's own."""


def _table(value: Any) -> TomlTable:
    """The dataclass instance `value` as a TOML table, without fields that were left out."""
    table: TomlTable = {"kind": value.kind} if isinstance(value, Workload) else {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default:
            key = field.metadata.get("key", field.name)
            is_own = field.name in own.KINDS and not isinstance(item, _WRITTEN)
            table[key] = own.value_of(key, item) if is_own else _plain(item)
    return table


def _plain(item: Any) -> Any:
    if dataclasses.is_dataclass(item):
        return _table(item)
    if isinstance(item, (tuple, list)):
        return [_plain(each) for each in item]
    return item


def _lines(table: TomlTable, name: str = "") -> Iterator[str]:
    """The lines of a TOML table: plain values first, or they would belong to the last table."""
    tables = {key: value for key, value in table.items() if _is_table(value)}
    for key, value in table.items():
        if key not in tables:
            yield f"{key} = {_literal(value)}"
    for key, value in tables.items():
        full = f"{name}.{key}" if name else key
        is_array = isinstance(value, list)
        for each in value if is_array else [value]:
            yield ""
            yield f"[[{full}]]" if is_array else f"[{full}]"
            yield from _lines(each, full)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in value)
    )


def _literal(value: Any) -> str:
    """A plain value in TOML, whose strings, integers and booleans are nearly those of JSON."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
