"""Khalili et al., CoNEXT 2012: OLIA, and the goodput that LIA takes from TCP users."""

from collections.abc import Iterable, Mapping
from functools import partial

import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.measures import by_seed, in_words, median, per_seed, ratio
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.bottlenecks import all_carried, red
from anabranch.gallery.shared.connections import access, flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import NetworkPath

UNCOUPLED, LIA, OLIA, BALIA = "uncoupled NewReno", "LIA", "OLIA", "BALIA"
STYLES = {
    UNCOUPLED: Style(RED, "s--"),
    LIA: Style(ORANGE, "D.."),
    BALIA: Style(BLUE, "v-."),
    OLIA: Style(GREEN, "^-"),
}
CONTROL = {UNCOUPLED: "new_reno", LIA: "lia", BALIA: "balia", OLIA: "olia"}

RATIOS = {"as many": (3, 3), "three times as many": (9, 3)}
"""Numbers of multipath users and of TCP users, by their ratio."""

RATE_MBPS = 2.0
"""Rate of each multipath user's own link, and rate of the shared link for each TCP user."""

_GOODPUT_MBPS = RATE_MBPS * 1448 / 1500
MULTIPATH, TCP = "multipath", "tcp"

at = Factors("curve", "ratio")


def _link(name: str, mbps: float, delay: str) -> NetworkPath:
    """A link with a RED queue for a round-trip time of 42 ms."""
    queue = red(mbps * 1e6 * 0.042 / 12_000)
    return network_path(name, f"{mbps:g}Mbit/s", delay, "1000packets", queue=queue)


def _cell(tier: Tier, curve: str, ratio: str) -> Cell:
    many, few = RATIOS[ratio]
    paths, connections = [_link("shared", RATE_MBPS * few, "20ms")], []
    for user in range(many):
        own, also = f"own{user}", f"also{user}"
        paths += [_link(own, RATE_MBPS, "21ms"), access(also, "shared", "1ms")]
        main = flow((own, also), name=f"{MULTIPATH}{user}", control=CONTROL[curve])
        connections.append(main)
    for user in range(few):
        paths.append(access(f"only{user}", "shared", "1ms"))
        connections.append(flow((f"only{user}",), name=f"{TCP}{user}"))
    name = f"{curve}, {many} multipath users and {few} of TCP"
    return tier.cell(at(curve, ratio), paths, connections, name=name, sample_interval="5s")


cells = grid(_cell, ratio=RATIOS, curve=STYLES)


@by_seed
def goodput(results: Results, users: str, curve: str, ratio: str) -> Sample:
    """Mean goodput of the users of one kind, in Mbit/s, for each seed."""
    rows = results.rows("runs", **at(curve, ratio))
    own = rows.filter(pl.col("connection").str.starts_with(users))
    return per_seed(own, pl.col("goodput_mbps").mean(), f"no {users} users with {curve}, {ratio}")


def leaves_more(curve: str, other: str) -> tuple[Quantity, ...]:
    """The goodput of TCP users next to `curve` over that next to `other`."""
    words = f"mean goodput of TCP users next to {curve} / next to {other}"
    return for_each(
        f"{words}, {{}} multipath users",
        RATIOS,
        lambda users: ratio(goodput(TCP, curve, users), goodput(TCP, other, users)),
        f"{words}, both ratios of users",
    )


_claim = partial(claim, needs=all_carried)

CLAIMS = {
    "E10.olia-p1": _claim(
        for_each(
            "mean goodput of TCP users next to LIA, {} multipath users",
            RATIOS,
            lambda users: median(goodput(TCP, LIA, users)),
            "mean goodput of TCP users next to LIA, both ratios of users",
        )
    ),
    "E10.olia-leaves-more": _claim(leaves_more(OLIA, LIA)),
    "E10.olia-loses-nothing": _claim(
        for_each(
            "mean goodput of multipath users with OLIA, {} as TCP users",
            RATIOS,
            lambda users: median(goodput(MULTIPATH, OLIA, users)),
            "mean goodput of multipath users with OLIA, both ratios of users",
        )
    ),
    "E10.balia-between": _claim(leaves_more(BALIA, UNCOUPLED)),
}


def panels_of_users(title: str, styles: Mapping[str, Style] = STYLES) -> panels.Drawings:
    """The mean goodput of the users of each kind, as bars; `title` goes before theirs."""

    def draw(users: str) -> panels.Draw:
        return panels.bars(
            {f"{many} multipath, {few} TCP": key for key, (many, few) in RATIOS.items()},
            lambda curve, key: median(goodput(users, curve, key)),
            styles,
            "mean goodput of a user (Mbit/s)",
            top=3.2,
            lines={_GOODPUT_MBPS: "2 Mbit/s, less headers"},
        )

    words = f"{title}multipath users" if title else "Multipath users"
    return {f"{title}TCP users": draw(TCP), words: draw(MULTIPATH)}


def of_tcp_users(results: Results, users: str, curves: Iterable[str]) -> str:
    """The mean goodput of TCP users next to each curve, in words."""
    return in_words(results, curves, lambda curve: median(goodput(TCP, curve, users)))


def _measured_words(results: Results) -> dict[str, object]:
    words = (
        f"next to {users} multipath users: {of_tcp_users(results, users, STYLES)} Mbit/s"
        for users in RATIOS
    )
    return {"tcp_users": "; ".join(words)}


EXPERIMENT = Experiment(
    design=cells,
    named_claims=CLAIMS,
    drawings=panels_of_users(""),
    overview=Overview(
        "ratio: multipath users, relative to TCP users; curve: congestion control",
        "also0",
        (GOODPUT.called("goodput of all connections"),),
    ),
    measured_words=_measured_words,
)
