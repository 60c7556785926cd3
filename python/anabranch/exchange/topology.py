"""The paths between two hosts of a Mininet topology."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch.exchange.link import UNLIMITED
from anabranch.exchange.mininet import in_delay_line
from anabranch.exchange.script import Cable, Node, Script, Symbol

Step = tuple[int, Node]
"""A link on a route, by its index, and the node at which the route enters it."""

_FASTEST = 10_000_000_000
"""Rate in bit/s of a link without one. A veth pair has none."""

_PLAIN = 1000
"""Packets in the queue of a link without `max_queue_size`, the default of netem and of veth."""


@dataclass(frozen=True)
class Direction:
    """One direction of one or more links in a row.

    Attributes:
        rate: Rate in bit/s; `None` for no limit.
        packets: Capacity of the queue in packets, excluding those that propagate.
        delay_ns: Delay in ns.
        jitter_ns: Amplitude of the jitter in ns.
        loss: Probability of losing a packet.
    """

    rate: float | None = None
    packets: int = UNLIMITED
    delay_ns: int = 0
    jitter_ns: int = 0
    loss: float = 0.0

    def and_then(self, other: Direction) -> Direction:
        """Both directions in a row: the slower one has the queue."""
        slower = self if other.rate is None or (self.rate or _FASTEST) <= other.rate else other
        return Direction(
            slower.rate,
            slower.packets,
            self.delay_ns + other.delay_ns,
            self.jitter_ns + other.jitter_ns,
            1 - (1 - self.loss) * (1 - other.loss),
        )


@dataclass
class Path:
    """A path of a scenario: links of a route that belong to it alone, or that several routes share.

    Attributes:
        name: Its name.
        forward: The direction from server to client.
        reverse: The direction from client to server.
        via: The shared paths that it also crosses, in order towards the server.
    """

    name: str
    forward: Direction
    reverse: Direction
    via: list[str] = field(default_factory=list)


def paths(script: Script, client: Node, server: Node) -> tuple[list[Path], list[Path]]:
    """The shared paths, and the paths of the client, one for each of its links that lead on.

    Paths are as disjoint as the topology allows. Parameters of links that are not understood join
    the problems of `script`.
    """
    crossings = routes(script, client, server)
    directions = [_directions(script, cable) for cable in script.cables]
    crossed = [{at for at, _ in each} for each in crossings]
    shaped = {at for at, both in enumerate(directions) if both != (Direction(), Direction())}
    users = {at: tuple(n for n, each in enumerate(crossed) if at in each) for at in shaped}
    names = _Names()
    own: list[Path] = []
    shared: dict[tuple[int, ...], Path] = {}
    for number, route in enumerate(crossings):
        path = Path(names.of(_second(script.cables, route)), Direction(), Direction())
        own.append(path)
        for at, node in route:
            if at not in shaped:
                continue
            onward, back = _directed(script.cables[at], node, directions[at])
            if len(users[at]) == 1:
                _extend(path, onward, back)
                continue
            of_all = shared.get(users[at])
            if of_all is None:
                of_all = shared[users[at]] = Path(names.of(node), Direction(), Direction())
            if users[at][0] == number:
                _extend(of_all, onward, back)
            if of_all.name not in path.via:
                path.via.append(of_all.name)
    return [*shared.values()], own


def table(path: Path) -> dict[str, Any]:
    """A path as a table of a scenario."""
    forward, reverse = _table(path.forward), _table(path.reverse)
    found: dict[str, Any] = {"name": path.name}
    if path.via:
        found["via"] = path.via[0] if len(path.via) == 1 else path.via
    found |= forward
    if path.forward.jitter_ns or path.reverse.jitter_ns:
        found["jitter_model"] = "reordering"
    differs = {key: reverse[key] for key in reverse if reverse[key] != forward.get(key)}
    for key in ("jitter", "loss"):  # whose default is not that of the other direction
        if key in reverse:
            differs[key] = reverse[key]
    if differs:
        found["reverse"] = differs
    return found


def _table(direction: Direction) -> dict[str, Any]:
    found = {
        "rate": f"{direction.rate or _FASTEST:.0f}bit/s",
        "delay": f"{direction.delay_ns}ns",
        "limit": "infinite" if direction.packets >= UNLIMITED else f"{direction.packets}packets",
    }
    if direction.jitter_ns:
        found["jitter"] = f"{direction.jitter_ns}ns"
    if direction.loss:
        found["loss"] = f"{direction.loss * 100:.9g}%"
    return {key: _short(value) for key, value in found.items()}


def _short(quantity: str) -> str:
    """A quantity with the largest unit that needs no fraction."""
    match = re.fullmatch(r"(\d+)(ns|bit/s)", quantity)
    if match is None:
        return quantity
    number, unit = int(match[1]), match[2]
    larger = ("us", "ms", "s") if unit == "ns" else ("kbit/s", "Mbit/s", "Gbit/s")
    for each in larger:
        if number == 0 or number % 1000:
            break
        number, unit = number // 1000, each
    return f"{number}{'s' if number == 0 and unit == 'ns' else unit}"


class _Names:
    """Unique names of paths."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, node: Node) -> str:
        """A name after a node."""
        number, name = 1, node.name
        while name in self._used:
            number += 1
            name = f"{node.name}-{number}"
        self._used.add(name)
        return name


