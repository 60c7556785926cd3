"""NSDI 2012, Figure 4: goodput over WiFi and 3G as the receive buffer grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import DUPLICATES, GOODPUT, REINJECTIONS
from anabranch.gallery.shared.measures import at_every_buffer, least, median_of, ratio_of
from anabranch.gallery.shared.uncertain import WIFI_3G
from anabranch.gallery.shared.wifi_3g import (
    MPTCP,
    MPTCP_M1,
    MPTCP_M12,
    MPTCP_M12_NSDI,
    PAASCH,
    RAICIU,
    STACK_PARAMETERS,
    STYLES,
    TCP_3G,
    TCP_WIFI,
    THREE_G,
    WIFI,
    all_of,
    both_paths_used,
    connection,
)
from anabranch.reports import figures
from anabranch.reports.figures import Panel
from anabranch.results.bounds import Bound
from anabranch.results.claims import Claim, Condition, Measure, each
from anabranch.results.estimates import Estimate, Sample, estimate, median
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = (TCP_WIFI, TCP_3G, MPTCP, MPTCP_M1, MPTCP_M12, MPTCP_M12_NSDI)
BUFFERS_KB = (50, 100, 200, 300, 400, 500, 600, 800, 1000)

BONAVENTURE = (
    "O. Bonaventure: Fixing problems before the submission deadline. Multipath TCP blog, on the "
    "making of the NSDI 2012 paper."
)
MIGUEL_SINGH = "Miguel, Singh: reproduction of the receive buffer figure. CS244, Stanford, 2012."


at = Factors("curve", "buffer_kb")
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Every curve at every buffer size."""
    return [_cell(tier, curve, kb) for kb in BUFFERS_KB for curve in CURVES]


def _cell(tier: Tier, curve: str, kb: int) -> Cell:
    scenario = tier.scenario(
        f"{curve}, buffers {kb} kB",
        (
            dataclasses.replace(WIFI, jitter="1ms", jitter_model="fifo"),
            dataclasses.replace(THREE_G, jitter="1ms", jitter_model="fifo"),
        ),
        connection(curve, f"{kb}kB", f"{kb}kB", Bulk()),
    )
    return Cell(key_of(curve, f"{kb}kb"), scenario, at(curve, kb))


def _goodput(results: Results, curve: str, kb: int) -> Sample:
    return results.values("goodput_mbps", **at(curve, kb))


def _over_wifi(curve: str, kb: int) -> Measure:
    return ratio_of("goodput_mbps", at(curve, kb), at(TCP_WIFI, kb))


def _single_path(curve: str, bound: Bound) -> tuple[Condition, ...]:
    return each(
        f"{curve} at every buffer from 100 kB on",
        (
            Condition(f"{curve} at {kb} kB", median_of("goodput_mbps", at(curve, kb)), bound)
            for kb in BUFFERS_KB
            if kb >= 100
        ),
    )


def _never_worse(remedied: str) -> tuple[Condition, ...]:
    return at_every_buffer(
        "M1,2 / TCP WiFi",
        BUFFERS_KB,
        "kB",
        lambda kb: _over_wifi(remedied, kb),
        BOUNDS["E2.c-m12-never-worse"],
    )


def _fills_both(remedied: str) -> tuple[Condition, ...]:
    return each(
        "M1,2 at every buffer from 600 kB on",
        (
            Condition(
                f"M1,2 at {kb} kB",
                median_of("goodput_mbps", at(remedied, kb)),
                BOUNDS["E2.d-both-links-full"],
            )
            for kb in BUFFERS_KB
            if kb >= 600
        ),
    )


def _fewer_duplicates(remedied: str) -> Condition:
    def samples(results: Results) -> list[Sample]:
        return [
            results.values("duplicate_mbps", **at(curve, 200)) for curve in (MPTCP_M1, remedied)
        ]

    def describe(results: Results) -> str:
        alone, both = (median(sample).text("Mbit/s") for sample in samples(results))
        return f"throughput − goodput at 200 kB: {alone} with M1, {both} with M1,2; difference"

    return Condition(
        "throughput − goodput at 200 kB, M1 − M1,2",
        lambda results: estimate(_difference, *samples(results)),
        BOUNDS["E2.e-fewer-duplicates"],
        describe=describe,
    )


def _difference(a: Any, b: Any, axis: int) -> Any:
    return np.median(a, axis=axis) - np.median(b, axis=axis)


_MONOTONIC = each(
    "goodput of TCP over WiFi and over 3G at every buffer / at the next smaller one",
    (
        Condition(
            f"{curve}: goodput at {large} kB / at {small} kB",
            ratio_of("goodput_mbps", at(curve, large), at(curve, small)),
            BOUNDS["E2.f-monotonic"],
        )
        for small, large in pairwise(BUFFERS_KB)
        for curve in (TCP_WIFI, TCP_3G)
    ),
)


_GOODPUT = "goodput"


