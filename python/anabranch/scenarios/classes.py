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
"""Directions of a path that a change applies to."""
Direction = Literal["download", "upload"]
"""Host that sends data."""
Directions = Literal["download", "upload", "both"]
"""Hosts of a connection that send the workload's data."""
DistributionKind = Literal["uniform", "exponential", "pareto", "lognormal"]
"""Distribution of a quantity."""
Family = Literal["ipv4", "ipv6"]
"""Address family of a path."""
JitterOrder = Literal["fifo", "reordering"]
"""Whether jitter can reorder packets."""
LinkState = Literal["up", "down", "suspend", "resume"]
"""A change of a link's state."""
MtuProbing = Literal["off", "on_black_hole", "always"]
"""When subflows search for the path MTU with their own data. RFC 4821, RFC 8899."""
Protocol = Literal["mptcp", "tcp"]
"""Protocol of a connection."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A random quantity, instead of a constant.

    Each use draws a new value, which is rounded to a whole number of bytes, nanoseconds or
    pieces.

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
    """Data as fast as the connection accepts it.

    size: Amount of data (default: unlimited).
    """

    size: str | None = None
    kind: ClassVar[str] = "bulk"


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Blocks of equal size, as fast as the connection accepts them.

    Their delays are measured.

    block_size: Size of each block. Default: `"8KiB"`.
    count: Number of blocks (default: unlimited).
    """

    block_size: str | None = None
    count: int | None = None
    kind: ClassVar[str] = "blocks"


@dataclass(frozen=True, kw_only=True)
class Cbr:
    """Blocks of equal size at a constant rate.

    Their delays are measured.

    rate: Rate at which the application writes blocks.
    block_size: Size of each block. Default: `"8KiB"`.
    count: Number of blocks (default: unlimited).
    """

    rate: str
    block_size: str | None = None
    count: int | None = None
    kind: ClassVar[str] = "cbr"


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """Bursts at intervals, an open loop.

    Their delays are measured.

    burst_size: Size of each burst, which the application writes at once.
    interval: Time from the start of each burst to the start of the next. The next burst also
        waits until the stack has accepted the previous one.
    count: Number of bursts (default: unlimited).
    """

    burst_size: str | Distribution
    interval: str | Distribution
    count: int | None = None
    kind: ClassVar[str] = "on_off"


@dataclass(frozen=True, kw_only=True)
class RequestResponse:
    """Requests from the receiver of the data, and responses to them, a closed loop.

    The delay of a round lasts from the first byte of the request to the last byte of the
    responses.

    request_size: Size of each request.
    response_size: Size of each response.
    count: Number of requests (default: unlimited).
    interval: Least time from the start of each round to the start of the next. None by default.
    responses: Number of responses to each request, up to 1048576. Default: `1`.
    think_time: Time from the last byte of the responses to the next request. None by default.
    """

    request_size: str | Distribution
    response_size: str | Distribution
    count: int | None = None
    interval: str | Distribution | None = None
    responses: int | Distribution | None = None
    think_time: str | Distribution | None = None
    kind: ClassVar[str] = "request_response"


Workload = Bulk | Blocks | Cbr | OnOff | RequestResponse
"""Data that a connection carries."""


