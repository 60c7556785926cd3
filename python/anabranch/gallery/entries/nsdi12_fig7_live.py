"""NSDI 2012, Figure 7, three times: the engine in virtual and in real time, and Linux."""

import dataclasses
from collections.abc import Sequence

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each, named
from anabranch.gallery.entries.nsdi12_fig7 import CURVES, JITTER
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, MEAN, MEAN_OF_BLOCK, P50, P95, P99, Metric
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import real_time, wifi_3g
from anabranch.gallery.shared.real_time import ENGINE, HOSTS, KERNEL, VIRTUAL
from anabranch.gallery.shared.uncertain import REAL_TIME
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M12, TCP_WIFI, used
from anabranch.reports.figures import BLUE, GREY, ORANGE, SKY, Style, cdf, right_edge
from anabranch.results.folder import Results

BUFFER = "200KiB"
SHORT = {VIRTUAL: "virtual", ENGINE: "engine", KERNEL: "Linux"}
COLOURS = {VIRTUAL: SKY, ENGINE: BLUE, KERNEL: ORANGE}

at = Factors("hosts", "curve")


def curves(hosts: str) -> Sequence[str]:
    """The curves that these hosts can run. Linux has neither mechanism."""
    return CURVES[:-1] if hosts == KERNEL else CURVES


def _cell(tier: Tier, hosts: str, curve: str) -> Cell:
    cell = tier.cell(
        {"curve": curve},
        (wifi_3g.WIFI, dataclasses.replace(wifi_3g.THREE_G, jitter=JITTER)),
        wifi_3g.connection(curve, BUFFER, BUFFER),
        words=(curve, SHORT[hosts]),
        name=f"{curve}, {hosts}",
        keep_blocks=True,
    )
    return real_time.on(hosts, cell)


def _same_in_real_time(name: str, metric: Metric) -> tuple[Quantity, ...]:
    return for_each(
        f"{{}}: difference of {name}",
        CURVES,
        lambda curve: metric.distance(at(ENGINE, curve), at(VIRTUAL, curve)),
        f"difference of {name}, every curve",
        name.removeprefix("mean "),
    )


_LINUX_WIFI, _LINUX_MPTCP = at(KERNEL, TCP_WIFI), at(KERNEL, MPTCP)
_REMEDIED = at(ENGINE, MPTCP_M12)

CLAIMS = {
    "K1-virtual-is-real": claim(
        _same_in_real_time("goodput", GOODPUT),
        _same_in_real_time("mean delay", MEAN),
        needs=used(at(VIRTUAL, MPTCP), at(ENGINE, MPTCP)),
    ),
    "K2-linux-is-harmed": claim(
        Quantity("goodput, Linux: MPTCP / TCP over WiFi", GOODPUT.ratio(_LINUX_MPTCP, _LINUX_WIFI)),
        needs=used(_LINUX_MPTCP),
    ),
    "K3-cured": claim(
        Quantity("goodput: M1,2 / Linux's TCP over WiFi", GOODPUT.ratio(_REMEDIED, _LINUX_WIFI)),
        Quantity(
            "goodput: M1,2 / Linux's MPTCP", GOODPUT.ratio(_REMEDIED, _LINUX_MPTCP), "goodput"
        ),
        Quantity("mean delay: M1,2 / Linux's MPTCP", MEAN.ratio(_REMEDIED, _LINUX_MPTCP), "delay"),
        needs=used(_REMEDIED, _LINUX_MPTCP),
    ),
}


def _delays(hosts: str) -> panels.Draw:
    def draw(results: Results, axes: panels.Axes) -> None:
        drawn = {c: (results.delays(**at(hosts, c)), wifi_3g.STYLES[c]) for c in curves(hosts)}
        cdf(axes, drawn, right=_right_edge(results))

    return draw


def _right_edge(results: Results) -> float:
    """The right end of the axes, common to all three panels so that they can be compared."""
    return right_edge(
        [results.delays(**at(hosts, curve)) for hosts in HOSTS for curve in curves(hosts)], 0.995
    )