def _aggregation(results: Results) -> Estimate:
    """Goodput of MPTCP over the sum of TCP's goodputs, at the largest buffer."""
    samples = (_goodput(results, curve, BUFFERS_KB[-1]) for curve in (MPTCP, TCP_WIFI, TCP_3G))
    return estimate(_over_sum, *samples)


def _over_sum(a: Any, b: Any, c: Any, axis: int) -> Any:
    middle = [np.median(each, axis=axis) for each in (a, b, c)]
    return middle[0] / (middle[1] + middle[2])


def _used(*curves: str) -> Any:
    return all_of(*(both_paths_used(**at(curve, kb)) for curve in curves for kb in (200, 600)))


def _claims_about(remedied: str, suffix: str, form: str) -> tuple[Claim, ...]:
    """The claims about MPTCP with both mechanisms that hold for either form of penalisation."""
    words = f" (penalisation{form})" if form else ""
    return (
        Claim(
            f"E2.c-m12-never-worse{suffix}",
            f"With both mechanisms{words}, MPTCP is never slower than TCP over WiFi.",
            "NSDI'12, Fig. 4c; Bonaventure's account",
            _never_worse(remedied),
            _used(remedied),
            _GOODPUT,
        ),
        Claim(
            f"E2.e-fewer-duplicates{suffix}",
            f"Penalisation{form} reduces the data that opportunistic retransmission sends twice.",
            "NSDI'12, Fig. 4b and 4c",
            (_fewer_duplicates(remedied),),
            _used(MPTCP_M1, remedied),
        ),
    )


CLAIMS = (
    Claim(
        "E2.a-single-path",
        "TCP fills either path once its window exceeds the bandwidth-delay product.",
        "Bonaventure's account of NSDI'12",
        (
            *_single_path(TCP_WIFI, BOUNDS["E2.a-single-path WiFi"]),
            *_single_path(TCP_3G, BOUNDS["E2.a-single-path 3G"]),
        ),
        where=_GOODPUT,
    ),
    Claim(
        "E2.b-regular-dips",
        "With a small receive buffer, MPTCP is slower than TCP over WiFi alone.",
        "NSDI'12, Fig. 4a; Bonaventure's account",
        (
            least(
                "smallest MPTCP / TCP WiFi at any buffer of at most 400 kB",
                {
                    f"MPTCP / TCP WiFi at {kb} kB": _over_wifi(MPTCP, kb)
                    for kb in BUFFERS_KB
                    if kb <= 400
                },
                BOUNDS["E2.b-regular-dips"],
            ),
        ),
        _used(MPTCP),
        _GOODPUT,
    ),
    Claim(
        "E2.g-aggregates",
        "With a large receive buffer, MPTCP aggregates both links.",
        "NSDI'12, Fig. 4a; Bonaventure's account",
        (
            Condition(
                f"MPTCP / (TCP WiFi + TCP 3G) at {BUFFERS_KB[-1]} kB",
                _aggregation,
                BOUNDS["E2.g-aggregates"],
            ),
        ),
        _used(MPTCP),
        _GOODPUT,
    ),
    Claim(
        "E2.h-m1-not-enough",
        "Opportunistic retransmission alone is not enough: penalisation raises goodput further.",
        "Bonaventure's account",
        (
            Condition(
                "M1 / M1,2 at 200 kB",
                ratio_of("goodput_mbps", at(MPTCP_M1, 200), at(MPTCP_M12, 200)),
                BOUNDS["E2.h-m1-not-enough"],
            ),
        ),
        _used(MPTCP_M1, MPTCP_M12),
        _GOODPUT,
    ),
    *_claims_about(MPTCP_M12, "", ""),
    Claim(
        "E2.f-monotonic",
        "A larger buffer never reduces the goodput of single-path TCP.",
        "ours: a check of the single-path curves",
        _MONOTONIC,
    ),
    *_claims_about(MPTCP_M12_NSDI, "-2012", " in the form of 2012"),
    Claim(
        "E2.d-both-links-full-2012",
        "From about 600 kB on, MPTCP with both mechanisms (penalisation in the form of 2012) fills "
        "both links.",
        "CS244'12, reproduction of the receive buffer figure",
        _fills_both(MPTCP_M12_NSDI),
        _used(MPTCP_M12_NSDI),
        _GOODPUT,
    ),
)


_CS244_MBPS = (600, 9.0)
"""CS244'12: the buffer in kB from which MPTCP with both mechanisms fills both links, in Mbit/s."""


def _draw_goodput(results: Results, axes: Axes) -> None:
    curves: dict[str, Any] = {curve: ({"curve": curve}, STYLES[curve]) for curve in CURVES}
    figures.over_factor(axes, results, "buffer_kb", "goodput_mbps", curves)
    wifi = [float(np.median(_goodput(results, TCP_WIFI, kb))) for kb in BUFFERS_KB]
    axes.fill_between(BUFFERS_KB, 0, wifi, color=figures.GREY, alpha=0.08, linewidth=0)
    axes.text(BUFFERS_KB[-1], 0.15, "below TCP over WiFi: harm", fontsize=7, ha="right")
    figures.reference_line(axes, 10, "sum of the link rates")
    figures.stated(axes, *zip(_CS244_MBPS, strict=True))
    axes.set(xlabel="send and receive buffer (kB)", ylabel="goodput (Mbit/s)")
    axes.set_ylim(0, 11)
    axes.set_xlim(0)


