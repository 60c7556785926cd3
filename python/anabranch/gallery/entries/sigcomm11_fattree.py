"""Raiciu et al., SIGCOMM 2011: a permutation of flows in a FatTree, by the number of subflows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, SeededScenario, Tier, key_of, parameters
from anabranch.gallery.shared.fat_tree import FatTree, Flow, most, one_way, permutation
from anabranch.reports import figures
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Panel, Style
from anabranch.reports.table import Table
from anabranch.results.claims import Claim, Condition
from anabranch.results.estimates import Estimate, Sample, estimate, mean
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.scenario import Bulk, Connection, NetworkPath, Scenario
from anabranch.words import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TCP, LIA, UNCOUPLED = "TCP", "LIA", "uncoupled NewReno"
ONE_WAY = "LIA, half of the hosts send"
STYLES = {
    TCP: Style(BLUE, (0, (2, 1)), "D"),
    LIA: Style(GREEN, "-", "o"),
    UNCOUPLED: Style(RED, (0, (4, 1.5)), "s"),
    ONE_WAY: Style(ORANGE, (0, (6, 1.5, 1, 1.5)), "v"),
}
MOST = 8
SUBFLOWS = {TCP: (1,), LIA: (2, 3, 4, MOST), UNCOUPLED: (2, 4, MOST), ONE_WAY: (MOST,)}
ALL_COUNTS = (1, *SUBFLOWS[LIA])

TREE = FatTree(ports=4, rate="100Mbit/s", delay="20us", limit="100packets")
OPTIMUM_MBPS = 100 * 1448 / 1500
"""The line rate of a host, less the headers of TCP."""

RAICIU = (
    "C. Raiciu, S. Barré, C. Pluntke, A. Greenhalgh, D. Wischik, M. Handley: Improving Datacenter "
    "Performance and Robustness with Multipath TCP. SIGCOMM 2011."
)
WISCHIK = (
    "D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley: Design, Implementation and Evaluation of "
    "Congestion Control for Multipath TCP. NSDI 2011."
)


at = Factors("curve", "subflows")
"""The factors of a cell."""


ONE, EIGHT = at(TCP, 1), at(LIA, MOST)


def cells(tier: Tier) -> list[Cell]:
    """TCP, and every number of subflows with either congestion control."""
    return [_cell(tier, curve, count) for curve, counts in SUBFLOWS.items() for count in counts]


def _cell(tier: Tier, curve: str, subflows: int) -> Cell:
    name = f"{curve}, {subflows} subflows"
    drawn = SeededScenario(name, partial(_scenario, tier, name, curve, subflows))
    return Cell(key_of(curve, str(subflows)), drawn, at(curve, subflows))


def _scenario(tier: Tier, name: str, curve: str, subflows: int, seed: int) -> Scenario:
    flows = flows_of(curve, subflows, seed)
    return tier.scenario(
        name,
        (*TREE.cables(), *(path for flow in flows for path in _paths(flow))),
        tuple(_connection(flow, curve) for flow in flows),
        sample_interval="1s",
    )


def flows_of(curve: str, subflows: int, seed: int) -> list[Flow]:
    """The flows of a run, with their routes."""
    draw = one_way if curve == ONE_WAY else permutation
    return draw(TREE, subflows, seed)


def _paths(flow: Flow) -> list[NetworkPath]:
    """A path for each subflow. Its own link is the inside of the host, which delays nothing."""
    return [
        NetworkPath(
            name=f"{flow.source}.{n}", rate="10Gbit/s", delay="0us", limit="infinite", via=route
        )
        for n, route in enumerate(flow.routes)
    ]


def _connection(flow: Flow, curve: str) -> Connection:
    return Connection(
        name=f"{flow.source} to {flow.destination}",
        paths=tuple(path.name for path in _paths(flow)),
        protocol="tcp" if curve == TCP else "mptcp",
        congestion_control="lia" if curve in (LIA, ONE_WAY) else "new_reno",
        direction="upload",
        start=f"{flow.start_us}us",
        workload=Bulk(),
    )


def ranked(results: Results, curve: str, subflows: int) -> Sample:
    """Goodput of every flow as a share of the optimum: a row for each seed, the smallest first.

    Raises:
        NothingMeasured: if no run has these factors.
    """
    rows = results.rows("runs", **at(curve, subflows))
    if rows.is_empty():
        raise NothingMeasured(f"no flows with {curve} and {subflows} subflows")
    seeds = rows.sort("seed", "goodput_mbps").group_by("seed", maintain_order=True)
    goodputs = [run["goodput_mbps"].to_numpy() for _, run in seeds]
    return np.stack(goodputs).astype(np.float64) / OPTIMUM_MBPS


def share(results: Results, curve: str, subflows: int) -> Sample:
    """Mean goodput of all flows as a share of the optimum, for each seed."""
    means: Sample = ranked(results, curve, subflows).mean(axis=1)
    return means


def worst(results: Results, curve: str, subflows: int) -> Sample:
    """The smallest goodput of a flow as a share of the optimum, for each seed."""
    smallest: Sample = ranked(results, curve, subflows)[:, 0]
    return smallest


def jain(results: Results, curve: str, subflows: int) -> Sample:
    """Jain's index of the goodputs of all flows, (Σx)² / (n · Σx²), for each seed."""
    goodputs = ranked(results, curve, subflows)
    index: Sample = goodputs.mean(axis=1) ** 2 / (goodputs**2).mean(axis=1)
    return index


