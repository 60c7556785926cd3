"""A scenario as a shell script for tc and network namespaces."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from anabranch.exchange import hosts
from anabranch.exchange.link import FULL_PACKET, UNLIMITED, Link, milliseconds
from anabranch.exchange.network import LinkChange, Network
from anabranch.exchange.words import header
from anabranch.scenarios.quantities import byte_count

_MANY_BITS = 100_000_000_000
"""A rate in bit/s that delays no packet."""
_FULL_PACKET_MEMORY = 2304
"""Bytes of kernel memory (truesize) that a full packet takes up."""


def script(network: Network, differences: list[str]) -> str:
    """The script for a network. `differences` are those from the scenario."""
    parts = [
        _HEAD.format(header=header(network.settings, differences, "bash SCRIPT")),
        _requirements(network),
        _FUNCTIONS,
        *_topology(network),
        _PROGRAM.format(program=program()),
        *_traffic(network),
    ]
    return "\n".join(parts)


def program() -> str:
    """The source of the program for traffic, which every script contains."""
    return Path(__file__).with_name("traffic.py").read_text(encoding="utf-8").rstrip("\n")


def propagates(network: Network, path: str, *, is_forward: bool) -> bool:
    """Whether a direction of a path needs netem at any time of the run."""
    states = [network.links[path][0 if is_forward else 1]]
    states += [
        each.link for each in network.changes if (each.path, each.is_forward) == (path, is_forward)
    ]
    return any(each.delay_s or each.jitter_s or each.loss or each.burst_loss for each in states)


def transmit(network: Network, path: str, link: Link, *, is_forward: bool) -> str:
    """The command that gives the sending end of a link its rate and queue, or takes it down."""
    sender, receiver = network.ends(path, is_forward=is_forward)
    if link.is_down:
        return f"cut {sender} {receiver}"
    bucket = link.mtu + _slack(link)
    return f"transmit {sender} {receiver} {link.rate}bit {bucket} {queue(link, network)}"


def propagate(network: Network, path: str, link: Link, *, is_forward: bool) -> Iterator[str]:
    """The commands that give the receiving end of a link its delay and losses, if it has any."""
    if not propagates(network, path, is_forward=is_forward):
        return
    _, node = network.ends(path, is_forward=is_forward)
    for neighbour in network.beyond(path, is_forward=is_forward):
        yield f"propagate {node} {neighbour} {netem(link)}"


def _slack(link: Link) -> int:
    """Bytes in the token bucket of a link besides a full packet.

    The link sends them in a millisecond, so that a late timer costs no capacity.
    """
    return max(FULL_PACKET, link.rate // 8000)


def queue(link: Link, network: Network) -> str:
    """The queue discipline of a link, as tc takes it.

    Packets in the bucket's slack have left tc's queue. On the link, they are still in the queue.
    """
    size, kind = link.limit_bytes(), link.discipline["kind"]
    packets = UNLIMITED if size is None else max(1, -(-(size - _slack(link)) // FULL_PACKET))
    ecn = " ecn" if any(each.get("ecn") for each in network.settings["connection"]) else ""
    if kind == "codel":
        target, interval = (link.discipline[key] for key in ("target", "interval"))
        return f"codel limit {packets} target {target} interval {interval}{ecn}"
    if kind == "fq_codel":
        return f"fq_codel limit {packets} {_fq_codel(link)}{ecn}"
    if kind == "cake":
        rtt, isolation = (link.discipline[key] for key in ("rtt", "isolation"))
        # The token bucket is the shaper. CAKE counts the memory of packets, and always uses ECN.
        keywords = f"unlimited besteffort {isolation.replace('_', '-')} rtt {rtt}"
        return f"cake {keywords} memlimit {packets * _FULL_PACKET_MEMORY}"
    if kind == "pie":
        target, interval = (link.discipline[key] for key in ("target", "update_interval"))
        return f"pie limit {packets} target {target} tupdate {interval}{ecn}"
    if kind == "red":
        return f"red limit {packets * FULL_PACKET} {_red(link)}{ecn}"
    if link.limit.endswith("packets") or size is None:
        return f"pfifo limit {packets}"
    return f"bfifo limit {max(link.mtu, size - _slack(link))}"


def _fq_codel(link: Link) -> str:
    """The parameters of FQ-CoDel. As in scenarios, the size table leaves IP packets to count."""
    flows, target, interval = (link.discipline[key] for key in ("flows", "target", "interval"))
    quantum = byte_count(link.discipline["quantum"])
    return f"flows {flows} target {target} interval {interval} quantum {quantum}"


def _red(link: Link) -> str:
    """The parameters of RED, whose average tc derives from the size of a burst."""
    low, high = (link.discipline[key] for key in ("min_packets", "max_packets"))
    burst = -(-(2 * low + high) // 3)
    probability = float(link.discipline["max_probability"].removesuffix("%")) / 100
    return (
        f"min {low * FULL_PACKET} max {high * FULL_PACKET} avpkt {FULL_PACKET} burst {burst} "
        f"bandwidth {link.rate}bit probability {probability:g}"
    )


def netem(link: Link) -> str:
    """The delay and the losses of a link, as netem takes them.

    The bucket sends a packet when its transmission begins, and netem adds the time that the
    transmission takes. With jitter, netem's rate only keeps the order of the packets.
    """
    parts = []
    if link.delay_s or link.jitter_s:
        jitter = f" {milliseconds(link.jitter_s)}" if link.jitter_s else ""
        parts.append(f"delay {milliseconds(link.delay_s)}{jitter}")
    if link.burst_loss:
        parts.append(f"loss gemodel {_gilbert_elliott(link)}")
    elif link.loss:
        parts.append(f"loss {_percent(link.loss)}")
    if not link.jitter_s:
        parts.append(f"rate {link.rate}bit -14")
    elif link.keeps_order:
        parts.append(f"rate {_MANY_BITS}bit")
    return " ".join(parts)


def _gilbert_elliott(link: Link) -> str:
    """The channel's transitions and its losses in either state, joined with independent losses."""
    burst = link.burst_loss or {}
    in_bad, in_good = (
        1 - (1 - link.loss) * (1 - burst[key]) for key in ("loss_in_bad", "loss_in_good")
    )
    return " ".join(map(_percent, (burst["to_bad"], burst["to_good"], in_bad, in_good)))


