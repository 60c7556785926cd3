"""Ferlin, Alay, Mehani, Boreli, IFIP Networking 2016: BLEST, a scheduler that avoids blocking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import MEAN, OUT_OF_ORDER, REINJECTIONS, TRANSFER
from anabranch.gallery.shared.measures import distance_of, ratio_of
from anabranch.gallery.shared.uncertain import BUFFERS, LINKS
from anabranch.reports import figures
from anabranch.reports.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Panel,
    Style,
)
from anabranch.results.bounds import Bound
from anabranch.results.claims import Claim, Condition, Measure, each
from anabranch.results.estimates import Estimate, median
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, Cbr, Connection, NetworkPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_RTT, BLEST, PAPER = "lowest RTT", "BLEST (Linux)", "BLEST (paper)"
FINE, FIXED = "BLEST (paper, step 0.001)", "BLEST (paper, step 0)"
FLOORED = "BLEST (paper, floor 0.5)"
RULES = (BLEST, PAPER, FINE, FIXED, FLOORED)
OTIAS, STTF, DAPS = "OTIAS", "STTF", "DAPS"
STYLES = {
    MIN_RTT: Style(BLUE, "-", "o"),
    BLEST: Style(GREEN, (0, (6, 1.5, 1, 1.5)), "^"),
    PAPER: Style(SKY, (0, (1, 1)), "x"),
    FINE: Style(ORANGE, (0, (2, 1)), "D"),
    FIXED: Style(PURPLE, (0, (4, 1.5)), "v"),
    FLOORED: Style(BLACK, (0, (1, 1)), "*"),
    OTIAS: Style(RED, "-", "s"),
    STTF: Style(GREY, (0, (6, 1.5, 1, 1.5)), "P"),
    DAPS: Style(YELLOW, (0, (4, 1.5)), "X"),
}
_SCHEDULER: dict[str, Any] = {
    MIN_RTT: "min_rtt",
    BLEST: "blest",
    PAPER: {"kind": "blest", "rule": "paper", "step": 0.01},
    FINE: {"kind": "blest", "rule": "paper", "step": 0.001},
    FIXED: {"kind": "blest", "rule": "paper", "step": 0.0},
    FLOORED: {"kind": "blest", "rule": "paper", "step": 0.01, "floor": 0.5},
    OTIAS: "otias",
    STTF: "sttf",
    DAPS: "daps",
}


def _wlan(name: str, delay_ms: float = 25, loss: str = "1%") -> NetworkPath:
    return NetworkPath(
        name=name, rate="25Mbit/s", delay=f"{delay_ms:g}ms", limit="100packets", loss=loss
    )


def _umts(delay_ms: float) -> NetworkPath:
    return NetworkPath(name="second", rate="5Mbit/s", delay=f"{delay_ms:g}ms", limit="3750packets")


HETEROGENEOUS, HOMOGENEOUS = "3G+WLAN", "WLAN+WLAN"
BOTH = (HETEROGENEOUS, HOMOGENEOUS)
READINGS = {
    "3G+WLAN, 0.1 % loss": (_wlan("wlan", loss="0.1%"), _umts(65)),
    "3G+WLAN, round trips": (_wlan("wlan", 12.5), _umts(32.5)),
    "3G+WLAN, round trips, 0.1 % loss": (_wlan("wlan", 12.5, "0.1%"), _umts(32.5)),
}
"""Other readings of the paper's table: its delays as round trips, and a smaller loss (ours)."""
_PATHS = {
    HETEROGENEOUS: (_wlan("wlan"), _umts(65)),
    HOMOGENEOUS: (_wlan("wlan"), _wlan("second")),
    **READINGS,
}
BULK, CBR = "bulk 64 MiB", "CBR 1 Mbit/s"
_WORKLOADS: dict[str, Bulk | Cbr] = {
    BULK: Bulk(size="64MiB"),
    CBR: Cbr(rate="1Mbit/s", block_size="5KiB"),
}

FERLIN_BLEST = (
    "S. Ferlin, Ö. Alay, O. Mehani, R. Boreli: BLEST: Blocking Estimation-based MPTCP Scheduler "
    "for Heterogeneous Networks. IFIP Networking 2016."
)


