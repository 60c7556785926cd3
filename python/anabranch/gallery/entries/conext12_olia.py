"""Khalili et al., CoNEXT 2012: OLIA, and what LIA takes from TCP without gaining anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Overview, Parameter, Tier
from anabranch.gallery.shared.bottlenecks import all_carried, red
from anabranch.gallery.shared.wifi_3g import cell_key
from anabranch.reports.figures import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Panel,
    Style,
    grouped_bars,
    reference_line,
)
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.estimates import Estimate, Sample, median, ratio_of_medians
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.scenario import Bulk, Connection, NetworkPath, Scenario

UNCOUPLED, LIA, OLIA, BALIA = "uncoupled NewReno", "LIA", "OLIA", "BALIA"
STYLES = {
    UNCOUPLED: Style(RED, (0, (4, 1.5)), "s"),
    LIA: Style(ORANGE, (0, (2, 1)), "D"),
    BALIA: Style(BLUE, (0, (6, 1.5, 1, 1.5)), "v"),
    OLIA: Style(GREEN, "-", "^"),
}
CONTROL = {UNCOUPLED: "new_reno", LIA: "lia", BALIA: "balia", OLIA: "olia"}

RATIOS = {"as many": (3, 3), "three times as many": (9, 3)}
"""Multipath users and TCP users, by how many of the former there are to one of the latter."""

RATE_MBPS = 2.0
"""Of each multipath user's own link, and of the shared one for each TCP user."""

_GOODPUT_MBPS = RATE_MBPS * 1448 / 1500
MULTIPATH, TCP = "multipath", "tcp"

KHALILI = (
    "R. Khalili, N. Gast, M. Popovic, U. Upadhyay, J.-Y. Le Boudec: MPTCP is not Pareto-Optimal: "
    "Performance Issues and a Possible Solution. CoNEXT 2012."
)


def at(curve: str, ratio: str) -> dict[str, Factor]:
    """The factors of a cell."""
    return {"curve": curve, "ratio": ratio}


def cells(tier: Tier) -> list[Cell]:
    """Every congestion control with either number of users."""
    return [_cell(tier, curve, ratio) for ratio in RATIOS for curve in STYLES]


def _link(name: str, mbps: float, delay: str) -> NetworkPath:
    """A link whose RED queue is scaled to 42 ms of the rate."""
    queue = red(mbps * 1e6 * 0.042 / 12_000)
    return NetworkPath(
        name=name, rate=f"{mbps:g}Mbit/s", delay=delay, limit="1000packets", queue=queue
    )


def _access(name: str) -> NetworkPath:
    return NetworkPath(name=name, rate="1Gbit/s", delay="1ms", limit="infinite", via="shared")


def _cell(tier: Tier, curve: str, ratio: str) -> Cell:
    many, few = RATIOS[ratio]
    paths = [_link("shared", RATE_MBPS * few, "20ms")]
    connections = []
    for user in range(many):
        paths += [_link(f"own{user}", RATE_MBPS, "21ms"), _access(f"also{user}")]
        connections.append(
            Connection(
                name=f"{MULTIPATH}{user}",
                paths=(f"own{user}", f"also{user}"),
                congestion_control=CONTROL[curve],
                workload=Bulk(),
            )
        )
    for user in range(few):
        paths.append(_access(f"only{user}"))
        connections.append(
            Connection(
                name=f"{TCP}{user}",
                paths=(f"only{user}",),
                protocol="tcp",
                congestion_control="new_reno",
                workload=Bulk(),
            )
        )
    scenario = Scenario(
        name=f"{curve}, {many} multipath users and {few} of TCP",
        duration=tier.duration,
        warm_up=tier.warm_up,
        sample_interval="5s",
        paths=tuple(paths),
        connections=tuple(connections),
    )
    return Cell(cell_key(curve, ratio), scenario, at(curve, ratio))


def goodput(results: Results, users: str, curve: str, ratio: str) -> Sample:
    """Mean goodput of the users of one sort, in Mbit/s, for each seed.

    Raises:
        NothingMeasured: if there is none.
    """
    rows = results.runs.filter(
        (pl.col("curve") == curve)
        & (pl.col("ratio") == ratio)
        & pl.col("connection").str.starts_with(users)
    )
    if rows.is_empty():
        raise NothingMeasured(f"no {users} users with {curve}, {ratio}")
    means = rows.group_by("seed").agg(pl.col("goodput_mbps").mean()).sort("seed")
    return means["goodput_mbps"].to_numpy().astype(np.float64)


def tcp_users_ratio(results: Results, curve: str, other: str, ratio: str) -> Estimate:
    """Goodput of TCP users beside users of `curve`, over that beside users of `other`.

    Raises:
        NothingMeasured: if there is none.
    """
    return ratio_of_medians(
        goodput(results, TCP, curve, ratio), goodput(results, TCP, other, ratio)
    )


def _median_goodput(results: Results, users: str, curve: str, ratio: str) -> Estimate:
    return median(goodput(results, users, curve, ratio))


def leaves_more(curve: str, other: str, least: float) -> tuple[Condition, ...]:
    """TCP users get at least so many times as much beside `curve` as beside `other`."""
    return each(
        f"mean goodput of TCP users with {curve} / with {other}, both ratios of users",
        (
            Condition(
                f"TCP users with {curve} / with {other}, {ratio}",
                partial(tcp_users_ratio, curve=curve, other=other, ratio=ratio),
                "≥",
                least,
            )
            for ratio in RATIOS
        ),
    )