def _mean(results: Results, of: str, curve: str, subflows: int) -> Estimate:
    return mean(_MEASURES[of](results, curve, subflows))


_MEASURES = {"share": share, "worst": worst, "jain": jain}


def _lost_by_tcp(results: Results) -> Estimate:
    """The part of the optimum that TCP does not reach, in per cent."""
    return mean((1 - share(results, TCP, 1)) * 100)


def _over(results: Results, of: str, one: tuple[str, int], other: tuple[str, int]) -> Estimate:
    """The ratio of two means over seeds."""
    pair = (_MEASURES[of](results, *each) for each in (one, other))
    return estimate(lambda a, b, axis: np.mean(a, axis=axis) / np.mean(b, axis=axis), *pair)


def _carried(results: Results) -> str | None:
    """Check the precondition that 99 % of all subflows carried bytes.

    A subflow may need longer than a run to open: a full queue drops its SYN several times, or the
    host forgets a join while it answers many others (anabranch-proto `flood.rs`).
    """
    idle = results.subflows.filter(pl.col("bytes_received") == 0).height
    if idle <= results.subflows.height / 100:
        return None
    return f"{idle} of {results.subflows.height} subflows carried nothing"


def _steps() -> tuple[Condition, ...]:
    steps = [(TCP, 1), (LIA, 2), (LIA, 4), (LIA, MOST)]
    return tuple(
        Condition(
            f"goodput, {_words(*after)} / {_words(*before)}",
            partial(_over, of="share", one=after, other=before),
            BOUNDS["FT.c-more-subflows"],
            group="goodput, next / previous number of subflows of 1 (TCP), 2, 4, 8 (LIA)",
        )
        for before, after in pairwise(steps)
    )


def _words(curve: str, subflows: int) -> str:
    return TCP if curve == TCP else f"{curve} with {subflows} subflows"


