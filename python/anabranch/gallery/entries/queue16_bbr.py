"""Cardwell et al., ACM Queue 2016: BBR over bufferbloated and lossy paths, and next to others."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import by_seed, in_words, median, part_of, per_seed, ratio
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.connections import AS_LINUX_COUNTS, access, flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Connection

BBR, BBR3, CUBIC, LIA = "BBR", "BBR version 3", "CUBIC", "LIA"
STYLES = {BBR: Style(GREEN), BBR3: Style(BLUE, "s--"), CUBIC: Style(RED, "D..")}
_CONTROL = {BBR: "bbr", BBR3: "bbr3", CUBIC: "cubic_linux", LIA: "lia"}

LOSS, BUFFER, FAIR, NEXT, MULTIPATH = "loss", "buffer", "five flows", "next to CUBIC", "multipath"

LOSSES_PERCENT = (0.001, 0.1, 1.0, 5.0, 15.0)
BUFFERS_KB = (50, 100, 200, 400)
"""The smallest one holds the smallest windows of eight BBR flows."""
_STEADY = "400s"
"""Duration with large buffers: 400 kB last 25 s, and the queue of the start drains slowly."""
BDPS = (1, 2, 4, 8)
"""Queues of the bottleneck that BBR shares with CUBIC, in bandwidth-delay products."""
_PAYLOAD = 1448 / 1500

at = Factors("experiment", "curve", size=0.0)


def _flow(curve: str, path: str = "link", **others: Any) -> Connection:
    linux = partial(flow, host=AS_LINUX_COUNTS, buffers="32MB")
    return linux((path,), congestion_control=_CONTROL[curve], **others)


def _alone(tier: Tier, curve: str, size: float) -> Cell:
    path = network_path("link", "100Mbit/s", "50ms", "830packets", loss=f"{size}%")
    return _cell(tier, [path], [_flow(curve)], LOSS, curve, size)


def _eight(tier: Tier, curve: str, size: int) -> Cell:
    path = network_path("link", "128kbit/s", "20ms", f"{size}kB")
    flows = [_flow(curve, name=f"flow{number}", start=f"{number}s") for number in range(8)]
    steady = {"duration": _STEADY, "warm_up": "10s", "keep_samples": True}
    return _cell(tier, [path], flows, BUFFER, curve, size, **steady)


def _five(tier: Tier, curve: str) -> Cell:
    path = network_path("link", "100Mbit/s", "5ms", "830packets")
    flows = [_flow(curve, name=f"flow{number}", start=f"{number}s") for number in range(5)]
    return _cell(tier, [path], flows, FAIR, curve)


def _next_to_cubic(tier: Tier, curve: str, size: int) -> Cell:
    path = network_path("link", "10Mbit/s", "20ms", f"{40 * size}ms")
    return _cell(tier, [path], [_flow(curve), _flow(CUBIC, name="other")], NEXT, curve, size)


def _multipath(tier: Tier, curve: str) -> Cell:
    """Two subflows and a TCP flow over one bottleneck, with the same congestion control."""
    core = network_path("core", "20Mbit/s", "15ms", "40ms")
    control = _CONTROL[curve]
    main = flow(("one", "two"), control=control)
    tcp = flow(("alone",), name="other", congestion_control="new_reno" if curve == LIA else control)
    paths = [core, *(access(name, "core", "5ms") for name in ("one", "two", "alone"))]
    return _cell(tier, paths, [main, tcp], MULTIPATH, curve)


def _cell(
    tier: Tier,
    paths: Sequence[Any],
    connections: Sequence[Connection],
    experiment: str,
    curve: str,
    size: float = 0,
    **others: Any,
) -> Cell:
    words = (experiment, curve, f"{size:g}")
    factors = at(experiment, curve, size=float(size))
    return tier.cell(factors, paths, connections, words=words, sample_interval="100ms", **others)


cells = joined(
    grid(_alone, curve=STYLES, size=LOSSES_PERCENT),
    grid(_eight, curve=STYLES, size=BUFFERS_KB),
    grid(_five, curve=(BBR, BBR3)),
    grid(_next_to_cubic, curve=(BBR, BBR3), size=BDPS),
    grid(_multipath, curve=(*STYLES, LIA)),
)


def _of_possible(curve: str, percent: float) -> Measure:
    """Goodput over what the link can carry with these losses."""
    possible = 100 * _PAYLOAD * (1 - percent / 100)
    return median(GOODPUT.values(at(LOSS, curve, size=percent)), 1 / possible)


@by_seed
def rtt_ms(results: Results, curve: str, size: float) -> Sample:
    """The median of the smoothed round-trip times of all flows in the second half of a run."""
    rows = results.rows("samples", **at(BUFFER, curve, size=float(size)))
    late = rows.filter((pl.col("time_ns") > pl.col("time_ns").max() / 2) & (pl.col("srtt_ns") > 0))
    return per_seed(late, pl.col("srtt_ns").median() / 1e6, f"no round-trip times of {curve}")


def _rtt_s(curve: str, size: int) -> Measure:
    return median(rtt_ms(curve, size), 1e-3)


@by_seed
def smallest_share(results: Results, curve: str) -> Sample:
    """The goodput of the slowest flow over an equal share."""
    rows = results.rows("runs", **at(FAIR, curve))
    part = pl.col("goodput_mbps").min() / pl.col("goodput_mbps").mean()
    return per_seed(rows, part, f"no flows with {curve}")


def share(curve: str, experiment: str, size: float = 0.0) -> Measure:
    """The part of the bottleneck that the first connection gets."""
    cell = at(experiment, curve, size=float(size))
    first, other = (GOODPUT.values(cell, connection=name) for name in ("main", "other"))
    return median(part_of(first, other))


CLAIMS = {
    "Q16.a-cubic-tenth": claim(
        Quantity(
            "goodput of CUBIC with 0.1 % / with 0.001 % of losses",
            GOODPUT.ratio(at(LOSS, CUBIC, size=0.1), at(LOSS, CUBIC, size=0.001)),
        )
    ),
    "Q16.b-cubic-stalls": claim(
        for_each(
            "goodput of CUBIC / possible, {} % of losses",
            (1.0, 5.0, 15.0),
            partial(_of_possible, CUBIC),
            "goodput of CUBIC / possible, 1 to 15 % of losses",
        )
    ),
    "Q16.c-bbr-maximum": claim(
        for_each(
            "goodput of BBR / possible, {} % of losses",
            LOSSES_PERCENT[:4],
            partial(_of_possible, BBR),
            "goodput of BBR / possible, up to 5 % of losses",
        )
    ),
    "Q16.d-bbr-close": claim(
        Quantity("goodput of BBR / possible, 15 % of losses", _of_possible(BBR, 15.0))
    ),
    "Q16.e-bbr-short-queue": claim(
        Quantity(
            f"median RTT of BBR with {BUFFERS_KB[-1]} / with {BUFFERS_KB[0]} kB",
            ratio(rtt_ms(BBR, BUFFERS_KB[-1]), rtt_ms(BBR, BUFFERS_KB[0])),
        )
    ),
    "Q16.f-cubic-fills": claim(
        for_each(
            "median RTT of CUBIC with {1} / with {0} kB",
            pairwise(BUFFERS_KB),
            lambda half, whole: ratio(rtt_ms(CUBIC, whole), rtt_ms(CUBIC, half)),
            "median RTT of CUBIC over that with half of the buffer",
        )
    ),
    "Q16.g-bbr-fair": claim(
        Quantity("goodput of the slowest of five flows / equal share", median(smallest_share(BBR)))
    ),
    "Q16.h-large-buffers": claim(
        Quantity(f"share of BBR, queue of {BDPS[-1]} products", share(BBR, NEXT, BDPS[-1]))
    ),
    "Q16.i-subflows": claim(Quantity("share of two subflows with BBR", share(BBR, MULTIPATH))),
    "Q16.j-subflows-3": claim(
        Quantity("share of two subflows with BBR version 3", share(BBR3, MULTIPATH))
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    next_to = "; ".join(
        f"queue of {size} products: {_shares(results, (BBR, BBR3), NEXT, size)}" for size in BDPS
    )
    buffers = "; ".join(
        f"{size} kB: {in_words(results, STYLES, partial(_rtt_s, size=size))}" for size in BUFFERS_KB
    )
    return {
        "buffers": buffers,
        "next_to": next_to,
        "multipath": _shares(results, (*STYLES, LIA), MULTIPATH),
    }


def _shares(results: Results, curves: Sequence[str], experiment: str, size: float = 0.0) -> str:
    return in_words(results, curves, lambda curve: share(curve, experiment, size))


PANELS = {
    "Random losses": panels.points(
        LOSSES_PERCENT,
        _of_possible,
        STYLES,
        "loss rate (%)",
        "goodput / possible",
        ticks=LOSSES_PERCENT,
        lines={1: ""},
    ),
    "Large buffers": panels.points(
        BUFFERS_KB, _rtt_s, STYLES, "buffer (kB)", "median round-trip time (s)", ticks=BUFFERS_KB
    ),
    "Next to CUBIC": panels.points(
        BDPS,
        lambda curve, size: share(curve, NEXT, size),
        {curve: STYLES[curve] for curve in (BBR, BBR3)},
        "queue (bandwidth-delay products)",
        "share",
        ticks=BDPS,
        lines={0.5: "equal"},
        top=1,
    ),
    "Two subflows next to one TCP flow": panels.bars(
        ("two subflows",),
        lambda curve, _: share(curve, MULTIPATH),
        {**STYLES, LIA: Style(ORANGE, "^-.")},
        "share",
        lines={0.5: "equal", 2 / 3: "as two flows"},
        top=1,
    ),
}

EXPERIMENT = Experiment(
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("experiment; size; curve: congestion control", "link", (GOODPUT,)),
    measured_words=_measured_words,
)
