"""Wischik, Raiciu, Greenhalgh, Handley, NSDI 2011: linked increases (LIA)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product

import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import Values, by_seed, mean, of_means, part_of, per_seed
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.bottlenecks import all_carried, red
from anabranch.gallery.shared.connections import access, flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Connection, NetworkPath
from anabranch.words import counted, listed

LIA, BALIA, UNCOUPLED, TCP = "LIA", "BALIA", "uncoupled NewReno", "TCP"
STYLES = {LIA: Style(GREEN), UNCOUPLED: Style(RED, "s--")}
_CONTROL = {LIA: "lia", BALIA: "balia", UNCOUPLED: "new_reno", TCP: "new_reno"}

RANDOM_LOSS, DROP_TAIL, RED_QUEUE = "random loss", "drop-tail", "RED"
SUBFLOWS = (1, 2, 3)
_CORE = {
    RANDOM_LOSS: network_path("core", "10Mbit/s", "20ms", "400packets", loss="0.5%"),
    DROP_TAIL: network_path("core", "10Mbit/s", "20ms", "35packets"),
    RED_QUEUE: network_path("core", "10Mbit/s", "20ms", "400packets", queue=red(35)),
}
"""The drop-tail queue is one bandwidth-delay product. With random loss, the queue is irrelevant."""

CORES = (RANDOM_LOSS, DROP_TAIL)
"""The bottlenecks that this entry runs."""

WIFI_3G, UNEQUAL_LOSS, TORUS = "WiFi and 3G", "unequal loss", "torus"
_PAIRS = {
    WIFI_3G: (
        network_path("one", "14.4Mbit/s", "10ms", "24packets"),
        network_path("two", "2.1Mbit/s", "50ms", "18packets"),
    ),
    UNEQUAL_LOSS: (
        network_path("one", "50Mbit/s", "20ms", "200packets", loss="0.1%"),
        network_path("two", "50Mbit/s", "20ms", "200packets", loss="1%"),
    ),
}
TCP_ONE, TCP_TWO = "TCP over one", "TCP over two"
LIA_ONE = "LIA over one"
"""One subflow of Multipath TCP: NewReno with the options of Multipath TCP in every segment."""
_LINKS = 5

at = Factors("curve", "network", subflows=0)


def _access(name: str, via: str) -> NetworkPath:
    """A path over a bottleneck. Jitter makes seeds differ where the bottleneck is deterministic."""
    return access(name, via, "2ms", jitter="1ms")


def _connection(name: str, control: str, paths: Sequence[str]) -> Connection:
    """TCP, or Multipath TCP with one or several subflows."""
    protocol = "tcp" if control == TCP else "mptcp"
    return flow(paths, name=name, protocol=protocol, congestion_control=_CONTROL[control])


def next_to_tcp(tier: Tier, curve: str, core: str, count: int) -> Cell:
    """`count` subflows over one bottleneck, next to one TCP flow."""
    names = [f"way{n}" for n in range(count)]
    paths = [_CORE[core], *(_access(name, "core") for name in (*names, "beside"))]
    connections = [_connection("main", curve, names), _connection("tcp", TCP, ("beside",))]
    name = f"{curve}, {count} subflows, {core}"
    return tier.cell(at(curve, core, count), paths, connections, name=name, sample_interval="5s")


def _pair(tier: Tier, curve: str, name: str) -> Cell:
    alone = {TCP_ONE: ("one",), TCP_TWO: ("two",), LIA_ONE: ("one",)}.get(curve)
    control = LIA if curve in (LIA, LIA_ONE) else TCP
    connection = _connection("main", control, alone or ("one", "two"))
    words = (curve, name)
    return tier.cell(at(*words), _PAIRS[name], connection, words=words, sample_interval="5s")


def _torus(tier: Tier) -> Cell:
    """Five links in a ring, and five connections, each over two neighbouring links."""
    links = [network_path(f"link{n}", "10Mbit/s", "25ms", "45packets") for n in range(_LINKS)]
    ways, connections = [], []
    for n in range(_LINKS):
        names = (f"left{n}", f"right{n}")
        ways += [_access(name, f"link{(n + side) % _LINKS}") for side, name in enumerate(names)]
        connections.append(_connection(f"main{n}", LIA, names))
    words, paths = (LIA, TORUS), [*links, *ways]
    return tier.cell(
        at(*words), paths, connections, words=words, name="torus", sample_interval="5s"
    )


def shares(curve: str, core: str, subflows: int) -> Values:
    """Multipath TCP's share of the total goodput of Multipath TCP and TCP, for each seed."""
    cell = at(curve, core, subflows)
    return part_of(*(GOODPUT.values(cell, connection=name) for name in ("main", "tcp")))


def mean_shares(curve: str, core: str, end: str = "") -> tuple[Quantity, ...]:
    """The mean share of a curve next to TCP, with each number of subflows."""
    return for_each(
        f"mean share of {curve} with {{1}}{end}",
        ((count, counted(count, "subflow")) for count in SUBFLOWS),
        lambda count, _: mean(shares(curve, core, count)),
        f"mean share of {curve} with one, two and three subflows{end}",
    )


