"""Grinnemo and Brunstrom 2015: Multipath TCP and the latency of cloud applications."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs, Quantity, Unnamed, carried, claim, each, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier
from anabranch.gallery.measures import by_seed, mean
from anabranch.gallery.metrics import MEAN, P50, P95, Levels, share
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Style, estimates
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import NothingMeasured, Results
from anabranch.scenarios.scenario import Distribution, NetworkPath, OnOff, RequestResponse
from anabranch.words import listed

NETFLIX, NETFLIX_SMALL, MAPS, DOCS = "Netflix 1 MB", "Netflix 256 kB", "Maps", "Docs"
NETFLIXES = (NETFLIX, NETFLIX_SMALL)
HEAVY = (*NETFLIXES, MAPS)
APPLICATIONS = {
    NETFLIX: Style(BLUE),
    NETFLIX_SMALL: Style(SKY, "^-."),
    MAPS: Style(ORANGE, "s--"),
    DOCS: Style(PURPLE, "x:"),
}
TCP, MPTCP, BLEST, ECF = "TCP", "MPTCP", "MPTCP, BLEST", "MPTCP, ECF"
ROUND_ROBIN = "MPTCP, round robin"
UNCOUPLED = "MPTCP, uncoupled CUBIC"
"""Differs from TCP in the number of paths only; `MPTCP` also in the congestion control."""
TCP_TUNED, MPTCP_TUNED = "TCP, tuned buffers", "MPTCP, tuned buffers"
"""With the buffers of Linux, which it tunes between the sizes of Grinnemo'15."""
_TUNED = {
    "kind": "linux",
    "buffers": "socket",
    "tcp_rmem_default": "87380B",
    "tcp_rmem_max": "104857600B",
    "tcp_wmem_max": "104857600B",
}
_CONTROL = {TCP: "cubic", UNCOUPLED: "cubic", TCP_TUNED: "cubic"}
_SCHEDULER = {MPTCP: "min_rtt", ROUND_ROBIN: "round_robin", BLEST: "blest", ECF: "ecf"}
SCHEDULERS = {
    MPTCP: Style(RED),
    BLEST: Style(GREEN, "^-."),
    ECF: Style(BLUE, "s--"),
    ROUND_ROBIN: Style(ORANGE, "D.."),
}
RTTS_MS = (10, 40, 100, 200, 400)
LOSSES_PERCENT = (0, 2, 4)
SHORT_MS = 10
"""Round-trip time of path one where the paths differ."""
LOSSY_RTTS_MS = RTTS_MS[:3]
"""Round-trip times with loss: of equal paths, and of path two where the paths differ."""
BURSTS = {f"{segments} segments": segments for segments in (10, 20, 30, 40, 50)}
BURST_RTTS_MS = {10: GREEN, 40: ORANGE, 100: RED}
_SEGMENT_BYTES = 1400
_PERIOD_S = 3.0
"""Mean time from the start of a Netflix burst to the start of the next."""


def _netflix(median_size: str) -> OnOff:
    return OnOff(
        burst_size=Distribution(kind="lognormal", median=median_size, sigma=0.3),
        interval=Distribution(kind="uniform", min="2s", max="4s"),
    )


def _burst(segments: int) -> OnOff:
    size = f"{segments * _SEGMENT_BYTES}B"
    return OnOff(burst_size=size, interval=Distribution(kind="uniform", min="1s", max="3s"))


_WORKLOADS: dict[str, OnOff | RequestResponse] = {
    NETFLIX: _netflix("1MB"),
    NETFLIX_SMALL: _netflix("256kB"),
    MAPS: RequestResponse(
        request_size="400B",
        responses=Distribution(kind="uniform", min=8, max=20),
        response_size=Distribution(kind="lognormal", median="16kB", sigma=0.23),
        think_time=Distribution(kind="exponential", mean="2s"),
    ),
    DOCS: OnOff(
        burst_size=Distribution(kind="uniform", min="100B", max="1000B"),
        interval=Distribution(kind="exponential", mean="0.5s"),
    ),
    **{name: _burst(segments) for name, segments in BURSTS.items()},
}

at = Factors("application", "curve", "rtt_one_ms", "rtt_two_ms", loss_percent=0)


def _equal(
    applications: Iterable[str],
    rtts: Iterable[int],
    losses: Iterable[int] = (0,),
    curve: str = MPTCP,
) -> list[Levels]:
    """Cells whose paths have equal round-trip times."""
    grid = product(applications, rtts, losses)
    return [at(application, curve, rtt, rtt, loss) for application, rtt, loss in grid]