def _percent(probability: float) -> str:
    return f"{probability * 100:.6g}%"


def _requirements(network: Network) -> str:
    ways = [(path, way) for path in network.links for way in (True, False)]
    kinds = {"tbf"} | {pair[0].discipline["kind"] for pair in network.links.values()}
    if any(propagates(network, path, is_forward=way) for path, way in ways):
        kinds.add("netem")
    lines = [f"require_qdisc {probe}" for kind, probe in _PROBES.items() if kind in kinds]
    if any(each.settings.get("protocol") == "mptcp" for each in network.flows):
        lines.append("require_mptcp")
    return _REQUIREMENTS + "\n".join(lines)


_PROBES = {
    "tbf": "tbf rate 1mbit burst 3000 limit 3000",
    "netem": "netem delay 1ms",
    "codel": "codel",
    "fq_codel": "fq_codel",
    "cake": "cake",
    "pie": "pie",
    "red": "red limit 60000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 1mbit",
}
"""Queue disciplines that a kernel may lack, with parameters."""


def _topology(network: Network) -> Iterator[str]:
    yield "# ---- nodes and cables: the interface of each node is named after its neighbour\n"
    yield from (f"node {name}" for name in network.commands)
    yield from (f"cable {each.one} {each.other}" for each in network.cables)
    endpoints = hosts.endpoints(network)
    for name, commands in network.commands.items():
        yield _input(f"ip -n {name} -batch -", [*commands, *endpoints.get(name, [])])
    for name, settings in hosts.sysctls(network).items():
        yield _input(f"sysctls {name}", settings)
    yield "\n# ---- links"
    for path, pair in network.links.items():
        yield f"\n# path {path}: from server to client, then from client to server"
        for is_forward, link in zip((True, False), pair, strict=True):
            yield transmit(network, path, link, is_forward=is_forward)
            yield from propagate(network, path, link, is_forward=is_forward)


def _input(command: str, lines: list[str]) -> str:
    """A command with these lines as its standard input."""
    return "\n".join([f"\n{command} <<'END'", *lines, "END"])


def _traffic(network: Network) -> Iterator[str]:
    yield "# ---- traffic"
    yield _START
    for flow in network.flows:
        about = shlex.quote(json.dumps(hosts.traffic(network, flow)))
        yield f"play {flow.client} {flow.server} \\\n    {about}"
    if network.changes:
        yield "\nchanges() {"
        yield from (f"    {line}" for each in network.changes for line in _lines(network, each))
        yield "}\nchanges &"
    yield _END


def _lines(network: Network, change: LinkChange) -> Iterator[str]:
    """The commands of a change, which state everything, so that their order does not matter."""
    link, is_forward = change.link, change.is_forward
    yield f"at {round(change.at_s * 1e6)}"
    yield transmit(network, change.path, link, is_forward=is_forward)
    yield from propagate(network, change.path, link, is_forward=is_forward)


