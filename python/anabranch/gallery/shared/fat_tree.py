"""A FatTree data centre: its cables, its equal-cost routes, and flows that each seed draws.

In a FatTree of switches with k ports, each of k pods has k/2 edge and k/2 aggregation switches. All
links have the same rate, and the core can carry all hosts at once. A cable is a path whose client's
end is below its server's end. A route climbs some cables, and descends others in reverse.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.gallery.shared.connections import network_path
from anabranch.scenarios.scenario import NetworkPath


@dataclass(frozen=True)
class FatTree:
    """A FatTree of switches with `ports` ports, all of whose cables are alike."""

    ports: int
    rate: str
    delay: str
    limit: str

    @property
    def _half(self) -> int:
        return self.ports // 2

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.ports * self._half**2

    def cables(self) -> list[NetworkPath]:
        """All cables: from hosts to edge, to aggregation, and to core switches."""
        names = [f"h{host}" for host in range(self.hosts)]
        for switch in range(self.ports * self._half):
            pod, own = divmod(switch, self._half)
            names += [_up("e", switch, "a", pod * self._half + n) for n in range(self._half)]
            names += [_up("a", switch, "c", own * self._half + n) for n in range(self._half)]
        return [network_path(name, self.rate, self.delay, self.limit) for name in names]

    def routes(self, source: int, destination: int) -> list[tuple[str, ...]]:
        """All shortest routes from one host to another, each as the cables that it crosses."""
        ends = (f"h{source}",), (f"-h{destination}",)
        edge, other = source // self._half, destination // self._half
        if edge == other:
            return [ends[0] + ends[1]]
        return [ends[0] + between + ends[1] for between in self._between(edge, other)]

    def _between(self, edge: int, other: int) -> list[tuple[str, ...]]:
        """The routes from one edge switch to another."""
        pod, there = edge // self._half, other // self._half
        routes: list[tuple[str, ...]] = []
        for n in range(self._half):
            above, beyond = pod * self._half + n, there * self._half + n
            climb, descend = _up("e", edge, "a", above), f"-{_up('e', other, 'a', beyond)}"
            if pod == there:
                routes.append((climb, descend))
                continue
            for core in range(n * self._half, (n + 1) * self._half):
                over = _up("a", above, "c", core), f"-{_up('a', beyond, 'c', core)}"
                routes.append((climb, *over, descend))
        return routes


def _up(below: str, lower: int, above: str, upper: int) -> str:
    return f"{below}{lower}-{above}{upper}"


@dataclass(frozen=True)
class FatTreeFlow:
    """A flow from one host to another, with the route of each of its subflows."""

    source: int
    destination: int
    start_us: int
    routes: Sequence[tuple[str, ...]]


def permutation(tree: FatTree, subflows: int, seed: int) -> list[FatTreeFlow]:
    """A flow from each host to another host, so that each host receives one flow.

    Each subflow takes one of the equal-cost routes at random, as if switches hashed its ports. With
    the same seed, a larger number of subflows only adds subflows.
    """
    draw = random.Random(seed)
    receivers = list(range(tree.hosts))
    while any(source == receiver for source, receiver in enumerate(receivers)):
        draw.shuffle(receivers)
    return _drawn(tree, receivers, subflows, seed, draw)


def one_way(tree: FatTree, subflows: int, seed: int) -> list[FatTreeFlow]:
    """A flow from each host of one half of the pods to another host of the other half.

    No acknowledgement crosses a link that carries data. Routes are drawn as for `permutation`.
    """
    draw = random.Random(seed)
    receivers = list(range(tree.hosts // 2, tree.hosts))
    draw.shuffle(receivers)
    return _drawn(tree, receivers, subflows, seed, draw)


def _drawn(
    tree: FatTree, receivers: Sequence[int], subflows: int, seed: int, draw: random.Random
) -> list[FatTreeFlow]:
    flows = []
    for source, receiver in enumerate(receivers):
        start_us = draw.randrange(100_000)
        choices = random.Random(f"{seed}/{source}")
        routes = tree.routes(source, receiver)
        taken = [choices.choice(routes) for _ in range(subflows)]
        flows.append(FatTreeFlow(source, receiver, start_us, taken))
    return flows


def most(flows: Sequence[FatTreeFlow]) -> float:
    """The largest mean rate that the routes of flows allow, as a share of a cable's rate.

    It is the best split of all flows over their routes, whatever a flow itself gets.
    """
    from scipy.optimize import linprog  # the import is slow

    routes = [route for flow in flows for route in flow.routes]
    links = sorted({link for route in routes for link in route})
    crosses = np.array([[link in route for route in routes] for link in links], dtype=float)
    best = linprog(-np.ones(len(routes)), A_ub=crosses, b_ub=np.ones(len(links)))
    return float(-best.fun) / len(flows)