at = Factors("curve", "paths", workload=BULK)
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Every scheduler over both pairs of paths with both workloads, and bulk in other readings."""
    whole = [
        _cell(tier, curve, paths, workload)
        for workload in _WORKLOADS
        for paths in BOTH
        for curve in STYLES
    ]
    compared = (MIN_RTT, BLEST, PAPER)
    return whole + [_cell(tier, curve, paths, BULK) for paths in READINGS for curve in compared]


def _cell(tier: Tier, curve: str, paths: str, workload: str) -> Cell:
    connection = Connection(
        name="main",
        congestion_control="olia",
        scheduler=_SCHEDULER[curve],
        send_buffer="1024KiB",
        receive_buffer="2048KiB",
        remedies={"opportunistic_retransmission": True, "penalisation": "conext13"},
        workload=_WORKLOADS[workload],
    )
    scenario = tier.scenario(f"{curve}, {paths}, {workload}", _PATHS[paths], connection)
    key = key_of(curve, paths.replace("%", "percent"), workload.split()[0])
    return Cell(key, scenario, at(curve, paths, workload))


def _over_min_rtt(metric: str, curve: str, paths: str, workload: str = BULK) -> Measure:
    return ratio_of(metric, at(curve, paths, workload), at(MIN_RTT, paths, workload))


def _heterogeneous(metric: str, words: str, bound: Bound) -> tuple[Condition, ...]:
    """The conditions on a metric of each BLEST rule over that of lowest RTT."""
    return tuple(
        Condition(
            f"{words}, {curve} / lowest RTT, {HETEROGENEOUS}",
            _over_min_rtt(metric, curve, HETEROGENEOUS),
            bound,
        )
        for curve in RULES
    )


def _in_readings(metric: str, words: str, bound: Bound) -> tuple[Condition, ...]:
    """The conditions on a metric of BLEST over that of lowest RTT, in every other reading."""
    return each(
        f"{words}, {BLEST} / lowest RTT, every other reading",
        (
            Condition(
                f"{words}, {BLEST} / lowest RTT, {paths}",
                _over_min_rtt(metric, BLEST, paths),
                bound,
            )
            for paths in READINGS
        ),
    )


def _reinjects(results: Results) -> str | None:
    """The precondition that lowest RTT reinjects, and that 3G carries bytes with BLEST."""
    reinjections = results.values("reinjections", **at(MIN_RTT, HETEROGENEOUS))
    if float(np.median(reinjections)) < 50:
        return f"lowest RTT reinjects only {np.median(reinjections):.0f} segments"
    shares = results.values("share_second", **at(BLEST, HETEROGENEOUS))
    return None if float(shares.min()) > 0.01 else "3G carried nothing with BLEST"


def _daps_uses_both(paths: str) -> Callable[[Results], str | None]:
    """The precondition that frames at a constant rate use both paths with DAPS."""

    def reason(results: Results) -> str | None:
        shares = results.values("share_second", **at(DAPS, paths, CBR))
        return None if shares.min() > 0.01 and shares.max() < 0.99 else "DAPS uses one path"

    return reason


CLAIMS = (
    Claim(
        "E11.blest-reinjections",
        "Over 3G and WLAN, BLEST avoids retransmissions at data level (reinjections), about as "
        "many as in the paper.",
        "Networking'16: 366 packets with lowest RTT, 70 with BLEST (second-hand)",
        _heterogeneous("reinjections", "reinjections", BOUNDS["E11.blest-reinjections"]),
        _reinjects,
    ),
    Claim(
        "E11.blest-goodput",
        "Over 3G and WLAN, BLEST improves goodput.",
        "Networking'16: by 12 % (second-hand)",
        _heterogeneous("transfer_mbps", "goodput", BOUNDS["E11.blest-goodput"]),
        _reinjects,
    ),
    Claim(
        "E11.blest-readings",
        "BLEST has fewer reinjections and more goodput also if the delays are round trips, or the "
        "loss is smaller.",
        "Networking'16: 70 for 366 packets, 12 % (second-hand); the readings are ours",
        (
            *_in_readings("reinjections", "reinjections", BOUNDS["E11.blest-reinjections"]),
            *_in_readings("transfer_mbps", "goodput", BOUNDS["E11.blest-goodput"]),
        ),
    ),
    Claim(
        "E11.blest-out-of-order",
        "Over 3G and WLAN, BLEST reduces out-of-order data.",
        "Networking'16: by 19 % (second-hand)",
        _heterogeneous(
            "out_of_order_mean_bytes", "bytes out of order", BOUNDS["E11.blest-out-of-order"]
        ),
        _reinjects,
    ),
    Claim(
        "E11.blest-homogeneous",
        "Over equal paths, BLEST has the same goodput as lowest RTT.",
        "Networking'16",
        (
            Condition(
                f"|{BLEST} / lowest RTT − 1|, {HOMOGENEOUS}",
                distance_of("transfer_mbps", at(BLEST, HOMOGENEOUS), at(MIN_RTT, HOMOGENEOUS)),
                BOUNDS["E11.blest-homogeneous"],
            ),
        ),
        where="goodput",
    ),
    Claim(
        "E11.blest-cbr",
        "With BLEST, frames at a constant rate arrive sooner than with lowest RTT, by about as "
        "much as in the paper.",
        "Networking'16: 62.8 against 68 ms (second-hand)",
        (
            Condition(
                f"mean delay of frames, {BLEST} / lowest RTT",
                _over_min_rtt("delay_mean_ms", BLEST, HETEROGENEOUS, CBR),
                BOUNDS["E11.blest-cbr"],
            ),
        ),
        where=HETEROGENEOUS,
    ),
    Claim(
        "E11.otias-cbr",
        "With OTIAS, frames at a constant rate arrive sooner than with lowest RTT.",
        "Networking'16: 53.2 against 68 ms (second-hand)",
        (
            Condition(
                f"mean delay of frames, {OTIAS} / lowest RTT",
                _over_min_rtt("delay_mean_ms", OTIAS, HETEROGENEOUS, CBR),
                BOUNDS["E11.otias-cbr"],
            ),
        ),
        where=HETEROGENEOUS,
    ),
    Claim(
        "E11.daps-cbr",
        "With DAPS, frames at a constant rate arrive many times later than with lowest RTT.",
        "Networking'16: 843.7 against 68 ms (second-hand)",
        (
            Condition(
                f"mean delay of frames, {DAPS} / lowest RTT",
                _over_min_rtt("delay_mean_ms", DAPS, HETEROGENEOUS, CBR),
                BOUNDS["E11.daps-cbr"],
            ),
        ),
        _daps_uses_both(HETEROGENEOUS),
        HETEROGENEOUS,
    ),
    Claim(
        "E11.daps-homogeneous",
        "Over equal paths, DAPS delays frames at a constant rate slightly.",
        "Networking'16: 54.02 against 52.18 ms with lowest RTT (second-hand)",
        (
            Condition(
                f"mean delay of frames, {DAPS} / lowest RTT",
                _over_min_rtt("delay_mean_ms", DAPS, HOMOGENEOUS, CBR),
                BOUNDS["E11.daps-homogeneous"],
            ),
        ),
        _daps_uses_both(HOMOGENEOUS),
        HOMOGENEOUS,
    ),
)


_NETWORKING16: dict[str, dict[str, Sequence[float | None]]] = {
    "delay_mean_ms": {
        MIN_RTT: (68.0, 52.18), PAPER: (62.8, 52.24), OTIAS: (53.2, 53.49), DAPS: (843.7, 54.02),
    },
    "reinjections": {MIN_RTT: (366.37, None), PAPER: (70.3, None)},
}  # fmt: skip
"""Networking'16: numbers over 3G and WLAN, and over two WLANs, by metric (second-hand).

