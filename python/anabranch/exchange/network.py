"""The network that a script sets up: nodes, cables, addresses and routes.

A path is a cable between two routers. The router at its client end has the path's name, and the
other one is ``NAME-far``. Their ends of the cable have the rate and the queue of the direction that
they send, and their other interfaces have its delay. Hosts have neither, because both would change
the accounting of their sockets: a packet that waits on a host's own interface still belongs to its
socket, and a router forgets the socket.

Each connection and each source of cross-traffic has two hosts of its own, because a kernel has one
setting of most keys for all connections of a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from anabranch.errors import InputError
from anabranch.exchange.link import Link, links, seconds
from anabranch.scenarios.routes import Crossing, route

MOST = 254
"""Largest number of paths, and of connections and sources of cross-traffic, that addresses have."""


@dataclass(frozen=True)
class NetworkCable:
    """A cable between two nodes. The interface of each is named after the other."""

    one: str
    other: str
    mtu: int


@dataclass(frozen=True)
class LinkChange:
    """A change of one direction of a link at a time in s."""

    at_s: float
    path: str
    is_forward: bool
    link: Link


@dataclass(frozen=True)
class TrafficFlow:
    """Two hosts with traffic between them.

    Attributes:
        name: Name of the connection or of the cross-traffic.
        number: Number from 1, which is part of the addresses.
        client: Node of the client.
        server: Node of the server.
        settings: The connection or the cross-traffic, as in normalised scenarios.
        addresses: The client's address on each path, the first one first.
        servers: The server's addresses.
    """

    name: str
    number: int
    client: str
    server: str
    settings: Mapping[str, Any]
    addresses: Mapping[str, str]
    servers: tuple[str, ...]

    @property
    def is_connection(self) -> bool:
        """Whether this is a connection, and not cross-traffic."""
        return "workload" in self.settings


@dataclass
class Network:
    """Everything that a script sets up, for either kind of script.

    Attributes:
        settings: The normalised scenario.
        near: The router at the client end of each path.
        links: The forward and the reverse direction of each path.
        cables: All cables. Those of paths lead from the router at the client end to the far one.
        flows: Connections and cross-traffic.
        commands: For each node, its commands for ``ip -batch``, in order.
        changes: Changes during the run, in order.
    """

    settings: Mapping[str, Any]
    near: dict[str, str] = field(default_factory=dict)
    links: dict[str, tuple[Link, Link]] = field(default_factory=dict)
    cables: list[NetworkCable] = field(default_factory=list)
    flows: list[TrafficFlow] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    changes: list[LinkChange] = field(default_factory=list)

    def far(self, path: str) -> str:
        """The router at the server end of a path."""
        return f"{self.near[path]}{_FAR}"

    def ends(self, path: str, *, is_forward: bool) -> tuple[str, str]:
        """The routers at the sending and the receiving end of a direction of a path."""
        near, far = self.near[path], self.far(path)
        return (far, near) if is_forward else (near, far)

    def beyond(self, path: str, *, is_forward: bool) -> list[str]:
        """The neighbours to which the receiving end of a direction of a path forwards packets."""
        sender, node = self.ends(path, is_forward=is_forward)
        return [each for each in self.neighbours(node) if each != sender]

    def neighbours(self, node: str) -> list[str]:
        """The nodes to which cables lead, after which the node's interfaces are named."""
        both = [(each.one, each.other) for each in self.cables]
        pairs = both + [(other, one) for one, other in both]
        return [to for of, to in pairs if of == node]


_FAR = "-far"
_LONGEST = 15 - len(_FAR)
"""Longest name of a path's router: Linux's names of interfaces have up to 15 characters."""


def of_scenario(settings: Mapping[str, Any]) -> Network:
    """The network of a normalised scenario.

    Raises:
        InputError: if it has more paths or flows than the addresses allow.
    """
    network = Network(settings)
    paths = {path["name"]: path for path in settings["path"]}
    traffic = [*settings["connection"], *settings.get("cross_traffic", [])]
    for what, count in (("paths", len(paths)), ("connections and cross-traffic", len(traffic))):
        if count > MOST:
            raise InputError(f"{settings['name']}: {count} {what}; a script has up to {MOST}")
    hosts = [*_hosts(settings)]
    used = {name for pair in hosts for name in pair}
    for name, path in paths.items():
        network.near[name] = _unique(name, used)
        network.links[name] = links(path)
        network.cables.append(
            NetworkCable(network.near[name], network.far(name), network.links[name][0].mtu)
        )
    for number, (each, pair) in enumerate(zip(traffic, hosts, strict=True), start=1):
        network.flows.append(_flow(each, number, pair, paths))
    _connect(network, paths)
    network.changes = sorted(_changes(network, paths), key=lambda each: each.at_s)
    return network


