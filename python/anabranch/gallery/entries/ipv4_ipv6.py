"""IPv4 and IPv6 between the same hosts: the gain from using both at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import GOODPUT, MEAN, PAUSE_MS
from anabranch.gallery.shared.measures import median_of
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports import figures, outages
from anabranch.reports.figures import BLUE, GREEN, ORANGE, Panel, Style
from anabranch.results.claims import Claim, Condition, Measure
from anabranch.results.estimates import Estimate, estimate, median
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks, Change, Connection, NetworkPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

ALAY_SLIDES = (
    "Ö. Alay, S. Ferlin-Oliveira, T. Dreibholz: Multipath Transport over Heterogeneous Networks. "
    "Slides, Simula Research Laboratory: future work."
)
RFC = "A. Ford et al.: TCP Extensions for Multipath Operation, §3.4.1. RFC 8684, 2020."


at = Factors("curve", "network")
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Every curve in every network."""
    return [_cell(tier, curve, network) for network in _ACCESS_RATE for curve in STYLES]


def _cell(tier: Tier, curve: str, network: str) -> Cell:
    down_and_up = (Change(at=f"{AWAY_S}s", state="down"), Change(at=f"{BACK_S}s", state="up"))
    paths = (
        NetworkPath(name="access", rate=_ACCESS_RATE[network], delay="5ms", limit="60ms"),
        NetworkPath(
            name="ipv4", via="access", family="ipv4", rate="12Mbit/s", delay="10ms",
            limit="60ms", jitter="1ms",
        ),
        NetworkPath(
            name="ipv6", via="access", family="ipv6", rate="20Mbit/s", delay="20ms",
            limit="60ms", jitter="1ms", changes=down_and_up if network == OUTAGE else (),
        ),
    )  # fmt: skip
    tcp = curve in _PATHS
    connection = Connection(
        name="main",
        paths=_PATHS.get(curve, ("ipv4", "ipv6")),
        protocol="tcp" if tcp else "mptcp",
        congestion_control="new_reno" if tcp else "lia",
        workload=Blocks(),
    )
    scenario = tier.scenario(f"{curve}, {network}", paths, connection)
    return Cell(key_of(curve, network), scenario, at(curve, network))


def _over(results: Results, network: str, reduce: Any) -> Estimate:
    """Goodput of MPTCP over the sum, or the maximum, of the goodputs of TCP over each route."""
    curves = (MPTCP, TCP_V4, TCP_V6)
    samples = [results.values("goodput_mbps", **at(curve, network)) for curve in curves]

    def ratio(first: Any, *rest: Any, axis: int) -> Any:
        return np.median(first, axis=axis) / reduce([np.median(each, axis=axis) for each in rest])

    return estimate(ratio, *samples)


def _sum(medians: list[Any]) -> Any:
    return np.sum(medians, axis=0)


def _most(medians: list[Any]) -> Any:
    return np.max(medians, axis=0)


def _beside(network: str, reduce: Any) -> Measure:
    return partial(_over, network=network, reduce=reduce)


def _pause_s(results: Results, curve: str) -> Estimate:
    return median(results.values("recovery_ms", **at(curve, OUTAGE)) / 1e3)


def _shares_in_words(results: Results) -> str:
    steady = median_of("share_ipv6", at(MPTCP, CORE), 100)(results)
    return f"IPv6's share of the bytes: {steady.text('%')} without the outage; with the outage"


def _announced(results: Results) -> str | None:
    """The precondition that both families carried data, so the client learnt the IPv6 address."""
    for network in _ACCESS_RATE:
        for family in ("ipv4", "ipv6"):
            share = results.values(f"share_{family}", **at(MPTCP, network)).min()
            if share < 0.01:
                return f"{family} carried {share:.1%} of the bytes ({network})"
    return None


CLAIMS = (
    Claim(
        "IP.a-sum",
        "Where each family's route has its own bottleneck, Multipath TCP reaches the sum of both.",
        "slides, last page, as a question; the thresholds are ours",
        (
            Condition(
                "MPTCP / (TCP over IPv4 + TCP over IPv6)",
                _beside(CORE, _sum),
                BOUNDS["IP.a-sum of both"],
            ),
            Condition("MPTCP / the better TCP", _beside(CORE, _most), BOUNDS["IP.a-sum better"]),
        ),
        _announced,
        "goodput, bottlenecks in the core",
    ),
    Claim(
        "IP.b-control",
        "Where both routes share the bottleneck, Multipath TCP gains nothing (negative control).",
        "ours",
        (Condition("MPTCP / the better TCP", _beside(ACCESS, _most), BOUNDS["IP.b-control"]),),
        _announced,
        "goodput, bottleneck in the access",
    ),
    Claim(
        "IP.c-reliability",
        "When the route of one family dies silently, Multipath TCP continues over the other, while "
        "TCP over the dead route stalls.",
        "slides, last page, as a question; the thresholds are ours",
        (
            Condition(
                "longest pause of MPTCP",
                partial(_pause_s, curve=MPTCP),
                BOUNDS["IP.c-reliability MPTCP"],
            ),
            Condition(
                "longest pause of TCP over IPv6",
                partial(_pause_s, curve=TCP_V6),
                BOUNDS["IP.c-reliability TCP"],
            ),
        ),
        _announced,
    ),
    Claim(
        "IP.d-returns",
        "After the outage, Multipath TCP uses the route again.",
        "ours",
        (
            Condition(
                "IPv6's share of the bytes, with the outage",
                median_of("share_ipv6", at(MPTCP, OUTAGE), 100),
                BOUNDS["IP.d-returns"],
                describe=_shares_in_words,
            ),
        ),
        _announced,
    ),
)