The paper states its retransmissions in packets.
"""
_NETWORKING16_GAIN = 1.12
"""Networking'16: goodput of BLEST over that of lowest RTT, over 3G and WLAN (second-hand)."""


def _draw(
    results: Results, axes: Axes, metric: str, unit: str, scale: float, workload: str
) -> None:
    def points(curve: str) -> list[Estimate]:
        cells = (at(curve, paths, workload) for paths in BOTH)
        return [median(results.values(metric, **cell) / scale) for cell in cells]

    bars = {curve: (points(curve), style) for curve, style in STYLES.items()}
    figures.grouped_bars(axes, BOTH, bars, _NETWORKING16.get(metric))
    axes.set_ylabel(unit)
    axes.set_ylim(0)


def _draw_readings(results: Results, axes: Axes) -> None:
    settings = (HETEROGENEOUS, *READINGS)
    for curve in (BLEST, PAPER):
        points = [_over_min_rtt("transfer_mbps", curve, paths)(results) for paths in settings]
        style = replace(STYLES[curve], line="none")
        figures.estimates(axes, range(len(settings)), points, curve, style)
    figures.reference_line(axes, 1, "")
    figures.stated(axes, [0], [_NETWORKING16_GAIN])
    words = ("as above", *(paths.removeprefix(f"{HETEROGENEOUS}, ") for paths in READINGS))
    axes.set_xticks(range(len(settings)), [word.replace(", ", ",\n") for word in words])
    axes.set_ylabel("goodput / that of lowest RTT")