def _second(cables: Sequence[Cable], route: Sequence[Step]) -> Node:
    """The node after the client, or the client if the route has one link."""
    at, node = route[0]
    return node if len(route) == 1 else _opposite(cables[at], node)


def _opposite(cable: Cable, node: Node) -> Node:
    return cable.other if node is cable.one else cable.one


def _extend(path: Path, onward: Direction, back: Direction) -> None:
    path.reverse = path.reverse.and_then(onward)
    path.forward = path.forward.and_then(back)


def _directed(
    cable: Cable, node: Node, directions: tuple[Direction, Direction]
) -> tuple[Direction, Direction]:
    """The direction of a link away from a node, and the other one."""
    return directions if node is cable.one else (directions[1], directions[0])


# ---- routes


def routes(script: Script, client: Node, server: Node) -> list[list[Step]]:
    """Disjoint routes, and a route for each further link of the client that leads to the server."""
    cables = script.cables
    flows: dict[int, Node] = {}
    while (found := _shortest(cables, client, server, flows)) is not None:
        for at, node in found:
            # A step against a flow removes that flow (Ford and Fulkerson 1956).
            if flows.pop(at, None) is None:
                flows[at] = node
    found_routes = [*_decomposed(cables, client, server, flows)]
    for at, cable in enumerate(cables):
        if client in (cable.one, cable.other) and at not in flows:
            rest = _shortest(cables, _opposite(cable, client), server, {}, avoid=client)
            if rest is not None:
                found_routes.append([(at, client), *rest])
    return sorted(found_routes, key=lambda route: route[0][0])


def _shortest(
    cables: Sequence[Cable],
    start: Node,
    end: Node,
    flows: Mapping[int, Node],
    avoid: Node | None = None,
) -> list[Step] | None:
    """The route with the fewest links. It crosses a link with a flow only against that flow."""
    if start is end:
        return []
    before: dict[Node, Step] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for at, cable in enumerate(cables):
            if node not in (cable.one, cable.other) or flows.get(at) is node:
                continue
            following = _opposite(cable, node)
            if following in before or following in (start, avoid):
                continue
            before[following] = (at, node)
            if following is end:
                return [*reversed([*_back(before, end, start)])]
            if following.forwards:
                waiting.append(following)
    return None


def _back(before: Mapping[Node, Step], end: Node, start: Node) -> Iterator[Step]:
    node = end
    while node is not start:
        yield before[node]
        node = before[node][1]


def _decomposed(
    cables: Sequence[Cable], client: Node, server: Node, flows: Mapping[int, Node]
) -> Iterator[list[Step]]:
    """The routes of which flows consist."""
    left = dict(flows)
    for first in [at for at, node in flows.items() if node is client]:
        route, node, at = [], client, first
        while True:
            del left[at]
            route.append((at, node))
            node = _opposite(cables[at], node)
            if node is server:
                break
            at = next(each for each, origin in left.items() if origin is node)
        yield route


# ---- parameters of links


def _directions(script: Script, cable: Cable) -> tuple[Direction, Direction]:
    """The directions of a link: each interface has the settings of what it sends."""
    first, second = (_direction(script, cable, each) for each in cable.parameters)
    return first, second


_UNDERSTOOD = {
    "bw", "delay", "jitter", "loss", "max_queue_size", "use_htb", "use_hfsc", "use_tbf",
    "disable_gro", "ip", "mac", "params",
}  # fmt: skip


def _direction(script: Script, cable: Cable, given: Mapping[str, Any]) -> Direction:
    known = {}
    for key, value in given.items():
        if value is None:
            continue
        if key not in _UNDERSTOOD or isinstance(value, Symbol):
            script.problem(cable.line, f"{key} of the link {cable.one}–{cable.other}")
        else:
            known[key] = value
    try:
        return _of_parameters(script, cable, known)
    except (TypeError, ValueError):
        text = ", ".join(f"{key}={value!r}" for key, value in known.items())
        script.problem(cable.line, f"link {cable.one}–{cable.other}: {text}")
        return Direction()


def _of_parameters(script: Script, cable: Cable, given: Mapping[str, Any]) -> Direction:
    rate = round(float(given["bw"]) * 1e6) if "bw" in given else None
    direction = Direction(
        rate,
        UNLIMITED if rate is None else int(given.get("max_queue_size", _PLAIN)),
        _nanoseconds(given.get("delay", 0)),
        _nanoseconds(given.get("jitter", 0)),
        float(given.get("loss", 0)) / 100,
    )
    if rate is None or direction.packets >= UNLIMITED:
        return direction
    waiting = in_delay_line(rate, direction.delay_ns / 1e9)
    if direction.packets <= waiting:
        script.note(
            cable.line,
            f"max_queue_size={direction.packets} is below the {waiting} packets that propagate at "
            "bw; in Mininet, the link is slower than in the scenario",
        )
    return replace(direction, packets=max(1, direction.packets - waiting))


_UNITS = {"s": 1e9, "sec": 1e9, "secs": 1e9, "ms": 1e6, "msec": 1e6, "msecs": 1e6, "us": 1e3,
          "usec": 1e3, "usecs": 1e3, "": 1e3}  # fmt: skip
"""Units of tc in ns; a number alone is in us."""


def _nanoseconds(written: Any) -> int:
    """A time as tc reads it."""
    match = re.fullmatch(r"([0-9.]+)\s*([a-z]*)", str(written).strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(written)
    return round(float(match[1]) * _UNITS[match[2]])