CLAIMS = (
    Claim(
        "FT.a-tcp-collides",
        "TCP over one random route loses about half of the optimum, because flows collide.",
        "NSDI'11: 51 of 100 Mbit/s",
        (
            Condition(
                "part of the optimum that TCP loses", _lost_by_tcp, BOUNDS["FT.a-tcp-collides"]
            ),
        ),
        _carried,
    ),
    Claim(
        "FT.b-mptcp-fills",
        "Multipath TCP with eight subflows nearly reaches the optimum.",
        "NSDI'11: 95 of 100 Mbit/s",
        (
            Condition(
                "mean goodput / optimum, LIA with 8 subflows",
                partial(_mean, of="share", curve=LIA, subflows=MOST),
                BOUNDS["FT.b-mptcp-fills"],
            ),
        ),
        _carried,
    ),
    Claim(
        "FT.c-more-subflows",
        "Goodput rises with the number of subflows.",
        "ours; SIGCOMM'11 asks how many subflows a FatTree needs",
        _steps(),
        _carried,
    ),
    Claim(
        "FT.d-fairer",
        "The slowest flow gains most, and flows are more equal than with TCP.",
        "SIGCOMM'11: “better fairness on many topologies”",
        (
            Condition(
                "goodput of the slowest flow, LIA with 8 subflows / TCP",
                partial(_over, of="worst", one=(LIA, MOST), other=(TCP, 1)),
                BOUNDS["FT.d-fairer slowest"],
            ),
            Condition(
                "Jain's index, LIA with 8 subflows / TCP",
                partial(_over, of="jain", one=(LIA, MOST), other=(TCP, 1)),
                BOUNDS["FT.d-fairer index"],
            ),
        ),
        _carried,
    ),
    Claim(
        "FT.e-coupling-is-free",
        "In this network, coupling costs no goodput: eight coupled subflows reach what eight "
        "uncoupled ones reach.",
        "ours",
        (
            Condition(
                "goodput, LIA / uncoupled NewReno, 8 subflows",
                partial(_over, of="share", one=(LIA, MOST), other=(UNCOUPLED, MOST)),
                BOUNDS["FT.e-coupling-is-free"],
            ),
        ),
        _carried,
    ),
    Claim(
        "FT.f-acknowledgements",
        "Without acknowledgements of other flows on its links, eight subflows reach the optimum.",
        "ours; explains FT.b-mptcp-fills",
        (
            Condition(
                "mean goodput / optimum, LIA with 8 subflows, half of the hosts send",
                partial(_mean, of="share", curve=ONE_WAY, subflows=MOST),
                BOUNDS["FT.f-acknowledgements"],
            ),
        ),
        _carried,
    ),
)


def allowed(results: Results, curve: str, subflows: int) -> Sample:
    """The largest mean share of the line rate that the drawn routes allow, for each seed."""
    seeds = results.runs["seed"].unique().sort()
    return np.array([most(flows_of(curve, subflows, seed)) for seed in seeds])


_NSDI11_PERCENT = {1: 51.0, MOST: 95.0}
"""NSDI'11: Mbit/s of 100 with TCP, and with Multipath TCP."""


def _draw_shares(results: Results, axes: Axes) -> None:
    for curve, counts in SUBFLOWS.items():
        points = [mean(share(results, curve, count) * 100) for count in counts]
        figures.estimates(axes, counts, points, curve, STYLES[curve])
    limits = [float(allowed(results, LIA, count).mean()) * 100 for count in ALL_COUNTS]
    axes.plot(ALL_COUNTS, limits, color="grey", linestyle=":", label="most that the routes allow")
    figures.stated(axes, *zip(*_NSDI11_PERCENT.items(), strict=True))
    axes.set(xlabel="subflows", ylabel="mean goodput (% of the optimum)")
    axes.set_xticks(ALL_COUNTS)
    axes.set_ylim(0, 105)
    figures.reference_line(axes, 100, "line rate,\nless headers")


_RANKED = {
    (TCP, 1): STYLES[TCP],
    (LIA, 2): Style(SKY, (0, (6, 1.5, 1, 1.5)), "v"),
    (LIA, 4): Style(ORANGE, (0, (4, 1.5)), "s"),
    (LIA, MOST): STYLES[LIA],
}


def _draw_ranked(results: Results, axes: Axes) -> None:
    ranks = np.arange(1, TREE.hosts + 1)
    for case, style in _RANKED.items():
        goodputs = ranked(results, *case).mean(axis=0) * 100
        axes.plot(
            ranks, goodputs, color=style.colour, linestyle=style.line, label=_words(*case),
            marker=style.marker, markersize=3,
        )  # fmt: skip
    axes.set(xlabel="rank of the flow", ylabel="goodput (% of the optimum)")
    axes.set_ylim(0, 105)


