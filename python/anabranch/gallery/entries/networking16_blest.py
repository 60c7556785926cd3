"""Ferlin, Alay, Mehani, Boreli, IFIP Networking 2016: BLEST, a scheduler that avoids blocking."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from anabranch.gallery import metrics, panels
from anabranch.gallery.claims import Quantity, Unnamed, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports import figures
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, Cbr, NetworkPath

MIN_RTT, BLEST, PAPER = "lowest RTT", "BLEST (Linux)", "BLEST (paper)"
FINE, FIXED = "BLEST (paper, step 0.001)", "BLEST (paper, step 0)"
FLOORED = "BLEST (paper, floor 0.5)"
RULES = (BLEST, PAPER, FINE, FIXED, FLOORED)
OTIAS, STTF, DAPS = "OTIAS", "STTF", "DAPS"
STYLES = {
    MIN_RTT: figures.Style(figures.BLUE),
    BLEST: figures.Style(figures.GREEN, "^-."),
    PAPER: figures.Style(figures.SKY, "x:"),
    FINE: figures.Style(figures.ORANGE, "D.."),
    FIXED: figures.Style(figures.PURPLE, "v--"),
    FLOORED: figures.Style(figures.BLACK, "*:"),
    OTIAS: figures.Style(figures.RED, "s-"),
    STTF: figures.Style(figures.GREY, "P-."),
    DAPS: figures.Style(figures.YELLOW, "X--"),
}
_SCHEDULER: dict[str, Any] = {
    MIN_RTT: "min_rtt",
    BLEST: "blest",
    PAPER: {"kind": "blest", "rule": "paper", "step": 0.01},
    FINE: {"kind": "blest", "rule": "paper", "step": 0.001},
    FIXED: {"kind": "blest", "rule": "paper", "step": 0.0},
    FLOORED: {"kind": "blest", "rule": "paper", "step": 0.01, "floor": 0.5},
    **{name: name.lower() for name in (OTIAS, STTF, DAPS)},
}


def _wlan(name: str, delay_ms: float = 25, loss: str = "1%") -> NetworkPath:
    return network_path(name, "25Mbit/s", f"{delay_ms:g}ms", "100packets", loss=loss)


def _umts(delay_ms: float) -> NetworkPath:
    return network_path("second", "5Mbit/s", f"{delay_ms:g}ms", "3750packets")


HETEROGENEOUS, HOMOGENEOUS = "3G+WLAN", "WLAN+WLAN"
BOTH = (HETEROGENEOUS, HOMOGENEOUS)
READINGS = {
    "3G+WLAN, 0.1 % loss": (_wlan("wlan", loss="0.1%"), _umts(65)),
    "3G+WLAN, round trips": (_wlan("wlan", 12.5), _umts(32.5)),
    "3G+WLAN, round trips, 0.1 % loss": (_wlan("wlan", 12.5, "0.1%"), _umts(32.5)),
}
"""Other readings of the paper's table: its delays as round trips, and a smaller loss."""
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

at = Factors("curve", "paths", workload=BULK)


def _cell(tier: Tier, curve: str, paths: str, workload: str) -> Cell:
    connection = flow(
        control="olia",
        scheduler=_SCHEDULER[curve],
        send_buffer="1024KiB",
        receive_buffer="2048KiB",
        remedies=M12,
        workload=_WORKLOADS[workload],
    )
    return tier.cell(
        at(curve, paths, workload),
        _PATHS[paths],
        connection,
        words=(curve, paths.replace("%", "percent"), workload.split()[0]),
        name=f"{curve}, {paths}, {workload}",
    )


def _over_min_rtt(metric: metrics.Metric, curve: str, paths: str, workload: str = BULK) -> Measure:
    return metric.ratio(at(curve, paths, workload), at(MIN_RTT, paths, workload))


def _heterogeneous(words: str, metric: metrics.Metric) -> tuple[Quantity, ...]:
    """A metric of each BLEST rule over that of lowest RTT."""
    words = f"{words}, {{}} / lowest RTT, {HETEROGENEOUS}"
    return for_each(words, RULES, lambda curve: _over_min_rtt(metric, curve, HETEROGENEOUS))


def _in_readings(name: str, metric: metrics.Metric) -> tuple[Quantity, ...]:
    """A metric of BLEST over that of lowest RTT, in every other reading."""
    words = f"{name}, {BLEST} / lowest RTT"
    group = f"{words}, every other reading"
    measure = partial(_over_min_rtt, metric, BLEST)
    return for_each(f"{words}, {{}}", READINGS, measure, group, name)


