"""Raiciu et al., SIGCOMM 2011: a permutation of flows in a FatTree, by the number of subflows."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, SeededScenario, Tier, key_of
from anabranch.gallery.measures import Values, by_seed, derived, mean, mean_ratio
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.fat_tree import FatTree, FatTreeFlow, most, one_way, permutation
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Style, estimates
from anabranch.reports.table import Table
from anabranch.results.estimates import Sample
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.scenario import Connection, NetworkPath, Scenario
from anabranch.words import listed

TCP, LIA, UNCOUPLED = "TCP", "LIA", "uncoupled NewReno"
ONE_WAY = "LIA, half of the hosts send"
STYLES = {
    TCP: Style(BLUE, "D.."),
    LIA: Style(GREEN),
    UNCOUPLED: Style(RED, "s--"),
    ONE_WAY: Style(ORANGE, "v-."),
}
MOST = 8
SUBFLOWS = {TCP: (1,), LIA: (2, 3, 4, MOST), UNCOUPLED: (2, 4, MOST), ONE_WAY: (MOST,)}
ALL_COUNTS = (1, *SUBFLOWS[LIA])
_CELLS = [(curve, count) for curve, counts in SUBFLOWS.items() for count in counts]

TREE = FatTree(ports=4, rate="100Mbit/s", delay="20us", limit="100packets")
OPTIMUM_MBPS = 100 * 1448 / 1500
"""The line rate of a host, less the headers of TCP."""


at = Factors("curve", "subflows")


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


def flows_of(curve: str, subflows: int, seed: int) -> list[FatTreeFlow]:
    """The flows of a run, with their routes."""
    draw = one_way if curve == ONE_WAY else permutation
    return draw(TREE, subflows, seed)


def _paths(each: FatTreeFlow) -> list[NetworkPath]:
    """A path for each subflow. Its own link is the inside of the host, which delays nothing."""
    return [
        network_path(f"{each.source}.{n}", "10Gbit/s", "0us", "infinite", via=route)
        for n, route in enumerate(each.routes)
    ]


def _connection(each: FatTreeFlow, curve: str) -> Connection:
    return flow(
        [path.name for path in _paths(each)],
        name=f"{each.source} to {each.destination}",
        control="lia" if curve in (LIA, ONE_WAY) else "new_reno",
        direction="upload",
        start=f"{each.start_us}us",
    )


def ranked(results: Results, curve: str, subflows: int) -> Sample:
    """Goodput of every flow as a share of the optimum: a row for each seed, the smallest first.

    Raises:
        NothingMeasured: if no run has these factors.
    """
    rows = results.rows("runs", **at(curve, subflows))
    if rows.is_empty():
        raise NothingMeasured(f"no flows with {curve} and {subflows} subflows")
    goodputs = rows.sort("seed", "goodput_mbps")["goodput_mbps"].to_numpy().astype(np.float64)
    return goodputs.reshape(rows["seed"].n_unique(), -1) / OPTIMUM_MBPS


def share(curve: str, subflows: int) -> Values:
    """Mean goodput of all flows as a share of the optimum, for each seed."""
    return lambda results: np.asarray(ranked(results, curve, subflows).mean(axis=1))


def worst(curve: str, subflows: int) -> Values:
    """The smallest goodput of a flow as a share of the optimum, for each seed."""
    return lambda results: np.asarray(ranked(results, curve, subflows)[:, 0])


@by_seed
def jain(results: Results, curve: str, subflows: int) -> Sample:
    """Jain's index of the goodputs of all flows, (Σx)² / (n · Σx²), for each seed."""
    goodputs = ranked(results, curve, subflows)
    return np.asarray(goodputs.mean(axis=1) ** 2 / (goodputs**2).mean(axis=1))


def _carried(results: Results) -> str | None:
    """Check the precondition that 99 % of all subflows carried bytes.

    A subflow may need longer than a run to open: a full queue drops its SYN several times, or the
    host forgets a join while it answers many others (anabranch-proto `flood.rs`).
    """
    idle = results.subflows.filter(pl.col("bytes_received") == 0).height
    if idle <= results.subflows.height / 100:
        return None
    return f"{idle} of {results.subflows.height} subflows carried nothing"


def _words(curve: str, subflows: int) -> str:
    return TCP if curve == TCP else f"{curve} with {subflows} subflows"


_ONE, _EIGHT = (TCP, 1), (LIA, MOST)
_STEPS = (_ONE, (LIA, 2), (LIA, 4), _EIGHT)


def _eight_over_tcp(words: str, of: Callable[[str, int], Values], bound: str) -> Quantity:
    ratio = mean_ratio(of(*_EIGHT), of(*_ONE))
    return Quantity(f"{words}, LIA with 8 subflows / TCP", ratio, bound)


_claim = partial(claim, needs=_carried)

