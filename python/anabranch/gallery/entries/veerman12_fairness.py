"""Veerman 2012: Multipath TCP next to TCP, on one and on two shared links of a LAN."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs, Quantity, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import by_seed, derived, mean, mean_ratio
from anabranch.gallery.metrics import GOODPUT, part
from anabranch.gallery.shared import veerman12
from anabranch.reports.figures import BLACK, BLUE, GREEN, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results

LIA, UNCOUPLED, TCP = "LIA", "uncoupled NewReno", "TCP"
STYLES = {LIA: Style(GREEN), UNCOUPLED: Style(RED, "s--"), TCP: Style(BLUE, "D..")}
LIA_CUBIC = "LIA, TCP with CUBIC"
"""As `LIA`, but TCP has the congestion control that was the default of the slides' kernel."""

_CONTROL = {LIA: "lia", UNCOUPLED: "new_reno", TCP: "new_reno", LIA_CUBIC: "lia"}

ONE_LINK = "one link"
TWO_LINKS_ONE_TCP = "two links, TCP on one"
TWO_LINKS_TWO_TCP = "two links, TCP on both"
_ROUTES = {
    ONE_LINK: {"main": ("one", "one"), "tcp": ("one",)},
    TWO_LINKS_ONE_TCP: {"main": ("one", "two"), "tcp": ("one",)},
    TWO_LINKS_TWO_TCP: {"main": ("one", "two"), "tcp": ("one",), "tcp-two": ("two",)},
}
"""The links that the subflows of each connection cross."""

THEORY = {ONE_LINK: 1 / 2, TWO_LINKS_ONE_TCP: 1.0, TWO_LINKS_TWO_TCP: 2 / 3}
"""TCP's share of its link if every connection has the same total."""

BUFFER_MB = 6.0
LINK_MBPS = 1000 / veerman12.SCALE

at = Factors("curve", "network")


def _cell(tier: Tier, curve: str, network: str) -> Cell:
    tcp_control = "cubic" if curve == LIA_CUBIC else "new_reno"
    paths = [
        replace(veerman12.link(core, 1, 4), limit="5ms", jitter=None)
        for core in dict.fromkeys(_ROUTES[network]["main"])
    ]
    connections = []
    for name, links in _ROUTES[network].items():
        single = name != "main" or curve == TCP
        ways = {f"{name}-{number}": via for number, via in enumerate(links[: 1 if single else 2])}
        paths += [
            replace(veerman12.link(way, 100, 1), limit="infinite", via=via)
            for way, via in ways.items()
        ]
        control = tcp_control if single else _CONTROL[curve]
        connections.append(
            veerman12.connection(BUFFER_MB, name=name, paths=[*ways], congestion_control=control)
        )
    return tier.cell(at(curve, network), paths, connections, sample_interval="1s")


@by_seed
def share(results: Results, curve: str, network: str) -> Sample:
    """TCP's share of the bytes that link one delivers, for each seed."""
    cell = at(curve, network)
    tcp, crossing = (GOODPUT.values(cell, connection=name)(results) for name in ("tcp", "main"))
    if network != ONE_LINK:
        crossing = crossing * part("main-0").values(cell, connection="main")(results)
    return tcp / (tcp + crossing)


def _next_to(curve: str) -> Quantity:
    return Quantity(f"TCP's mean share next to {curve}", mean(share(curve, ONE_LINK)))


def _over_theory(network: str, curve: str = LIA) -> Measure:
    return mean(derived(lambda found: found / THEORY[network], share(curve, network)))


_TWO_LINKS = (TWO_LINKS_ONE_TCP, TWO_LINKS_TWO_TCP)


def _carried(*curves: str, networks: Sequence[str] = tuple(_ROUTES)) -> Needs:
    cells = (cell | {"connection": "main"} for cell in at.every(curves, networks))
    return carried(("main-0", "main-1"), *cells)


