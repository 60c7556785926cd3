"""CSWS 2014, NorNet: four schedulers over WLAN and cellular paths, with two sizes of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entries.csws14_schedulers_bulk import (
    BM,
    CSWS,
    LOW_RTT,
    RP,
    RR,
    SETTINGS,
    STYLES,
)
from anabranch.gallery.entries.ferlin14_bufferbloat import PAIRS
from anabranch.gallery.entries.ferlin14_drepas import ALAY_SLIDES
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import OUT_OF_ORDER, TRANSFER
from anabranch.gallery.shared.measures import distance_of, ratio_of
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports import figures
from anabranch.reports.figures import Panel
from anabranch.results.claims import Claim, Condition, Measure, each
from anabranch.results.estimates import Estimate, Sample, median, ratio_of_medians
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, Connection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOUNDED, UNBOUNDED = "2 MB", "16 MB"
_SIZE = {BOUNDED: "2MB", UNBOUNDED: "16MB"}
WITH_WLAN = tuple(pair for pair in PAIRS if "WLAN" in pair)


at = Factors("curve", "pair", "buffers")
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Every scheduler over WLAN and either provider, with both sizes of buffers."""
    return [
        _cell(tier, curve, pair, buffers)
        for buffers in _SIZE
        for pair in WITH_WLAN
        for curve in STYLES
    ]


def _cell(tier: Tier, curve: str, pair: str, buffers: str) -> Cell:
    connection = Connection(
        name="main",
        congestion_control="olia",
        send_buffer=_SIZE[buffers],
        receive_buffer=_SIZE[buffers],
        workload=Bulk(size="16MiB"),
        **SETTINGS[curve],
    )
    scenario = tier.scenario(f"{curve}, {pair}, {buffers}", PAIRS[pair], connection)
    return Cell(key_of(curve, pair, _SIZE[buffers]), scenario, at(curve, pair, buffers))


def buffering_ms(results: Results, curve: str, pair: str, buffers: str) -> Sample:
    """Mean time that bytes wait for earlier bytes, in ms, for each seed, by Little's law.

    Raises:
        NothingMeasured: if no run has these factors.
    """
    cell = at(curve, pair, buffers)
    waiting = results.values("out_of_order_mean_bytes", **cell)
    return waiting * 8e-3 / results.values("transfer_mbps", **cell)


def _buffering_ratio(results: Results, curve: str, pair: str) -> Estimate:
    one, other = (buffering_ms(results, each, pair, UNBOUNDED) for each in (BM, curve))
    return ratio_of_medians(one, other)


def _goodputs(above: str, below: str, pair: str, buffers: str) -> Measure:
    return ratio_of("transfer_mbps", at(above, pair, buffers), at(below, pair, buffers))


def _both_used(results: Results) -> str | None:
    """The precondition that each path carried more than 1 % of the bytes in every cell."""
    for pair in WITH_WLAN:
        for path in PAIRS[pair]:
            for curve in STYLES:
                for buffers in _SIZE:
                    share = results.values(f"share_{path.name}", **at(curve, pair, buffers))
                    if float(np.median(share)) <= 0.01:
                        return f"{path.name} carried {np.median(share):.1%} ({curve}, {pair})"
    return None


CLAIMS = (
    Claim(
        "E6.e-unbounded-alike",
        "With unbounded buffers, each scheduler achieves similar goodput.",
        "CSWS'14, NorNet; slides of Alay et al.",
        each(
            "|goodput of RR, LowRTT+RP and LowRTT+BM / LowRTT − 1|, either provider",
            (
                Condition(
                    f"|goodput, {curve} / LowRTT − 1|, {pair}",
                    distance_of(
                        "transfer_mbps", at(curve, pair, UNBOUNDED), at(LOW_RTT, pair, UNBOUNDED)
                    ),
                    BOUNDS["E6.e-unbounded-alike"],
                )
                for pair in WITH_WLAN
                for curve in (RR, RP, BM)
            ),
        ),
        _both_used,
        f"buffers of {UNBOUNDED}",
    ),
    Claim(
        "E6.f-bounded-best",
        "With bounded buffers, lowest RTT with bufferbloat mitigation or with retransmission and "
        "penalisation has the best goodput.",
        "CSWS'14, NorNet; slides of Alay et al.",
        each(
            "goodput of LowRTT+BM and of LowRTT+RP / that of RR and of LowRTT, either provider",
            (
                Condition(
                    f"goodput, {curve} / {other}, {pair}",
                    _goodputs(curve, other, pair, BOUNDED),
                    BOUNDS["E6.f-bounded-best"],
                )
                for pair in WITH_WLAN
                for curve in (BM, RP)
                for other in (RR, LOW_RTT)
            ),
        ),
        _both_used,
        f"buffers of {BOUNDED}",
    ),
    Claim(
        "E6.g-least-buffering",
        "With unbounded buffers, lowest RTT with bufferbloat mitigation has the least buffering "
        "delay.",
        "CSWS'14, NorNet; slides of Alay et al.",
        each(
            "buffering delay of LowRTT+BM / that of RR, LowRTT and LowRTT+RP, either provider",
            (
                Condition(
                    f"buffering delay, LowRTT+BM / {curve}, {pair}",
                    partial(_buffering_ratio, curve=curve, pair=pair),
                    BOUNDS["E6.g-least-buffering"],
                )
                for pair in WITH_WLAN
                for curve in (RR, LOW_RTT, RP)
            ),
        ),
        _both_used,
        f"buffers of {UNBOUNDED}",
    ),
)