def cells(tier: Tier) -> list[Cell]:
    """Every application over equal and unequal paths with and without loss; the burst grid."""
    settings = [
        *_equal(APPLICATIONS, RTTS_MS, LOSSES_PERCENT, TCP),
        *_equal(APPLICATIONS, RTTS_MS, LOSSES_PERCENT),
        *_equal(NETFLIXES, RTTS_MS, curve=UNCOUPLED),
        *_equal(NETFLIXES, LOSSY_RTTS_MS, LOSSES_PERCENT[1:], UNCOUPLED),
        *_equal(NETFLIXES, RTTS_MS, curve=TCP_TUNED),
        *_equal(NETFLIXES, RTTS_MS, curve=MPTCP_TUNED),
        *at.every(APPLICATIONS, MPTCP, SHORT_MS, RTTS_MS[1:]),
        *at.every(APPLICATIONS, MPTCP, SHORT_MS, LOSSY_RTTS_MS[1:], LOSSES_PERCENT[1:]),
        *_equal(BURSTS, (SHORT_MS,), curve=TCP),
    ]
    for curve in (ROUND_ROBIN, BLEST, ECF):
        settings += at.every(HEAVY, curve, SHORT_MS, RTTS_MS[1:])
    for curve in (MPTCP, BLEST, ECF):
        settings += at.every(BURSTS, curve, SHORT_MS, BURST_RTTS_MS)
    return [_cell(tier, setting) for setting in settings]


def _cell(tier: Tier, factors: Levels) -> Cell:
    application, curve, *levels = map(str, factors.values())
    one, two, loss = map(int, levels)
    tcp, tuned = curve in (TCP, TCP_TUNED), curve in (TCP_TUNED, MPTCP_TUNED)
    connection = flow(
        ("one",) if tcp else None,
        congestion_control=_CONTROL.get(curve, "lia"),
        hystart=False,
        scheduler=_SCHEDULER.get(curve),
        host=_TUNED if tuned else None,
        buffers=None if tuned else "104857600B",
        nagle=False,
        dss_checksum=None if tcp else True,
        workload=_WORKLOADS[application],
    )
    return tier.cell(
        factors,
        (_path("one", one, loss), _path("two", two, loss)),
        connection,
        words=(application, curve, f"{one}-{two}ms", f"{loss}percent"),
    )


def _path(name: str, rtt_ms: int, loss_percent: int) -> NetworkPath:
    delay = f"{rtt_ms // 2}ms"
    return network_path(name, "100Mbit/s", delay, "2500packets", loss=f"{loss_percent}%")


def relative(cell: Levels) -> Measure:
    """Mean latency over the mean latency of TCP on path one, paired by seed.

    With the same seed, both have the same bursts. Both have tuned buffers, or neither.
    """
    return mean(_paired(cell, _tcp(cell)))


def _tcp(cell: Levels) -> Levels:
    """The cell of TCP on path one, with the same kind of buffers."""
    curve = TCP_TUNED if cell["curve"] == MPTCP_TUNED else TCP
    return {**cell, "curve": curve, "rtt_two_ms": cell["rtt_one_ms"]}


@by_seed
def _paired(results: Results, above: Levels, below: Levels) -> Sample:
    pair = [MEAN.values(cell)(results) for cell in (above, below)]
    if pair[0].size != pair[1].size:
        raise NothingMeasured(f"not every seed has a latency: {above}")
    return pair[0] / pair[1]


def is_carried(results: Results, cell: Levels) -> bool:
    """`True` if TCP on path one on average delivers a Netflix burst before the next one is due.

    Otherwise bursts wait for earlier bursts, and the latency grows with the length of the run.
    """
    if cell["application"] not in NETFLIXES:
        return True
    try:
        return MEAN.number(results, _tcp(cell)) < _PERIOD_S * 1e3
    except NothingMeasured:
        return False


def _words(cell: Levels) -> str:
    application, curve, one, two, loss = cell.values()
    lossy = f", {loss} % loss" if loss else ""
    return f"{application}, {one}/{two} ms{lossy}: {curve} / {_tcp(cell)['curve']}"


def _grows(words: str, applications: Iterable[str], rtts: Sequence[int]) -> tuple[Quantity, ...]:
    """Latency at each round-trip time of path two over that at the next smaller one."""
    group = f"{words}: latency at each round-trip time of path two / at the next smaller one"
    return for_each(
        f"{{0}}: latency at {SHORT_MS}/{{2}} ms / at {SHORT_MS}/{{1}} ms",
        ((application, *step) for application in applications for step in pairwise(rtts)),
        lambda application, before, after: mean(
            _paired(*(at(application, MPTCP, SHORT_MS, rtt) for rtt in (after, before)))
        ),
        f"{group}, {SHORT_MS}/{rtts[0]} to {SHORT_MS}/{rtts[-1]} ms",
    )


