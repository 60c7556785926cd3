"""IPv4 and IPv6 between the same hosts: the gain from using both at once."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, named
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid
from anabranch.gallery.measures import over_largest, over_sum
from anabranch.gallery.metrics import GOODPUT, MEAN, PAUSE, PAUSE_MS, share
from anabranch.gallery.shared.connections import flow, network_path, outages
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports.figures import BLUE, GREEN, ORANGE, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks

TCP_V4, TCP_V6, MPTCP = "TCP over IPv4", "TCP over IPv6", "MPTCP over both"
STYLES = {
    TCP_V4: Style(BLUE, "-", "o"),
    TCP_V6: Style(ORANGE, (0, (6, 1.5, 1, 1.5)), "v"),
    MPTCP: Style(GREEN, (0, (4, 1.5)), "^"),
}
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
        where="goodput, bottlenecks in the core",
    ),
    "IP.b-control": _claim(
        Quantity("MPTCP / the better TCP", over_largest(*_ACCESS)),
        where="goodput, bottleneck in the access",
    ),
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


def _notes(results: Results) -> list[str]:
    return [
        "The client opens the connection over IPv4. The server announces its IPv6 address in an "
        "ADD_ADDR with an HMAC that only a holder of both keys can compute. The client echoes the "
        "ADD_ADDR and joins from its own IPv6 address. IPv6 has 63 % of the capacity and carries "
        f"{_SHARE.number(results, at(MPTCP, CORE)):.0f} % of the bytes.",
        "The IPv6 header is 20 bytes longer than the IPv4 header: 1.3 % of a full packet.",
    ]


PANELS = {
    "Goodput": (
        "With bottlenecks in the core, MPTCP reaches the sum. With one bottleneck in the "
        "access, it gains nothing.",
        panels.bars_of(
            {"in the core": CORE, "in the access": ACCESS}, GOODPUT, at, STYLES, x="bottleneck"
        ),
    ),
    "Share of each family": ("Shares of MPTCP's bytes.", _draw_shares),
    "IPv6 goes away and comes back": (
        "Goodput in bins of one second, first seed. The IPv6 route is down in the shaded time.",
        panels.goodput_around(panels.curves(STYLES, network=OUTAGE), AWAY_S, BACK_S),
    ),
}

ENTRY = Entry(
    parameters=f"""
        access | <path.access in *_bottlenecks-*>; the control has <path.access.rate in *-access>
        route of IPv4 | <path.ipv4>
        route of IPv6 | <path.ipv6>
        outage | IPv6 silently drops everything from {AWAY_S} s to {BACK_S} s
        workload | blocks of <connection.*.block_size>, download
        buffers | send 4 MiB, receive 6 MiB | Linux's maxima
        congestion control | <congestion control>
        address of the other family | announced by the server | RFC 8684 §3.4.1
    """,
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=20, measured_s=120),
    design=grid(_cell, network=_ACCESS_RATE, curve=STYLES),
    uncertain_parameters=LINKS,
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("network; curve", "ipv6", (GOODPUT, MEAN, PAUSE_MS)),
    notes=_notes,
)