def _draw_metric(results: Results, axes: Axes, metric: str, unit: str, scale: float = 1) -> None:
    curves: dict[str, Any] = {curve: ({"curve": curve}, STYLES[curve]) for curve in CURVES[2:]}
    figures.over_factor(axes, results, "buffer_kb", metric, curves, scale)
    axes.set(xlabel="send and receive buffer (kB)", ylabel=unit)
    axes.set_xlim(0)
    axes.set_ylim(0)


def notes(results: Results) -> Sequence[str]:
    """The minimum of each MPTCP curve, its goodput with large buffers, and duplicates."""

    def lowest(curve: str) -> str:
        medians = {kb: float(np.median(_goodput(results, curve, kb))) for kb in BUFFERS_KB}
        kb = min(medians, key=lambda each: medians[each])
        most = f"{medians[BUFFERS_KB[-1]]:.2f} Mbit/s at {BUFFERS_KB[-1]} kB"
        return f"{curve}: lowest {medians[kb]:.2f} Mbit/s at {kb} kB, {most}"

    def duplicates(curve: str) -> str:
        return median(results.values("duplicate_mbps", **at(curve, BUFFERS_KB[-1]))).text("Mbit/s")

    return [
        "The curves of MPTCP need not rise with the buffer: the dip is the effect under study. "
        + "; ".join(lowest(curve) for curve in CURVES[2:])
        + ".",
        "The queue of 3G holds 334 packets, or 2 s. A window large enough to fill both paths and "
        "this queue would be 2 × 10 Mbit/s × 2.15 s, about 5.4 MB. Below that, the goodput over "
        "both paths depends on how often 3G loses a packet, and thus on the congestion control.",
        "The penalisation of CoNEXT'13 leaves ssthresh unchanged if the subflow is in slow start. "
        "3G's queue of 334 packets hardly ever overflows here, so 3G never leaves slow start. Each "
        "penalty halves 3G's window, and the next round trips double it again. The receive window "
        "fills anew, and opportunistic retransmission sends data over WiFi that 3G still delivers. "
        f"At {BUFFERS_KB[-1]} kB, {duplicates(MPTCP_M12)} of data arrive twice with this form, and "
        f"{duplicates(MPTCP_M12_NSDI)} with the form of NSDI'12, which also lowers ssthresh.",
        "The statement that both links are full from 600 kB on comes from a student's "
        "reproduction, not from the paper.",
    ]


ENTRY = Entry(
    id="nsdi12-fig4",
    title="Goodput over WiFi and 3G as the receive buffer grows (NSDI 2012, Figure 4)",
    question="How much receive buffer does Multipath TCP need to be at least as fast as TCP over "
    "the better path, without and with opportunistic retransmission (M1) and penalisation (M2)?",
    references=(RAICIU, BONAVENTURE, MIGUEL_SINGH, PAASCH),
    parameters=(
        *parameters("""
        WiFi | 8 Mbit/s, 20 ms RTT, 54 packets (80 ms) | NSDI'12
        3G | 2 Mbit/s, 150 ms RTT, 334 packets (2 s) | NSDI'12
        jitter | 1 ms on both paths, order kept | ours: without jitter, all seeds would give the
            same run
        buffers | 50 to 1000 kB, send = receive | range after NSDI'12, values ours
        workload | bulk, download | NSDI'12
    """),
        *STACK_PARAMETERS,
    ),
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=20, measured_s=100),
    cells=cells,
    uncertain_parameters=WIFI_3G,
    claims=CLAIMS,
    headline="E2.c-m12-never-worse",
    panels=(
        Panel(
            "Goodput over the buffer size",
            "A curve inside the shaded region means that adding a path did harm. Medians over "
            "seeds with 95 % intervals. Diamond: CS244'12.",
            _draw_goodput,
        ),
        Panel(
            "Data received twice",
            "Throughput minus goodput: the cost of opportunistic retransmission.",
            partial(_draw_metric, metric="duplicate_mbps", unit="throughput − goodput (Mbit/s)"),
        ),
        Panel(
            "What 3G carried",
            "Shows that MPTCP used both paths.",
            partial(_draw_metric, metric="share_3g", unit="3G's share of the bytes (%)", scale=100),
        ),
    ),
    overview=Overview(
        {"curve": "curve", "buffer_kb": "buffers (kB)"},
        (GOODPUT, DUPLICATES.called("received twice"), REINJECTIONS),
        "3g",
    ),
    notes=notes,
)
