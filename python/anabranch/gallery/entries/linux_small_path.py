"""A small path next to a large one: today's Linux, its model in virtual time, and the engine."""

from typing import Any

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, LATENESS, Metric, part
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.connections import flow, model_of_linux, network_path
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.folder import Results

RTTS_MS = (1, 10, 25)
"""Round-trip times of the slow path."""
REPORTED = {1: 0.157, 10: 0.266, 25: 0.991}
"""Goodput of Multipath TCP over that of TCP in the public report, by the slow path's delay."""

LINUX_TCP, LINUX_MPTCP = "Linux, TCP over the fast path", "Linux, MPTCP"
MODEL_MPTCP, ENGINE_M12 = "model of Linux, MPTCP", "engine, MPTCP+M1,2"
_TCP = flow(("fast",), congestion_control="cubic")
_LINUX = model_of_linux(scheduler="linux")
_CURVES = {
    LINUX_TCP: (real_time.KERNEL, _TCP, Style(BLUE)),
    LINUX_MPTCP: (real_time.KERNEL, _LINUX, Style(RED, "s--")),
    MODEL_MPTCP: (real_time.VIRTUAL, _LINUX, Style(ORANGE, "D..")),
    ENGINE_M12: (real_time.ENGINE, flow(remedies=M12), Style(GREEN, "^-")),
}
_STYLES = {curve: style for curve, (_, _, style) in _CURVES.items()}

at = Factors("curve", "slow_rtt_ms")


def _cell(tier: Tier, curve: str, rtt_ms: int) -> Cell:
    hosts, connection, _ = _CURVES[curve]
    paths = (
        network_path("fast", "100Mbit/s", "5ms", "100packets"),
        network_path("slow", "2Mbit/s", f"{rtt_ms / 2}ms", "100packets"),
    )
    words, name = (curve, f"{rtt_ms}ms"), f"{curve}, {rtt_ms} ms"
    cell = tier.cell(at(curve, rtt_ms), paths, connection, words=words, name=name)
    return real_time.on(hosts, cell)


def _share_of_tcp(curve: str, rtt_ms: int) -> Quantity:
    words = f"{curve} / {LINUX_TCP}, {rtt_ms} ms"
    return Quantity(words, GOODPUT.ratio(at(curve, rtt_ms), at(LINUX_TCP, rtt_ms)))


CLAIMS = {
    "S1-linux-is-harmed": claim(
        _share_of_tcp(LINUX_MPTCP, 1),
        _share_of_tcp(LINUX_MPTCP, 10),
        needs=carried("slow", at(LINUX_MPTCP, RTTS_MS[0]), over=0, of=np.median),
    ),
    "S2-harm-vanishes": claim(_share_of_tcp(LINUX_MPTCP, 25)),
    "S3-cured": claim(_share_of_tcp(ENGINE_M12, rtt) for rtt in RTTS_MS),
}


def _over_delay(metric: Metric, *drawn: str, **look: Any) -> panels.Draw:
    words = "round-trip time of the slow path (ms)"
    curves = panels.curves(_STYLES, *drawn)
    return panels.over("slow_rtt_ms", metric, curves, words, ticks=RTTS_MS, **look)


def _measured_words(results: Results) -> dict[str, object]:
    def row(rtt_ms: int) -> str:
        tcp, linux, model, engine = (
            GOODPUT.text(results, at(each, rtt_ms)).removesuffix(" Mbit/s") for each in _CURVES
        )
        return (
            f"With {rtt_ms} ms on the slow path, TCP over the fast path has {tcp} Mbit/s, Linux's "
            f"MPTCP {linux}, the model of Linux {model}, and the engine with both mechanisms "
            f"{engine}. The report has {REPORTED[rtt_ms]:.1%} of TCP."
        )

    return {
        "goodputs": "\n\n".join(row(rtt) for rtt in RTTS_MS),
        "lateness": real_time.lateness(results),
    }


PANELS = {
    "Goodput over the slow path's round-trip time": _over_delay(
        GOODPUT, top=110, lines={102: "sum of the\nlink rates"}
    ),
    "Share of the slow path": _over_delay(
        part("slow").called("share of the bytes over the slow path"),
        LINUX_MPTCP,
        MODEL_MPTCP,
        ENGINE_M12,
        lines={2 / 102: "share of\nthe rates"},
    ),
}

EXPERIMENT = Experiment(
    design=grid(_cell, rtt_ms=RTTS_MS, curve=_CURVES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("slow_rtt_ms: slow RTT (ms); curve", "slow", (GOODPUT, LATENESS)),
    measured_words=_measured_words,
)
