"""Parallel TCP as GridFTP opens it, next to Multipath TCP: further work of Veerman 2012."""

from itertools import product

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Tier
from anabranch.gallery.measures import by_seed, median, ratio
from anabranch.gallery.metrics import GOODPUT, TRANSFER, part
from anabranch.gallery.shared import veerman12
from anabranch.reports.figures import BLUE, GREEN, ORANGE, Style
from anabranch.reports.table import Table
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, Connection

MPTCP = "MPTCP"
EVEN, RIGHT = "TCP, 1:1", "TCP, 4:1"
STYLES = {MPTCP: Style(GREEN), EVEN: Style(ORANGE, "s--"), RIGHT: Style(BLUE, "D..")}
FILE, SHARED = "file", "beside TCP"
FLOWS = (2, 4, 8)
_PARTS = {EVEN: 1 / 2, RIGHT: 4 / 5}
"""The part of the file that goes over the large link."""

RTT_MS = 35
SMALL_GBPS, LARGE_GBPS = 0.3, 1.0
BUFFER_MB = round(veerman12.min_buffer_mb(RTT_MS, SMALL_GBPS, LARGE_GBPS), 1)
FILE_MB = 2000
"""Size of the file in MB of the slides' scale."""
_BYTES = FILE_MB * 1_000_000 // veerman12.SCALE
_LINKS = (veerman12.link("small", SMALL_GBPS, RTT_MS), veerman12.link("large", LARGE_GBPS, RTT_MS))

at = Factors("workload", "curve", "flows")
"""The factors of a cell; Multipath TCP is one connection with two subflows."""

FILES = ((MPTCP, 1), *product(_PARTS, FLOWS))
"""The curves that carry a file, and their numbers of flows."""


def cells(tier: Tier) -> list[Cell]:
    """A file with every number of flows and both splits; the largest number next to TCP."""
    files = [_cell(tier, FILE, *case) for case in FILES]
    return files + [_cell(tier, SHARED, *case) for case in _NEXT_TO_TCP.values()]


def _cell(tier: Tier, workload: str, curve: str, flows: int) -> Cell:
    connections = [_connection(*row, whole=workload == FILE) for row in _transfers(curve, flows)]
    if workload == SHARED:
        connections.append(_connection("tcp", ("large",), 0, whole=False))
    words = (workload, curve, str(flows))
    return tier.cell(
        at(workload, curve, flows),
        _LINKS,
        connections,
        words=[word.replace(":", "-") for word in words],
        name=", ".join(words),
        warm_up=None if workload == FILE else tier.warm_up,
        sample_interval="1s",
    )


def _transfers(curve: str, flows: int) -> list[tuple[str, tuple[str, ...], int]]:
    """Name, paths and bytes of each connection that carries a part of the file."""
    if curve == MPTCP:
        return [("main", ("large", "small"), _BYTES)]
    parts = {"large": _PARTS[curve], "small": 1 - _PARTS[curve]}
    return [
        (f"{link}-{number}", (link,), round(_BYTES * part / (flows // 2)))
        for link, part in parts.items()
        for number in range(flows // 2)
    ]


def _connection(name: str, paths: tuple[str, ...], size: int, *, whole: bool) -> Connection:
    workload = Bulk(size=f"{size}B") if whole else Bulk()
    return veerman12.connection(BUFFER_MB, name=name, paths=paths, workload=workload)


@by_seed
def file_mbps(results: Results, curve: str, flows: int) -> Sample:
    """Size of the file over the time until its last part has arrived, for each seed."""
    times = [
        size * 8e-6 / TRANSFER.values(at(FILE, curve, flows), connection=name)(results)
        for name, _, size in _transfers(curve, flows)
    ]
    return np.asarray(_BYTES * 8e-6 / np.max(times, axis=0))


@by_seed
def tcp_share(results: Results, curve: str, flows: int) -> Sample:
    """TCP's share of the bytes over the large link, for each seed."""
    cell = at(SHARED, curve, flows)

    def goodput(name: str) -> Sample:
        return GOODPUT.values(cell, connection=name)(results)

    tcp = goodput("tcp")
    if curve == MPTCP:
        crossing = goodput("main") * part("large").values(cell, connection="main")(results)
    else:
        crossing = np.sum([goodput(f"large-{n}") for n in range(flows // 2)], axis=0)
    return np.asarray(tcp / (tcp + crossing))


def _over_parallel(curve: str) -> tuple[Quantity, ...]:
    """The rate of Multipath TCP over that of parallel TCP."""
    words = f"rate of the file, {MPTCP} / {curve}"
    return for_each(
        f"{words}, {{}} flows",
        FLOWS,
        lambda flows: ratio(file_mbps(MPTCP, 1), file_mbps(curve, flows)),
        f"{words}, with {', '.join(map(str, FLOWS))} flows",
    )


_BOTH_USED = carried(("large", "small"), at(FILE, MPTCP, 1) | {"connection": "main"})
_FOUR = f"{max(FLOWS) // 2} parallel flows"
_NEXT_TO_TCP = {MPTCP: (MPTCP, 1), _FOUR: (EVEN, max(FLOWS))}


def _next_to(words: str, bound: str = "") -> Quantity:
    share = median(tcp_share(*_NEXT_TO_TCP[words]))
    return Quantity(f"TCP's share next to {words}", share, bound)


CLAIMS = {
    "VP.a-right-split": claim(_over_parallel(RIGHT), needs=_BOTH_USED),
    "VP.b-even-split": claim(_over_parallel(EVEN), needs=_BOTH_USED),
    "VP.c-fair": claim(_next_to(MPTCP), _next_to(_FOUR, "parallel")),
}


def _overview(results: Results) -> Table:
    """The rate of the file with each number of flows, and TCP's shares."""
    rows = [
        (curve, str(flows), median(file_mbps(curve, flows))(results).text(), "–")
        for curve, flows in FILES
    ]
    rows += [
        (f"{curve}, endless", str(flows), "–", median(tcp_share(curve, flows))(results).text())
        for curve, flows in _NEXT_TO_TCP.values()
    ]
    return Table(("curve", "flows", "rate of the file (Mbit/s)", "share of TCP"), tuple(rows))


def _measured_words(results: Results) -> dict[str, object]:
    slow = float(np.median(file_mbps(EVEN, max(FLOWS))(results)))
    return {"slow": slow, "of_twice": slow / (2 * SMALL_GBPS * 1000 / veerman12.SCALE) * 100}


PANELS = {
    "A file of 2 GB over both links": panels.points(
        FLOWS,
        lambda curve, flows: median(file_mbps(curve, 1 if curve == MPTCP else flows)),
        {curve: STYLES[curve] for curve in (EVEN, RIGHT, MPTCP)},
        "parallel flows of TCP",
        "rate of the file (Mbit/s)",
        ticks=FLOWS,
        top=140,
        lines={(SMALL_GBPS + LARGE_GBPS) * 1000 / veerman12.SCALE: "sum of\nthe links"},
    ),
    "TCP next to them, on the large link": panels.bars(
        ("large link",),
        lambda words, _: median(tcp_share(*_NEXT_TO_TCP[words])),
        {words: STYLES[curve] for words, (curve, _) in _NEXT_TO_TCP.items()},
        "share of one TCP flow",
        top=1,
        lines={0.5: "half"},
    ),
}

EXPERIMENT = Experiment(
    words={"scale": veerman12.SCALE, "rtt_ms": RTT_MS, "file_mb": FILE_MB, "buffer_mb": BUFFER_MB},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=_overview,
    measured_words=_measured_words,
)
