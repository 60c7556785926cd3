"""Paasch, Khalili, Bonaventure, CoNEXT 2013: penalisation over a design of 400 settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anabranch.gallery.claims import Quantity, claim
from anabranch.gallery.entry import Cell, Entry, Overview, Tier
from anabranch.gallery.measures import derived, mean, median
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.connections import one_or_both
from anabranch.gallery.shared.two_path_design import HIGH, LOW, benefits, both_used
from anabranch.gallery.shared.uncertain import A_DESIGN
from anabranch.gallery.shared.wifi_3g import M12, PAASCH
from anabranch.gallery.systems import ON_MININET, Source
from anabranch.reports.figures import GREEN, RED, SKY, Style
from anabranch.results.claims import Measure
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
_FORM = {
    OLD: "nsdi12",
    NEW: "conext13",
    SSTHRESH: "nsdi12_ssthresh",
    RTT: "nsdi12_rtt",
    PAUSE: "nsdi12_pause",
    KERNEL: "kernel_0_88",
}
PARTS = (SSTHRESH, RTT, PAUSE)
"""The form of 2012 with one part of that of 2013."""
BUFFER = {LOW: "16MB", HIGH: "4MB"}
COUNTS = {"quick": 24, "full": 200}


def cells(tier: Tier) -> list[Cell]:
    """Every setting with every curve and both baselines; parts of the forms at high BDP only."""
    further = {LOW: (), HIGH: (*PARTS, KERNEL)}
    return [
        _cell(tier, environment, point, curve)
        for environment in two_path_design.ENVIRONMENTS
        for point in two_path_design.points(environment, COUNTS[tier.name])
        for curve in (*STYLES, *two_path_design.BASELINES, *further[environment])
    ]


def _cell(tier: Tier, environment: str, point: Any, curve: str) -> Cell:
    connection = one_or_both(
        two_path_design.BASELINES.get(curve),
        buffers=BUFFER[environment],
        remedies={**M12, "penalisation": _FORM[curve]} if curve in _FORM else None,
    )
    return two_path_design.cell(tier, point, curve, connection)


def _more_benefit(more: str, less: str) -> Measure:
    """The mean difference of the benefit over high-BDP settings, with an interval over settings."""
    return mean(derived(np.subtract, benefits(more, HIGH), benefits(less, HIGH)), of="settings")


def _evenness(results: Results) -> Estimate:
    count = COUNTS[results.provenance["tier"]]
    ours = design.least_distance(design.wsp(count, 6, two_path_design.DESIGN_SEED))
    random = [
        design.least_distance(np.random.default_rng(seed).random((count, 6))) for seed in range(20)
    ]
    return estimate(lambda a, axis: ours / np.median(a, axis=axis), np.array(random))


_LOW = benefits(NEW, LOW)

CLAIMS = (
    claim(
        "E4.1-low-bdp",
        "At low bandwidth-delay products, Multipath TCP aggregates nearly all capacity.",
        "CoNEXT'13, as quoted for CSWS'14",
        Quantity("median benefit, low-BDP", median(_LOW, of="settings"), "benefit"),
        Quantity(
            "settings with a negative benefit, low-BDP",
            mean(derived(lambda low: 100.0 * (low < 0), _LOW), of="settings"),
            "harm",
        ),
        needs=both_used(NEW),
    ),
    claim(
        "E4.2-fix-helps",
        "At high bandwidth-delay products, penalisation aggregates more if it keeps ssthresh "
        "unchanged during slow start.",
        "CoNEXT'13",
        Quantity(
            "mean benefit(2012, ssthresh of 2013) − mean benefit(2012), high-BDP",
            _more_benefit(SSTHRESH, OLD),
        ),
        needs=both_used(OLD, SSTHRESH),
    ),
    claim(
        "E4.3-remedies-help",
        "At high bandwidth-delay products, opportunistic retransmission and the corrected "
        "penalisation do not reduce the benefit.",
        "CoNEXT'13",
        Quantity("mean benefit(2013) − mean benefit(none), high-BDP", _more_benefit(NEW, REGULAR)),
        needs=both_used(REGULAR, NEW),
    ),
    claim(
        "E4.4-rarely-bad",
        "Adding a path rarely costs more than half of the better path's goodput.",
        "this project, after CoNEXT'13",
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
    claim(
        "E4.5-design-fills",
        "The settings of the design fill the space of factors more evenly than random settings.",
        "this project: a check of the design",
        Quantity("smallest distance between settings, WSP / uniform", _evenness),
    ),
    claim(
        "E4.6-kernel-form",
        "Penalisation as in Multipath TCP 0.88, which keeps ssthresh only before the "
        "first loss, aggregates as much as that of 2013.",
        "this project: CSWS'14 and Grinnemo used MPTCP 0.88",
        Quantity("mean benefit(0.88) − mean benefit(2013), high-BDP", _more_benefit(KERNEL, NEW)),
        needs=both_used(NEW, KERNEL),
    ),
)


def notes(results: Results) -> Sequence[str]:
    """Medians of the benefit, and the source of the ranges."""
    words = []
    for environment in two_path_design.ENVIRONMENTS:
        medians = (
            f"{curve} {np.median(benefits(curve, environment)(results)):.2f}" for curve in STYLES
        )
        words.append(f"{environment}: median benefit {', '.join(medians)}.")
    parts = (
        f"{curve.removeprefix('2012, ')} {_more_benefit(curve, OLD)(results).text()}"
        for curve in (*PARTS, NEW)
    )
    return [
        " ".join(words),
        "Difference of the mean benefit from that of the form of 2012, high-BDP: "
        f"{'; '.join(parts)}.",
        "We do not know all capacities in the papers' tables. The ranges here are those that "
        "CSWS'14 quotes for the same tool. The benefit may exceed 1, because TCP alone need not "
        "fill its path.",
    ]


ENTRY = Entry(
    id="conext13-design",
    title="Original and corrected penalisation over a design of two paths (CoNEXT 2013)",
    question="Over hundreds of pairs of paths, how much of both paths does Multipath TCP use? Does "
    "the corrected form of penalisation help?",
    references=(PAASCH,),
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
    cells=cells,
    not_varied_because=A_DESIGN,
    source=Source(
        "CoNEXT 2013 ran the original kernel on Mininet. It is not known "
        "whether netem had the fault in its version of Linux.",
        ("remedies",),
        ON_MININET,
    ),
    claims=CLAIMS,
    headline="E4.2-fix-helps",
    panels=two_path_design.panels_of_benefits("Low-BDP settings", "High-BDP settings", STYLES),
    overview=Overview("environment; curve", "two", (GOODPUT, REINJECTIONS)),
    notes=notes,
)
