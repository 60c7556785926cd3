"""Paasch, Khalili, Bonaventure, CoNEXT 2013: penalisation over a design of 400 settings."""

from typing import Any

import numpy as np

from anabranch.gallery.claims import Quantity, claim, named
from anabranch.gallery.entry import Entry, Overview, Tier
from anabranch.gallery.measures import derived, mean, median
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.panels import titled
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.two_path_design import HIGH, LOW, benefits, both_used, gain
from anabranch.gallery.shared.uncertain import A_DESIGN
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.gallery.systems import ON_MININET, Source
from anabranch.reports.figures import GREEN, RED, SKY, Style
from anabranch.results.estimates import Estimate, estimate
from anabranch.results.folder import Results
from anabranch.sweeps import design

REGULAR, OLD, NEW = "MPTCP", "MPTCP+M1,2 (2012)", "MPTCP+M1,2 (2013)"
SSTHRESH, RTT, PAUSE = "2012, ssthresh of 2013", "2012, RTT of 2013", "2012, pause of 2013"
KERNEL = "0.88"
STYLES = {
    REGULAR: Style(RED, (0, (4, 1.5)), "s"),
    OLD: Style(SKY, (0, (1, 1)), "x"),
    NEW: Style(GREEN, "-", "^"),
}
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


def _notes(results: Results) -> list[str]:
    parts = (
        f"{curve.removeprefix('2012, ')} {gain(curve, OLD)(results).text()}"
        for curve in (*PARTS, NEW)
    )
    return [
        two_path_design.benefits_in_words(
            results, STYLES, lambda values: f"{np.median(values):.2f}"
        ),
        "Difference of the mean benefit from that of the form of 2012, high-BDP: "
        f"{'; '.join(parts)}.",
        "We do not know all capacities in the papers' tables. The ranges here are those that "
        "CSWS'14 quotes for the same tool. The benefit may exceed 1, because TCP alone need not "
        "fill its path.",
    ]


ENTRY = Entry(
    parameters=two_path_design.DESIGN_PARAMETERS
    + parameters("""
        settings | 24 (quick) or 200 (full) per environment | full: CoNEXT'13
        buffers | low-BDP 16 MB, high-BDP 4 MB, send = receive
        workload | bulk, download | CSWS'14: iperf, 60 s
        congestion control | <congestion control>
        scheduler | lowest RTT | CoNEXT'13
    """),
    quick=Tier("quick", seeds=1, measured_s=25),
    full=Tier("full", seeds=3, measured_s=55),
    design=two_path_design.bulk_cells(COUNTS, BUFFER, _SETTINGS, only_high=(*PARTS, KERNEL)),
    not_varied_because=A_DESIGN,
    source=Source(
        f"CoNEXT 2013 ran the original kernel on Mininet. {two_path_design.NETEM_UNKNOWN}",
        ("remedies",),
        ON_MININET,
    ),
    claims=named(CLAIMS),
    panels=titled(
        two_path_design.panels_of_benefits("Low-BDP settings", "High-BDP settings", STYLES)
    ),
    overview=Overview("environment; curve", "two", (GOODPUT, REINJECTIONS)),
    notes=_notes,
)