def notes(results: Results) -> Sequence[str]:
    """3G's share of the bytes, and the reasons for the verdicts."""

    def share(curve: str, workload: str = BULK) -> str:
        shares = results.values("share_second", **at(curve, HETEROGENEOUS, workload))
        return median(shares * 100).text("%")

    return [
        f"3G carries {share(MIN_RTT)} of the bytes with lowest RTT, {share(BLEST)} with the rule "
        f"of BLEST's Linux implementation, and {share(PAPER)} with the rule of the paper.",
        "Random loss of 1 % keeps WLAN's congestion window small, so 3G carries most of the bytes "
        "with every rule, and WLAN rarely waits behind 3G: there is little to gain. BLEST also "
        "avoids the penalties of 3G's window. OLIA then takes 3G to be faster, and lets WLAN's "
        "window grow less.",
        "The paper's rule changes its correction by a small step per round trip. The paper tries "
        "steps from 0.001 to 0.02. The correction falls in every round trip in which the fast path "
        "was not blocked, down to 0 at least (our floor). The larger the step, the sooner the rule "
        "no longer waits. With a step of 0, the correction stays 1.",
        "DAPS gives each path a share that follows delays and windows, even if one path could "
        f"carry all data: it sends {share(DAPS, CBR)} of the bytes of frames over 3G, and lowest "
        f"RTT {share(MIN_RTT, CBR)}. After a loss, data waits on the subflow for which it was "
        "planned. Delays come near the paper's only with a queue on 3G, which its background "
        "traffic may have filled, and with fewer losses on WLAN.",
        "We take the paper's delays as one-way, and leave out its background traffic.",
    ]


ENTRY = Entry(
    id="networking16-blest",
    title="Blocking estimation (BLEST) over 3G and WLAN (IFIP Networking 2016)",
    question="Does leaving the slow path idle when it would block the fast path save "
    "retransmissions, buffer space and time?",
    references=(FERLIN_BLEST,),
    parameters=parameters("""
        WLAN | 25 Mbit/s, 25 ms one way, 100 packets, 1 % loss | Networking'16
        3G | 5 Mbit/s, 65 ms one way, 3750 packets, no loss | Networking'16
        meaning of delays | 25 and 65 ms one way | ours: the paper leaves it open
        buffers | send 1024 KiB, receive 2048 KiB | Networking'16
        bulk | 64 MiB | Networking'16
        CBR | 1 Mbit/s in frames of 5 KiB | Networking'16
        congestion control | OLIA | Networking'16
        remedies | M1 and M2 (CoNEXT'13) with every scheduler | Networking'16
        background traffic | none | ours: the paper has some
        step of the paper's correction | 0.01; also 0.001 and 0 | paper: 0.001 to 0.02; 0 (no
            correction) ours
        floor of the paper's correction | 0; also 0.5 | ours: the paper states none
        other readings | 12.5 and 32.5 ms one way; 0.1 % loss; both | ours, for bulk
    """),
    quick=Tier("quick", seeds=20, measured_s=145),
    full=Tier("full", seeds=50, measured_s=145),
    cells=cells,
    uncertain_parameters={**LINKS, **BUFFERS},
    claims=CLAIMS,
    headline="E11.blest-goodput",
    panels=(
        Panel(
            "Reinjections",
            "Segments sent again on another subflow, in a transfer of 64 MiB. Diamonds: "
            "Networking'16, packets over 3G+WLAN.",
            partial(_draw, metric="reinjections", unit="segments", scale=1, workload=BULK),
        ),
        Panel(
            "Goodput of 64 MiB",
            "Medians over seeds with 95 % intervals.",
            partial(_draw, metric="transfer_mbps", unit="goodput (Mbit/s)", scale=1, workload=BULK),
        ),
        Panel(
            "Goodput in other readings",
            "3G+WLAN with the delays as round trips, or with less loss, or both. Diamond: "
            "Networking'16.",
            _draw_readings,
        ),
        Panel(
            "Bytes out of order",
            "Mean over the time in which data arrived.",
            partial(
                _draw,
                metric="out_of_order_mean_bytes",
                unit="mean out of order (kB)",
                scale=1e3,
                workload=BULK,
            ),
        ),
        Panel(
            "Delay of frames at 1 Mbit/s",
            "Mean delay of 5 KiB frames. Diamonds: Networking'16.",
            partial(_draw, metric="delay_mean_ms", unit="mean delay (ms)", scale=1, workload=CBR),
        ),
    ),
    overview=Overview(
        {"workload": "workload", "paths": "paths", "curve": "scheduler"},
        (TRANSFER, REINJECTIONS, OUT_OF_ORDER, MEAN),
        "second",
    ),
    notes=notes,
)