_HEAD = """\
#!/usr/bin/env bash
{header}
set -euo pipefail
export LC_ALL=C
"""

_REQUIREMENTS = """\
# ---- requirements

fail() {
    echo "$0: $1" >&2
    exit 2
}

require_mptcp() {
    [ -e /proc/sys/net/mptcp/allow_join_initial_addr_port ] ||
        fail "this kernel lacks Multipath TCP; use Linux 5.16 or later with CONFIG_MPTCP"
}

# require_qdisc KIND PARAMETER...
require_qdisc() {
    local probe=probe-$$ found=yes
    ip netns add "$probe"
    tc -n "$probe" qdisc add dev lo root "$@" 2>/dev/null || found=no
    ip netns delete "$probe"
    [ $found = yes ] ||
        fail "this kernel lacks $1; load sch_$1, or use a kernel with CONFIG_NET_SCH_${1^^}"
}

[ "$(id -u)" = 0 ] || fail "this script needs root; use sudo bash $0"
for tool in ip tc sysctl python3; do
    command -v $tool >/dev/null ||
        fail "$tool is missing; install iproute2, procps and python3"
done
"""

_FUNCTIONS = """
# ---- functions

NODES=()

clean_up() {
    local job node
    for job in $(jobs -p); do
        kill "$job" 2>/dev/null || true
    done
    wait
    for node in "${NODES[@]}"; do
        ip netns delete "$node"
    done
    rm -rf "$FOLDER"
}

# node NAME: a network namespace.
node() {
    ip netns add "$1" 2>/dev/null ||
        fail "cannot create the namespace $1; if there is one, remove it: ip netns delete $1"
    NODES+=("$1")
}

# cable ONE OTHER: a veth pair between two nodes.
cable() {
    ip link add "$2" netns "$1" type veth peer name "$1" netns "$2"
}

# sysctls NODE: the settings on standard input, as far as the kernel has them.
sysctls() {
    ip netns exec "$1" sysctl -q -e -p -
}

# transmit NODE INTERFACE RATE BUCKET QUEUE...: the queue and the transmitter of a link. Sizes are
# those of IP packets: the size table takes off the 14 bytes of the Ethernet header. A change of tbf
# also changes the limit of its queue, so the second command follows each time.
transmit() {
    local node=$1 interface=$2 rate=$3 bucket=$4
    shift 4
    tc -n "$node" qdisc replace dev "$interface" root handle 1: \\
        stab overhead -14 linklayer ethernet tbf rate "$rate" burst "$bucket" limit 100000000
    tc -n "$node" qdisc replace dev "$interface" parent 1:1 handle 2: "$@"
}

# cut NODE INTERFACE: a link that is down. Its routes stay.
cut() {
    tc -n "$1" qdisc replace dev "$2" root handle 3: blackhole
}

# propagate NODE INTERFACE NETEM...: the delay and the losses of a link, behind its transmitter.
propagate() {
    local node=$1 interface=$2
    shift 2
    tc -n "$node" qdisc replace dev "$interface" root handle 1: netem limit 1000000 "$@"
}

# at MICROSECONDS: wait for a time of the run. Unlike sleep, read leaves no process behind.
at() {
    local left=$((BEGIN + $1 - ${EPOCHREALTIME/./}))
    [ "$left" -le 0 ] ||
        read -r -t "$((left / 1000000)).$(printf %06d $((left % 1000000)))" -u "$SILENCE" || true
}

# play CLIENT SERVER FLOW: start both sides of a flow.
play() {
    local start=${BEGIN:0:-6}.${BEGIN: -6}
    ip netns exec "$2" python3 "$FOLDER/traffic.py" server "$3" "$start" &
    PLAYERS+=($!)
    ip netns exec "$1" python3 "$FOLDER/traffic.py" client "$3" "$start" &
    PLAYERS+=($!)
}

FOLDER=$(mktemp -d)
PLAYERS=()
mkfifo "$FOLDER/silence"
exec {SILENCE}<>"$FOLDER/silence"
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"""

_PROGRAM = """
# ---- the program that makes the traffic

cat >"$FOLDER/traffic.py" <<'END_OF_PROGRAM'
{program}
END_OF_PROGRAM
"""

_START = """
# The run begins when all programs are ready.
BEGIN=$((${EPOCHREALTIME/./} + 2000000))"""

_END = """
status=0
for player in "${PLAYERS[@]}"; do
    wait "$player" || status=1
done
exit $status
"""
