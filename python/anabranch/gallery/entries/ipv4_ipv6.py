"""IPv4 and IPv6 between the same hosts: the gain from using both at once."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.measures import over_largest, over_sum
from anabranch.gallery.metrics import GOODPUT, MEAN, PAUSE, PAUSE_MS, share
from anabranch.gallery.shared.connections import flow, network_path, outages
from anabranch.reports.figures import BLUE, GREEN, ORANGE, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks

TCP_V4, TCP_V6, MPTCP = "TCP over IPv4", "TCP over IPv6", "MPTCP over both"
STYLES = {TCP_V4: Style(BLUE), TCP_V6: Style(ORANGE, "v-."), MPTCP: Style(GREEN, "^--")}
_PATHS = {TCP_V4: ("ipv4",), TCP_V6: ("ipv6",)}

CORE, ACCESS, OUTAGE = "bottlenecks in the core", "bottleneck in the access", "IPv6 goes away"
_ACCESS_RATE = {CORE: "50Mbit/s", ACCESS: "10Mbit/s", OUTAGE: "50Mbit/s"}
AWAY_S, BACK_S = 25, 40
"""The IPv6 route silently drops everything between these times."""

at = Factors("curve", "network")


def _cell(tier: Tier, curve: str, network: str) -> Cell:
    changes = outages(AWAY_S, BACK_S) if network == OUTAGE else ()
    route = partial(network_path, limit="60ms", jitter="1ms", via="access")
    paths = (
        network_path("access", _ACCESS_RATE[network], "5ms", "60ms"),
        route("ipv4", "12Mbit/s", "10ms", family="ipv4"),
        route("ipv6", "20Mbit/s", "20ms", family="ipv6", changes=changes),
    )
    connection = flow(_PATHS.get(curve, ("ipv4", "ipv6")), workload=Blocks())
    return tier.cell(at(curve, network), paths, connection)


_CORE, _ACCESS = (
    [GOODPUT.values(at(curve, network)) for curve in (MPTCP, TCP_V4, TCP_V6)]
    for network in (CORE, ACCESS)
)
"""Goodput of MPTCP, and of TCP over each route, by bottleneck."""
_SHARE = share("ipv6", "IPv6")


def _shares_in_words(results: Results) -> str:
    steady = _SHARE.text(results, at(MPTCP, CORE))
    return f"IPv6's share of the bytes: {steady} without the outage; with the outage"


_claim = partial(claim, needs=carried(("ipv4", "ipv6"), *at.every(MPTCP, _ACCESS_RATE)))

CLAIMS = {
    "IP.a-sum": _claim(
        Quantity("MPTCP / (TCP over IPv4 + TCP over IPv6)", over_sum(*_CORE), "of both"),
        Quantity("MPTCP / the better TCP", over_largest(*_CORE), "better"),
    ),
    "IP.b-control": _claim(Quantity("MPTCP / the better TCP", over_largest(*_ACCESS))),
    "IP.c-reliability": _claim(
        Quantity("longest pause of MPTCP", PAUSE.median(at(MPTCP, OUTAGE)), "MPTCP"),
        Quantity("longest pause of TCP over IPv6", PAUSE.median(at(TCP_V6, OUTAGE)), "TCP"),
    ),
    "IP.d-returns": _claim(
        Quantity(
            "IPv6's share of the bytes, with the outage",
            _SHARE.median(at(MPTCP, OUTAGE)),
            describe=_shares_in_words,
        )
    ),
}


def _draw_shares(results: Results, axes: panels.Axes) -> None:
    shares = [_SHARE.number(results, at(MPTCP, network)) for network in _ACCESS_RATE]
    rest = [100 - each for each in shares]
    axes.bar(range(3), shares, 0.5, color=ORANGE, alpha=0.75, label="IPv6")
    axes.bar(range(3), rest, 0.5, shares, color=BLUE, alpha=0.75, label="IPv4")
    axes.set_xticks(range(3), ["core", "access", "outage"])
    axes.set(xlabel="network", ylabel="share of MPTCP's bytes (%)")


def _measured_words(results: Results) -> dict[str, object]:
    return {"share": _SHARE.number(results, at(MPTCP, CORE))}


PANELS = {
    "Goodput": panels.bars_of(
        {"in the core": CORE, "in the access": ACCESS}, GOODPUT, at, STYLES, x="bottleneck"
    ),
    "Share of each family": _draw_shares,
    "IPv6 goes away and comes back": panels.goodput_around(
        panels.curves(STYLES, network=OUTAGE), AWAY_S, BACK_S
    ),
}

EXPERIMENT = Experiment(
    words={"away_s": AWAY_S, "back_s": BACK_S},
    design=grid(_cell, network=_ACCESS_RATE, curve=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("network; curve", "ipv6", (GOODPUT, MEAN, PAUSE_MS)),
    measured_words=_measured_words,
)