_EQUAL = f"{RTTS_MS[0]} to {RTTS_MS[-1]} ms on both paths"
_LOSSY = (
    f"{listed(LOSSES_PERCENT[1:])} % loss, {', '.join(map(str, LOSSY_RTTS_MS))} ms on both paths"
)
_NETFLIX = "Netflix, both sizes of bursts"
_NETFLIX_AND_MAPS = f"{_NETFLIX}, and Maps"


_used = carried(("one", "two"), *({"application": each, "curve": MPTCP} for each in HEAVY), over=0)
"""The precondition that each path carried data of Netflix and Maps, with lowest RTT."""


def _claim(words: str, cells: Iterable[Levels], needs: Needs | None = _used) -> Unnamed:
    """A claim about the relative latency in each cell."""
    quantities = each(words, {_words(cell): relative(cell) for cell in cells})
    return claim(quantities, needs=needs)


_LOSSES = LOSSES_PERCENT[1:]

CLAIMS = {
    "E8.a-netflix": _claim(
        f"{_NETFLIX}: latency of MPTCP / TCP, {_EQUAL}", _equal(NETFLIXES, RTTS_MS)
    ),
    "E8.b-maps": _claim(f"Maps: latency of MPTCP / TCP, {_EQUAL}", _equal((MAPS,), RTTS_MS)),
    "E8.c-docs": _claim(
        f"Docs: latency of MPTCP / TCP, {_EQUAL}", _equal((DOCS,), RTTS_MS), needs=None
    ),
    "E8.d-loss": _claim(
        f"{_NETFLIX}: latency of MPTCP / TCP, {_LOSSY}", _equal(NETFLIXES, LOSSY_RTTS_MS, _LOSSES)
    ),
    "E8.a-netflix-same-control": _claim(
        f"{_NETFLIX}: latency of {UNCOUPLED} / TCP, {_EQUAL}",
        _equal(NETFLIXES, RTTS_MS, curve=UNCOUPLED),
        needs=None,
    ),
    "E8.a-netflix-tuned": _claim(
        f"{_NETFLIX}: latency of {MPTCP_TUNED} / {TCP_TUNED}, {_EQUAL}",
        _equal(NETFLIXES, RTTS_MS, curve=MPTCP_TUNED),
        needs=None,
    ),
    "E8.d-loss-same-control": _claim(
        f"{_NETFLIX}: latency of {UNCOUPLED} / TCP, {_LOSSY}",
        _equal(NETFLIXES, LOSSY_RTTS_MS, _LOSSES, UNCOUPLED),
        needs=None,
    ),
    "E8.e-docs-loss": _claim(
        f"Docs: latency of MPTCP / TCP, {_LOSSY}",
        _equal((DOCS,), LOSSY_RTTS_MS, _LOSSES),
        needs=None,
    ),
    "E8.f-little-difference": _claim(
        f"{_NETFLIX}: latency of MPTCP at 10/40 ms / TCP over 10 ms",
        at.every(NETFLIXES, MPTCP, SHORT_MS, 40),
    ),
    "E8.k-loss-and-difference": _claim(
        f"{_NETFLIX}: latency of MPTCP at 10/40 ms / TCP over 10 ms, {listed(_LOSSES)} % loss",
        at.every(NETFLIXES, MPTCP, SHORT_MS, 40, _LOSSES),
    ),
    "E8.g-grows-with-ratio": claim(_grows(_NETFLIX_AND_MAPS, HEAVY, RTTS_MS), needs=_used),
    "E8.h-large-difference": _claim(
        f"{_NETFLIX_AND_MAPS}: latency of MPTCP at 10/400 ms / TCP over 10 ms",
        at.every(HEAVY, MPTCP, SHORT_MS, 400),
    ),
    **{
        f"E8.{name}": _claim(
            f"{_NETFLIX_AND_MAPS}: latency of {curve} at 10/100 ms / TCP over 10 ms",
            at.every(HEAVY, curve, SHORT_MS, 100),
        )
        for name, curve in (("i-ecf", ECF), ("j-blest", BLEST))
    },
    "E8b.a-bursts-grow": claim(_grows("bursts of 10 to 50 segments", BURSTS, tuple(BURST_RTTS_MS))),
    "E8b.b-bursts-ecf": _claim(
        f"bursts of 10 to 50 segments: latency of {ECF} at 10/100 ms / TCP over 10 ms",
        at.every(BURSTS, ECF, SHORT_MS, 100),
        needs=None,
    ),
}

_RELATIVE = "mean latency / that of TCP on path one"


def _at_ratio(application: str, curve: str, rtt: int) -> Measure:
    """A curve's relative latency. At equal round-trip times, only lowest RTT runs."""
    return relative(at(application, curve if rtt > SHORT_MS else MPTCP, SHORT_MS, rtt))


