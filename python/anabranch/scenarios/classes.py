"""The classes of scenarios, one for each table, with a field for each key.

`make scenario-classes` writes this file from the JSON Schema of scenarios, whose source is the Rust
module `anabranch_sim::scenario`. The objects here only hold values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from anabranch import policy

TomlTable = dict[str, Any]
"""A TOML table as plain Python values."""

AppliesTo = Literal["forward", "reverse", "both"]
"""The directions of a path that a change applies to."""
Direction = Literal["download", "upload"]
"""Which host of a connection sends the workload's data."""
DistributionKind = Literal["uniform", "exponential", "pareto", "lognormal"]
"""Kind of distribution."""
Family = Literal["ipv4", "ipv6"]
"""The addresses of a path."""
JitterOrder = Literal["fifo", "reordering"]
"""What jitter does to the order of packets."""
LinkState = Literal["up", "down", "suspend", "resume"]
"""A change of a link's state."""
Protocol = Literal["mptcp", "tcp"]
"""What a connection speaks."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A random quantity, drawn anew each time.

    A plain value is constant. Each draw is rounded to a whole number of bytes, nanoseconds or
    items.

    kind: Kind of distribution.
    max: `uniform` only: maximum.
    mean: `exponential` and `pareto` only: mean.
    median: `lognormal` only: median.
    min: `uniform` only: minimum.
    shape: `pareto` only: exponent of the tail, above 1.
    sigma: `lognormal` only: standard deviation of the natural logarithm.
    """

    kind: DistributionKind
    max: str | int | None = None
    mean: str | int | None = None
    median: str | int | None = None
    min: str | int | None = None
    shape: float | None = None
    sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Bulk data, written as fast as the connection accepts it.

    size: Amount of data; unlimited by default.
    """

    size: str | None = None
    kind: ClassVar[str] = "bulk"


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Consecutive blocks of equal size.

    The delay of each block is measured.

    block_size: Size of each block; by default `"8KiB"`.
    count: Number of blocks; unlimited by default.
    """

    block_size: str | None = None
    count: int | None = None
    kind: ClassVar[str] = "blocks"