def _hosts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of client and server, for each connection and each source of cross-traffic."""
    connections = len(settings["connection"])
    for number in range(1, connections + 1):
        suffix = "" if connections == 1 else str(number)
        yield f"client{suffix}", f"server{suffix}"
    for number in range(1, len(settings.get("cross_traffic", [])) + 1):
        yield f"cross{number}-client", f"cross{number}-server"


def _unique(name: str, used: set[str]) -> str:
    """A name for a router and its interfaces that resembles the path's name."""
    plain = re.sub(r"[^a-zA-Z0-9_]+", "-", name).strip("-") or "path"
    number, found = 1, plain[:_LONGEST]
    while {found, f"{found}{_FAR}"} & used:
        number += 1
        found = f"{plain[: _LONGEST - len(str(number))]}{number}"
    used |= {found, f"{found}{_FAR}"}
    return found


def _flow(
    traffic: Mapping[str, Any],
    number: int,
    hosts: tuple[str, str],
    paths: Mapping[str, Mapping[str, Any]],
) -> TrafficFlow:
    names = traffic["paths"] if "paths" in traffic else [traffic["path"]]
    if traffic.get("protocol") == "tcp":
        names = names[:1]
    indices = {name: index for index, name in enumerate(paths, start=1)}
    addresses = {name: f"10.{number}.{indices[name]}.1" for name in names}
    servers = paths[names[0]].get("routing", {}).get("server_addresses", [1])
    numbered = tuple(f"10.{number}.0.{each}" for each in servers)
    return TrafficFlow(traffic["name"], number, *hosts, traffic, addresses, numbered)


def _connect(network: Network, paths: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the cables between hosts and routers, the addresses, and the routes."""
    largest = max(forward.mtu for forward, _ in network.links.values())
    onward: dict[tuple[str, str], dict[str, list[str]]] = {}
    back: list[tuple[str, str, str]] = []
    for flow in network.flows:
        for path, client in flow.addresses.items():
            nodes = [flow.client, *_nodes(network, route(path, paths)), flow.server]
            for one, other in pairwise(nodes):
                first = one == flow.client
                _add(
                    network,
                    NetworkCable(one, other, network.links[path][0].mtu if first else largest),
                )
                back.append((other, client, one))
                for server in flow.servers:
                    onward.setdefault((one, server), {}).setdefault(other, []).append(client)
    _addresses(network)
    for node, client, before in back:
        network.commands[node].append(f"route add {client} dev {before}")
    for (node, server), following in onward.items():
        _route(network, node, server, following)


def _nodes(network: Network, crossings: list[Crossing]) -> Iterator[str]:
    """The routers on a route, from the client to the server."""
    for each in crossings:
        yield from network.ends(each.path, is_forward=each.is_reversed)


def _add(network: Network, cable: NetworkCable) -> None:
    ends = {cable.one, cable.other}
    if all({each.one, each.other} != ends for each in network.cables):
        network.cables.append(cable)


def _addresses(network: Network) -> None:
    """Set up the interfaces and addresses of all nodes.

    All interfaces have the same link-layer address, so that neither end of a cable asks for the
    other's. The first packet would otherwise wait for the answer, in which case the first sample of
    the round-trip time would be too long.
    """
    for cable in network.cables:
        for node, interface in ((cable.one, cable.other), (cable.other, cable.one)):
            commands = network.commands.setdefault(node, ["link set lo up"])
            commands.append(f"link set {interface} address {_STATION} mtu {cable.mtu} arp off up")
    for number, router in enumerate(network.near.values()):
        # With an address of its own, a router can send ICMP.
        network.commands[router].append(f"addr add 10.255.{number}.1/32 dev lo")
        network.commands[f"{router}{_FAR}"].append(f"addr add 10.255.{number}.2/32 dev lo")
    for flow in network.flows:
        for path, address in flow.addresses.items():
            network.commands[flow.client].append(f"addr add {address}/32 dev {network.near[path]}")
        network.commands[flow.server] += [f"addr add {each}/32 dev lo" for each in flow.servers]


_STATION = "02:00:00:00:00:01"
"""A locally administered link-layer address."""


def _route(network: Network, node: str, server: str, following: Mapping[str, list[str]]) -> None:
    """Add routes from a node to a server. The first one needs no rule for the client's address."""
    commands = network.commands[node]
    for number, (interface, clients) in enumerate(following.items()):
        if number == 0:
            source = f" src {clients[0]}" if _is_client(network, node) else ""
            commands.append(f"route add {server} dev {interface}{source}")
            continue
        for client in clients:
            table = 100 + int(client.split(".")[2])
            commands.append(f"rule add from {client} to {server} table {table}")
            commands.append(f"route add {server} dev {interface} table {table}")


def _is_client(network: Network, node: str) -> bool:
    return any(flow.client == node for flow in network.flows)


def _changes(network: Network, paths: Mapping[str, Mapping[str, Any]]) -> Iterator[LinkChange]:
    for name, path in paths.items():
        now = dict(zip((True, False), network.links[name], strict=True))
        for change in sorted(path["change"], key=lambda each: seconds(each["at"])):
            directions = _DIRECTIONS[change["applies_to"]]
            for is_forward in directions:
                after = now[is_forward].after(change)
                if after != now[is_forward]:
                    yield LinkChange(seconds(change["at"]), name, is_forward, after)
                now[is_forward] = after


_DIRECTIONS = {"both": (True, False), "forward": (True,), "reverse": (False,)}
