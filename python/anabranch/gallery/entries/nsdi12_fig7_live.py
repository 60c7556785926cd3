"""NSDI 2012, Figure 7, three times: the engine in virtual and in real time, and Linux."""

import dataclasses
from collections.abc import Sequence

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entries.nsdi12_fig7 import CURVES, JITTER
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, MEAN, MEAN_OF_BLOCK, P50, P95, P99, Metric, texts
from anabranch.gallery.shared import real_time, wifi_3g
from anabranch.gallery.shared.real_time import ENGINE, HOSTS, KERNEL, VIRTUAL
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


def _measured_words(results: Results) -> dict[str, object]:
    return {**texts(results, at, goodput=GOODPUT), "lateness": real_time.lateness(results)}


PANELS = {
    **{f"Delay of a block: {hosts}": _delays(hosts) for hosts in HOSTS},
    "Goodput": _bars(GOODPUT),
    "Mean delay of a block": _bars(MEAN_OF_BLOCK),
    "Lateness of the emulator": _draw_lateness,
}

EXPERIMENT = Experiment(
    design=joined(*(grid(_cell, hosts=(hosts,), curve=curves(hosts)) for hosts in HOSTS)),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("hosts; curve", "3g", (GOODPUT, MEAN, P50, P95, P99)),
    measured_words=_measured_words,
)
