"""Paasch, Khalili, Bonaventure, CoNEXT 2013: penalisation over a design of 400 settings."""

from typing import Any

import numpy as np

from anabranch.gallery.claims import Quantity, claim
from anabranch.gallery.entry import Experiment, Overview
from anabranch.gallery.measures import derived, mean, median
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.two_path_design import HIGH, LOW, benefits, both_used, gain
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import GREEN, RED, SKY, Style
from anabranch.results.estimates import Estimate, estimate
from anabranch.results.folder import Results
from anabranch.sweeps import design

REGULAR, OLD, NEW = "MPTCP", "MPTCP+M1,2 (2012)", "MPTCP+M1,2 (2013)"
SSTHRESH, RTT, PAUSE = "2012, ssthresh of 2013", "2012, RTT of 2013", "2012, pause of 2013"
KERNEL = "0.88"
STYLES = {REGULAR: Style(RED, "s--"), OLD: Style(SKY, "x:"), NEW: Style(GREEN, "^-")}
_FORMS = {
    OLD: "nsdi12",
    NEW: "conext13",
    SSTHRESH: "nsdi12_ssthresh",
    RTT: "nsdi12_rtt",
    PAUSE: "nsdi12_pause",
    KERNEL: "kernel_0_88",
}
PARTS = (SSTHRESH, RTT, PAUSE)
"""The form of 2012 with one part of that of 2013."""
_SETTINGS: dict[str, dict[str, Any]] = {REGULAR: {}} | {
    curve: {"remedies": {**M12, "penalisation": form}} for curve, form in _FORMS.items()
}
BUFFER = {LOW: "16MB", HIGH: "4MB"}
COUNTS = {"quick": 24, "full": 200}


def _evenness(results: Results) -> Estimate:
    count = COUNTS[results.provenance["tier"]]
    designed = design.least_distance(design.wsp(count, 6, two_path_design.DESIGN_SEED))
    random = [
        design.least_distance(np.random.default_rng(seed).random((count, 6))) for seed in range(20)
    ]
    return estimate(lambda a, axis: designed / np.median(a, axis=axis), np.array(random))


_LOW = benefits(NEW, LOW)

CLAIMS = {
    "E4.1-low-bdp": claim(
        Quantity("median benefit, low-BDP", median(_LOW, of="settings"), "benefit"),
        Quantity(
            "settings with a negative benefit, low-BDP",
            mean(derived(lambda low: 100.0 * (low < 0), _LOW), of="settings"),
            "harm",
        ),
        needs=both_used(NEW),
    ),
    "E4.2-fix-helps": claim(
        Quantity(
            "mean benefit(2012, ssthresh of 2013) − mean benefit(2012), high-BDP",
            gain(SSTHRESH, OLD),
        ),
        needs=both_used(OLD, SSTHRESH),
    ),
    "E4.3-remedies-help": claim(
        Quantity("mean benefit(2013) − mean benefit(none), high-BDP", gain(NEW, REGULAR)),
        needs=both_used(REGULAR, NEW),
    ),
    "E4.4-rarely-bad": claim(
        Quantity(
            "settings with a benefit of at least −0.5",
            mean(
                derived(
                    lambda low, high: 100.0 * (np.concatenate([low, high]) >= -0.5),
                    _LOW,
                    benefits(NEW, HIGH),
                ),
                of="settings",
            ),
        ),
        needs=both_used(NEW),
    ),
    "E4.5-design-fills": claim(
        Quantity("smallest distance between settings, WSP / uniform", _evenness)
    ),
    "E4.6-kernel-form": claim(
        Quantity("mean benefit(0.88) − mean benefit(2013), high-BDP", gain(KERNEL, NEW)),
        needs=both_used(NEW, KERNEL),
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    parts = (
        f"{curve.removeprefix('2012, ')} {gain(curve, OLD)(results).text()}"
        for curve in (*PARTS, NEW)
    )
    return {
        "benefits": two_path_design.benefits_in_words(
            results, STYLES, lambda values: f"{np.median(values):.2f}"
        ),
        "parts": "; ".join(parts),
    }


EXPERIMENT = Experiment(
    words={"design_seed": two_path_design.DESIGN_SEED},
    design=two_path_design.bulk_cells(COUNTS, BUFFER, _SETTINGS, only_high=(*PARTS, KERNEL)),
    named_claims=CLAIMS,
    drawings=two_path_design.panels_of_benefits("Low-BDP settings", "High-BDP settings", STYLES),
    overview=Overview("environment; curve", "two", (GOODPUT, REINJECTIONS)),
    measured_words=_measured_words,
)