@dataclass(frozen=True, kw_only=True)
class BurstLoss:
    """Burst losses by a channel with a good and a bad state (Gilbert-Elliott; netem's `gemodel`).

    to_bad: Probability per packet of a transition from the good to the bad state.
    to_good: Probability per packet of a transition from the bad to the good state.
    loss_in_bad: Probability of losing a packet in the bad state. Default: `"100%"`.
    loss_in_good: Probability of losing a packet in the good state. Default: `"0%"`.
    """

    to_bad: str
    to_good: str
    loss_in_bad: str | None = None
    loss_in_good: str | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a path at a given time.

    It needs at least one of `rate`, `delay`, `jitter`, `loss` and `state`.

    at: Time of the change, counted from the start of the run.
    applies_to: Direction that changes. Default: `"both"`.
    delay: New delay.
    jitter: New jitter.
    loss: New loss probability.
    noticed: Whether the client notices that the path goes `down` or comes `up`, as when its own
        interface goes down or comes up. The client then informs its path managers. Only with
        `state`; off by default.
    rate: New rate. The packet in transmission finishes at this rate.
    state: New state of the link.
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

    Buffer sizes count payload bytes at the data level, so "32KiB" is a window of 32768 bytes.
    `host` can change this.

    workload: Data that the connection carries.
    allow_join_initial_addr_port: Whether further subflows may go to the address and port of the
        first subflow. With `false` (the C flag of RFC 8684 §3.1, for servers behind a load
        balancer), they can only go to announced addresses. The server announces an address only
        if the paths are of both families. On by default.
    congestion_control: Congestion control: a name, or a table with an uncoupled congestion
        control for each path (default: `lia`, or `cubic` for `tcp`).
    direction: Host that sends the workload's data, or `both`. Default: `"download"`.
    dss_checksum: Whether the hosts require DSS checksums (RFC 8684), which detect changed
        payload. Off by default.
    ecn: Whether the hosts use explicit congestion notification (ECN, RFC 3168). Queues that drop
        early then mark packets instead. Off by default.
    host: Behaviour of the hosts where TCP implementations differ: "linux", "rfc", or a table
        with a kind and parameters. With `{ kind = "linux", buffers = "socket" }`, buffer sizes
        are those that a program requests from Linux. Linux doubles both sizes and charges
        overhead to them. The receive window becomes 1.23 times the requested size. With
        Multipath TCP it stays at the requested size until each subflow has delivered data. A TCP
        sender can buffer less than twice the requested size. While the window opens, and for 16
        further segments, the receiver acknowledges each segment at once. Kernel hosts in live
        runs always count buffers this way. `tcp_rmem_default`, `tcp_rmem_max` and `tcp_wmem_max`
        are the sysctl sizes between which Linux tunes buffers.
    hystart: Whether a rising RTT ends slow start (HyStart++, RFC 9406). By default only with
        `cubic`.
    keep_alive: Idle time after which a host sends a keep-alive probe on a subflow. It repeats
        the probe after each further idle time, and gives the subflow up after 15 probes without
        an answer (RFC 9293 §3.8.4). By default hosts send no keep-alives.
    late_fallback: Whether a connection that never had a second subflow falls back to TCP if its
        path starts to drop options mid-connection. With `false`, the host resets the subflow, as
        RFC 8684 §3.7 requires. The connection then ends unless the path manager opens a new
        subflow. In live runs with a kernel host, the value is always `false`, because Linux does
        not notice the loss of options. Default: `true`.
    limits: Limits of both hosts on their subflows, as `ip mptcp limits` sets them. Unlimited by
        default.
    mtu_probing: When subflows search for the path MTU with their own data (Linux:
        `tcp_mtu_probing`). Segments that are too large for a path are lost; routers that answer
        need no search.
    nagle: Whether hosts use Nagle's algorithm, which delays a short segment while data is
        unacknowledged. Default: `true`.
    name: Name of the connection; must be unique (default: `connection-1`, `connection-2` and so
        on).
    pacing: Whether the hosts send segments at a rate that follows from the congestion window and
        the round-trip time, in bursts of at least two, rather than as acknowledgements arrive
        (Linux: the queue discipline `fq`). `bbr` and `bbr3` always pace. Off by default.
    path_manager: Path manager: a name, or a table with a kind and parameters. Default:
        `"full_mesh"`.
    paths: Names of the paths that the connection may use; it opens over the first. By default it
        may use all paths except those that other paths go via. A `tcp` connection uses one path,
        by default the first of these.
    protocol: Protocol of the connection. Default: `"mptcp"`.
    receive_buffer: Receive buffer of each host in bytes at the data level. `host` decides
        whether the size counts payload only. Default: 6 MiB. If `host` counts buffers as Linux's
        sockets do, and for kernel hosts, the buffer is autotuned by default: it follows what the
        application reads in a round-trip time, up to 6 MiB of memory (`tcp_rmem_max`).
    remedies: Remedies against a receive window that fills up behind a slow path. Each key is the
        name of a remedy. Its value is `true`, the value of the remedy's first parameter, or a
        table of parameters.
    sack: Whether the hosts use selective acknowledgements (SACK, RFC 2018). On by default.
    scheduler: Scheduler: a name, or a table with a kind and parameters. Default: `"min_rtt"`.
    send_buffer: Send buffer of each host in bytes at the data level. `host` decides whether the
        size counts payload only. Default: 4 MiB. If `host` counts buffers as Linux's sockets do,
        and for kernel hosts, the buffer is autotuned by default: it follows the congestion
        windows up to 4 MiB of memory for each subflow (`tcp_wmem_max`).
    shared_bottleneck_detection: Detect which subflows share bottlenecks (RFC 8382), and couple
        only their congestion controls. Off by default.
    stack: Stack whose settings the connection has: `host`, `congestion_control`, `scheduler`,
        `path_manager`, `remedies` and `late_fallback`. Keys that the connection states itself
        come first. A stack of the scenario is that of all connections that select none.
    start: Time at which the connection opens, counted from the start of the run. Default:
        `"0s"`.
    timestamps: Whether the hosts use TCP timestamps (RFC 7323). On by default.
    """

    workload: Workload
    allow_join_initial_addr_port: bool | None = None
    congestion_control: (
        Literal[
            "new_reno",
            "cubic",
            "cubic_linux",
            "lia",
            "olia",
            "balia",
            "wvegas",
            "lia_linux",
            "bbr",
            "bbr3",
        ]
        | dict[str, Literal["new_reno", "cubic", "cubic_linux", "bbr", "bbr3"]]
        | str
        | Callable[[policy.Start], policy.CongestionControl]
        | None
    ) = None
    direction: Directions | None = None
    dss_checksum: bool | None = None
    ecn: bool | None = None
    host: Literal["linux", "rfc", "mptcp.org-0.89"] | TomlTable | None = None
    hystart: bool | None = None
    keep_alive: str | None = None
    late_fallback: bool | None = None
    limits: Limits | None = None
    mtu_probing: MtuProbing | None = None
    nagle: bool | None = None
    name: str | None = None
    pacing: bool | None = None
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
        Literal[
            "min_rtt",
            "round_robin",
            "redundant",
            "blest",
            "ecf",
            "otias",
            "sttf",
            "daps",
            "linux",
            "mptcp_org",
            "mptcp_org_round_robin",
        ]
        | TomlTable
        | str
        | Callable[[], policy.Scheduler]
        | None
    ) = None
    send_buffer: str | None = None
    shared_bottleneck_detection: SharedBottleneckDetection | None = None
    stack: (
        Literal[
            "linux-6.12",
            "linux-6.18",
            "rfc-8684",
            "mptcp.org-0.88",
            "mptcp.org-0.89",
            "mptcp.org-0.92",
            "mptcp.org-0.95",
        ]
        | None
    ) = None
    start: str | None = None
    timestamps: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CrossTraffic:
    """UDP traffic that competes with the connections on a path.

    For TCP cross-traffic, use a connection with `protocol = "tcp"`, for example with an `on_off`
    workload.

    path: Name of the path that the packets take. They also cross the paths that it goes via.
    rate: Rate of IP packets during on periods.
    direction: Direction of the packets; `download` is from server to client. Default:
        `"download"`.
    name: Name of the source; must be unique (default: `cross-traffic-1`, `cross-traffic-2` and
        so on).
    off: Length of each off period; needs `on`.
    on: Length of each on period; needs `off`. By default the source is always on.
    packet_size: Size of each IP packet, including its headers of IP and UDP (default: the path's
        MTU).
    """

    path: str
    rate: str
    direction: Direction | None = None
    name: str | None = None
    off: str | Distribution | None = None
    on: str | Distribution | None = None
    packet_size: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the subflows of a connection.

    Linux: `ip mptcp limits`.

    add_addr_accepted: Maximum number of announced addresses that a host accepts. It opens no
        subflows to further ones. Linux's default is 0; here the default is no limit.
    subflows: Maximum number of further subflows of a connection. Hosts refuse joins beyond it.
        Linux's default is 2; here the default is no limit.
    """

    add_addr_accepted: int | None = None
    subflows: int | None = None


