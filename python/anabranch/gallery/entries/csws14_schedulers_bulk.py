"""Paasch, Ferlin, Alay, Bonaventure, CSWS 2014: schedulers with bulk data over a design."""

from typing import Any

import numpy as np

from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Experiment, Overview
from anabranch.gallery.measures import median, of_medians
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.two_path_design import HIGH, LOW, benefits, both_used
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, Style
from anabranch.results.folder import Results

RR, LOW_RTT, RP, BM = "RR", "LowRTT", "LowRTT+RP", "LowRTT+BM"
STYLES = {
    RR: Style(ORANGE, "D.."),
    LOW_RTT: Style(BLUE),
    RP: Style(GREEN, "^--"),
    BM: Style(PURPLE, "v-."),
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
        (_raises(curve, RR) for curve in (LOW_RTT, RP, BM)), needs=both_used(*STYLES)
    ),
    **{
        f"E5.2{name}-high-bdp": claim(_raises(curve), needs=both_used(curve, LOW_RTT))
        for name, curve in (("a-rp", RP), ("b-bm", BM))
    },
}


def _measured_words(results: Results) -> dict[str, object]:
    return {
        "benefits": two_path_design.benefits_in_words(
            results, STYLES, lambda values: f"{np.median(values):.2f} (mean {np.mean(values):.2f})"
        )
    }


EXPERIMENT = Experiment(
    words={"design_seed": two_path_design.DESIGN_SEED},
    design=two_path_design.bulk_cells(COUNTS, BUFFER, SETTINGS),
    named_claims=CLAIMS,
    drawings=two_path_design.panels_of_benefits(
        "Low-BDP settings", "High-BDP settings, buffers of 2 MB", STYLES
    ),
    overview=Overview("environment; curve: scheduler", "two", (GOODPUT, REINJECTIONS)),
    measured_words=_measured_words,
)