def _draw_goodput(results: Results, axes: Axes) -> None:
    networks = {"in the core": CORE, "in the access": ACCESS}

    def points(curve: str) -> list[Estimate]:
        cells = (at(curve, network) for network in networks.values())
        return [median(results.values("goodput_mbps", **cell)) for cell in cells]

    bars = {curve: (points(curve), style) for curve, style in STYLES.items()}
    figures.grouped_bars(axes, list(networks), bars)
    axes.set(xlabel="bottleneck", ylabel="goodput (Mbit/s)")


def _draw_shares(results: Results, axes: Axes) -> None:
    shares = [
        median(results.values("share_ipv6", **at(MPTCP, network)) * 100).value
        for network in _ACCESS_RATE
    ]
    axes.bar(range(3), shares, 0.5, color=ORANGE, alpha=0.75, label="IPv6")
    axes.bar(
        range(3), [100 - each for each in shares], 0.5, shares, color=BLUE, alpha=0.75, label="IPv4"
    )
    axes.set_xticks(range(3), ["core", "access", "outage"])
    axes.set(xlabel="network", ylabel="share of MPTCP's bytes (%)")  # fmt: skip


def _draw_outage(results: Results, axes: Axes) -> None:
    lines = {}
    for curve, style in STYLES.items():
        key = key_of(curve, OUTAGE)
        samples = results.samples.filter(results.samples["cell"] == key)
        samples = samples.unique("time_ns", maintain_order=True)
        seconds = samples["time_ns"].to_numpy() / 1e9
        rates = np.diff(samples["bytes_delivered"].to_numpy()[::10]) * 8e-6
        lines[curve] = (seconds[10::10][: rates.size], rates, style)
    figures.series(axes, lines, "goodput, bins of 1 s (Mbit/s)")
    outages.shade(axes, results.scenarios[key])
    axes.set(xlabel="time (s)", xlim=(AWAY_S - 10, BACK_S + 15))


def notes(results: Results) -> Sequence[str]:
    """IPv6's share of the bytes, and how the client finds the second path."""
    share = float(np.median(results.values("share_ipv6", **at(MPTCP, CORE)))) * 100
    return [
        "The client opens the connection over IPv4. The server announces its IPv6 address in an "
        "ADD_ADDR with an HMAC that only a holder of both keys can compute. The client echoes the "
        "ADD_ADDR and joins from its own IPv6 address. IPv6 has 63 % of the capacity and carries "
        f"{share:.0f} % of the bytes.",
        "The IPv6 header is 20 bytes longer than the IPv4 header: 1.3 % of a full packet.",
    ]


ENTRY = Entry(
    id="ipv4-ipv6",
    title="IPv4 and IPv6 at once: two incongruent paths (slides of Alay et al., last question)",
    question="Routes of IPv4 and IPv6 between the same hosts often differ. What do performance and "
    "reliability gain from using both at once?",
    references=(ALAY_SLIDES, RFC),
    parameters=parameters(f"""
        access | 50 Mbit/s, or 10 in the control; 5 ms one way; 60 ms of queue | ours
        route of IPv4 | 12 Mbit/s, 10 ms one way, ± 1 ms, 60 ms of queue | ours
        route of IPv6 | 20 Mbit/s, 20 ms one way, ± 1 ms, 60 ms of queue | ours
        outage | IPv6 silently drops everything from {AWAY_S} s to {BACK_S} s | ours
        workload | 8 KiB blocks, download | ours
        buffers | send 4 MiB, receive 6 MiB | Linux's maxima
        congestion control | TCP: NewReno; MPTCP: LIA | ours
        address of the other family | announced by the server | RFC 8684 §3.4.1
    """),
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=20, measured_s=120),
    cells=cells,
    uncertain_parameters=LINKS,
    claims=CLAIMS,
    panels=(
        Panel(
            "Goodput",
            "With bottlenecks in the core, MPTCP reaches the sum. With one bottleneck in the "
            "access, it gains nothing.",
            _draw_goodput,
        ),
        Panel("What each family carried", "Shares of MPTCP's bytes.", _draw_shares),
        Panel(
            "IPv6 goes away and comes back",
            "Goodput in bins of one second, first seed. The IPv6 route is down in the shaded time.",
            _draw_outage,
        ),
    ),
    overview=Overview({"network": "network", "curve": "curve"}, (GOODPUT, MEAN, PAUSE_MS), "ipv6"),
    notes=notes,
)
