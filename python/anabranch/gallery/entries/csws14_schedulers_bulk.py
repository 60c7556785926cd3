"""Paasch, Ferlin, Alay, Bonaventure, CSWS 2014: schedulers with bulk data over a design."""

from typing import Any

import numpy as np

from anabranch.gallery.claims import Quantity, claim, for_each, named
from anabranch.gallery.entry import Entry, Overview, Tier
from anabranch.gallery.measures import median, of_medians
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.panels import titled
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.two_path_design import HIGH, LOW, benefits, both_used
from anabranch.gallery.shared.uncertain import A_DESIGN
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.gallery.systems import ON_MININET, Source
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, Style
from anabranch.results.folder import Results

RR, LOW_RTT, RP, BM = "RR", "LowRTT", "LowRTT+RP", "LowRTT+BM"
STYLES = {
    RR: Style(ORANGE, (0, (2, 1)), "D"),
    LOW_RTT: Style(BLUE, "-", "o"),
    RP: Style(GREEN, (0, (4, 1.5)), "^"),
    BM: Style(PURPLE, (0, (6, 1.5, 1, 1.5)), "v"),
}
SETTINGS: dict[str, dict[str, Any]] = {
    RR: {"control": "olia", "scheduler": "round_robin"},
    LOW_RTT: {"control": "olia"},
    RP: {"control": "olia", "remedies": M12},
    BM: {"control": "olia", "remedies": {"mpt_bm": {"lambda": 3.0, "theta": "0s"}}},
}
"""RP is opportunistic retransmission and penalisation, BM bufferbloat mitigation."""
BUFFER = {LOW: "16MB", HIGH: "2MB"}
COUNTS = {"quick": 20, "full": 200}


def _raises(curve: str, base: str = LOW_RTT) -> Quantity:
    words = f"mean benefit({curve}) − mean benefit({base}), high-BDP"
    return Quantity(words, two_path_design.gain(curve, base))


_WHERE = "buffers of 2 MB"

CLAIMS = {
    "E5.1a-low-bdp": claim(
        for_each(
            "median benefit of {}, low-BDP",
            STYLES,
            lambda curve: median(benefits(curve, LOW), of="settings"),
            "median benefit of every scheduler, low-BDP",
        ),
        needs=both_used(*STYLES),
    ),
    "E5.1b-rr-like-low-rtt": claim(
        Quantity(
            "|median benefit of RR − of LowRTT|, low-BDP",
            of_medians(
                lambda a, b: abs(a - b), benefits(RR, LOW), benefits(LOW_RTT, LOW), of="settings"
            ),
        ),
        needs=both_used(RR, LOW_RTT),
    ),
    "E5.1c-low-rtt-beats-rr": claim(
        (_raises(curve, RR) for curve in (LOW_RTT, RP, BM)), needs=both_used(*STYLES), where=_WHERE
    ),
    **{
        f"E5.2{name}-high-bdp": claim(_raises(curve), needs=both_used(curve, LOW_RTT), where=_WHERE)
        for name, curve in (("a-rp", RP), ("b-bm", BM))
    },
}


def _notes(results: Results) -> list[str]:
    return [
        two_path_design.benefits_in_words(
            results,
            STYLES,
            lambda values: f"{np.median(values):.2f} (mean {np.mean(values):.2f})",
        ),
        "MPT-BM uses λ = 3 and no threshold θ, because CSWS'14 states none. The baseline is "
        "NewReno, the single-path form of the coupled algorithm, with the same buffers.",
    ]


SOURCE = Source(
    "CSWS 2014 ran version 0.88 of the original kernel on Mininet. "
    f"{two_path_design.NETEM_UNKNOWN}",
    ("scheduler", "remedies"),
    ON_MININET,
)

ENTRY = Entry(
    parameters=two_path_design.DESIGN_PARAMETERS
    + parameters("""
        settings | 20 (quick) or 200 (full) per environment | full: CSWS'14
        buffers | low-BDP 16 MB, high-BDP 2 MB, send = receive | 2 MB: CSWS'14
        workload | bulk, 60 s | CSWS'14
        congestion control | <congestion control> | CSWS'14; TCP: this project
        λ of MPT-BM | 3 | CSWS'14
        θ of MPT-BM | 0 | this project: CSWS'14 states none
        round robin | one segment per turn, full windows are skipped | Linux's mptcp_rr.c
    """),
    quick=Tier("quick", seeds=1, measured_s=25),
    full=Tier("full", seeds=3, measured_s=55),
    design=two_path_design.bulk_cells(COUNTS, BUFFER, SETTINGS),
    not_varied_because=A_DESIGN,
    source=SOURCE,
    claims=named(CLAIMS),
    panels=titled(
        two_path_design.panels_of_benefits(
            "Low-BDP settings", "High-BDP settings, buffers of 2 MB", STYLES
        )
    ),
    overview=Overview("environment; curve: scheduler", "two", (GOODPUT, REINJECTIONS)),
    notes=_notes,
)
