"""Multipath TCP of today's Linux compared with the engine, on the same links."""

import dataclasses
from itertools import product
from typing import Any

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, LATENESS, MEAN, MEAN_OF_BLOCK, P95, Metric, texts
from anabranch.gallery.shared import real_time, wifi_3g
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style, cdf
from anabranch.results.folder import Results

ASKED_KB = (100, 200, 400)
"""Requested buffer sizes, which Linux doubles to 200, 400 and 800 kB."""
JUDGED_KB = 100

LINUX_TCP, LINUX_MPTCP = "Linux, TCP over WiFi", "Linux, MPTCP"
ENGINE_MPTCP, ENGINE_M12 = "engine, MPTCP", "engine, MPTCP+M1,2"
_CURVES = {
    LINUX_TCP: (real_time.KERNEL, wifi_3g.TCP_WIFI, Style(BLUE)),
    LINUX_MPTCP: (real_time.KERNEL, wifi_3g.MPTCP, Style(RED, "s--")),
    ENGINE_MPTCP: (real_time.ENGINE, wifi_3g.MPTCP, Style(ORANGE, "D..")),
    ENGINE_M12: (real_time.ENGINE, wifi_3g.MPTCP_M12, Style(GREEN, "^-")),
}
_STYLES = {curve: style for curve, (_, _, style) in _CURVES.items()}

at = Factors("curve", asked_kb=JUDGED_KB)


def _cell(tier: Tier, curve: str, asked: int) -> Cell:
    hosts, protocol, _ = _CURVES[curve]
    both = f"{asked}kB"
    cell = tier.cell(
        at(curve, asked),
        (wifi_3g.WIFI, dataclasses.replace(wifi_3g.THREE_G, jitter="0s")),
        wifi_3g.connection(protocol, both, both),
        words=(curve, both),
        keep_blocks=asked == JUDGED_KB,
    )
    return real_time.on(hosts, cell)


def _goodput(a: str, b: str, asked: int, bound: str = "") -> Quantity:
    words = f"{a} / {b}, {asked} kB requested"
    return Quantity(words, GOODPUT.ratio(at(a, asked), at(b, asked)), bound)


_REQUESTED_KB = (JUDGED_KB, 200)

CLAIMS = {
    "L1-linux-is-harmed": claim(
        (_goodput(LINUX_MPTCP, LINUX_TCP, asked) for asked in _REQUESTED_KB),
        needs=wifi_3g.used(at(LINUX_MPTCP)),
    ),
    "L2-half-is-lost": claim(
        Quantity("Linux, MPTCP, 100 kB requested", GOODPUT.median(at(LINUX_MPTCP))),
        needs=wifi_3g.used(at(LINUX_MPTCP)),
    ),
    "L3-cured": claim(
        (
            _goodput(ENGINE_M12, other, asked, "" if other == LINUX_TCP else "over MPTCP")
            for asked, other in product(_REQUESTED_KB, (LINUX_TCP, LINUX_MPTCP))
        ),
        needs=wifi_3g.used(at(ENGINE_M12), at(LINUX_MPTCP)),
    ),
}


def _over_buffers(metric: Metric, **look: Any) -> panels.Draw:
    words = "both buffers, as requested (kB)"
    curves = panels.curves(_STYLES)
    return panels.over("asked_kb", metric, curves, words, ticks=ASKED_KB, **look)


def _measured_words(results: Results) -> dict[str, object]:
    return {**texts(results, at, goodput=GOODPUT), "lateness": real_time.lateness(results)}


PANELS = {
    "Goodput over the buffers": _over_buffers(
        GOODPUT, top=11, lines={10: "sum of the\nlink rates"}
    ),
    "Mean delay of a block": _over_buffers(MEAN_OF_BLOCK, log=True),
    "Delay of a block, 100 kB requested": panels.distribution(
        cdf, panels.curves(_STYLES, asked_kb=JUDGED_KB), share=0.995
    ),
}

EXPERIMENT = Experiment(
    uncited=("Multipath TCP of this machine's kernel and the engine, measured in real time.",),
    design=grid(_cell, asked=ASKED_KB, curve=_CURVES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("asked_kb: requested (kB); curve", "3g", (GOODPUT, MEAN, P95, LATENESS)),
    measured_words=_measured_words,
)