_LOSES_NOTHING = each(
    "mean goodput of multipath users with OLIA, both ratios of users",
    (
        Condition(
            f"multipath users with OLIA, {ratio}",
            partial(_median_goodput, users=MULTIPATH, curve=OLIA, ratio=ratio),
            "≥",
            round(0.97 * _GOODPUT_MBPS, 3),
            "Mbit/s",
            basis=f"0.97 of the goodput of {RATE_MBPS:g} Mbit/s",
        )
        for ratio in RATIOS
    ),
)
_HARM = each(
    "mean goodput of TCP users beside LIA, both ratios of users",
    (
        Condition(
            f"TCP users beside LIA, {ratio}",
            partial(_median_goodput, users=TCP, curve=LIA, ratio=ratio),
            "<",
            round(_GOODPUT_MBPS, 3),
            "Mbit/s",
            basis=f"the goodput of {RATE_MBPS:g} Mbit/s",
        )
        for ratio in RATIOS
    ),
)

CLAIMS = (
    Claim(
        "E10.olia-p1",
        "LIA's users take a part of the shared link that costs TCP users.",
        "CoNEXT'12, problem P1",
        _HARM,
        all_carried,
    ),
    Claim(
        "E10.olia-leaves-more",
        "OLIA leaves TCP users more than LIA does.",
        "CoNEXT'12, scenario C",
        leaves_more(OLIA, LIA, 1.03),
        all_carried,
    ),
    Claim(
        "E10.olia-loses-nothing",
        "OLIA's users have no less than their own link alone gives.",
        "CoNEXT'12: Pareto optimality",
        _LOSES_NOTHING,
        all_carried,
    ),
    Claim(
        "E10.balia-between",
        "BALIA stands between OLIA and uncoupled subflows.",
        "Peng et al., 2016: friendliness against responsiveness",
        leaves_more(BALIA, UNCOUPLED, 1.2),
        all_carried,
    ),
)


def draw_users(
    results: Results, axes: Axes, users: str, styles: Mapping[str, Style] = STYLES
) -> None:
    """Mean goodput of the users of one sort, as bars."""
    bars = {
        curve: ([median(goodput(results, users, curve, ratio)) for ratio in RATIOS], style)
        for curve, style in styles.items()
    }
    words = [f"{many} multipath, {few} TCP" for many, few in RATIOS.values()]
    grouped_bars(axes, words, bars)
    axes.set_ylabel("mean goodput of a user (Mbit/s)")
    axes.set_ylim(0, 3.2)
    reference_line(axes, _GOODPUT_MBPS, "2 Mbit/s, less headers")


def notes(results: Results) -> Sequence[str]:
    """What each algorithm leaves to TCP users."""
    words = []
    for ratio in RATIOS:
        each = (f"{curve} {median(goodput(results, TCP, curve, ratio)).text()}" for curve in STYLES)
        words.append(f"{ratio}: {', '.join(each)} Mbit/s")
    return [
        f"TCP users' mean goodput, {'; '.join(words)}.",
        "A multipath user gains nothing from the shared link that its own does not give, except "
        "what it takes from others. LIA keeps probing the more congested path; OLIA's second term "
        "moves its windows to the better one, down to the least of one segment a round trip.",
    ]


_PARAMETERS: tuple[tuple[str, str, str], ...] = (
    ("topology", "scenario C: private links, and one shared by all", "CoNEXT'12"),
    ("users", "3 or 9 multipath users, 3 TCP users", "ratios of CoNEXT'12; numbers ours"),
    ("links", "2 Mbit/s each user; the shared one 2 Mbit/s for each TCP user", "ours"),
    ("round-trip time", "42 ms on every way", "ours"),
    ("queues", "RED, from half to twice the bandwidth-delay product", "ours"),
    ("workload", "bulk, download", "CoNEXT'12"),
    ("TCP users", "NewReno", "CoNEXT'12"),
)


ENTRY = Entry(
    id="conext12-olia",
    title="Opportunistic linked increases and TCP users (CoNEXT 2012, scenario C)",
    question="Users with a link of their own may also use a link that others depend on. What do "
    "LIA, OLIA and BALIA take from those others, and what do they gain by it?",
    references=(KHALILI,),
    parameters=tuple(Parameter(*each) for each in _PARAMETERS),
    quick=Tier("quick", seeds=5, measured_s=150, warm_up_s=20),
    full=Tier("full", seeds=20, measured_s=300, warm_up_s=20),
    cells=cells,
    claims=CLAIMS,
    headline="E10.olia-leaves-more",
    panels=(
        Panel(
            "Users of TCP",
            "What is left to those who have the shared link only.",
            partial(draw_users, users=TCP),
        ),
        Panel(
            "Multipath users",
            "What those gain who have a link of their own as well.",
            partial(draw_users, users=MULTIPATH),
        ),
    ),
    overview=Overview(
        factors={"ratio": "multipath users to TCP users", "curve": "congestion control"},
        metrics={"goodput_mbps": "goodput of all connections (Mbit/s)"},
        path="also0",
    ),
    notes=notes,
)