def _draw_fairness(results: Results, axes: Axes) -> None:
    bars = {
        _words(*case): ([_mean(results, of, *case) for of in ("worst", "jain")], style)
        for case, style in _RANKED.items()
    }
    figures.grouped_bars(axes, ["slowest flow / optimum", "Jain's index"], bars)
    axes.set_ylim(0, 1.05)


def _overview(results: Results) -> Table:
    """Mean goodput, slowest flow and Jain's index of every cell."""
    rows = [
        (
            curve,
            str(count),
            mean(share(results, curve, count) * 100).text(),
            mean(worst(results, curve, count) * 100).text(),
            mean(jain(results, curve, count)).text(),
            mean(allowed(results, curve, count) * 100).text(),
        )
        for curve, counts in SUBFLOWS.items()
        for count in counts
    ]
    headings = (
        "curve",
        "subflows",
        "mean goodput (%)",
        "slowest flow (%)",
        "Jain's index",
        "routes allow (%)",
    )
    return Table(headings, tuple(rows))


def notes(results: Results) -> Sequence[str]:
    """How the routes are chosen, and what the optimum leaves out."""
    single = mean(share(results, TCP, 1) * 100).text()
    eight = mean(share(results, LIA, MOST) * 100).text()
    return [
        f"Of the optimum, TCP reaches {single} % and LIA with eight subflows {eight} %.",
        "Each seed draws a permutation of the hosts, and a route for each subflow. Hosts in "
        "different pods have four routes, hosts of one pod two, and hosts at one switch one. "
        "Subflows may share a route.",
        "The drawn routes allow a mean of "
        + listed(f"{allowed(results, LIA, n).mean() * 100:.0f} %" for n in ALL_COUNTS)
        + f" with {listed(ALL_COUNTS)} subflows, if every flow is split in the best "
        "way. Collisions alone therefore explain what TCP loses.",
        "The optimum is the line rate of a host, less the headers of TCP. No flow reaches it: the "
        "same cable carries the acknowledgements of the flow that the host receives, and the "
        "options of Multipath TCP take the place of payload.",
    ]


ENTRY = Entry(
    id="sigcomm11-fattree",
    title="A data centre: subflows over a FatTree (SIGCOMM 2011)",
    question="In a FatTree, TCP flows over random routes collide. How much of the network do they "
    "leave unused, and how many subflows does Multipath TCP need to use it?",
    references=(RAICIU, WISCHIK),
    parameters=parameters("""
        topology | FatTree of 4-port switches: 16 hosts, 48 cables | k = 4 is ours
        rate of all cables | 100 Mbit/s in each direction | ours: NSDI'11 has up to 99 Mbit/s for
            each host
        delay of each cable | 20 µs | ours
        queues | 100 packets, drop-tail | ours
        traffic | a random permutation of the hosts, bulk | SIGCOMM'11, NSDI'11
        routes | each subflow takes one of the shortest routes at random | SIGCOMM'11 (ECMP)
        subflows | 1 (TCP), 2, 3, 4 and 8 | ours
        TCP | NewReno | ours
        half of the hosts send | 8 flows from two pods to the other two; an arm | ours
        start of a flow | within the first 100 ms, drawn | ours
    """),
    quick=Tier("quick", seeds=5, measured_s=1, warm_up_s=1),
    full=Tier("full", seeds=20, measured_s=8, warm_up_s=2),
    cells=cells,
    uncertain_parameters={"all delays": "path.*.delay", "all queues": "path.*.limit"},
    claims=CLAIMS,
    panels=(
        Panel(
            "Goodput by the number of subflows",
            "Mean over 16 flows. Each seed draws a permutation and routes.",
            _draw_shares,
        ),
        Panel(
            "Flows by rank",
            "Goodput of the flows of a run, the slowest first; means over seeds.",
            _draw_ranked,
        ),
        Panel("Fairness", "The slowest of 16 flows, and Jain's index.", _draw_fairness),
    ),
    overview=_overview,
    headline="FT.b-mptcp-fills",
    notes=notes,
)