def _fair_with_drop_tail(count: int) -> tuple[Quantity, Quantity]:
    words = f"mean share with {counted(count, 'subflow')}"
    group = "mean share with two and three subflows"
    lia, uncoupled = (shares(curve, DROP_TAIL, count) for curve in (LIA, UNCOUPLED))
    gap = of_means(lambda a, b: b - a, lia, uncoupled)
    return (
        Quantity(f"{words}, LIA", mean(lia), "share", f"{group}, LIA"),
        Quantity(f"{words}, uncoupled − LIA", gap, "gap", f"{group}, uncoupled − LIA"),
    )


def _over_tcp(network: str, *others: str) -> Quantity:
    """The goodput of LIA over the sum of TCP's goodputs, from means over seeds."""
    total = " + ".join(others)
    words = f"LIA / ({total})" if len(others) > 1 else f"LIA / {total}"
    goodputs = (GOODPUT.values(at(curve, network)) for curve in (LIA, *others))
    return Quantity(words, of_means(lambda lia, *tcp: lia / sum(tcp), *goodputs))


@by_seed
def jain(results: Results) -> Sample:
    """Jain's index of the goodputs of the connections in the torus, for each seed.

    The index is (Σx)² / (n · Σx²). It is 1 if all goodputs are equal.
    """
    goodput = pl.col("goodput_mbps")
    index = goodput.sum() ** 2 / (pl.len() * (goodput**2).sum())
    return per_seed(results.rows("runs", network=TORUS), index, "the torus was not measured")


_claim = partial(claim, needs=all_carried)

CLAIMS = {
    "E10.lia-random-loss": _claim(mean_shares(LIA, RANDOM_LOSS)),
    "E10.lia-uncoupled-takes-more": _claim(
        Quantity("mean share of two uncoupled subflows", mean(shares(UNCOUPLED, RANDOM_LOSS, 2)))
    ),
    "E10.lia-drop-tail": _claim(*map(_fair_with_drop_tail, SUBFLOWS[1:])),
    "E10.lia-sum": _claim(_over_tcp(WIFI_3G, TCP_ONE, TCP_TWO)),
    "E10.lia-best-path": _claim(_over_tcp(UNEQUAL_LOSS, TCP_ONE)),
    "E10.lia-torus": _claim(Quantity("Jain's index of five connections", mean(jain()))),
}


def panels_of_shares(cores: Iterable[str], styles: Mapping[str, Style] = STYLES) -> panels.Drawings:
    """The share next to one TCP flow over the number of subflows, at each bottleneck."""

    def draw(core: str) -> panels.Draw:
        return panels.points(
            SUBFLOWS,
            lambda curve, count: mean(shares(curve, core, count)),
            styles,
            "subflows",
            "share next to one TCP flow",
            xticks=SUBFLOWS,
            top=1,
            lines={0.5: "one half"},
        )

    return {f"One bottleneck, {core}": draw(core) for core in cores}


_NSDI11_MBPS = {TCP_ONE: 14.4, TCP_TWO: 2.1, LIA: 17.3}
"""NSDI'11: TCP over WiFi and over 3G alone, and Multipath TCP over both."""


def shares_in_words(results: Results, cores: Iterable[str], curves: Iterable[str]) -> str:
    """The mean shares of these curves at these bottlenecks, as a sentence."""
    words = []
    for core, curve in product(cores, curves):
        means = (f"{shares(curve, core, count)(results).mean():.2f}" for count in SUBFLOWS)
        words.append(f"{core}, {curve}: {', '.join(means)}")
    return f"Mean share with {listed(SUBFLOWS)} subflows — {'; '.join(words)}."


def _measured_words(results: Results) -> dict[str, object]:
    def goodput(curve: str) -> float:
        return float(GOODPUT.values(at(curve, UNEQUAL_LOSS))(results).mean())

    unequal = results.rows("subflows", network=UNEQUAL_LOSS, curve=LIA)
    timeouts = int(unequal["timeouts"].sum())
    return {
        "shares": shares_in_words(results, CORES, STYLES),
        "tcp_one": goodput(TCP_ONE),
        "lia_one": goodput(LIA_ONE),
        "lia": goodput(LIA),
        "timeouts": timeouts,
    }


PANELS = {
    **panels_of_shares(CORES),
    "Separate paths": panels.bars(
        tuple(_PAIRS),
        lambda curve, pair: GOODPUT.mean(at(curve, pair)),
        {TCP_ONE: Style(BLUE), TCP_TWO: Style(ORANGE), LIA: STYLES[LIA]},
        GOODPUT.heading,
        {curve: (number, None) for curve, number in _NSDI11_MBPS.items()},
    ),
}

EXPERIMENT = Experiment(
    design=joined(
        grid(next_to_tcp, core=CORES, count=SUBFLOWS, curve=STYLES),
        grid(_pair, name=_PAIRS, curve=(LIA, TCP_ONE, TCP_TWO)),
        lambda tier: [_pair(tier, LIA_ONE, UNEQUAL_LOSS), _torus(tier)],
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("network; subflows; curve; connection", "one", (GOODPUT,)),
    measured_words=_measured_words,
)