CLAIMS = {
    "FT.a-tcp-collides": _claim(
        Quantity(
            "part of the optimum that TCP loses",
            mean(derived(lambda reached: (1 - reached) * 100, share(*_ONE))),
        )
    ),
    "FT.b-mptcp-fills": _claim(
        Quantity("mean goodput / optimum, LIA with 8 subflows", mean(share(*_EIGHT)))
    ),
    "FT.c-more-subflows": _claim(
        (
            Quantity(
                f"goodput, {_words(*after)} / {_words(*before)}",
                mean_ratio(share(*after), share(*before)),
                group="goodput, next / previous number of subflows of 1 (TCP), 2, 4, 8 (LIA)",
            )
            for before, after in pairwise(_STEPS)
        )
    ),
    "FT.d-fairer": _claim(
        _eight_over_tcp("goodput of the slowest flow", worst, "slowest"),
        _eight_over_tcp("Jain's index", jain, "index"),
    ),
    "FT.e-coupling-is-free": _claim(
        Quantity(
            "goodput, LIA / uncoupled NewReno, 8 subflows",
            mean_ratio(share(*_EIGHT), share(UNCOUPLED, MOST)),
        )
    ),
    "FT.f-acknowledgements": _claim(
        Quantity(
            "mean goodput / optimum, LIA with 8 subflows, half of the hosts send",
            mean(share(ONE_WAY, MOST)),
        )
    ),
}


@by_seed
def allowed(results: Results, curve: str, subflows: int) -> Sample:
    """The largest mean share of the line rate that the drawn routes allow, for each seed."""
    seeds = results.runs["seed"].unique().sort()
    return np.array([most(flows_of(curve, subflows, seed)) for seed in seeds])


_NSDI11_PERCENT = {1: 51.0, MOST: 95.0}
"""NSDI'11: Mbit/s of 100 with TCP, and with Multipath TCP."""


def _draw_shares(results: Results, axes: panels.Axes) -> None:
    for curve, counts in SUBFLOWS.items():
        points = [mean(share(curve, count), 100)(results) for count in counts]
        estimates(axes, counts, points, curve, STYLES[curve])
    limits = [float(allowed(LIA, count)(results).mean()) * 100 for count in ALL_COUNTS]
    axes.plot(ALL_COUNTS, limits, color="grey", linestyle=":", label="most that the routes allow")
    look = panels.Look(
        xticks=ALL_COUNTS,
        top=105,
        lines={100: "line rate,\nless headers"},
        stated=_NSDI11_PERCENT.items(),
    )
    panels.dress(axes, look, "subflows", "mean goodput (% of the optimum)")


_RANKED = {
    (TCP, 1): STYLES[TCP],
    (LIA, 2): Style(SKY, "v-."),
    (LIA, 4): Style(ORANGE, "s--"),
    (LIA, MOST): STYLES[LIA],
}


def _draw_ranked(results: Results, axes: panels.Axes) -> None:
    ranks = np.arange(1, TREE.hosts + 1)
    for case, style in _RANKED.items():
        goodputs = ranked(results, *case).mean(axis=0) * 100
        axes.plot(
            ranks, goodputs, color=style.colour, linestyle=style.line, label=_words(*case),
            marker=style.marker, markersize=3,
        )  # fmt: skip
    axes.set(xlabel="rank of the flow", ylabel="goodput (% of the optimum)", ylim=(0, 105))


_CASES = {_words(*case): case for case in _RANKED}
_COLUMNS: dict[str, Callable[[str, int], Values]] = {
    "mean goodput (%)": share,
    "slowest flow (%)": worst,
    "Jain's index": jain,
    "routes allow (%)": allowed,
}


def _overview(results: Results) -> Table:
    """Mean goodput, slowest flow and Jain's index of every cell."""

    def row(curve: str, count: int) -> tuple[str, ...]:
        columns = ((of, 100 if "%" in heading else 1) for heading, of in _COLUMNS.items())
        values = (mean(of(curve, count), scale)(results).text() for of, scale in columns)
        return (curve, str(count), *values)

    return Table(("curve", "subflows", *_COLUMNS), tuple(row(*case) for case in _CELLS))


def _measured_words(results: Results) -> dict[str, object]:
    single, eight = (mean(share(*case), 100)(results).text() for case in (_ONE, _EIGHT))
    return {
        "single": single,
        "eight": eight,
        "allowed": listed(f"{allowed(LIA, n)(results).mean() * 100:.0f} %" for n in ALL_COUNTS),
    }


PANELS = {
    "Goodput by the number of subflows": _draw_shares,
    "Flows by rank": _draw_ranked,
    "Fairness": panels.bars(
        {"slowest flow / optimum": worst, "Jain's index": jain},
        lambda words, of: mean(of(*_CASES[words])),
        dict(zip(_CASES, _RANKED.values(), strict=True)),
        "",
        top=1.05,
    ),
}

EXPERIMENT = Experiment(
    words={"counts": listed(ALL_COUNTS)},
    design=lambda tier: [_cell(tier, *case) for case in _CELLS],
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=_overview,
    measured_words=_measured_words,
)