_ON_SECOND = metrics.part("second")


def _reinjects(results: Results) -> str | None:
    """The precondition that lowest RTT reinjects, and that 3G carries bytes with BLEST."""
    reinjections = metrics.REINJECTIONS.number(results, at(MIN_RTT, HETEROGENEOUS))
    if reinjections < 50:
        return f"lowest RTT reinjects only {reinjections:.0f} segments"
    shares = _ON_SECOND.values(at(BLEST, HETEROGENEOUS))(results)
    return None if float(shares.min()) > 0.01 else "3G carried nothing with BLEST"


def _daps_uses_both(paths: str, results: Results) -> str | None:
    """The precondition that frames at a constant rate use both paths with DAPS."""
    shares = _ON_SECOND.values(at(DAPS, paths, CBR))(results)
    return None if shares.min() > 0.01 and shares.max() < 0.99 else "DAPS uses one path"


def _frames(curve: str, paths: str) -> Unnamed:
    """A claim about the delay of frames at a constant rate."""
    words = f"mean delay of frames, {curve} / lowest RTT"
    quantity = Quantity(words, _over_min_rtt(metrics.MEAN, curve, paths, CBR))
    needs = partial(_daps_uses_both, paths) if curve == DAPS else None
    return claim(quantity, needs=needs)


CLAIMS = {
    "E11.blest-reinjections": claim(
        _heterogeneous("reinjections", metrics.REINJECTIONS), needs=_reinjects
    ),
    "E11.blest-goodput": claim(_heterogeneous("goodput", metrics.TRANSFER), needs=_reinjects),
    "E11.blest-readings": claim(
        _in_readings("reinjections", metrics.REINJECTIONS),
        _in_readings("goodput", metrics.TRANSFER),
    ),
    "E11.blest-out-of-order": claim(
        _heterogeneous("bytes out of order", metrics.OUT_OF_ORDER), needs=_reinjects
    ),
    "E11.blest-homogeneous": claim(
        Quantity(
            f"|{BLEST} / lowest RTT − 1|, {HOMOGENEOUS}",
            metrics.TRANSFER.distance(at(BLEST, HOMOGENEOUS), at(MIN_RTT, HOMOGENEOUS)),
        )
    ),
    "E11.blest-cbr": _frames(BLEST, HETEROGENEOUS),
    "E11.otias-cbr": _frames(OTIAS, HETEROGENEOUS),
    "E11.daps-cbr": _frames(DAPS, HETEROGENEOUS),
    "E11.daps-homogeneous": _frames(DAPS, HOMOGENEOUS),
}


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


def _bars(metric: metrics.Metric, workload: str = BULK) -> panels.Draw:
    cell = partial(at, workload=workload)
    return panels.bars_of(BOTH, metric, cell, STYLES, _NETWORKING16.get(metric.column))


_READINGS = {HETEROGENEOUS: "as above"} | {
    paths: paths.removeprefix(f"{HETEROGENEOUS}, ").replace(", ", ",\n") for paths in READINGS
}


def _measured_words(results: Results) -> dict[str, object]:
    return metrics.texts(results, at, on_3g=metrics.share("second"))


PANELS = {
    "Reinjections": _bars(metrics.REINJECTIONS.called("segments")),
    "Goodput of 64 MiB": _bars(metrics.TRANSFER),
    "Goodput in other interpretations": panels.points(
        dict(enumerate(_READINGS)),
        partial(_over_min_rtt, metrics.TRANSFER),
        {curve: replace(STYLES[curve], fmt=STYLES[curve].marker) for curve in (BLEST, PAPER)},
        "",
        "goodput / that of lowest RTT",
        places=tuple(_READINGS.values()),
        bottom=None,
        lines={1: ""},
        stated=[(0, _NETWORKING16_GAIN)],
    ),
    "Bytes out of order": _bars(metrics.OUT_OF_ORDER_KB),
    "Delay of frames at 1 Mbit/s": _bars(metrics.MEAN, CBR),
}

EXPERIMENT = Experiment(
    design=joined(
        grid(_cell, workload=_WORKLOADS, paths=BOTH, curve=STYLES),
        grid(_cell, workload=(BULK,), paths=READINGS, curve=(MIN_RTT, BLEST, PAPER)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "workload; paths; curve: scheduler",
        "second",
        (metrics.TRANSFER, metrics.REINJECTIONS, metrics.OUT_OF_ORDER, metrics.MEAN),
    ),
    measured_words=_measured_words,
)