@dataclass(frozen=True, kw_only=True)
class Cbr:
    """Blocks of equal size at a constant rate.

    The delay of each block is measured.

    rate: Rate at which blocks are generated.
    block_size: Size of each block; by default `"8KiB"`.
    count: Number of blocks; unlimited by default.
    """

    rate: str
    block_size: str | None = None
    count: int | None = None
    kind: ClassVar[str] = "cbr"


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Bursts at intervals.

    The delay of each burst is measured.

    burst_size: Size of each burst. A burst is written at once.
    interval: Time from the start of a burst to the start of the next. A burst does not start
        before the stack has accepted all of the previous one.
    count: Number of bursts; unlimited by default.
    """

    burst_size: str | Distribution
    interval: str | Distribution
    count: int | None = None
    kind: ClassVar[str] = "on_off"


@dataclass(frozen=True, kw_only=True)
class RequestResponse:
    """Requests by the receiver of the data, and their responses: a closed loop.

    The delay of each round is measured from the first byte of the request to the last byte of
    the responses.

    request_size: Size of each request.
    response_size: Size of each response.
    count: Number of requests; unlimited by default.
    interval: Minimum time from the start of a round to the start of the next; zero by default.
    responses: Number of responses to each request, at most 1048576; by default `1`.
    think_time: Time from the last byte of the responses to the next request; zero by default.
    """

    request_size: str | Distribution
    response_size: str | Distribution
    count: int | None = None
    interval: str | Distribution | None = None
    responses: int | Distribution | None = None
    think_time: str | Distribution | None = None
    kind: ClassVar[str] = "request_response"


Workload = Bulk | Blocks | Cbr | OnOff | RequestResponse
"""The data that a connection transfers."""


@dataclass(frozen=True, kw_only=True)
class BurstLoss:
    """A channel with a good and a bad state (Gilbert and Elliott); netem's `gemodel`.

    to_bad: Probability, per packet, of going from good to bad.
    to_good: Probability, per packet, of going from bad to good.
    loss_in_bad: Probability of losing a packet in the bad state; by default `"100%"`.
    loss_in_good: Probability of losing a packet in the good state; by default `"0%"`.
    """

    to_bad: str
    to_good: str
    loss_in_bad: str | None = None
    loss_in_good: str | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a path at a given time: at least one key besides `at` and `applies_to`.

    at: When, from the start of the run.
    applies_to: Which direction changes; by default `"both"`.
    delay: New delay.
    jitter: New jitter.
    loss: New loss probability.
    noticed: With `state` only: the client's host notices that the path goes `down` or comes
        `up`, as when its interface does, and tells the path managers; by default false.
    rate: New rate; the packet in transmission finishes at it.
    state: New state.
    """

    at: str
    applies_to: AppliesTo | None = None
    delay: str | None = None
    jitter: str | None = None
    loss: str | None = None
    noticed: bool | None = None
    rate: str | None = None
    state: LinkState | None = None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A connection between the client, which opens it, and the server.

    Buffers are counted in payload bytes at data level, so "32KiB" is a window of 32768 bytes,
    unless `host` counts otherwise.

    workload: What is sent.
    allow_join_initial_addr_port: May further subflows be opened to the address and port of the
        first? If not (RFC 8684 §3.1, the "C" flag, for servers behind a load balancer), only to
        announced ones, and the server announces one only where the paths are of both families.
    congestion_control: Congestion control: a name, or a table with an uncoupled one for each
        path; by default `lia`, or `cubic` for `tcp`.
    direction: Who sends the data; by default `"download"`.
    dss_checksum: Do the hosts require checksums of what each segment carries (RFC 8684, the DSS
        checksum)?
    ecn: Do the hosts use explicit congestion notification (ECN, RFC 3168)? Queues that drop
        early then mark packets instead.
    host: What the hosts do where hosts differ: "linux", "rfc", or a table with a kind and
        parameters. With `{ kind = "linux", buffers = "socket" }` buffers are what a program asks
        Linux for: it doubles both and counts overhead, so that the window is 1.23 times as much
        (over Multipath TCP once each subflow has brought data, and as much before), and TCP
        sends less than twice as much. While the window opens every segment is acknowledged at
        once, and 16 more. Linux itself, in live runs, always counts so.
    hystart: Leave slow start when the RTT rises (HyStart++, RFC 9406); by default with `cubic`
        only.
    keep_alive: Idle time after which a host asks its peer whether it is still there, once each
        time, and gives a subflow up after 15 probes without an answer (RFC 9293 §3.8.4). By
        default it never asks.
    late_fallback: Does a connection on its only subflow go back to TCP when the path begins to
        drop options late? Otherwise it ends, as RFC 8684 §3.7 has it, and as it does when the
        peer is Linux; by default `true`.
    nagle: Does a host keep back a short segment while data is unacknowledged?; by default
        `true`.
    name: Name of the connection, by default `connection-1`, `connection-2` and so on; no two are
        the same.
    path_manager: Path manager: a name, or a table with a kind and parameters; by default
        `"full_mesh"`.
    paths: Names of the paths that it may use. It is opened over the first. By default all paths
        that no other goes via, or for `tcp`, which uses one path, the first of them.
    protocol: What it speaks; by default `"mptcp"`.
    receive_buffer: Receive buffer of each host, in bytes at data level: of payload, unless
        `host` counts otherwise; by default `"6MiB"`.
    remedies: What is done against a receive window that fills behind a slow path: by the names
        of the remedies, `true`, the value of the first parameter, or a table of parameters.
    sack: Do the hosts use selective acknowledgements (SACK, RFC 2018)?
    scheduler: Scheduler: a name, or a table with a kind and parameters; by default `"min_rtt"`.
    send_buffer: Send buffer of each host, in bytes at data level: of payload, unless `host`
        counts otherwise; by default `"4MiB"`.
    shared_bottleneck_detection: Find out which subflows share bottlenecks (RFC 8382), and couple
        only those in congestion control. By default not.
    start: When it is opened, from the start of the run; by default `"0s"`.
    timestamps: Do the hosts use TCP timestamps (RFC 7323)?
    """

    workload: Workload
    allow_join_initial_addr_port: bool | None = None
    congestion_control: (
        Literal["new_reno", "cubic", "cubic_linux", "lia", "olia", "balia", "wvegas"]
        | dict[str, Literal["new_reno", "cubic", "cubic_linux"]]
        | str
        | Callable[[policy.Start], policy.CongestionControl]
        | None
    ) = None
    direction: Direction | None = None
    dss_checksum: bool | None = None
    ecn: bool | None = None
    host: Literal["linux", "rfc"] | TomlTable | None = None
    hystart: bool | None = None
    keep_alive: str | None = None
    late_fallback: bool | None = None
    nagle: bool | None = None
    name: str | None = None
    path_manager: (
        Literal["full_mesh", "initial_only", "ndiffports", "backup", "single_path", "drepas"]
        | TomlTable
        | str
        | Callable[[], policy.PathManager]
        | None
    ) = None
    paths: tuple[str, ...] | None = None
    protocol: Protocol | None = None
    receive_buffer: str | None = None
    remedies: TomlTable | None = None
    sack: bool | None = None
    scheduler: (
        Literal["min_rtt", "round_robin", "redundant", "blest", "ecf", "linux"]
        | TomlTable
        | str
        | Callable[[], policy.Scheduler]
        | None
    ) = None
    send_buffer: str | None = None
    shared_bottleneck_detection: SharedBottleneckDetection | None = None
    start: str | None = None
    timestamps: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CrossTraffic:
    """UDP traffic that shares a path with the connections and takes no part in them.

    TCP cross-traffic is a connection with `protocol = "tcp"` and, say, an `on_off` workload.

    path: Name of the path that the packets take, with the paths that it goes via.
    rate: Rate while on, counted in IP packets.
    direction: `download` is from server to client; by default `"download"`.
    name: Name of the source, by default `cross-traffic-1`, `cross-traffic-2` and so on; no two
        are the same.
    off: Length of each off period; with `on`.
    on: Length of each on period; with `off`. By default the source is always on.
    packet_size: Size of each IP packet, its 28 bytes of headers included; by default the path's
        MTU.
    """

    path: str
    rate: str
    direction: Direction | None = None
    name: str | None = None
    off: str | Distribution | None = None
    on: str | Distribution | None = None
    packet_size: str | None = None


@dataclass(frozen=True, kw_only=True)
class Middlebox:
    """A box on a path, at the end of its link that is nearer to the server.

    The boxes of a path stand in the order of the list, the first next to the link; what goes via
    the path passes them too.

    kind: `strip_options`: Removes TCP options. `nat`: Translates the client's address and ports,
        for TCP and UDP. `rewrite_isn`: Replaces the hosts' initial sequence numbers.
        `split_segments`: Splits segments, as segmentation offload does. `coalesce`: Merges
        consecutive segments, keeping the options of the first. `rewrite_payload`: Replaces,
        inserts or removes bytes of the stream, and corrects the TCP checksum. `proactive_ack`:
        Acknowledges data before its receiver does, and retransmits it if necessary. `normalise`:
        Replaces the content of retransmissions by the content seen first. `hole_refusal`: Drops
        data after a gap, and acknowledgements of data that it did not see. `blackhole_options`:
        Drops SYNs silently. `shrink_window`: Moves the right edge of receive windows back for a
        while. `bare_segments`: Adds segments without Multipath TCP options.
    after_packets: `strip_options` only: number of packets at the start of each flow, in both
        directions together, that are not changed; by default `0`.
    applies_to: `strip_options`, `rewrite_payload`, `shrink_window`, `bare_segments` only: which
        direction is affected; by default `"both"`.
    at: `rewrite_payload` only: number of bytes of the flow before the change; by default `"0B"`.
    bytes: `rewrite_payload` only: number of bytes affected; by default `4`.
    change: `rewrite_payload` only: what happens, once in each flow and direction.
    delay: `coalesce` only: maximum time for which a segment waits for the next; by default
        `"1ms"`.
    every: `shrink_window` only: mean time between two small windows of a host; by default
        `"500ms"`.
    for_: `shrink_window` only: mean duration of a small window; by default `"200ms"`.
    from_: From when on the box is there; by default `"0s"`.
    idle_timeout: `nat` only: maximum idle time of a mapping; after that, the flow gets a new
        port; by default `"7440s"`.
    options: `strip_options` only: which options are removed; `unknown` means all except maximum
        segment size, window scale, SACK and timestamps; by default `["mptcp"]`.
    options_on: `split_segments` only: which pieces carry the options of the original segment;
        all carry its timestamps; by default `"all"`.
    probability: `bare_segments` only: probability that the middlebox adds a bare segment to a
        segment; by default `"10%"`.
    rebind_at: `nat` only: when all mappings are dropped; never by default.
    refuse: `shrink_window` only: does the host reject data beyond its small window? Otherwise it
        accepts all data; by default `false`.
    segments: `strip_options` only: from which segments; `ack` means all without payload that are
        in no other class; by default `["syn", "syn_ack", "third_ack", "data", "ack"]`.
    size: `split_segments` only: maximum payload of each piece; by default `"536B"`. `coalesce`
        only: maximum payload of a merged segment; by default `"2920B"`.
    syns: `blackhole_options` only: which SYNs and SYN/ACKs are dropped; `mptcp` means those with
        a Multipath TCP option; by default `"mptcp"`.
    to: `shrink_window` only: size of a small window; by default `"0B"`.
    until: Until when the box is there; by default to the end.
    window: `proactive_ack` only: maximum bytes of a flow in flight from the proxy to the
        receiver; the proxy holds four times as many; by default `"64KiB"`.
    """

    kind: Literal[
        "strip_options",
        "nat",
        "rewrite_isn",
        "split_segments",
        "coalesce",
        "rewrite_payload",
        "proactive_ack",
        "normalise",
        "hole_refusal",
        "blackhole_options",
        "shrink_window",
        "bare_segments",
    ]
    after_packets: int | None = None
    applies_to: Literal["forward", "reverse", "both"] | None = None
    at: str | None = None
    bytes: int | None = None
    change: Literal["replace", "insert", "remove"] | None = None
    delay: str | None = None
    every: str | None = None
    for_: str | None = field(default=None, metadata={"key": "for"})
    from_: str | None = field(default=None, metadata={"key": "from"})
    idle_timeout: str | None = None
    options: (
        tuple[
            Literal[
                "mptcp",
                "unknown",
                "mp_capable",
                "mp_join",
                "dss",
                "add_addr",
                "remove_addr",
                "mp_prio",
                "mp_fail",
                "mp_fastclose",
                "mp_tcprst",
            ],
            ...,
        ]
        | None
    ) = None
    options_on: Literal["all", "first"] | None = None
    probability: str | None = None
    rebind_at: str | None = None
    refuse: bool | None = None
    segments: tuple[Literal["syn", "syn_ack", "third_ack", "data", "ack"], ...] | None = None
    size: str | None = None
    syns: Literal["mptcp", "mp_join", "all"] | None = None
    to: str | None = None
    until: str | None = None
    window: str | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkPath:
    """A path.

    Its own keys describe the forward direction, which is always from server to client; `reverse`
    describes the other one.

    name: Name of the path; no two are the same.
    delay: One-way propagation delay.
    limit: How much may wait in the link's queue, the packet in transmission not counted. A limit
        in time counts at the link's rate, or at the mean rate of its trace.
    burst_loss: Loss in bursts, beside `loss`, forward only.
    changes: Changes during the run.
    family: The addresses of both hosts on this path. A connection is opened over its first path;
        the server announces its address of the other family, and the client joins from there; by
        default `"ipv4"`.
    jitter: The delay varies uniformly by ± this much, forward only; by default `"0s"`.
    jitter_model: What jitter does to the order of packets, in both directions; by default
        `"fifo"`.
    loss: Probability of losing a packet, forward only; by default `"0%"`.
    middleboxes: Middleboxes between the link and the server, the first next to the link.
    mtu: Largest IP packet, from 576B to 65535B; by default `"1500B"`.
    queue: Which packets the queues of both directions drop although there is room.
    rate: Rate of the link; either this or `trace`.
    reverse: The direction from client to server.
    trace: When the link delivers, instead of `rate`: the name of a Mahimahi packet-delivery
        trace, relative to the scenario's folder, or its content. Each opportunity delivers 1504
        bytes.
    via: Name of a path listed before whose link this path's packets cross too, on the server's
        side: a shared bottleneck.
    """

    name: str
    delay: str
    limit: str
    burst_loss: BurstLoss | None = None
    changes: tuple[Change, ...] = field(default=(), metadata={"key": "change"})
    family: Family | None = None
    jitter: str | None = None
    jitter_model: JitterOrder | None = None
    loss: str | None = None
    middleboxes: tuple[Middlebox, ...] = field(default=(), metadata={"key": "middlebox"})
    mtu: str | None = None
    queue: Queue | None = None
    rate: str | None = None
    reverse: Reverse | None = None
    trace: str | Trace | None = None
    via: str | None = None


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The discipline of a path's queues.

    interval: `codel` only: how long the sojourn time may exceed the target before packets are
        dropped; by default `"100ms"`.
    kind: `drop_tail`: Drops packets only for lack of room. `codel`: Controlled delay: drops
        packets while the sojourn time stays too long. `red`: Random early detection: drops
        packets at random as the average queue grows.
    max_packets: `red` only: average queue length, in packets, from which every packet is
        dropped; by default `15`.
    max_probability: `red` only: drop probability just below `max_packets`; by default `"2%"`.
    min_packets: `red` only: average queue length, in packets, below which no packet is dropped;
        by default `5`.
    target: `codel` only: acceptable sojourn time; by default `"5ms"`.
    weight: `red` only: weight of a sample in the average; by default `"0.2%"`.
    """

    interval: str | None = None
    kind: Literal["drop_tail", "codel", "red"] | None = None
    max_packets: int | None = None
    max_probability: str | None = None
    min_packets: int | None = None
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The reverse direction of a path, from client to server.

    delay: One-way propagation delay; by default the forward one.
    jitter: The delay varies uniformly by ± this much; by default `"0s"`.
    limit: How much may wait in the link's queue; by default the forward limit.
    loss: Probability of losing a packet; by default `"0%"`.
    rate: Rate of the link; by default the forward rate or trace.
    trace: When the link delivers, instead of `rate`.
    """

    delay: str | None = None
    jitter: str | None = None
    limit: str | None = None
    loss: str | None = None
    rate: str | None = None
    trace: str | Trace | None = None


@dataclass(frozen=True, kw_only=True)
class SharedBottleneckDetection:
    """Shared-bottleneck detection, RFC 8382: only subflows that share a bottleneck are coupled.

    loss_threshold: Losses above this rate show a bottleneck whatever the delays are (p_l); by
        default 5%.
    """

    loss_threshold: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A packet-delivery trace in the scenario itself, in place of the name of a file.

    The normalised form of a scenario has no files.

    milliseconds: Times of the delivery opportunities in milliseconds, separated by spaces; `7*3`
        stands for three opportunities at 7 ms. The last time is the period at which they repeat.
    """

    milliseconds: str


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An experiment: paths between a client and a server, and the connections over them.

    name: Name of the scenario.
    duration: Simulated time.
    paths: The paths; at least one.
    connections: The connections; at least one.
    cross_traffic: UDP traffic beside the connections.
    description: What it is about, for the reader.
    sample_interval: Period of the time series; by default `"100ms"`.
    warm_up: Time at the beginning that metrics leave out; shorter than the duration; by default
        `"0s"`.
    """

    name: str
    duration: str
    paths: tuple[NetworkPath, ...] = field(metadata={"key": "path"})
    connections: tuple[Connection, ...] = field(metadata={"key": "connection"})
    cross_traffic: tuple[CrossTraffic, ...] = ()
    description: str | None = None
    sample_interval: str | None = None
    warm_up: str | None = None


__all__ = [
    "Blocks",
    "Bulk",
    "BurstLoss",
    "Cbr",
    "Change",
    "Connection",
    "CrossTraffic",
    "Distribution",
    "Middlebox",
    "NetworkPath",
    "OnOff",
    "Queue",
    "RequestResponse",
    "Reverse",
    "SharedBottleneckDetection",
    "TomlTable",
    "Trace",
    "Workload",
]