CLAIMS = {
    "E9.fairness-lia": claim(_next_to(LIA), needs=_carried(LIA, networks=(ONE_LINK,))),
    "E9.fairness-uncoupled": claim(
        _next_to(UNCOUPLED), needs=_carried(UNCOUPLED, networks=(ONE_LINK,))
    ),
    "E9.fairness-control": claim(_next_to(TCP)),
    "E9.fairness-below-theory": claim(
        for_each("TCP's mean share / theory, {}", _TWO_LINKS, _over_theory),
        needs=_carried(LIA, networks=_TWO_LINKS),
    ),
    "E9.fairness-a-bit-unfair": claim(
        for_each(
            "TCP's mean share / theory, next to LIA, {}",
            _ROUTES,
            _over_theory,
            "TCP's mean share / theory, next to LIA in every network",
        ),
        needs=_carried(LIA),
    ),
    "E9.fairness-a-bit-unfair-cubic": claim(
        for_each(
            "TCP's mean share / theory, CUBIC next to LIA, {}",
            _ROUTES,
            partial(_over_theory, curve=LIA_CUBIC),
            "TCP's mean share / theory, TCP with CUBIC next to LIA in every network",
        ),
        needs=_carried(LIA_CUBIC),
    ),
    "E9.fairness-coupling-helps": claim(
        for_each(
            "TCP's share, LIA / uncoupled, {}",
            _ROUTES,
            lambda network: mean_ratio(share(LIA, network), share(UNCOUPLED, network)),
            "TCP's mean share, LIA / uncoupled, in every network",
        ),
        needs=_carried(LIA, UNCOUPLED),
    ),
}


def _draw_shares(results: Results, axes: panels.Axes) -> None:
    """Draw TCP's share of its link in every network, and the share in theory."""

    def measure(label: str, network: str) -> Measure | None:
        curve = label.removeprefix("next to ")
        return None if curve == TCP and network != ONE_LINK else mean(share(curve, network))

    panels.bars(
        {name.replace(", ", ",\n"): name for name in _ROUTES},
        measure,
        {f"next to {curve}": style for curve, style in STYLES.items()},
        "TCP's share of its link",
        top=1.05,
    )(results, axes)
    for place, network in enumerate(_ROUTES):
        axes.plot(
            (place - 0.42, place + 0.42), (THEORY[network],) * 2, color=BLACK, linestyle="--",
            linewidth=1.1, label=None if place else "in theory",
        )  # fmt: skip


def _draw_over_time(results: Results, axes: panels.Axes) -> None:
    """Draw the goodputs of both connections with LIA, where TCP uses one of two links."""
    main, tcp = (at(LIA, TWO_LINKS_ONE_TCP) | {"connection_name": name} for name in ("main", "tcp"))
    panels.series(
        {
            "Multipath TCP, LIA": (main, "bytes_delivered", STYLES[LIA]),
            "TCP": (tcp, "bytes_delivered", STYLES[TCP]),
        },
        GOODPUT.heading,
        bin_samples=1,
        top=2 * LINK_MBPS,
    )(results, axes)
    axes.axhline(
        LINK_MBPS, color=BLACK, linestyle="--", linewidth=1.1, label="in theory: one link each"
    )


def _measured_words(results: Results) -> dict[str, object]:
    def shares(network: str) -> str:
        lia, uncoupled = (share(c, network)(results).mean() for c in (LIA, UNCOUPLED))
        found = f"{LIA} {lia:.2f}, {UNCOUPLED} {uncoupled:.2f}"
        return f"{network}: {found}, theory {THEORY[network]:.2f}"

    return {"shares": "; ".join(map(shares, _ROUTES))}


PANELS = {"TCP's share of its link": _draw_shares, "Two links, TCP on one": _draw_over_time}

EXPERIMENT = Experiment(
    words={"scale": veerman12.SCALE, "buffer_mb": BUFFER_MB},
    design=joined(
        grid(_cell, network=_ROUTES, curve=(LIA, UNCOUPLED, LIA_CUBIC)),
        grid(_cell, network=(ONE_LINK,), curve=(TCP,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("network; curve; connection", "main-0", (GOODPUT,)),
    measured_words=_measured_words,
)