def _draw_goodput(results: Results, axes: Axes, buffers: str) -> None:
    def points(curve: str) -> list[Estimate]:
        cells = (at(curve, pair, buffers) for pair in WITH_WLAN)
        return [median(results.values("transfer_mbps", **cell)) for cell in cells]

    figures.grouped_bars(axes, list(WITH_WLAN), {c: (points(c), s) for c, s in STYLES.items()})
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_ylim(0)


def _draw_buffering(results: Results, axes: Axes) -> None:
    def points(curve: str) -> list[Estimate]:
        return [median(buffering_ms(results, curve, pair, UNBOUNDED)) for pair in WITH_WLAN]

    figures.grouped_bars(axes, list(WITH_WLAN), {c: (points(c), s) for c, s in STYLES.items()})
    axes.set_ylabel("buffering delay (ms)")
    axes.set_ylim(0)


def notes(results: Results) -> Sequence[str]:
    """The buffering delays."""
    words = []
    for pair in WITH_WLAN:
        delays = (
            f"{curve} {median(buffering_ms(results, curve, pair, UNBOUNDED)).text('ms')}"
            for curve in STYLES
        )
        words.append(f"{pair}: {', '.join(delays)}")
    return [
        f"Buffering delay with buffers of {UNBOUNDED} — {'; '.join(words)}.",
        "The measurements of CSWS'14 used a public WLAN with about 100 users and a real cellular "
        "network over three weeks. The links here are those of ferlin14-bufferbloat.",
        "MPT-BM has no threshold θ here, as in csws14-schedulers-bulk, so it also caps WLAN.",
        "Beside 3G1, penalisation makes some seeds slow: where a loss leaves 3G1 a small window, "
        "its round-trip time is short, and OLIA lets WLAN grow less.",
    ]


ENTRY = Entry(
    id="csws14-nornet",
    title="Four schedulers over WLAN and cellular paths (CSWS 2014, NorNet)",
    question="Over WLAN and a bufferbloated cellular path, which scheduler has the best goodput "
    "if buffers are bounded, and the least buffering delay if they are not?",
    references=(CSWS, ALAY_SLIDES),
    parameters=parameters("""
        paths | WLAN beside 3G1 and beside 3G2, as in ferlin14-bufferbloat | ours
        transfer | 16 MiB, download | CSWS'14: 16 MB
        buffers | 2 MB and 16 MB, send = receive | CSWS'14
        congestion control | OLIA | CSWS'14
        schedulers | as in csws14-schedulers-bulk | CSWS'14
        buffering delay | mean out-of-order bytes / goodput | ours: Little's law
    """),
    quick=Tier("quick", seeds=10, measured_s=55, warm_up_s=5),
    full=Tier("full", seeds=30, measured_s=115, warm_up_s=5),
    cells=cells,
    uncertain_parameters=LINKS,
    claims=CLAIMS,
    panels=(
        Panel(
            "Goodput, buffers of 2 MB",
            "Medians over seeds with 95 % intervals.",
            partial(_draw_goodput, buffers=BOUNDED),
        ),
        Panel(
            "Goodput, buffers of 16 MB",
            "Medians over seeds with 95 % intervals.",
            partial(_draw_goodput, buffers=UNBOUNDED),
        ),
        Panel(
            "Buffering delay, buffers of 16 MB",
            "Mean time that bytes wait for earlier bytes.",
            _draw_buffering,
        ),
    ),
    overview=Overview(
        {"pair": "paths", "buffers": "buffers", "curve": "scheduler"},
        (TRANSFER, OUT_OF_ORDER),
        "wlan",
    ),
    notes=notes,
)