def _bars(metric: Metric) -> panels.Draw:
    def draw(results: Results, axes: panels.Axes) -> None:
        panels.bars(
            {curve.replace(" over ", "\n"): curve for curve in CURVES},
            lambda hosts, c: metric.median(at(hosts, c)) if c in curves(hosts) else None,
            {hosts: Style(COLOURS[hosts]) for hosts in HOSTS},
            metric.heading,
            log=metric is MEAN_OF_BLOCK,
        )(results, axes)
        axes.annotate(
            "Linux has\nneither", (len(CURVES) - 1 + 0.15, 0), xytext=(0, 4),
            textcoords="offset points", fontsize=6.5, color=GREY,
        )  # fmt: skip
        axes.set_xlim(-0.5, len(CURVES) - 0.3)

    return draw


def _draw_lateness(results: Results, axes: panels.Axes) -> None:
    runs = results.runs.drop_nulls("late_p999_ms")
    for hosts in (ENGINE, KERNEL):
        own = runs.filter(runs["hosts"] == hosts)
        axes.plot(
            own["late_p999_ms"], own["late_share"] * 100, "o", markersize=4,
            color=COLOURS[hosts], label=hosts,
        )  # fmt: skip
    axes.axvline(5, color=GREY, linewidth=0.8)
    axes.axhline(1, color=GREY, linewidth=0.8)
    words = "lateness of packets, 99.9th percentile (ms)", "packets later than 1 ms (%)"
    panels.dress(axes, {"span": (0, 5.5), "top": 1.1}, *words)


def _notes(results: Results) -> list[str]:
    goodput = GOODPUT.texts(results, at)
    return [
        f"Goodput of MPTCP without the mechanisms: {goodput(VIRTUAL, MPTCP)} in virtual time, "
        f"{goodput(ENGINE, MPTCP)} with the engine and {goodput(KERNEL, MPTCP)} with Linux in "
        f"real time. TCP over WiFi: {goodput(VIRTUAL, TCP_WIFI)}, {goodput(ENGINE, TCP_WIFI)} and "
        f"{goodput(KERNEL, TCP_WIFI)}. With both mechanisms, the engine has "
        f"{goodput(VIRTUAL, MPTCP_M12)} in virtual and {goodput(ENGINE, MPTCP_M12)} in real time.",
        "Linux receives the same request for 200 KiB. It doubles the size and charges the memory "
        "of each segment against it, so its windows differ. The entry linux-today varies the "
        "requested size.",
        real_time.lateness(results),
    ]


PANELS = {
    **{
        f"Delay of a block: {hosts}": (
            "Share of blocks delivered within a given delay. Curves further left are faster. "
            "The three panels have the same axes.",
            _delays(hosts),
        )
        for hosts in HOSTS
    },
    "Goodput": (
        "Where a bar of MPTCP is below that of TCP over WiFi, adding a path does harm.",
        _bars(GOODPUT),
    ),
    "Mean delay of a block": ("On a logarithmic scale.", _bars(MEAN_OF_BLOCK)),
    "Lateness of the emulator": (
        "One point for each run in real time. Beyond the grey lines, a run would be invalid.",
        _draw_lateness,
    ),
}

ENTRY = Entry(
    parameters=parameters("""
        WiFi | <path.wifi> (80 ms) | as in nsdi12-fig7
        3G | <path.3g> (2 s) | as in nsdi12-fig7
        jitter of 3G | order of packets kept | as in nsdi12-fig7
        both buffers | <connection.*_buffer> | as in nsdi12-fig7
        block | <connection.*.block_size> | NSDI'12
    """)
    + real_time.PARAMETERS,
    quick=Tier("quick", seeds=3, measured_s=20, warm_up_s=2),
    full=Tier("full", seeds=10, measured_s=60),
    design=joined(*(grid(_cell, hosts=(hosts,), curve=curves(hosts)) for hosts in HOSTS)),
    not_varied_because=REAL_TIME,
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("hosts; curve", "3g", (GOODPUT, MEAN, P50, P95, P99)),
    notes=_notes,
)