@dataclass(frozen=True, kw_only=True)
class LossTrace:
    """Losses at given places, such as those that a capture shows.

    The trace repeats. Packets count from 1 in the order in which they enter the link.
    Acknowledgements and lost packets count too.

    packets: Length of the trace in packets.
    lost: Numbers of the lost packets, in increasing order.
    """

    packets: int
    lost: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Middlebox:
    """A middlebox between a path's link and the server.

    The middleboxes of a path stand in the order of the list, with the first next to the link.
    Packets of paths that go via this path pass them too.

    kind: `strip_options`: Removes TCP options. `nat`: Translates the client's address and ports,
        for TCP and UDP. `rewrite_isn`: Replaces the hosts' initial sequence numbers.
        `split_segments`: Splits segments, as segmentation offload does. `coalesce`: Merges
        consecutive segments, keeping the options of the first. `rewrite_payload`: Replaces,
        inserts or removes bytes of the stream, and corrects the TCP checksum. `proactive_ack`:
        Acknowledges data before its receiver does, and retransmits it if necessary. `normalise`:
        Replaces the content of retransmissions by the content seen first. `hole_refusal`: Drops
        data after a gap, and acknowledgements of data that it did not see. `blackhole_options`:
        Drops SYNs silently. `shrink_window`: Moves the right edge of receive windows back for a
        while. `bare_segments`: Adds segments without Multipath TCP options. `clamp_mss`: Reduces
        the maximum segment size in SYNs to that of a smaller MTU. `ingress_filter`: Drops
        packets to the server whose source is not the client's address on this path.
    after_packets: `strip_options` only: number of packets at the start of each flow, in both
        directions together, that are not changed; by default `0`.
    applies_to: `strip_options`, `rewrite_payload`, `bare_segments` only: which direction is
        affected; by default `"both"`. `shrink_window` only: which direction is affected, by the
        direction of the segments that advertise windows; by default `"both"`.
    at: `rewrite_payload` only: number of bytes of the flow before the change; by default `"0B"`.
    bytes: `rewrite_payload` only: number of bytes affected; by default `4`.
    change: `rewrite_payload` only: the change, made once in each flow and direction.
    delay: `coalesce` only: maximum time for which a segment waits for the next; by default
        `"1ms"`.
    every: `shrink_window` only: mean time between two small windows of a host. Each time is
        drawn between half and three halves of the mean, and is at least 1 ms. By default
        `"500ms"`.
    for_: `shrink_window` only: mean duration of a small window, with the same distribution; by
        default `"200ms"`.
    from_: Time at which the middlebox appears; by default `"0s"`.
    idle_timeout: `nat` only: maximum idle time of a mapping. After that, the flow gets a new
        port. By default `"7440s"`.
    mtu: `clamp_mss` only: the MTU that full-sized segments must fit; by default `"1400B"`.
    options: `strip_options` only: which options are removed. `unknown` means all except maximum
        segment size, window scale, SACK and timestamps. By default `["mptcp"]`.
    options_on: `split_segments` only: which pieces carry the options of the original segment.
        All carry its timestamps. By default `"all"`.
    probability: `bare_segments` only: probability that the middlebox adds a bare segment to a
        segment; by default `"10%"`.
    rebind_at: `nat` only: when all mappings are dropped, as in a restart of the NAT. Never by
        default.
    refuse: `shrink_window` only: whether the host rejects data beyond its small window.
        Otherwise it accepts all data. By default `false`.
    segments: `strip_options` only: from which segments. `ack` means all without payload that are
        in no other class. By default `["syn", "syn_ack", "third_ack", "data", "ack"]`.
    size: `split_segments` only: maximum payload of each piece; by default `"536B"`. `coalesce`
        only: maximum payload of a merged segment; by default `"2920B"`.
    syns: `blackhole_options` only: which SYNs and SYN/ACKs are dropped. `mptcp` means those with
        a Multipath TCP option. By default `"mptcp"`.
    to: `shrink_window` only: size of a small window; by default `"0B"`.
    until: Time at which the middlebox disappears, later than `from`. By default it stays.
    window: `proactive_ack` only: maximum bytes of a flow in flight from the proxy to the
        receiver. The proxy holds four times as many. By default `"64KiB"`.
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
        "clamp_mss",
        "ingress_filter",
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
    mtu: str | None = None
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
    """A path between client and server.

    Its own keys describe the forward direction, from server to client. The table `reverse`
    describes the direction from client to server.

    name: Name of the path; must be unique.
    delay: One-way propagation delay.
    limit: Capacity of the link's queue, excluding the packet in transmission. A limit given as a
        time is converted at the link's rate, or at the mean rate of its trace. With `shaper =
        "mininet"` or `"netem"`, the limit must be in packets, and counts all packets inside the
        link.
    burst_loss: Burst losses of the forward direction, in addition to `loss`.
    changes: Changes during the run.
    family: Address family of both hosts on this path. A connection opens over its first path. If
        other paths have the other family, the server announces its address of that family, and
        the client joins that address. Default: `"ipv4"`.
    icmp: Whether the path answers larger TCP segments of other paths with ICMP (RFC 1191, RFC
        8201). Without answers it is a black hole.
    jitter: Jitter of the forward direction: each packet's delay varies uniformly by ± this time.
        Default: `"0s"`.
    jitter_model: Whether jitter can reorder packets; applies to both directions. With `shaper =
        "mininet"`, it always can. Default: `"fifo"`.
    loss: Probability that the forward direction loses a packet. Default: `"0%"`.
    loss_trace: Losses of the forward direction at given places, in addition to `loss` and
        `burst_loss`.
    middleboxes: Middleboxes between the link and the server; the first is next to the link.
    mtu: Largest size of an IP packet, from 576B to 65535B: the MTU of the hosts' interfaces on
        this path, and of its links. Packets of paths that lead via this one are dropped if they
        are larger. Default: `"1500B"`.
    queue: Queue discipline of both directions, which can drop or mark packets before the queue
        is full.
    rate: Rate of the link. A path needs either `rate` or `trace`.
    reverse: The reverse direction, from client to server.
    routing: Routing, where the server has several addresses, or a host has no source routing.
    shaper: Emulation tool that both directions of the path behave like. All except `"plain"`
        need a rate, and have their own queue.
    trace: Packet-delivery trace of the link, instead of `rate`: the name of a file in Mahimahi's
        format, relative to the scenario's folder, or the trace itself. Each opportunity delivers
        1504 bytes.
    via: Earlier paths that this path's packets also cross, between its own link and the server:
        the name of one path, such as a shared bottleneck, or a list of names, in order towards
        the server. The routes of these paths are followed. Packets cross a path with a minus
        before its name (`"-core"`) in the opposite direction.
    """

    name: str
    delay: str
    limit: str
    burst_loss: BurstLoss | None = None
    changes: tuple[Change, ...] = field(default=(), metadata={"key": "change"})
    family: Family | None = None
    icmp: bool | None = None
    jitter: str | None = None
    jitter_model: JitterOrder | None = None
    loss: str | None = None
    loss_trace: LossTrace | None = None
    middleboxes: tuple[Middlebox, ...] = field(default=(), metadata={"key": "middlebox"})
    mtu: str | None = None
    queue: Queue | None = None
    rate: str | None = None
    reverse: Reverse | None = None
    routing: Routing | None = None
    shaper: Literal["plain", "mininet", "netem", "tbf", "dummynet"] | TomlTable | None = None
    trace: str | Trace | None = None
    via: str | tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Queue discipline of a path.

    ecn_threshold: `pie` only: drop probability above which packets are dropped even if they
        could be marked; by default `"10%"`.
    flows: `fq_codel` only: number of queues, over which a hash distributes the flows; by default
        `1024`.
    interval: `codel`, `fq_codel` only: time for which the sojourn time may exceed the target
        before packets are dropped: a worst-case round-trip time; by default `"100ms"`.
    isolation: `cake` only: hosts between which the queue is fair; by default `"triple_isolate"`.
    kind: `drop_tail`: Drops packets only for lack of room. `codel`: Controlled delay: drops
        packets while the sojourn time stays too long. `red`: Random early detection: drops
        packets at random as the average queue grows. `fq_codel`: Flow queueing with CoDel: a
        queue for each flow, and controlled delay in each. `pie`: Proportional integral
        controller enhanced: drops packets at random to keep a target delay. `cake`: CAKE: a
        queue for each flow, fair between hosts first, with controlled delay in each.
    max_burst: `pie` only: duration of a burst from which no packet is dropped; by default
        `"150ms"`.
    max_packets: `red` only: average queue length, in packets, from which every packet is
        dropped, even if it could be marked; by default `15`.
    max_probability: `red` only: drop probability just below `max_packets`; by default `"2%"`.
    min_packets: `red` only: average queue length, in packets, below which no packet is dropped;
        by default `5`.
    quantum: `fq_codel` only: bytes that a flow may send before the next flow's turn. A full-size
        packet is like Linux's 1514 bytes, which count the Ethernet header. By default `"1500B"`.
    rtt: `cake` only: a worst-case round-trip time. The acceptable sojourn time is a twentieth of
        it, or the time of a few packets on slow links. By default `"100ms"`.
    target: `codel`, `fq_codel` only: acceptable sojourn time; by default `"5ms"`. `pie` only:
        queueing delay at which the drop probability stays constant; by default `"15ms"`.
    update_interval: `pie` only: time between two updates of the drop probability; by default
        `"15ms"`.
    weight: `red` only: weight of a sample in the average; by default `"0.2%"`.
    """

    ecn_threshold: str | None = None
    flows: int | None = None
    interval: str | None = None
    isolation: Literal["triple_isolate", "dual_srchost", "dual_dsthost", "flows"] | None = None
    kind: Literal["drop_tail", "codel", "red", "fq_codel", "pie", "cake"] | None = None
    max_burst: str | None = None
    max_packets: int | None = None
    max_probability: str | None = None
    min_packets: int | None = None
    quantum: str | None = None
    rtt: str | None = None
    target: str | None = None
    update_interval: str | None = None
    weight: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The reverse direction of a path, from client to server.

    delay: One-way propagation delay (default: the forward delay).
    jitter: Jitter: each packet's delay varies uniformly by ± this time (default: none; with
        `shaper = "mininet"` the forward jitter).
    limit: Capacity of the link's queue (default: the forward limit).
    loss: Probability of losing a packet (default: none; with `shaper = "mininet"` the forward
        loss).
    loss_trace: Losses at given places, in addition to `loss`.
    rate: Rate of the link (default: the forward rate or trace).
    trace: Packet-delivery trace of the link, instead of `rate`.
    """

    delay: str | None = None
    jitter: str | None = None
    limit: str | None = None
    loss: str | None = None
    loss_trace: LossTrace | None = None
    rate: str | None = None
    trace: str | Trace | None = None


@dataclass(frozen=True, kw_only=True)
class Routing:
    """Routing of a path, where the server has several addresses, or a host has no source routing.

    client_egress: Name of the path over which the client sends packets from its address on this
        path, like a host without source routing, whose packets all leave by the default route.
        They cross the links and middleboxes of that path. By default they leave by this path.
    server_addresses: Numbers of the server's addresses that the path leads to, from 1 to 8. A
        connection opens to the first of its first path, and the server announces its other
        addresses. A host opens no subflow to an address that the path does not lead to.
    server_egress: Name of the path over which the server sends packets to the client's address
        on this path. By default they leave by this path.
    """

    client_egress: str | None = None
    server_addresses: tuple[int, ...] | None = None
    server_egress: str | None = None


@dataclass(frozen=True, kw_only=True)
class SharedBottleneckDetection:
    """Shared-bottleneck detection (RFC 8382), which couples only subflows that share a bottleneck.

    loss_threshold: Loss rate (p_l) above which a subflow counts as passing a bottleneck,
        whatever its delays. Default: `"5%"`.
    """

    loss_threshold: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A packet-delivery trace in the scenario itself, instead of a file name.

    Normalised scenarios use this form.

    milliseconds: Times of the delivery opportunities in milliseconds, separated by spaces. `7*3`
        means three opportunities at 7 ms. The trace repeats; its last time is the period.
    """

    milliseconds: str


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An experiment: paths between a client and a server, and the connections over them.

    name: Name of the scenario.
    duration: Duration of the run.
    paths: The paths (at least one).
    connections: The connections (at least one).
    cross_traffic: UDP traffic that competes with the connections.
    description: Description for readers.
    sample_interval: Interval between the samples of time series. Default: `"100ms"`.
    stack: Stack of all connections that select none.
    warm_up: Time at the beginning of the run that metrics exclude; shorter than the duration.
        Default: `"0s"`.
    """

    name: str
    duration: str
    paths: tuple[NetworkPath, ...] = field(metadata={"key": "path"})
    connections: tuple[Connection, ...] = field(metadata={"key": "connection"})
    cross_traffic: tuple[CrossTraffic, ...] = ()
    description: str | None = None
    sample_interval: str | None = None
    stack: (
        Literal[
            "linux-6.12",
            "linux-6.18",
            "rfc-8684",
            "mptcp.org-0.88",
            "mptcp.org-0.89",
            "mptcp.org-0.92",
            "mptcp.org-0.95",
        ]
        | None
    ) = None
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
    "Limits",
    "LossTrace",
    "Middlebox",
    "NetworkPath",
    "OnOff",
    "Queue",
    "RequestResponse",
    "Reverse",
    "Routing",
    "SharedBottleneckDetection",
    "TomlTable",
    "Trace",
    "Workload",
]