def _unequal(curves: dict[str, tuple[str, str, Style]]) -> panels.Draw:
    """Curves over the round-trip time of path two; each has an application and a scheduler."""
    return panels.points(
        RTTS_MS,
        lambda name, rtt: _at_ratio(*curves[name][:2], rtt),
        {name: style for name, (_, _, style) in curves.items()},
        "round-trip time of path two (ms); path one: 10 ms", _RELATIVE,
        ticks=RTTS_MS, log=True, bottom=0.5, lines={1: ""},
    )  # fmt: skip


def _draw_loss(results: Results, axes: panels.Axes) -> None:
    pairs = [(rtt, rtt) for rtt in LOSSY_RTTS_MS] + [(SHORT_MS, rtt) for rtt in LOSSY_RTTS_MS[1:]]
    places = [(*pair, loss) for pair in pairs for loss in _LOSSES]
    for index, (application, style) in enumerate(APPLICATIONS.items()):
        cells = {place: at(application, MPTCP, *setting) for place, setting in enumerate(places)}
        drawn = {
            place + 0.18 * (index - 1.5): relative(cell)(results)
            for place, cell in cells.items()
            if is_carried(results, cell)
        }
        marks = Style(style.colour, style.marker)
        estimates(axes, list(drawn), list(drawn.values()), application, marks)
    names = [f"{one}/{two} ms, {loss} %" for one, two, loss in places]
    axes.set_xticks(range(len(places)), names, rotation=40, ha="right", fontsize=7)
    panels.dress(axes, {"lines": {1: ""}}, y=_RELATIVE)


_BURST_CURVES = {
    f"10/{rtt} ms, {words}": ((curve, SHORT_MS, rtt), replace(SCHEDULERS[curve], colour=colour))
    for rtt, colour in BURST_RTTS_MS.items()
    for curve, words in ((MPTCP, "lowest RTT"), (ECF, "ECF"))
}


def _measured_words(results: Results) -> dict[str, object]:
    def ratios(application: str, curve: str = MPTCP) -> str:
        values = (_at_ratio(application, curve, rtt)(results).value for rtt in RTTS_MS)
        return f"{application} {' / '.join(f'{value:.2f}' for value in values)}"

    def lossy(curve: str) -> str:
        cells = _equal((NETFLIX_SMALL,), LOSSY_RTTS_MS, _LOSSES, curve)
        carried = (cell for cell in cells if is_carried(results, cell))
        return ", ".join(f"{relative(cell)(results).value:.2f}" for cell in carried)

    overloaded = [
        "{application}, {rtt_one_ms} ms, {loss_percent} %".format(**cell)
        for cell in _equal(NETFLIXES, RTTS_MS, LOSSES_PERCENT)
        if not is_carried(results, cell)
    ]
    docs = at(DOCS, MPTCP, SHORT_MS, 40)
    docs_two = share("two").number(results, docs)
    docs_ms, tcp_ms = (MEAN.number(results, cell) for cell in (docs, _tcp(docs)))
    return {
        "ratios": "; ".join(ratios(application) for application in HEAVY),
        "docs_two": docs_two,
        "docs_ms": docs_ms,
        "tcp_ms": tcp_ms,
        "lossy_lia": lossy(MPTCP),
        "lossy_cubic": lossy(UNCOUPLED),
        "overloaded": "; ".join(overloaded),
        "ecf": "; ".join(ratios(each, ECF) for each in HEAVY),
        "blest": "; ".join(ratios(each, BLEST) for each in HEAVY),
    }


PANELS = {
    "Equal round-trip times": panels.points(
        RTTS_MS,
        lambda application, rtt: relative(at(application, MPTCP, rtt, rtt)),
        APPLICATIONS,
        "round-trip time of both paths (ms)",
        _RELATIVE,
        ticks=RTTS_MS,
        lines={1: ""},
    ),
    "Different round-trip times": _unequal(
        {name: (name, MPTCP, style) for name, style in APPLICATIONS.items()}
    ),
    "Loss on both paths": _draw_loss,
    **{
        f"Schedulers, {application}": _unequal(
            {curve: (application, curve, style) for curve, style in SCHEDULERS.items()}
        )
        for application in (NETFLIX, MAPS)
    },
    "Bursts of 10 to 50 segments": panels.points(
        {segments: name for name, segments in BURSTS.items()},
        lambda name, burst: relative(at(burst, *_BURST_CURVES[name][0])),
        {name: style for name, (_, style) in _BURST_CURVES.items()},
        "burst (segments of 1400 bytes)",
        _RELATIVE,
        lines={1: ""},
    ),
}

EXPERIMENT = Experiment(
    words={"netflix_small": NETFLIX_SMALL},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "application; curve; rtt_one_ms: RTT one (ms); rtt_two_ms: RTT two (ms); "
        "loss_percent: loss (%)",
        "two",
        (MEAN.called("mean latency"), P50.called("median latency"), P95.called("p95 latency")),
    ),
    measured_words=_measured_words,
)
